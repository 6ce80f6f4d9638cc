"""Grid of all charts of one run, or of several runs to compare."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import pygame

from racer_viewer.render.explanations import CHART_EXPLANATIONS, draw_explanation
from racer_viewer.render.plots.chart import SWATCH, Chart
from racer_viewer.render.plots.figures import charts_of, content_of, run_colours, span
from racer_viewer.render.plots.hover import draw_crosshair, draw_hover
from racer_viewer.run_history import RunHistory
from racer_viewer.ui.theme import PADDING, TEXT_SMALL, Theme

MIN_WIDTH, MIN_HEIGHT = 230, 104
"""Smallest readable chart at scale 1 [px]."""
SHAPE = 1.75
"""Preferred width-to-height ratio of a chart."""


def grid(area: pygame.Rect, count: int, gap: int, scale: float) -> list[pygame.Rect]:
    """Return rectangles for at most `count` charts, row by row; fewer if space is short, but at least one.

    Rows with fewer, and therefore wider, charts come first; these hold the more important charts.
    """
    for shown in range(count, 1, -1):
        fitting = [rows for rows in range(1, shown + 1) if _fits(area, shown, rows, gap, scale)]
        if fitting:
            return _places(area, shown, min(fitting, key=lambda rows: _shape_error(area, shown, rows)), gap)
    return [area.copy()] if count else []


def _fits(area: pygame.Rect, count: int, rows: int, gap: int, scale: float) -> bool:
    columns = math.ceil(count / rows)
    width, height = (area.width + gap) / columns - gap, (area.height + gap) / rows - gap
    return width >= MIN_WIDTH * scale and height >= MIN_HEIGHT * scale


def _shape_error(area: pygame.Rect, count: int, rows: int) -> float:
    """Return the distance of the charts' shape from the preferred ratio."""
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
    """Return starts and lengths of equal parts."""
    edges = [start + round(number * (length + gap) / count) for number in range(count + 1)]
    return [(edge, after - gap - edge) for edge, after in pairwise(edges)]


GAP = 6
"""Gap between charts at scale 1 [px]."""
LEGEND_EDGE = 4
"""Space above and below the run names at scale 1 [px]."""
MAX_CACHED_CHARTS = 40
"""Maximum number of cached chart pictures: all charts, and some that were shown alone."""
HANDLE = 5
"""Size of the handle of the position line at scale 1 [px]."""


Key = tuple[str, tuple[int, int]]
"""Name and size of a chart."""


