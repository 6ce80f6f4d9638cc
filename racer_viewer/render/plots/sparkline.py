"""Sparkline of a run for a row of a list."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_viewer.render.overlays.panel import blend
from racer_viewer.render.plots.axes import Axes, figure_limits, lap_limits
from racer_viewer.render.plots.drawing import draw_areas, draw_dots, draw_line, stepped
from racer_viewer.render.plots.figures import COMPONENT_KEYS, EPISODE_REWARD, REWARD_KEY, lap_times, span, terms_of
from racer_viewer.render.plots.series import moving_average, running_best
from racer_viewer.run_history import RunHistory
from racer_viewer.ui.theme import Theme

Floats = NDArray[np.float64]

SMOOTHING = 0.6
AREA_SHADE = 0.22
"""Share of the line's colour in the area below it."""
WIDTH, DOT, EDGE = 1.6, 2.4, 3
"""Line width, end dot radius and padding at scale 1 [px]."""


class Sparkline:
    """Best lap of a run over time, or its reward while it has no laps. Pictures are cached.

    Runs on several circuits always show the reward, because lap times of different circuits are not comparable.
    """

    def __init__(self, theme: Theme) -> None:
        self.theme = theme
        self._pictures: WeakKeyDictionary[RunHistory, pygame.Surface] = WeakKeyDictionary()

    def draw(self, surface: pygame.Surface, rect: pygame.Rect, curves: RunHistory) -> None:
        picture = self._pictures.get(curves)
        if picture is None or picture.get_size() != rect.size:
            picture = self._pictures[curves] = self.render_curve(rect.size, curves)
        surface.blit(picture, rect)

    def render_curve(self, size: tuple[int, int], curves: RunHistory) -> pygame.Surface:
        picture = pygame.Surface(size, pygame.SRCALPHA, 32)
        edge, palette = self.theme.px(EDGE), self.theme.palette
        frame = picture.get_rect().inflate(-2 * edge, -2 * edge)
        if frame.width <= 0 or frame.height <= 0:
            return picture
        steps, times = lap_times(curves)
        if len(times) and len(curves.circuits) < 2:
            self._draw_laps(picture, Axes(frame, span((curves,)), *_distinct_limits(*lap_limits(times))), steps, times)
            return picture
        steps, rewards = _rewards(curves)
        if not len(rewards):
            picture.fill(palette.line, (frame.left, frame.centery, frame.width, self.theme.px(1)))
            return picture
        axes = Axes(frame, span((curves,)), *_distinct_limits(*figure_limits(rewards)))
        self._draw_curve(picture, axes, axes.xs(steps), axes.ys(moving_average(rewards, SMOOTHING)))
        return picture

    def _draw_laps(self, picture: pygame.Surface, axes: Axes, steps: Floats, times: Floats) -> None:
        inside = axes.outside(times) == 0.0
        faint = blend(self.theme.palette.panel[:3], self.theme.palette.cars[0], 0.7)
        draw_dots(picture, faint, axes.xs(steps[inside]), axes.ys(times[inside]), self.theme.px(1))
        xs, ys = running_best(steps, times, axes.span[1])
        self._draw_curve(picture, axes, *stepped(axes.xs(xs), axes.ys(ys)))

    def _draw_curve(self, picture: pygame.Surface, axes: Axes, xs: Floats, ys: Floats) -> None:
        """Draw the line, the area below it, and a dot at its end."""
        palette, frame = self.theme.palette, axes.frame
        ys = np.clip(ys, frame.top, frame.bottom - 1)
        columns = np.arange(frame.left, frame.right)
        edges = np.interp(columns, xs, ys, left=np.nan, right=np.nan)
        area = blend(palette.panel[:3], palette.accent, AREA_SHADE)
        if len(xs) > 1:
            draw_areas(picture, (area,), columns, edges[:, None], frame.bottom)
        draw_line(picture, palette.accent, xs, ys, WIDTH * self.theme.scale)
        end = round(float(xs[-1])), round(float(ys[-1]))
        pygame.draw.aacircle(picture, palette.accent, end, self.theme.px(DOT))


def _rewards(curves: RunHistory) -> tuple[Floats, Floats]:
    """Return steps and the episode reward, or the step reward if that is all there is."""
    values = curves.values.get(EPISODE_REWARD)
    if values is None or not np.isfinite(values).any():
        parts = [curves.values[key] for key in COMPONENT_KEYS if key in curves.values]
        terms = [np.nan_to_num(curves.values[REWARD_KEY + term.name]) for term in terms_of(curves)]
        values = np.sum([*parts, *terms], axis=0) if parts else np.full(len(curves.steps), np.nan)
    there = np.isfinite(values)
    return curves.steps[there], values[there]


def _distinct_limits(low: float, high: float) -> tuple[float, float]:
    """Return limits that are not equal."""
    return (low, high) if high > low else (low - 0.5, high + 0.5)
