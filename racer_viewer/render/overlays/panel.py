"""How far an axis goes: round figures that change seldom.

Words and figures of one theme.

What the followed car did in the last seconds.

What all panels have: a plate with everything that does not move, and a board to draw the rest on."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_env.engine import COMPONENTS, TICKS_PER_SECOND, Track
from racer_viewer.snapshot import Snapshot
from racer_viewer.ui.theme import PADDING, TEXT_SMALL, Colour, Theme

STEPS = (1.0, 2.0, 5.0, 10.0)
PATIENCE = 180
"""So many looks at small values, three seconds of frames, before an axis gets shorter."""
_ROUNDING = 1.0 + 1e-9


class CalmAxis:
    """An axis from 0 to `reach`, which is 1, 2 or 5 times a power of ten.

    It gets longer at once, so that nothing is ever cut off, and shorter only when nothing has needed it for a while.
    """

    def __init__(self, least: float, most: float = math.inf) -> None:
        self.least, self.most = least, most
        self.reach = least
        self._waited = 0

    def cover(self, largest: float) -> float:
        """Look at the largest value that is to be shown now; returns the reach."""
        wanted = min(self.most, max(self.least, round_up(largest)))
        self._waited = self._waited + 1 if wanted < self.reach else 0
        if wanted > self.reach or self._waited >= PATIENCE:
            self.reach, self._waited = wanted, 0
        return self.reach


def round_up(value: float) -> float:
    """The least of 1, 2, 5 times a power of ten that is no less; 0 for 0."""
    if not 0.0 < value < math.inf:
        return 0.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in STEPS if step * power * _ROUNDING >= value)


SIGNS = "+−±"


class Letters:
    """Sets words and figures on a board.

    Figures are set sign by sign, all digits at the same distance and to the right: a number that changes every tick
    does not jump, and each glyph is rendered once.
    """

    def __init__(self, theme: Theme) -> None:
        self.theme = theme
        self._glyphs: dict[tuple[int, Colour], dict[str, tuple[pygame.Surface, int]]] = {}
        self._fitted: dict[tuple[str, int, int], str] = {}

    def word(
        self, board: pygame.Surface, text: str, left: int, top: int, colour: Colour, size: int = TEXT_SMALL
    ) -> None:
        board.blit(self.theme.text(text, size, colour), (left, top))

    def word_to(
        self, board: pygame.Surface, text: str, right: int, top: int, colour: Colour, size: int = TEXT_SMALL
    ) -> None:
        """A word that ends at `right`."""
        drawn = self.theme.text(text, size, colour)
        board.blit(drawn, (right - drawn.get_width(), top))

    def figure(
        self, board: pygame.Surface, text: str, right: int, top: int, colour: Colour, size: int = TEXT_SMALL
    ) -> None:
        """A number that ends at `right`."""
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

    def figure_width(self, text: str, size: int = TEXT_SMALL) -> int:
        return sum(self._pitch(sign, size) for sign in text)

    def fitted(self, text: str, width: int, size: int = TEXT_SMALL) -> str:
        """As much of a text as there is room for; what is cut off is marked."""
        key = text, width, size
        if key not in self._fitted:
            self._fitted[key] = self.theme.truncate(text, width, size)
        return self._fitted[key]

    def _glyph(self, sign: str, size: int, colour: Colour) -> tuple[pygame.Surface, int]:
        return self.theme.font(size).render(sign, colour), self._pitch(sign, size)

    def _pitch(self, sign: str, size: int) -> int:
        """Distance from one sign to the next [px]."""
        alike = next((kind for kind in ("0123456789", SIGNS) if sign in kind), sign)
        return max(self.theme.width(each, size) for each in alike)


SECONDS, INPUT_SECONDS = 6, 2
TICKS, INPUT_TICKS = SECONDS * TICKS_PER_SECOND, INPUT_SECONDS * TICKS_PER_SECOND

Floats = NDArray[np.float64]


class History:
    """One row a tick, the newest last; rows from before the first tick are 0.

    rewards: (360, 6) components. values: (360,) the return that the agent expected, NaN where nothing was expected.
    speeds: (360,) [units/s]. asked, done: (120, 3) steer, throttle and brake of the driver and of the car.
    ticks: how many there are, more than the arrays hold after a while.
    """

    def __init__(self) -> None:
        self.rewards = np.zeros((TICKS, len(COMPONENTS)))
        self.values = np.full(TICKS, np.nan)
        self.speeds = np.zeros(TICKS)
        self.asked, self.done = np.zeros((INPUT_TICKS, 3)), np.zeros((INPUT_TICKS, 3))
        self.ticks = 0
        self._track: Track | None = None
        self._focus = self._step = -1

    def tick(self, snapshot: Snapshot) -> None:
        """Take in the next tick; of another car, another track or a new episode it is the first."""
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


WIDTH = 232
"""Of every panel, at scale 1 [px]."""
ROW = 16
"""From one line of small letters to the next, at scale 1 [px]."""
EDGE = 9
"""Free at the top and at the bottom, at scale 1 [px]."""
BAR = 8
"""Thickness of a bar, at scale 1 [px]."""


@dataclass(frozen=True, eq=False)
class View:
    """What panels show. units: in which speeds are given, of `speed.SPEED_UNITS`."""

    snapshot: Snapshot
    history: History
    units: str


class Panel:
    """A panel of fixed size, `height` at scale 1 [px].

    Places are in pixels of the panel; `left` and `right` bound what is in it. What nobody can read 60 times a second
    is drawn anew only in every so many frames, `EVERY`; `PHASE` spreads such panels over different frames.
    """

    EVERY = 1
    PHASE = 0

    def __init__(self, letters: Letters, height: float) -> None:
        self.letters, self.theme, self.palette = letters, letters.theme, letters.theme.palette
        self.px = self.theme.px
        self.size = self.px(WIDTH), self.px(height)
        self.left, self.right, self.top = self.px(PADDING), self.size[0] - self.px(PADDING), self.px(EDGE)
        self.row, self.bar_height = self.px(ROW), self.px(BAR)
        self.plate = self.theme.panel(*self.size)
        self._drawn: pygame.Surface | None = None
        self._age: int | None = None

    def draw(self, board: pygame.Surface, view: View) -> None:
        """Onto a board of the panel's size."""
        self.prepare(view)
        if self.EVERY == 1:
            board.blit(self.plate, (0, 0))
            self.draw_moving(board, view)
        else:
            board.blit(self._recently_drawn(view), (0, 0))

    def forget(self) -> None:
        """What was drawn is out of date: the panel was not shown for a while."""
        self._age = None

    def prepare(self, view: View) -> None:
        """Bring the plate up to date, where something on it changes seldom."""

    def draw_moving(self, board: pygame.Surface, view: View) -> None:
        """What differs from frame to frame, onto a board that has the plate on it."""

    def _recently_drawn(self, view: View) -> pygame.Surface:
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
        """On the plate, in the first row."""
        self.letters.word(self.plate, text, self.left, self.top, self.palette.faint)
        self.letters.word_to(self.plate, note, self.right, self.top, self.palette.faint)

    def bar_in_row(self, left: int, top: int, width: int) -> pygame.Rect:
        """The place of a bar in the middle of the row that starts at `top`."""
        middle = top + self.theme.line_height(TEXT_SMALL) // 2
        return pygame.Rect(left, middle - self.bar_height // 2, width, self.bar_height)

    def groove(self, bar: pygame.Rect) -> None:
        """On the plate: where a bar can be."""
        self.plate.fill(self.palette.line, bar)


def fill_bar(board: pygame.Surface, bar: pygame.Rect, share: float, colour: Colour) -> None:
    """From the left, so much of its length."""
    board.fill(colour, (bar.left, bar.top, round(bar.width * min(1.0, max(0.0, share))), bar.height))


def fill_signed_bar(board: pygame.Surface, bar: pygame.Rect, share: float, colour: Colour) -> None:
    """From the middle, to the right if positive; ±1 is the end."""
    length = round(bar.width / 2 * min(1.0, abs(share)))
    board.fill(colour, (bar.centerx if share > 0.0 else bar.centerx - length, bar.top, length, bar.height))


def blend(a: Colour, b: Colour, share: float) -> Colour:
    """A colour between two; 0 is the first."""
    red, green, blue = (round(x + (y - x) * share) for x, y in zip(a, b, strict=True))
    return red, green, blue