@dataclass(frozen=True, eq=False)
class _Shown:
    """Inputs that a chart picture depends on besides its size."""

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
    """Charts in a grid that fits a rectangle. A picture is cached until its content or size changes.

    A chart that was never drawn at its size is an empty plate until its turn comes, one per frame. Outdated charts are
    redrawn one after the other and part by part: in the time left after a frame (`draw_ahead`), or one part per frame
    if that is never called. Until the new picture is complete, the old one is shown.

    focus: name of a chart of `CHARTS` that is shown alone.
    patient: redraw all charts at once, for screenshots and films.
    redraws: number of charts drawn so far.
    """

    def __init__(self, theme: Theme, patient: bool = False) -> None:
        self.theme = theme
        self.focus: str | None = None
        self.redraws = 0
        self._patient = patient
        self._drawn: dict[Key, _Drawn] = {}
        """Cached pictures, newest last."""
        self._in_progress: tuple[Key, _Drawn] | None = None
        """Picture in progress."""
        self._wanted = _Shown()
        self._drew_ahead = False
        """True if `draw_ahead` was called since the last frame."""
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
        """Draw the charts into a rectangle of the surface.

        hover: mouse position.
        at: step of a position line in all charts.
        circuit: circuit whose lap times are shown, for runs that train on several.
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
                self._draw_position(surface, chart, place, at)
        self._draw_hover(surface, area, hover)
        surface.set_clip(clip)

    def draw_ahead(self) -> bool:
        """Draw a part of an outdated chart, about a millisecond of work; return False if all are up to date.

        Call it when a frame has time left, so that later frames do not need it.
        """
        self._drew_ahead = True
        return self._draw_part()

    def chart_at(self, x: int, y: int) -> float | None:
        """Return the steps at a pixel of the last drawn surface, or None outside the charts."""
        name = self.name_at(x, y)
        chart = self._chart(name) if name else None
        return chart.axes.steps_at(x - self._places[name].left) if name and chart else None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the charts drawn last, most important first."""
        return tuple(self._places)

    def name_at(self, x: int, y: int) -> str | None:
        """Return the name of the chart at a pixel of the last drawn surface, or None."""
        return next((name for name, place in self._places.items() if place.collidepoint(x, y)), None)

    def _chart(self, name: str) -> Chart | None:
        """Return the chart shown under this name, or None if it is not drawn yet."""
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
        elif not self._drew_ahead:
            self._draw_part()
        self._drew_ahead = False

    @property
    def _keys(self) -> list[Key]:
        return [(name, place.size) for name, place in self._places.items()]

    def _draw_part(self) -> bool:
        """Continue the picture in progress or start the next one; return False if none is outdated."""
        keys = self._keys
        if self._in_progress is None or self._in_progress[0] not in keys:
            key = self._next_of(keys)
            self._in_progress = None if key is None else (key, self._begun(key))
            return key is not None
        key, coming = self._in_progress
        if not coming.chart.draw_part():
            self._in_progress = None
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
        while len(self._drawn) > MAX_CACHED_CHARTS:
            self._drawn.pop(next(iter(self._drawn)))

    def _draw_position(self, surface: pygame.Surface, chart: Chart, place: pygame.Rect, steps: float) -> None:
        """Draw the position line with a handle at the top."""
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
        """Draw the values in the chart below the mouse, and a line at the same step in all others.

        Beside its curves, and while it has none, a chart is explained.
        """
        name = self.name_at(*mouse) if mouse else None
        chart = self._chart(name) if name else None
        if mouse is None or name is None or chart is None:
            return
        place = self._places[name]
        if chart.content.is_empty or not chart.axes.frame.move(place.topleft).collidepoint(mouse):
            draw_explanation(surface, self.theme, CHART_EXPLANATIONS[name], pygame.Rect(mouse, (0, 0)))
            return
        steps = chart.axes.steps_at(mouse[0] - place.left)
        for other, where in self._places.items():
            beside = self._chart(other)
            if other != name and beside and not beside.content.is_empty:
                draw_crosshair(surface, beside, where.topleft, beside.axes.x(steps), None)
        draw_hover(surface, chart, place.topleft, mouse, area)

    def _legend_height(self) -> int:
        """Return the height of the legend, including the gap below it."""
        return self.theme.line_height(TEXT_SMALL) + 2 * self.theme.px(LEGEND_EDGE) + self.theme.px(GAP)

    def _legend_of(self, runs: tuple[RunHistory, ...], width: int) -> pygame.Surface:
        """Draw the run names with their colours in a row; the longest names are cut if space is short."""
        key = (width, *(run.name for run in runs))
        if self._legend is None or self._legend[0] != key:
            self._legend = key, self._drawn_legend(runs, width)
        return self._legend[1]

    def _drawn_legend(self, runs: tuple[RunHistory, ...], width: int) -> pygame.Surface:
        px, theme = self.theme.px, self.theme
        legend = theme.panel(width, self._legend_height() - px(GAP))
        beside = px(SWATCH + 6) + px(5) + px(16)
        widths = [theme.width(run.name, TEXT_SMALL) for run in runs]
        room = _common_width(widths, width - 2 * px(PADDING) + px(16) - len(runs) * beside)
        left, middle = px(PADDING), legend.get_height() // 2
        for run, colour in zip(runs, run_colours(runs, theme.palette), strict=True):
            swatch = pygame.Rect(left, middle - px(SWATCH) // 2, px(SWATCH + 6), px(SWATCH))
            pygame.draw.rect(legend, colour, swatch, border_radius=px(2))
            words = theme.text(theme.truncate(run.name, room, TEXT_SMALL), TEXT_SMALL)
            legend.blit(words, (swatch.right + px(5), px(LEGEND_EDGE)))
            left += beside + words.get_width()
        return legend


def _common_width(widths: list[int], room: int) -> int:
    """Return the largest common width limit with which all widths fit into the space."""
    left = room
    for number, width in enumerate(sorted(widths)):
        share = left // (len(widths) - number)
        if width > share:
            return share
        left -= width
    return max(widths)
