"""Timeline: a bar along the bottom with a play button, the time, and a rail to click and drag along."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import pygame

from racer_viewer.ui.intents import Click, Drag, Intent, MouseMove, Release, Scroll
from racer_viewer.ui.theme import MARGIN, TEXT, TEXT_SMALL, Colour, Theme

HEIGHT, WARNING_HEIGHT = 58, 20
"""Height of the bar, and of the line that a warning adds, at scale 1 [px]."""
BACKGROUND: Colour = (13, 17, 19)
BUTTON_COLOUR: Colour = (40, 48, 53)
BUTTON_RADIUS = 17
RAIL_TOP, RAIL_HEIGHT, KNOB_RADIUS = 25, 7, 8
LABEL_TOP, LABEL_GAP = 5, 5
SMALL_TOP, SMALL_HEIGHT = 34, 4
NOTE_TOP, TIME_TOP, CAPTION_TOP = 41, 9, 35
"""Offsets from the top of the bar and sizes, at scale 1 [px]."""
MIN_TIME_WIDTH, SPEED_WIDTH = 170, 32
"""Minimum width of the time and the caption below it, and width of the speed within that, at scale 1 [px]."""
MIN_MARK_DISTANCE = 3
"""Minimum distance between two marks [px]; marks that are closer to another are left out."""
ICONS: dict[str, tuple[tuple[tuple[float, float], ...], ...]] = {
    "play": (((-0.28, -0.45), (-0.28, 0.45), (0.5, 0.0)),),
    "pause": (
        ((-0.4, -0.42), (-0.4, 0.42), (-0.12, 0.42), (-0.12, -0.42)),
        ((0.12, -0.42), (0.12, 0.42), (0.4, 0.42), (0.4, -0.42)),
    ),
    "restart": (
        ((-0.45, -0.42), (-0.45, 0.42), (-0.25, 0.42), (-0.25, -0.42)),
        ((0.4, -0.45), (0.4, 0.45), (-0.22, 0.0)),
    ),
}
"""Icons of the button by what it does: polygons in parts of the button's radius."""


class PlayState(Enum):
    """State of what the timeline shows."""

    PLAYING = auto()
    PAUSED = auto()
    ENDED = auto()


BUTTONS = {PlayState.PLAYING: "pause", PlayState.PAUSED: "play", PlayState.ENDED: "restart"}


@dataclass(frozen=True)
class TimelineMark:
    """A mark at a position: a line above the rail with a label, or a small stroke below the rail.

    Where not all labels fit, marks with a colour of their own take precedence.
    """

    at: int
    label: str = ""
    colour: Colour | None = None
    small: bool = False


