"""Where the games of a window are."""

from __future__ import annotations

import pygame


def tiles(area: pygame.Rect, count: int, aspect: float, gap: int) -> list[pygame.Rect]:
    """So many rectangles of one size, row by row, with as much room as there can be for pictures of this shape.

    aspect: width / height of a picture. gap: between rectangles [px].
    """
    columns = max(range(1, count + 1), key=lambda number: _picture_height(area, number, count, aspect, gap))
    rows = -(-count // columns)
    width, height = _size(area, columns, rows, gap)
    return [
        pygame.Rect(
            area.x + number % columns * (width + gap), area.y + number // columns * (height + gap), width, height
        )
        for number in range(count)
    ]


def _size(area: pygame.Rect, columns: int, rows: int, gap: int) -> tuple[int, int]:
    width = (area.width - (columns - 1) * gap) // columns
    height = (area.height - (rows - 1) * gap) // rows
    return max(1, width), max(1, height)


def _picture_height(area: pygame.Rect, columns: int, count: int, aspect: float, gap: int) -> float:
    width, height = _size(area, columns, -(-count // columns), gap)
    return min(height, width / aspect)
