"""All charts of a run, or of several runs to compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pygame

from racer_viewer.curves import Curves
from racer_viewer.render.plots.chart import SWATCH, Chart
from racer_viewer.render.plots.figures import charts_of, content_of, run_colours, span
from racer_viewer.render.plots.grid import grid
from racer_viewer.render.plots.hover import draw_crosshair, draw_hover
from racer_viewer.ui.theme import PADDING, TEXT_SMALL, Theme

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
class _Drawn:
    """A chart, and what its picture depends on besides its size."""

    chart: Chart
    runs: tuple[Curves, ...]
    smoothing: float

    def shows(self, runs: tuple[Curves, ...], smoothing: float) -> bool:
        same = len(runs) == len(self.runs) and all(a is b for a, b in zip(runs, self.runs, strict=True))
        return same and smoothing == self.smoothing


class CurvesView:
    """Charts in a grid that fits a rectangle. What was drawn is kept until the runs, its size or the smoothing change.

    In each frame one chart is drawn anew if there is need: one that has never been drawn at its size, which is an
    empty plate until then, or else the one that has waited longest.

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
        self._places: dict[str, pygame.Rect] = {}
        self._plates: dict[tuple[int, int], pygame.Surface] = {}
        self._legend: tuple[tuple[object, ...], pygame.Surface] | None = None

    def draw(
        self,
        surface: pygame.Surface,
        rect: pygame.Rect,
        runs: Sequence[Curves],
        hover: tuple[int, int] | None = None,
        smoothing: float = 0.6,
        at: float | None = None,
    ) -> None:
        """Into a rectangle of the surface. hover: the mouse. at: steps at which there is a line in all charts."""
        runs = tuple(runs) or (Curves(),)
        area = pygame.Rect(rect).clip(surface.get_rect())
        self._places = self._arranged(area, runs)
        self._bring_up_to_date(runs, smoothing)
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

    def _arranged(self, area: pygame.Rect, runs: tuple[Curves, ...]) -> dict[str, pygame.Rect]:
        names = (self.focus,) if self.focus is not None else charts_of(runs)
        if len(runs) > 1:
            top = self._legend_height()
            area = pygame.Rect(area.left, area.top + top, area.width, max(1, area.height - top))
        places = grid(area, len(names), self.theme.px(GAP), self.theme.scale)
        return dict(zip(names, places, strict=False))

    def _bring_up_to_date(self, runs: tuple[Curves, ...], smoothing: float) -> None:
        keys = [(name, place.size) for name, place in self._places.items()]
        missing = [key for key in keys if key not in self._drawn]
        stale = [key for key, drawn in self._drawn.items() if key in keys and not drawn.shows(runs, smoothing)]
        for key in (missing + stale)[: None if self._patient else 1]:
            self._draw_anew(key, runs, smoothing)

    def _draw_anew(self, key: Key, runs: tuple[Curves, ...], smoothing: float) -> None:
        self._drawn.pop(key, None)
        name, size = key
        chart = Chart(self.theme, size, content_of(name, runs, self.theme.palette), span(runs), smoothing)
        self._drawn[key] = _Drawn(chart, runs, smoothing)
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

    def _legend_of(self, runs: tuple[Curves, ...], width: int) -> pygame.Surface:
        """The names of the runs with their colours in a row; where there is no room, the longest are cut."""
        key = (width, *(run.name for run in runs))
        if self._legend is None or self._legend[0] != key:
            self._legend = key, self._drawn_legend(runs, width)
        return self._legend[1]

    def _drawn_legend(self, runs: tuple[Curves, ...], width: int) -> pygame.Surface:
        px, theme = self.theme.px, self.theme
        legend = theme.panel(width, self._legend_height() - px(GAP))
        beside = px(SWATCH + 6) + px(5) + px(16)
        widths = [theme.width(run.name, TEXT_SMALL) for run in runs]
        room = _fair(widths, width - 2 * px(PADDING) + px(16) - len(runs) * beside)
        left, middle = px(PADDING), legend.get_height() // 2
        for run, colour in zip(runs, run_colours(runs, theme.palette), strict=True):
            swatch = pygame.Rect(left, middle - px(SWATCH) // 2, px(SWATCH + 6), px(SWATCH))
            pygame.draw.rect(legend, colour, swatch, border_radius=px(2))
            words = theme.text(theme.fitting(run.name, room, TEXT_SMALL), TEXT_SMALL)
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
