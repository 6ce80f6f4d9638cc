"""Signs over a race at the top of the picture: position, delta bar, invalid lap, wrong way and penalty."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pygame

from racer_env.engine import TICKS_PER_SECOND
from racer_viewer.snapshot import Snapshot
from racer_viewer.timing import signed
from racer_viewer.translation import _
from racer_viewer.ui.paint import draw_centred, draw_medal
from racer_viewer.ui.theme import CORNER, TEXT, TEXT_LARGE, Colour, Theme

TOP, GAP = 12, 6
"""Distance from the top of the picture, and between two signs, at scale 1 [px]."""
WORD_GAP = 8
"""Distance between two words of a sign at scale 1 [px]."""
MEDAL_RADIUS = 12
"""Radius of a medal in a sign at scale 1 [px]."""
BAR_WIDTH, BAR_HEIGHT = 230, 12
"""Size of the delta bar at scale 1 [px]."""
BAR_RANGE = 1.0
"""Delta at which the bar is full [s]."""
BLINK_TICKS = 20
"""Time for which the wrong-way sign is bright, and then dark [ticks]."""
LIGHTS = 3
"""Number of lights at the start; one more is lit in each second of the countdown."""
LIGHT_RADIUS, LIGHT_GAP, LIGHTS_TEXT = 19, 14, 116
"""Radius of a light and distance between two at scale 1 [px], and size of the text below them."""
DARK_LIGHT, RED_LIGHT, GREEN_LIGHT, LIGHT_FRAME = (48, 24, 24), (255, 62, 44), (92, 232, 122), (8, 10, 12)
"""Colours of the lights and of the frame around them."""
LIGHT_SMOOTHING = 3
"""Supersampling factor of the lights."""
MAX_BOARDS = 32
"""Maximum number of cached pictures of signs."""

Words = Sequence[tuple[str, int, Colour]]
"""Texts with their sizes and colours; an empty text is a medal."""


class RaceHud:
    """Signs of the followed car, one below the other; `bottom` is where the last one ends [px].

    laps: laps of the race; 0 for no limit.
    """

    def __init__(self, laps: int) -> None:
        self._laps = laps
        self.bottom = self._room = 0
        self.signs: list[pygame.Rect] = []
        """Areas of the signs drawn last [px]."""
        self._boards: dict[tuple[object, ...], pygame.Surface] = {}
        """Pictures of signs by theme and content; building one takes longer than drawing it."""

    def draw(
        self,
        surface: pygame.Surface,
        theme: Theme,
        snapshot: Snapshot,
        held: int = 0,
        top: int = 0,
        room: int | None = None,
    ) -> None:
        """Draw the signs below `top` [px].

        held: remaining time of a penalty [ticks].
        room: width that is free in the middle of the picture [px]; half of it if not given.
        """
        self.signs, timing = [], snapshot.timing
        self._room = surface.get_width() // 2 if room is None else room
        self.bottom = top + theme.px(TOP)
        if timing is None:
            return
        self._draw_position(surface, theme, snapshot)
        if timing.ghost_delta is not None:
            self._draw_delta(surface, theme, timing.ghost_delta / TICKS_PER_SECOND)
        if snapshot.wrong_way:
            dark = int(snapshot.car["step_count"]) // BLINK_TICKS % 2
            self._draw_sign(surface, theme, _("WRONG WAY"), TEXT_LARGE, theme.palette.bad, bool(dark))
        if held:
            text = _("Back on the road in {seconds:.1f} s").format(seconds=held / TICKS_PER_SECOND)
            self._draw_sign(surface, theme, text, TEXT, theme.palette.accent)
        elif timing.fault:
            self._draw_sign(
                surface, theme, _("Lap invalid: {fault}").format(fault=timing.fault), TEXT, theme.palette.bad
            )

    def _draw_position(self, surface: pygame.Surface, theme: Theme, snapshot: Snapshot) -> None:
        """Draw the position in the race and the lap, as far as there are any."""
        assert snapshot.timing is not None
        words: list[tuple[str, int, Colour]] = []
        if snapshot.places:
            words.append((f"P{snapshot.places[snapshot.focus]}", TEXT_LARGE, theme.palette.text))
            words.append((_("of {count}").format(count=len(snapshot.places)), TEXT, theme.palette.faint))
        if self._laps:
            lap = min(snapshot.timing.lap, self._laps)
            words.append((("  " if words else "") + _("Lap {lap}").format(lap=lap), TEXT_LARGE, theme.palette.text))
            words.append((_("of {laps}").format(laps=self._laps), TEXT, theme.palette.faint))
        if words:
            self.draw_words(surface, theme, words)

    def draw_words(self, surface: pygame.Surface, theme: Theme, words: Words) -> None:
        """Draw words on one baseline as a further sign below the others."""
        key = *words, self._room
        self._place(surface, theme, self._board(theme, key, lambda: _word_board(theme, words, self._room)))

    def draw_lights(self, surface: pygame.Surface, theme: Theme, lit: int, text: str, bottom: int) -> None:
        """Draw the lights of the start with a text below them, which ends at `bottom` [px].

        lit: number of red lights; all are green if it is 0. They get smaller where there is little room.
        """
        room = bottom - self.bottom
        theme = theme.fitting(lambda smaller: _lights_height(smaller) <= room)
        board = self._board(theme, ("lights", lit, text), lambda: _lights_board(theme, lit, text))
        surface.blit(board, board.get_rect(midbottom=(surface.get_width() // 2, bottom)))

    def _draw_delta(self, surface: pygame.Surface, theme: Theme, delta: float) -> None:
        """Draw a bar that grows to the left while the car is ahead of the ghost, else to the right."""
        colour = theme.palette.good if delta <= 0.0 else theme.palette.bad
        width, height = min(theme.px(BAR_WIDTH), self._room - theme.px(16)), theme.px(BAR_HEIGHT)
        groove = pygame.Rect(theme.px(8), theme.px(6), width, height)
        place = self._place(surface, theme, self._board(theme, ("delta", width), lambda: _delta_board(theme, groove)))
        reach = round(min(1.0, abs(delta) / BAR_RANGE) * width / 2)
        groove.move_ip(place.topleft)
        filled = pygame.Rect(groove.centerx - (reach if delta <= 0.0 else 0), groove.y, reach, height)
        pygame.draw.rect(surface, colour, filled, border_radius=theme.px(3))
        pygame.draw.rect(
            surface, theme.palette.text, (groove.centerx - theme.px(1), groove.y - 2, theme.px(2), height + 4)
        )
        number = theme.text(signed(delta), TEXT, colour)
        surface.blit(number, number.get_rect(midtop=(place.centerx, groove.bottom + theme.px(4))))

    def _draw_sign(
        self, surface: pygame.Surface, theme: Theme, text: str, size: int, colour: Colour, inverted: bool = False
    ) -> None:
        ground, ink = (colour, theme.palette.on_accent) if not inverted else (theme.palette.on_accent, colour)
        key = text, size, ground, self._room
        self._place(
            surface, theme, self._board(theme, key, lambda: _sign_board(theme, text, size, ground, ink, self._room))
        )

    def _board(self, theme: Theme, content: tuple[object, ...], make: Callable[[], pygame.Surface]) -> pygame.Surface:
        """Return the picture of a sign from the cache, or make it."""
        key = theme.scale, theme.palette, *content
        if key not in self._boards:
            if len(self._boards) >= MAX_BOARDS:
                self._boards.clear()
            self._boards[key] = make()
        return self._boards[key]

    def _place(self, surface: pygame.Surface, theme: Theme, board: pygame.Surface) -> pygame.Rect:
        place = board.get_rect(midtop=(surface.get_width() // 2, self.bottom))
        surface.blit(board, place)
        self.signs.append(place)
        self.bottom = place.bottom + theme.px(GAP)
        return place


def _delta_board(theme: Theme, groove: pygame.Rect) -> pygame.Surface:
    """Return the background of the delta bar, with space for a number below."""
    board = theme.panel(groove.width + theme.px(16), groove.height + theme.line_height() + theme.px(14))
    pygame.draw.rect(board, theme.palette.line, groove, border_radius=groove.height // 2)
    return board


def _sign_board(theme: Theme, text: str, size: int, ground: Colour, ink: Colour, room: int) -> pygame.Surface:
    theme = theme.fitting(lambda smaller: smaller.width(text, size) + smaller.px(28) <= room)
    line = theme.text(text, size, ink)
    board = pygame.Surface((line.get_width() + theme.px(28), line.get_height() + theme.px(14)), pygame.SRCALPHA, 32)
    pygame.draw.rect(board, ground, board.get_rect(), border_radius=theme.px(CORNER))
    board.blit(line, line.get_rect(center=board.get_rect().center))
    return board


def _word_board(theme: Theme, words: Words, room: int) -> pygame.Surface:
    def word_width(theme: Theme, text: str, size: int) -> int:
        return theme.width(text, size) if text else 2 * theme.px(MEDAL_RADIUS)

    def width(theme: Theme) -> int:
        texts = sum(word_width(theme, text, size) for text, size, _colour in words)
        return texts + theme.px(WORD_GAP) * (len(words) - 1) + theme.px(28)

    theme = theme.fitting(lambda smaller: width(smaller) <= room)
    baseline = max(theme.font(size).get_ascent() for _text, size, _colour in words)
    board = theme.panel(width(theme), max(theme.line_height(size) for _text, size, _colour in words) + theme.px(8))
    x = theme.px(14)
    for text, size, colour in words:
        if text:
            board.blit(theme.text(text, size, colour), (x, theme.px(5) + baseline - theme.font(size).get_ascent()))
        else:
            draw_medal(board, colour, (x + theme.px(MEDAL_RADIUS), board.get_height() // 2), theme.px(MEDAL_RADIUS))
        x += word_width(theme, text, size) + theme.px(WORD_GAP)
    return board


def _lights_height(theme: Theme) -> int:
    return 2 * theme.px(LIGHT_RADIUS + LIGHT_GAP) + theme.line_height(LIGHTS_TEXT)


def _lights_board(theme: Theme, lit: int, text: str) -> pygame.Surface:
    """Return the lights in their frame, with a text below."""
    smooth = LIGHT_SMOOTHING
    radius, gap = smooth * theme.px(LIGHT_RADIUS), smooth * theme.px(LIGHT_GAP)
    frame = pygame.Surface((LIGHTS * 2 * radius + (LIGHTS + 1) * gap, 2 * (radius + gap)), pygame.SRCALPHA, 32)
    frame.fill((*LIGHT_FRAME, 0))
    pygame.draw.rect(frame, (*LIGHT_FRAME, 225), frame.get_rect(), border_radius=radius + gap)
    for number in range(LIGHTS):
        centre = gap + radius + number * (2 * radius + gap), radius + gap
        colour = GREEN_LIGHT if not lit else RED_LIGHT if number < lit else DARK_LIGHT
        if colour != DARK_LIGHT:
            pygame.draw.circle(frame, tuple(part * 2 // 5 for part in colour), centre, radius + gap // 2)
        pygame.draw.circle(frame, colour, centre, radius)
        shine = [min(255, part + (70 if colour != DARK_LIGHT else 18)) for part in colour]
        pygame.draw.circle(frame, shine, (centre[0] - radius // 3, centre[1] - radius // 3), radius // 3)
    frame = pygame.transform.smoothscale(frame, (frame.get_width() // smooth, frame.get_height() // smooth))
    width = max(frame.get_width(), theme.width(text, LIGHTS_TEXT) + 4 * theme.px(LIGHT_GAP))
    board = pygame.Surface((width, frame.get_height() + theme.line_height(LIGHTS_TEXT)), pygame.SRCALPHA, 32)
    board.blit(frame, frame.get_rect(midtop=(width // 2, 0)))
    colour = theme.palette.accent if lit else theme.palette.good
    draw_centred(board, theme, text, frame.get_height(), LIGHTS_TEXT, colour)
    return board
