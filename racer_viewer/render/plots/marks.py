"""Flags for what happened in a run."""

from __future__ import annotations

from collections.abc import Iterable

import pygame

from racer_viewer.render.overlays.panel import blend
from racer_viewer.render.plots.axes import Axes
from racer_viewer.render.plots.series import Mark
from racer_viewer.ui.theme import Colour, Palette, Theme

IMPORTANCE = ("problem", "weights", "first lap", "best", "checkpoint", "first gate")
"""Kinds that have a flag; where there is no room, the first ones have it."""
EVERYWHERE = ("problem", "weights")
"""What changes everything from then on, and is shown in every chart."""
LANE = 10
"""Height of the flags above the frame at scale 1 [px]."""
APART = 11
"""Between two flags, at scale 1 [px]."""
POLE_SHADE, STRONG_POLE_SHADE = 0.3, 0.7
"""How much of its colour the line of a mark has."""


def placed(marks: Iterable[Mark], axes: Axes, gap: float) -> list[tuple[Mark, int]]:
    """Those for which there is room, with their pixel column. Of the same kind, the later one comes first."""
    chosen: list[tuple[Mark, int]] = []
    known = [mark for mark in marks if mark.kind in IMPORTANCE]
    for mark in sorted(known, key=lambda mark: (IMPORTANCE.index(mark.kind), -mark.x)):
        x = round(axes.x(mark.x))
        if axes.frame.left <= x < axes.frame.right and all(abs(x - other) >= gap for _, other in chosen):
            chosen.append((mark, x))
    return chosen


def draw_poles(surface: pygame.Surface, theme: Theme, chosen: list[tuple[Mark, int]], frame: pygame.Rect) -> None:
    """Before the values are drawn: they lie over them."""
    for mark, x in reversed(chosen):
        shade = STRONG_POLE_SHADE if mark.kind in EVERYWHERE else POLE_SHADE
        colour = blend(theme.palette.panel[:3], colour_of(mark, theme.palette), shade)
        surface.fill(colour, (x, frame.top, theme.px(1), frame.height))


def draw_flags(surface: pygame.Surface, theme: Theme, chosen: list[tuple[Mark, int]], frame: pygame.Rect) -> None:
    """In the lane above the frame. Kinds differ in shape, too."""
    for mark, x in chosen:
        _draw_flag(surface, mark.kind, colour_of(mark, theme.palette), x, frame.top, theme.px(LANE - 3))


def _draw_flag(surface: pygame.Surface, kind: str, colour: Colour, x: int, bottom: int, size: int) -> None:
    top = bottom - size
    if kind in EVERYWHERE:
        surface.fill(colour, (x, top, max(1, size // 6), size))
        pygame.draw.polygon(surface, colour, [(x, top), (x + size, top + size * 0.35), (x, top + size * 0.7)])
    elif kind == "checkpoint":
        side = size * 2 // 3
        surface.fill(colour, (x - side // 2, top + (size - side) // 2, side, side))
    elif kind == "best":
        middle, half = top + size / 2, size / 2
        pygame.draw.polygon(surface, colour, [(x, top), (x + half, middle), (x, bottom), (x - half, middle)])
    else:
        pygame.draw.aacircle(surface, colour, (x, top + size // 2), size // 2)


def colour_of(mark: Mark, palette: Palette) -> Colour:
    kinds = {"problem": palette.bad, "weights": palette.accent, "best": palette.good, "checkpoint": palette.faint}
    return mark.colour or kinds.get(mark.kind, palette.text)
