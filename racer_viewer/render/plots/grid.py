"""Where the charts lie: rows of equal charts, as many as can be read."""

from __future__ import annotations

import math
from itertools import pairwise

import pygame

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