class Timeline:
    """A position between 0 and a length, both integers. Its owner sets the public attributes before drawing.

    format_position: converts a position to text.
    on_seek: called with the position that was clicked or dragged to.
    on_press: called when the button is pressed.
    """

    def __init__(
        self,
        length: int,
        format_position: Callable[[int], str],
        on_seek: Callable[[int], None],
        on_press: Callable[[], None],
    ) -> None:
        self.length = max(1, length)
        self.marks: Sequence[TimelineMark] = ()
        self.position = 0
        self.state = PlayState.PLAYING
        self.speed = ""
        self.caption, self.caption_colour = "", (0, 0, 0)
        """Name of what is shown, after a dot of this colour."""
        self.note = ""
        """Text below the rail."""
        self.warning = ""
        """Text on a line of its own at the bottom."""
        self.held = False
        """True while a mouse button that was pressed on the bar is held."""
        self._format, self._on_seek, self._on_press = format_position, on_seek, on_press
        self._dragged = False
        self._hover_x: int | None = None
        self._area = self._rail = self._button = pygame.Rect(0, 0, 0, 0)
        self._static = pygame.Surface((1, 1))
        self._static_key: tuple[object, ...] = ()
        self._layout_key: tuple[object, ...] = ()
        self._truncated: dict[str, tuple[tuple[object, ...], str]] = {}

    def height(self, theme: Theme) -> int:
        """Return the height that the timeline takes [px]."""
        return theme.px(HEIGHT) + (theme.px(WARNING_HEIGHT) if self.warning else 0)

    @property
    def rail(self) -> pygame.Rect:
        """Rectangle of the rail, as it was drawn last."""
        return self._rail

    @property
    def button(self) -> pygame.Rect:
        """Rectangle of the play button, as it was drawn last."""
        return self._button

    def handle(self, intent: Intent) -> bool:
        """Handle an intent; return whether it belongs to the timeline, as do drags that began on it."""
        match intent:
            case Click(x, y):
                return self._click(x, y)
            case Drag(x=x):
                if self._dragged:
                    self._seek(x)
                return self.held
            case Release():
                held, self.held, self._dragged = self.held, False, False
                return held
            case MouseMove(x, y):
                self.held = self._dragged = False
                self._hover_x = x if self._area.collidepoint(x, y) and self._is_on_rail(x) else None
                return False
            case Scroll(x=x, y=y):
                return bool(self._area.collidepoint(x, y))
            case _:
                return False

    def draw(self, surface: pygame.Surface, theme: Theme) -> None:
        """Draw along the bottom of a surface."""
        self._lay_out(surface.get_size(), theme)
        surface.blit(self._static_part(theme), self._area)
        self._draw_button(surface, theme)
        self._draw_time(surface, theme)
        self._draw_position(surface, theme)
        if self._hover_x is not None:
            self._draw_hover(surface, theme, self._hover_x)

    def _click(self, x: int, y: int) -> bool:
        self.held = bool(self._area.collidepoint(x, y))
        self._dragged = self.held and self._is_on_rail(x)
        if self._dragged:
            self._seek(x)
        elif self.held and x < self._rail.left:
            self._on_press()
        return self.held

    def _is_on_rail(self, x: int) -> bool:
        """Return whether x is on the rail, with some tolerance at both ends."""
        return self._rail.left - self._rail.height <= x <= self._rail.right + self._rail.height

    def _seek(self, x: int) -> None:
        self._hover_x = None
        self._on_seek(self._position_at(x))

    def _position_at(self, x: int) -> int:
        share = (x - self._rail.left) / max(1, self._rail.width)
        return round(min(1.0, max(0.0, share)) * self.length)

    def _x(self, position: int) -> int:
        return self._rail.left + round(self._rail.width * min(1.0, position / self.length))

    def _lay_out(self, size: tuple[int, int], theme: Theme) -> None:
        height, wanted = self.height(theme), (size, theme, self.length, self.warning)
        if wanted == self._layout_key:
            return
        self._layout_key = wanted
        self._area = pygame.Rect(0, size[1] - height, size[0], height)
        margin, radius = theme.px(MARGIN), theme.px(BUTTON_RADIUS)
        self._button = pygame.Rect(margin, self._area.y + theme.px(HEIGHT) // 2 - radius, 2 * radius, 2 * radius)
        left = self._time_left(theme) + self._time_width(theme) + theme.px(1.5 * MARGIN)
        width = max(theme.px(60), size[0] - theme.px(1.5 * MARGIN) - left)
        self._rail = pygame.Rect(left, self._area.y + theme.px(RAIL_TOP), width, theme.px(RAIL_HEIGHT))

    def _time_left(self, theme: Theme) -> int:
        return self._button.right + theme.px(10)

    def _time_width(self, theme: Theme) -> int:
        """Return a width that is enough for the longest time [px]."""
        end = self._format(self.length)
        return max(theme.px(MIN_TIME_WIDTH), theme.width(f"{'0' * len(end)} / {end}"))

    def _static_part(self, theme: Theme) -> pygame.Surface:
        """Return the background, rail, marks and warning, drawn again only when they change."""
        wanted = self._area.size, self._rail.size, theme, tuple(self.marks), self.warning
        if wanted != self._static_key:
            self._static_key = wanted
            self._static = pygame.Surface(self._area.size)
            self._static.fill(BACKGROUND)
            self._static.fill(theme.palette.line, (0, 0, self._area.width, theme.px(1)))
            rail = self._rail.move(0, -self._area.y)
            pygame.draw.rect(self._static, theme.palette.line, rail, border_radius=rail.height // 2)
            self._draw_marks(theme)
            self._draw_warning(theme)
        return self._static

    def _draw_marks(self, theme: Theme) -> None:
        """Draw the marks, those with a colour of their own first so that they are never left out."""
        taken: dict[bool, set[int]] = {True: set(), False: set()}
        labels: list[pygame.Rect] = []
        for mark in sorted(self.marks, key=lambda mark: mark.colour is None):
            x, colour = self._x(mark.at), mark.colour or theme.palette.faint
            if x in taken[mark.small]:
                continue
            taken[mark.small].update(range(x - MIN_MARK_DISTANCE + 1, x + MIN_MARK_DISTANCE))
            if mark.small:
                self._draw_stroke(theme, x, SMALL_TOP, SMALL_TOP + SMALL_HEIGHT, colour)
            else:
                labelled = bool(mark.label) and self._draw_label(theme, mark, x, labels)
                self._draw_stroke(theme, x, LABEL_TOP + 2 if labelled else RAIL_TOP - SMALL_HEIGHT, RAIL_TOP, colour)

    def _draw_stroke(self, theme: Theme, x: int, top: int, bottom: int, colour: Colour) -> None:
        """Draw a vertical stroke between two heights at scale 1 [px]."""
        width = theme.px(1.5)
        self._static.fill(colour, (x - width // 2, theme.px(top), width, theme.px(bottom) - theme.px(top)))

    def _draw_label(self, theme: Theme, mark: TimelineMark, x: int, taken: list[pygame.Rect]) -> bool:
        """Draw a mark's label; return False if there is no room for it."""
        text = theme.text(mark.label, TEXT_SMALL, mark.colour or theme.palette.text)
        place = text.get_rect(topright=(x - theme.px(LABEL_GAP), theme.px(LABEL_TOP)))
        taken_area = place.inflate(2 * theme.px(LABEL_GAP), 0)
        if place.left < self._rail.left - theme.px(MARGIN) or taken_area.collidelist(taken) >= 0:
            return False
        self._static.blit(text, place)
        taken.append(taken_area)
        return True

    def _draw_warning(self, theme: Theme) -> None:
        if not self.warning:
            return
        x, y = self._time_left(theme), theme.px(HEIGHT) - theme.px(1)
        room = self._area.width - x - theme.px(MARGIN)
        text = theme.text(theme.truncate(self.warning, room, TEXT_SMALL), TEXT_SMALL, theme.palette.accent)
        self._static.blit(text, (x, y))
        middle, size = self._button.centerx, theme.px(7)
        centre = y + text.get_height() // 2
        points = [(middle, centre - size), (middle - size, centre + size * 0.8), (middle + size, centre + size * 0.8)]
        pygame.draw.polygon(self._static, theme.palette.accent, points)
        stroke = theme.px(1.5)
        self._static.fill(BACKGROUND, (middle - stroke // 2, centre - size // 3, stroke, theme.px(5)))
        self._static.fill(BACKGROUND, (middle - stroke // 2, centre + size // 2, stroke, stroke))

    def _draw_button(self, surface: pygame.Surface, theme: Theme) -> None:
        radius = self._button.width // 2
        x, y = self._button.center
        pygame.draw.aacircle(surface, BUTTON_COLOUR, (x, y), radius)
        for polygon in ICONS[BUTTONS[self.state]]:
            points = [(x + px * radius, y + py * radius) for px, py in polygon]
            pygame.draw.polygon(surface, theme.palette.text, points)

    def _draw_time(self, surface: pygame.Surface, theme: Theme) -> None:
        left, top = self._time_left(theme), self._area.y
        now = theme.text(self._format(self.position))
        surface.blit(now, (left, top + theme.px(TIME_TOP)))
        of = theme.text(f" / {self._format(self.length)}", TEXT, theme.palette.faint)
        surface.blit(of, (left + now.get_width(), top + theme.px(TIME_TOP)))
        y = top + theme.px(CAPTION_TOP)
        speed = theme.text(self.speed, TEXT_SMALL, theme.palette.accent)
        surface.blit(speed, (left, y))
        dot, x = theme.px(4), left + theme.px(SPEED_WIDTH)
        pygame.draw.aacircle(surface, self.caption_colour, (x + dot, y + speed.get_height() // 2), dot)
        x += 2 * dot + theme.px(6)
        caption = self._truncate("caption", self.caption, self._rail.left - theme.px(MARGIN) - x, theme)
        surface.blit(theme.text(caption, TEXT_SMALL), (x, y))
        note = self._truncate("note", self.note, self._rail.width, theme)
        below = self._rail.left, top + theme.px(NOTE_TOP)
        surface.blit(theme.text(note, TEXT_SMALL, theme.palette.faint), below)

    def _truncate(self, name: str, text: str, width: int, theme: Theme) -> str:
        """Return `theme.truncate`'s result, measured again only when an argument has changed."""
        asked = text, width, theme
        if self._truncated.get(name, ((), ""))[0] != asked:
            self._truncated[name] = asked, theme.truncate(text, width, TEXT_SMALL)
        return self._truncated[name][1]

    def _draw_position(self, surface: pygame.Surface, theme: Theme) -> None:
        x, rail = self._x(self.position), self._rail
        if x > rail.left:
            done = pygame.Rect(rail.left, rail.y, x - rail.left, rail.height)
            pygame.draw.rect(surface, theme.palette.accent, done, border_radius=rail.height // 2)
        pygame.draw.aacircle(surface, BACKGROUND, (x, rail.centery), theme.px(KNOB_RADIUS + 2))
        pygame.draw.aacircle(surface, theme.palette.text, (x, rail.centery), theme.px(KNOB_RADIUS))

    def _draw_hover(self, surface: pygame.Surface, theme: Theme, x: int) -> None:
        """Draw the time at the mouse, over the labels."""
        text = theme.text(self._format(self._position_at(x)), TEXT_SMALL, theme.palette.on_accent)
        plate = text.get_rect().inflate(theme.px(10), theme.px(2))
        plate.midbottom = x, self._rail.y - theme.px(2)
        plate.clamp_ip(self._area)
        surface.fill(theme.palette.accent, (x, self._rail.y, theme.px(1.5), self._rail.height))
        pygame.draw.rect(surface, theme.palette.accent, plate, border_radius=theme.px(4))
        surface.blit(text, text.get_rect(center=plate.center))
