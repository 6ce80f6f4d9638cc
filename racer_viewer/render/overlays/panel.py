"""Base of all overlay panels: a plate with the static parts, and helpers for text, bars, axes and recent history."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_env.engine import TICKS_PER_SECOND, Track
from racer_env.engine.rewards import COMPONENT_CAPACITY
from racer_viewer.snapshot import Snapshot
from racer_viewer.ui.theme import PADDING, TEXT_SMALL, Colour, Theme

STEPS = (1.0, 2.0, 5.0, 10.0)
SHRINK_FRAMES = 180
"""Number of frames with small values, three seconds, before an axis gets shorter."""
_ROUNDING = 1.0 + 1e-9


class StableAxis:
    """Axis from 0 to `reach`, which is 1, 2 or 5 times a power of ten.

    It gets longer at once, so that no value is cut off, and shorter only after `SHRINK_FRAMES` frames without need.
    """

    def __init__(self, least: float, most: float = math.inf) -> None:
        self.least, self.most = least, most
        self.reach = least
        self._waited = 0

    def cover(self, largest: float) -> float:
        """Update the axis for the largest value shown now, and return the reach."""
        wanted = min(self.most, max(self.least, round_up(largest)))
        self._waited = self._waited + 1 if wanted < self.reach else 0
        if wanted > self.reach or self._waited >= SHRINK_FRAMES:
            self.reach, self._waited = wanted, 0
        return self.reach


def round_up(value: float) -> float:
    """Return the smallest of 1, 2 or 5 times a power of ten that is not below the value; 0 for 0."""
    if not 0.0 < value < math.inf:
        return 0.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in STEPS if step * power * _ROUNDING >= value)


SIGNS = "+−±"


class TextPainter:
    """Text and number drawing in one theme.

    Numbers are drawn right-aligned, glyph by glyph with equal digit widths, so that a number that changes every tick
    does not jump and each glyph is rendered once.
    """

    def __init__(self, theme: Theme) -> None:
        self.theme = theme
        self._glyphs: dict[tuple[int, Colour], dict[str, tuple[pygame.Surface, int]]] = {}
        self._fitted: dict[tuple[str, int, int], str] = {}

    def text(
        self, board: pygame.Surface, text: str, left: int, top: int, colour: Colour, size: int = TEXT_SMALL
    ) -> None:
        board.blit(self.theme.text(text, size, colour), (left, top))

    def text_right(
        self, board: pygame.Surface, text: str, right: int, top: int, colour: Colour, size: int = TEXT_SMALL
    ) -> None:
        """Draw text that ends at `right`."""
        drawn = self.theme.text(text, size, colour)
        board.blit(drawn, (right - drawn.get_width(), top))

    def number(
        self, board: pygame.Surface, text: str, right: int, top: int, colour: Colour, size: int = TEXT_SMALL
    ) -> None:
        """Draw a number that ends at `right`."""
        glyphs = self._glyphs.get((size, colour))
        if glyphs is None:
            glyphs = self._glyphs[size, colour] = {}
        placed = []
        for sign in reversed(text):
            if sign not in glyphs:
                glyphs[sign] = self._glyph(sign, size, colour)
            glyph, pitch = glyphs[sign]
            right -= pitch
            placed.append((glyph, (right, top)))
        board.fblits(placed)

    def number_width(self, text: str, size: int = TEXT_SMALL) -> int:
        return sum(self._pitch(sign, size) for sign in text)

    def label(self, board: pygame.Surface, text: str, left: int, top: int, width: int, colour: Colour) -> None:
        """Draw a word within a width, in smaller letters if it is too long, and cut if that does not suffice."""
        smaller = self.theme.fitting(lambda smaller: smaller.width(text, TEXT_SMALL) <= width, MIN_LABEL_SHRINK)
        lower = self.theme.line_height(TEXT_SMALL) - smaller.line_height(TEXT_SMALL)
        shown = smaller.truncate(text, width, TEXT_SMALL)
        board.blit(smaller.text(shown, TEXT_SMALL, colour), (left, top + lower // 2))

    def fitted(self, text: str, width: int, size: int = TEXT_SMALL) -> str:
        """Return the text, shortened with an ellipsis to the width; results are cached."""
        key = text, width, size
        if key not in self._fitted:
            self._fitted[key] = self.theme.truncate(text, width, size)
        return self._fitted[key]

    def _glyph(self, sign: str, size: int, colour: Colour) -> tuple[pygame.Surface, int]:
        return self.theme.font(size).render(sign, colour), self._pitch(sign, size)

    def _pitch(self, sign: str, size: int) -> int:
        """Return the advance width of a character [px]."""
        alike = next((kind for kind in ("0123456789", SIGNS) if sign in kind), sign)
        return max(self.theme.width(each, size) for each in alike)


SECONDS, INPUT_SECONDS = 6, 2
TICKS, INPUT_TICKS = SECONDS * TICKS_PER_SECOND, INPUT_SECONDS * TICKS_PER_SECOND

Floats = NDArray[np.float64]


class History:
    """Recent values of the followed car, one row per tick with the newest last; rows before the first tick are 0.

    rewards: (360, COMPONENT_CAPACITY) reward components.
    values: (360,) return that the agent expected, NaN if there was none.
    speeds: (360,) [units/s].
    asked, done: (120, 3) steer, throttle and brake as requested by the driver and as applied by the car.
    ticks: number of ticks recorded, which may exceed the array length.
    """

    def __init__(self) -> None:
        self.rewards = np.zeros((TICKS, COMPONENT_CAPACITY))
        self.values = np.full(TICKS, np.nan)
        self.speeds = np.zeros(TICKS)
        self.asked, self.done = np.zeros((INPUT_TICKS, 3)), np.zeros((INPUT_TICKS, 3))
        self.ticks = 0
        self._track: Track | None = None
        self._focus = self._step = -1

    def tick(self, snapshot: Snapshot) -> None:
        """Record a tick; another car, another track or a new episode clears the history first."""
        car = snapshot.car
        step = int(car["step_count"])
        if snapshot.track is not self._track or snapshot.focus != self._focus or step < self._step:
            self._clear()
        self._track, self._focus, self._step = snapshot.track, snapshot.focus, step
        thought = snapshot.insight
        self.ticks += 1
        _push(self.rewards, car["components"])
        _push(self.values, np.nan if thought is None or thought.value is None else thought.value)
        _push(self.speeds, car["speed"])
        _push(self.asked, car["action"])
        _push(self.done, (car["steer"], car["throttle"], car["brake"]))

    def _clear(self) -> None:
        self.ticks = 0
        self.values[:] = np.nan
        for rows in (self.rewards, self.speeds, self.asked, self.done):
            rows[:] = 0.0


def _push(rows: Floats, newest: object) -> None:
    rows[:-1] = rows[1:]
    rows[-1] = newest  # type: ignore[call-overload]


MIN_LABEL_SHRINK = 0.6
"""Smallest part of the scale to which letters of a label shrink before it is cut."""
WIDTH = 232
"""Panel width at scale 1 [px]."""
ROW = 16
"""Row pitch of small text at scale 1 [px]."""
EDGE = 9
"""Space above and below the content at scale 1 [px]."""
BAR = 8
"""Bar thickness at scale 1 [px]."""


@dataclass(frozen=True, eq=False)
class PanelInput:
    """Data that panels draw. units: key of `SPEED_UNITS`."""

    snapshot: Snapshot
    history: History
    units: str


class Panel:
    """Panel of fixed size; `height` is given at scale 1 [px].

    Positions are in panel pixels; `left` and `right` bound the content. A panel whose values need no 60 updates per
    second is redrawn every `EVERY` frames; `PHASE` spreads such panels over different frames.
    """

    EVERY = 1
    PHASE = 0

    def __init__(self, painter: TextPainter, height: float) -> None:
        self.painter, self.theme, self.palette = painter, painter.theme, painter.theme.palette
        self.px = self.theme.px
        self.size = self.px(WIDTH), self.px(height)
        self.left, self.right, self.top = self.px(PADDING), self.size[0] - self.px(PADDING), self.px(EDGE)
        self.row, self.bar_height = self.px(ROW), self.px(BAR)
        self.plate = self.theme.panel(*self.size)
        self._drawn: pygame.Surface | None = None
        self._age: int | None = None

    def draw(self, board: pygame.Surface, view: PanelInput) -> None:
        """Draw the panel onto a surface of its size."""
        self.prepare(view)
        if self.EVERY == 1:
            board.blit(self.plate, (0, 0))
            self.draw_moving(board, view)
        else:
            board.blit(self._recently_drawn(view), (0, 0))

    def forget(self) -> None:
        """Discard the cached picture, because the panel was hidden for a while."""
        self._age = None

    def prepare(self, view: PanelInput) -> None:
        """Update the parts of the plate that change rarely."""

    def draw_moving(self, board: pygame.Surface, view: PanelInput) -> None:
        """Draw what changes from frame to frame onto a surface that shows the plate."""

    def _recently_drawn(self, view: PanelInput) -> pygame.Surface:
        if self._drawn is None:
            self._drawn = pygame.Surface(self.size, pygame.SRCALPHA, 32)
        if self._age is None or self._age >= self.EVERY:
            self._age = self.PHASE if self._age is None else 0
            self._drawn.fill((0, 0, 0, 0))
            self._drawn.blit(self.plate, (0, 0), special_flags=pygame.BLEND_RGBA_ADD)
            self.draw_moving(self._drawn, view)
        self._age += 1
        return self._drawn

    def title(self, text: str, note: str = "") -> None:
        """Draw the title and a note in the first row of the plate."""
        self.painter.text(self.plate, text, self.left, self.top, self.palette.faint)
        self.painter.text_right(self.plate, note, self.right, self.top, self.palette.faint)

    def bar_in_row(self, left: int, top: int, width: int) -> pygame.Rect:
        """Return a bar, vertically centred in the row that starts at `top`."""
        middle = top + self.theme.line_height(TEXT_SMALL) // 2
        return pygame.Rect(left, middle - self.bar_height // 2, width, self.bar_height)

    def groove(self, bar: pygame.Rect) -> None:
        """Draw the background of a bar onto the plate."""
        self.plate.fill(self.palette.line, bar)


def fill_bar(board: pygame.Surface, bar: pygame.Rect, share: float, colour: Colour) -> None:
    """Fill a share of the bar from the left."""
    board.fill(colour, (bar.left, bar.top, round(bar.width * min(1.0, max(0.0, share))), bar.height))


def fill_signed_bar(board: pygame.Surface, bar: pygame.Rect, share: float, colour: Colour) -> None:
    """Fill the bar from the middle, to the right if positive; ±1 reaches the end."""
    length = round(bar.width / 2 * min(1.0, abs(share)))
    board.fill(colour, (bar.centerx if share > 0.0 else bar.centerx - length, bar.top, length, bar.height))


def blend(a: Colour, b: Colour, share: float) -> Colour:
    """Return a mix of two colours; share 0 is the first."""
    red, green, blue = (round(x + (y - x) * share) for x, y in zip(a, b, strict=True))
    return red, green, blue
