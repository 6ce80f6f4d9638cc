"""Where the charts lie: rows of equal charts, as many as can be read.

All charts of a run, or of several runs to compare."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import pygame

from racer_viewer.render.plots.chart import SWATCH, Chart
from racer_viewer.render.plots.figures import charts_of, content_of, run_colours, span
from racer_viewer.render.plots.hover import draw_crosshair, draw_hover
from racer_viewer.run_history import RunHistory
from racer_viewer.ui.theme import PADDING, TEXT_SMALL, Theme

LEAST_WIDTH, LEAST_HEIGHT = 230, 104
"""Of a chart that can be read, at scale 1 [px]."""
SHAPE = 1.75
"""Width by height of a chart that is pleasant to look at."""


def grid(area: pygame.Rect, count: int, gap: int, scale: float) -> list[pygame.Rect]:
    """Places for at most so many charts, row by row; fewer where there is no room, but one in any case.

    Rows that have fewer charts come first, so that those charts, the more important ones, are wider.
    """
    for shown in range(count, 1, -1):
        fitting = [rows for rows in range(1, shown + 1) if _fits(area, shown, rows, gap, scale)]
        if fitting:
            return _places(area, shown, min(fitting, key=lambda rows: _oddness(area, shown, rows)), gap)
    return [area.copy()] if count else []


def _fits(area: pygame.Rect, count: int, rows: int, gap: int, scale: float) -> bool:
    columns = math.ceil(count / rows)
    width, height = (area.width + gap) / columns - gap, (area.height + gap) / rows - gap
    return width >= LEAST_WIDTH * scale and height >= LEAST_HEIGHT * scale


def _oddness(area: pygame.Rect, count: int, rows: int) -> float:
    """How far the charts are from a pleasant shape."""
    return abs(math.log(area.width / math.ceil(count / rows) / (area.height / rows) / SHAPE))


def _places(area: pygame.Rect, count: int, rows: int, gap: int) -> list[pygame.Rect]:
    few, more = divmod(count, rows)
    places = []
    for row, (top, height) in enumerate(_shares(area.top, area.height, rows, gap)):
        columns = few if row < rows - more else few + 1
        places += [
            pygame.Rect(left, top, width, height) for left, width in _shares(area.left, area.width, columns, gap)
        ]
    return places


def _shares(start: int, length: int, count: int, gap: int) -> list[tuple[int, int]]:
    """Starts and lengths of equal parts."""
    edges = [start + round(number * (length + gap) / count) for number in range(count + 1)]
    return [(edge, after - gap - edge) for edge, after in pairwise(edges)]


GAP = 6
"""Between charts at scale 1 [px]."""
LEGEND_EDGE = 4
"""Free above and below the names of runs, at scale 1 [px]."""
CHARTS_KEPT = 40
"""Pictures: of all charts, and of some that were shown alone."""
HANDLE = 5
"""Of the line at a moment, at scale 1 [px]."""


Key = tuple[str, tuple[int, int]]
"""Name and size of a chart."""


@dataclass(frozen=True, eq=False)
class _Shown:
    """What the picture of a chart depends on besides its size."""

    runs: tuple[RunHistory, ...] = (RunHistory(),)
    smoothing: float = 0.0
    circuit: str = ""

    def is_same_as(self, other: _Shown) -> bool:
        if len(self.runs) != len(other.runs) or any(a is not b for a, b in zip(self.runs, other.runs, strict=True)):
            return False
        return (self.smoothing, self.circuit) == (other.smoothing, other.circuit)


@dataclass(frozen=True, eq=False)
class _Drawn:
    chart: Chart
    shown: _Shown


class CurvesView:
    """Charts in a grid that fits a rectangle. What was drawn is kept until what it shows or its size changes.

    A chart that was never drawn at its size is an empty plate until its turn comes, one in a frame. Others are drawn
    anew one after the other, and each part by part: in the time that is left after a frame (`draw_ahead`), or one part
    in a frame if nobody calls that. Until such a chart is whole, the one before it is shown.

    focus: the name of a chart, of `CHARTS`, that is shown alone. patient: all charts are drawn anew at once, for
    pictures and films. redraws: how many charts were drawn so far.
    """

    def __init__(self, theme: Theme, patient: bool = False) -> None:
        self.theme = theme
        self.focus: str | None = None
        self.redraws = 0
        self._patient = patient
        self._drawn: dict[Key, _Drawn] = {}
        """The newest is the last."""
        self._coming: tuple[Key, _Drawn] | None = None
        """Not whole yet."""
        self._wanted = _Shown()
        self._helped = False
        """Whether time was left since the last frame."""
        self._places: dict[str, pygame.Rect] = {}
        self._plates: dict[tuple[int, int], pygame.Surface] = {}
        self._legend: tuple[tuple[object, ...], pygame.Surface] | None = None

    def draw(
        self,
        surface: pygame.Surface,
        rect: pygame.Rect,
        runs: Sequence[RunHistory],
        hover: tuple[int, int] | None = None,
        smoothing: float = 0.6,
        at: float | None = None,
        circuit: str = "",
    ) -> None:
        """Into a rectangle of the surface. hover: the mouse. at: steps at which there is a line in all charts.

        circuit: whose times are shown, of runs that learn on several.
        """
        runs = tuple(runs) or (RunHistory(),)
        area = pygame.Rect(rect).clip(surface.get_rect())
        self._places = self._arranged(area, runs)
        self._wanted = _Shown(runs, smoothing, circuit)
        self._bring_up_to_date()
        clip = surface.get_clip()
        surface.set_clip(area.clip(clip))
        if len(runs) > 1:
            surface.blit(self._legend_of(runs, area.width), area)
        for name, place in self._places.items():
            chart = self._chart(name)
            surface.blit(chart.picture if chart else self._plate(place.size), place)
            if chart and at is not None:
                self._draw_moment(surface, chart, place, at)
        self._draw_hover(surface, area, hover)
        surface.set_clip(clip)

    def draw_ahead(self) -> bool:
        """Draw a part of a chart that is out of date, about a millisecond; False if there is none.

        To be called when a frame has time left, so that no later one needs it.
        """
        self._helped = True
        return self._draw_part()

    def chart_at(self, x: int, y: int) -> float | None:
        """The steps at a pixel of the surface that was drawn on last; None where there is no chart."""
        name = self.name_at(x, y)
        chart = self._chart(name) if name else None
        return chart.axes.steps_at(x - self._places[name].left) if name and chart else None

    def name_at(self, x: int, y: int) -> str | None:
        """Which chart is at a pixel of the surface that was drawn on last."""
        return next((name for name, place in self._places.items() if place.collidepoint(x, y)), None)

    def _chart(self, name: str) -> Chart | None:
        """The one that is shown under this name, if it is drawn already."""
        drawn = self._drawn.get((name, self._places[name].size))
        return drawn.chart if drawn else None

    def _plate(self, size: tuple[int, int]) -> pygame.Surface:
        if size not in self._plates:
            self._plates = {size: self.theme.panel(*size)}
        return self._plates[size]

    def _arranged(self, area: pygame.Rect, runs: tuple[RunHistory, ...]) -> dict[str, pygame.Rect]:
        names = (self.focus,) if self.focus is not None else charts_of(runs)
        if len(runs) > 1:
            top = self._legend_height()
            area = pygame.Rect(area.left, area.top + top, area.width, max(1, area.height - top))
        places = grid(area, len(names), self.theme.px(GAP), self.theme.scale)
        return dict(zip(names, places, strict=False))

    def _bring_up_to_date(self) -> None:
        if self._patient:
            while self._draw_part():
                pass
        elif any(key not in self._drawn for key in self._keys):
            drawn = self.redraws
            while self.redraws == drawn:
                self._draw_part()
        elif not self._helped:
            self._draw_part()
        self._helped = False

    @property
    def _keys(self) -> list[Key]:
        return [(name, place.size) for name, place in self._places.items()]

    def _draw_part(self) -> bool:
        """Go on with the chart that is in the making, or begin with the next one; False if there is none."""
        keys = self._keys
        if self._coming is None or self._coming[0] not in keys:
            key = self._next_of(keys)
            self._coming = None if key is None else (key, self._begun(key))
            return key is not None
        key, coming = self._coming
        if not coming.chart.draw_part():
            self._coming = None
            self._keep(key, coming)
        return True

    def _next_of(self, keys: list[Key]) -> Key | None:
        missing = (key for key in keys if key not in self._drawn)
        stale = (key for key, drawn in self._drawn.items() if key in keys and not drawn.shown.is_same_as(self._wanted))
        return next(itertools.chain(missing, stale), None)

    def _begun(self, key: Key) -> _Drawn:
        (name, size), wanted = key, self._wanted
        content = content_of(name, wanted.runs, self.theme.palette, wanted.circuit)
        return _Drawn(Chart(self.theme, size, content, span(wanted.runs), wanted.smoothing, at_once=False), wanted)

    def _keep(self, key: Key, drawn: _Drawn) -> None:
        self._drawn.pop(key, None)
        self._drawn[key] = drawn
        self.redraws += 1
        while len(self._drawn) > CHARTS_KEPT:
            self._drawn.pop(next(iter(self._drawn)))

    def _draw_moment(self, surface: pygame.Surface, chart: Chart, place: pygame.Rect, steps: float) -> None:
        """A line with a handle at the top."""
        frame = chart.axes.frame.move(place.topleft)
        x, colour = place.left + round(chart.axes.x(steps)), self.theme.palette.text
        if not frame.left <= x < frame.right or chart.content.is_empty:
            return
        half = self.theme.px(HANDLE)
        surface.fill(colour, (x, frame.top, self.theme.px(1), frame.height))
        pygame.draw.polygon(
            surface, colour, [(x - half, frame.top - half), (x + half, frame.top - half), (x, frame.top)]
        )

    def _draw_hover(self, surface: pygame.Surface, area: pygame.Rect, mouse: tuple[int, int] | None) -> None:
        """Values in the chart below the mouse, and a line at the same steps in all others."""
        name = self.name_at(*mouse) if mouse else None
        chart = self._chart(name) if name else None
        if mouse is None or name is None or chart is None or chart.content.is_empty:
            return
        place = self._places[name]
        if not chart.axes.frame.move(place.topleft).collidepoint(mouse):
            return
        steps = chart.axes.steps_at(mouse[0] - place.left)
        for other, where in self._places.items():
            beside = self._chart(other)
            if other != name and beside and not beside.content.is_empty:
                draw_crosshair(surface, beside, where.topleft, beside.axes.x(steps), None)
        draw_hover(surface, chart, place.topleft, mouse, area)

    def _legend_height(self) -> int:
        """With the gap below it."""
        return self.theme.line_height(TEXT_SMALL) + 2 * self.theme.px(LEGEND_EDGE) + self.theme.px(GAP)

    def _legend_of(self, runs: tuple[RunHistory, ...], width: int) -> pygame.Surface:
        """The names of the runs with their colours in a row; where there is no room, the longest are cut."""
        key = (width, *(run.name for run in runs))
        if self._legend is None or self._legend[0] != key:
            self._legend = key, self._drawn_legend(runs, width)
        return self._legend[1]

    def _drawn_legend(self, runs: tuple[RunHistory, ...], width: int) -> pygame.Surface:
        px, theme = self.theme.px, self.theme
        legend = theme.panel(width, self._legend_height() - px(GAP))
        beside = px(SWATCH + 6) + px(5) + px(16)
        widths = [theme.width(run.name, TEXT_SMALL) for run in runs]
        room = _fair(widths, width - 2 * px(PADDING) + px(16) - len(runs) * beside)
        left, middle = px(PADDING), legend.get_height() // 2
        for run, colour in zip(runs, run_colours(runs, theme.palette), strict=True):
            swatch = pygame.Rect(left, middle - px(SWATCH) // 2, px(SWATCH + 6), px(SWATCH))
            pygame.draw.rect(legend, colour, swatch, border_radius=px(2))
            words = theme.text(theme.truncate(run.name, room, TEXT_SMALL), TEXT_SMALL)
            legend.blit(words, (swatch.right + px(5), px(LEGEND_EDGE)))
            left += beside + words.get_width()
        return legend


def _fair(widths: list[int], room: int) -> int:
    """The greatest width that all may have so that together they fit, those that are less wide leaving theirs."""
    left = room
    for number, width in enumerate(sorted(widths)):
        share = left // (len(widths) - number)
        if width > share:
            return share
        left -= width
    return max(widths)
