"""A bar with what a film needs: to go on or stand, the time, and a rail that can be clicked and dragged along."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import pygame

from racer_viewer.ui.intents import Click, Drag, Intent, MouseMove, Release, Scroll
from racer_viewer.ui.theme import MARGIN, TEXT, TEXT_SMALL, Colour, Theme

HEIGHT, WARNING_HEIGHT = 58, 20
"""Of the bar, and what a warning adds, at scale 1 [px]."""
GROUND: Colour = (13, 17, 19)
BUTTON_GROUND: Colour = (40, 48, 53)
BUTTON_RADIUS = 17
RAIL_TOP, RAIL_HEIGHT, KNOB_RADIUS = 25, 7, 8
LABEL_TOP, LABEL_GAP = 5, 5
SMALL_TOP, SMALL_HEIGHT = 34, 4
NEWS_TOP = 41
"""From the top of the bar, at scale 1 [px]."""
TIME_TOP, CAPTION_TOP = 9, 35
WORDS_WIDTH, SPEED_WIDTH = 170, 32
"""Least room for the time and what is below it, and of that for the speed, at scale 1 [px]."""
LEAST_DISTANCE = 3
"""Between two marks [px]: what is nearer to one that is there already is left out."""
ICONS: dict[str, tuple[tuple[tuple[float, float], ...], ...]] = {
    "go": (((-0.28, -0.45), (-0.28, 0.45), (0.5, 0.0)),),
    "stand": (
        ((-0.4, -0.42), (-0.4, 0.42), (-0.12, 0.42), (-0.12, -0.42)),
        ((0.12, -0.42), (0.12, 0.42), (0.4, 0.42), (0.4, -0.42)),
    ),
    "again": (
        ((-0.45, -0.42), (-0.45, 0.42), (-0.25, 0.42), (-0.25, -0.42)),
        ((0.4, -0.45), (0.4, 0.45), (-0.22, 0.0)),
    ),
}
"""Polygons, in parts of the button's radius: what pressing it does."""


class PlayState(Enum):
    PLAYING = auto()
    PAUSED = auto()
    ENDED = auto()


BUTTONS = {PlayState.PLAYING: "stand", PlayState.PAUSED: "go", PlayState.ENDED: "again"}


@dataclass(frozen=True)
class TimelineMark:
    """Something at a place: a line with its label left of it, above the rail, or a small stroke below the rail.

    Where there is no room for all labels, those of marks with a colour of their own go first.
    """

    at: int
    label: str = ""
    colour: Colour | None = None
    small: bool = False


class Timeline:
    """Where something is between 0 and its length, both whole numbers.

    words: a place as it is shown. on_move: told a place that was clicked or dragged to. on_press: told that the button
    was pressed. All else is set by whoever has it, before it is drawn.
    """

    def __init__(
        self, length: int, words: Callable[[int], str], on_move: Callable[[int], None], on_press: Callable[[], None]
    ) -> None:
        self.length = max(1, length)
        self.marks: Sequence[TimelineMark] = ()
        self.place = 0
        self.state = PlayState.PLAYING
        self.speed = ""
        self.caption, self.caption_colour = "", (0, 0, 0)
        """What is seen, with a dot of this colour."""
        self.news = ""
        """A line below the rail."""
        self.warning = ""
        """A line below everything, to be seen as long as it is shown."""
        self.held = False
        """Whether the mouse's button is held that was pressed here."""
        self._words, self._on_move, self._on_press = words, on_move, on_press
        self._dragged = False
        self._pointed: int | None = None
        self._area = self._rail = self._button = pygame.Rect(0, 0, 0, 0)
        self._plate = pygame.Surface((1, 1))
        self._plate_of: tuple[object, ...] = ()
        self._laid_out_for: tuple[object, ...] = ()
        self._fitted: dict[str, tuple[tuple[object, ...], str]] = {}

    def height(self, theme: Theme) -> int:
        """That it wants [px]."""
        return theme.px(HEIGHT) + (theme.px(WARNING_HEIGHT) if self.warning else 0)

    @property
    def rail(self) -> pygame.Rect:
        """Where places are, as it was drawn last."""
        return self._rail

    @property
    def button(self) -> pygame.Rect:
        """Rectangle of the play button, as it was drawn last."""
        return self._button

    def handle(self, intent: Intent) -> bool:
        """Whether it was for it. What began here stays here, wherever the mouse is dragged to."""
        match intent:
            case Click(x, y):
                return self._click(x, y)
            case Drag(x=x):
                if self._dragged:
                    self._move_to(x)
                return self.held
            case Release():
                held, self.held, self._dragged = self.held, False, False
                return held
            case MouseMove(x, y):
                self.held = self._dragged = False
                self._pointed = x if self._area.collidepoint(x, y) and self._is_on_rail(x) else None
                return False
            case Scroll(x=x, y=y):
                return bool(self._area.collidepoint(x, y))
            case _:
                return False

    def draw(self, surface: pygame.Surface, theme: Theme) -> None:
        """Along the bottom of a surface."""
        self._lay_out(surface.get_size(), theme)
        surface.blit(self._drawn_plate(theme), self._area)
        self._draw_button(surface, theme)
        self._draw_words(surface, theme)
        self._draw_place(surface, theme)
        if self._pointed is not None:
            self._draw_pointed(surface, theme, self._pointed)

    def _click(self, x: int, y: int) -> bool:
        self.held = bool(self._area.collidepoint(x, y))
        self._dragged = self.held and self._is_on_rail(x)
        if self._dragged:
            self._move_to(x)
        elif self.held and x < self._rail.left:
            self._on_press()
        return self.held

    def _is_on_rail(self, x: int) -> bool:
        """Whether it is meant, with some room at both ends."""
        return self._rail.left - self._rail.height <= x <= self._rail.right + self._rail.height

    def _move_to(self, x: int) -> None:
        self._pointed = None
        self._on_move(self._place_at(x))

    def _place_at(self, x: int) -> int:
        share = (x - self._rail.left) / max(1, self._rail.width)
        return round(min(1.0, max(0.0, share)) * self.length)

    def _x(self, place: int) -> int:
        return self._rail.left + round(self._rail.width * min(1.0, place / self.length))

    def _lay_out(self, size: tuple[int, int], theme: Theme) -> None:
        height, wanted = self.height(theme), (size, theme, self.length, self.warning)
        if wanted == self._laid_out_for:
            return
        self._laid_out_for = wanted
        self._area = pygame.Rect(0, size[1] - height, size[0], height)
        margin, radius = theme.px(MARGIN), theme.px(BUTTON_RADIUS)
        self._button = pygame.Rect(margin, self._area.y + theme.px(HEIGHT) // 2 - radius, 2 * radius, 2 * radius)
        left = self._words_left(theme) + self._words_width(theme) + theme.px(1.5 * MARGIN)
        width = max(theme.px(60), size[0] - theme.px(1.5 * MARGIN) - left)
        self._rail = pygame.Rect(left, self._area.y + theme.px(RAIL_TOP), width, theme.px(RAIL_HEIGHT))

    def _words_left(self, theme: Theme) -> int:
        return self._button.right + theme.px(10)

    def _words_width(self, theme: Theme) -> int:
        """Enough for the longest time."""
        end = self._words(self.length)
        return max(theme.px(WORDS_WIDTH), theme.width(f"{'0' * len(end)} / {end}"))

    def _drawn_plate(self, theme: Theme) -> pygame.Surface:
        """All that does not move."""
        wanted = self._area.size, self._rail.size, theme, tuple(self.marks), self.warning
        if wanted != self._plate_of:
            self._plate_of = wanted
            self._plate = pygame.Surface(self._area.size)
            self._plate.fill(GROUND)
            self._plate.fill(theme.palette.line, (0, 0, self._area.width, theme.px(1)))
            rail = self._rail.move(0, -self._area.y)
            pygame.draw.rect(self._plate, theme.palette.line, rail, border_radius=rail.height // 2)
            self._draw_marks(theme)
            self._draw_warning(theme)
        return self._plate

    def _draw_marks(self, theme: Theme) -> None:
        """Those with a colour of their own first: they keep their places."""
        taken: dict[bool, set[int]] = {True: set(), False: set()}
        labels: list[pygame.Rect] = []
        for mark in sorted(self.marks, key=lambda mark: mark.colour is None):
            x, colour = self._x(mark.at), mark.colour or theme.palette.faint
            if x in taken[mark.small]:
                continue
            taken[mark.small].update(range(x - LEAST_DISTANCE + 1, x + LEAST_DISTANCE))
            if mark.small:
                self._draw_stroke(theme, x, SMALL_TOP, SMALL_TOP + SMALL_HEIGHT, colour)
            else:
                labelled = bool(mark.label) and self._draw_label(theme, mark, x, labels)
                self._draw_stroke(theme, x, LABEL_TOP + 2 if labelled else RAIL_TOP - SMALL_HEIGHT, RAIL_TOP, colour)

    def _draw_stroke(self, theme: Theme, x: int, top: int, bottom: int, colour: Colour) -> None:
        """Between two heights at scale 1 [px]."""
        width = theme.px(1.5)
        self._plate.fill(colour, (x - width // 2, theme.px(top), width, theme.px(bottom) - theme.px(top)))

    def _draw_label(self, theme: Theme, mark: TimelineMark, x: int, taken: list[pygame.Rect]) -> bool:
        """Whether there was room for it."""
        text = theme.text(mark.label, TEXT_SMALL, mark.colour or theme.palette.text)
        place = text.get_rect(topright=(x - theme.px(LABEL_GAP), theme.px(LABEL_TOP)))
        room = place.inflate(2 * theme.px(LABEL_GAP), 0)
        if place.left < self._rail.left - theme.px(MARGIN) or room.collidelist(taken) >= 0:
            return False
        self._plate.blit(text, place)
        taken.append(room)
        return True

    def _draw_warning(self, theme: Theme) -> None:
        if not self.warning:
            return
        x, y = self._words_left(theme), theme.px(HEIGHT) - theme.px(1)
        room = self._area.width - x - theme.px(MARGIN)
        text = theme.text(theme.truncate(self.warning, room, TEXT_SMALL), TEXT_SMALL, theme.palette.accent)
        self._plate.blit(text, (x, y))
        middle, size = self._button.centerx, theme.px(7)
        centre = y + text.get_height() // 2
        points = [(middle, centre - size), (middle - size, centre + size * 0.8), (middle + size, centre + size * 0.8)]
        pygame.draw.polygon(self._plate, theme.palette.accent, points)
        stroke = theme.px(1.5)
        self._plate.fill(GROUND, (middle - stroke // 2, centre - size // 3, stroke, theme.px(5)))
        self._plate.fill(GROUND, (middle - stroke // 2, centre + size // 2, stroke, stroke))

    def _draw_button(self, surface: pygame.Surface, theme: Theme) -> None:
        radius = self._button.width // 2
        x, y = self._button.center
        pygame.draw.aacircle(surface, BUTTON_GROUND, (x, y), radius)
        for polygon in ICONS[BUTTONS[self.state]]:
            points = [(x + px * radius, y + py * radius) for px, py in polygon]
            pygame.draw.polygon(surface, theme.palette.text, points)

    def _draw_words(self, surface: pygame.Surface, theme: Theme) -> None:
        left, top = self._words_left(theme), self._area.y
        now = theme.text(self._words(self.place))
        surface.blit(now, (left, top + theme.px(TIME_TOP)))
        of = theme.text(f" / {self._words(self.length)}", TEXT, theme.palette.faint)
        surface.blit(of, (left + now.get_width(), top + theme.px(TIME_TOP)))
        y = top + theme.px(CAPTION_TOP)
        speed = theme.text(self.speed, TEXT_SMALL, theme.palette.accent)
        surface.blit(speed, (left, y))
        dot, x = theme.px(4), left + theme.px(SPEED_WIDTH)
        pygame.draw.aacircle(surface, self.caption_colour, (x + dot, y + speed.get_height() // 2), dot)
        x += 2 * dot + theme.px(6)
        caption = self._fitting("caption", self.caption, self._rail.left - theme.px(MARGIN) - x, theme)
        surface.blit(theme.text(caption, TEXT_SMALL), (x, y))
        news = self._fitting("news", self.news, self._rail.width, theme)
        below = self._rail.left, top + theme.px(NEWS_TOP)
        surface.blit(theme.text(news, TEXT_SMALL, theme.palette.faint), below)

    def _fitting(self, name: str, text: str, width: int, theme: Theme) -> str:
        """As the theme fits it; measured again only when something has changed."""
        asked = text, width, theme
        if self._fitted.get(name, ((), ""))[0] != asked:
            self._fitted[name] = asked, theme.truncate(text, width, TEXT_SMALL)
        return self._fitted[name][1]

    def _draw_place(self, surface: pygame.Surface, theme: Theme) -> None:
        x, rail = self._x(self.place), self._rail
        if x > rail.left:
            done = pygame.Rect(rail.left, rail.y, x - rail.left, rail.height)
            pygame.draw.rect(surface, theme.palette.accent, done, border_radius=rail.height // 2)
        pygame.draw.aacircle(surface, GROUND, (x, rail.centery), theme.px(KNOB_RADIUS + 2))
        pygame.draw.aacircle(surface, theme.palette.text, (x, rail.centery), theme.px(KNOB_RADIUS))

    def _draw_pointed(self, surface: pygame.Surface, theme: Theme, x: int) -> None:
        """The time under the mouse, over the labels."""
        text = theme.text(self._words(self._place_at(x)), TEXT_SMALL, theme.palette.on_accent)
        plate = text.get_rect().inflate(theme.px(10), theme.px(2))
        plate.midbottom = x, self._rail.y - theme.px(2)
        plate.clamp_ip(self._area)
        surface.fill(theme.palette.accent, (x, self._rail.y, theme.px(1.5), self._rail.height))
        pygame.draw.rect(surface, theme.palette.accent, plate, border_radius=theme.px(4))
        surface.blit(text, text.get_rect(center=plate.center))
