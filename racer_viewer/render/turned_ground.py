"""Ground of a view that turns with the car: a board of tiles with north up, turned by one compiled pass.

The board repeats in both directions, like the tiles that are put on it: only tiles that come into view are copied. The
pass turns and zooms at once, so that tiles are never rescaled, and takes the mean of two points near each pixel's
centre: nearly as smooth as bilinear interpolation in a third of the time. In large windows it enlarges coarser tiles.
"""

from __future__ import annotations

import math

import numpy as np
import pygame
from numba import int32, uint32
from numpy.typing import NDArray

from racer_env.engine.compiled import Compiled, bind, entry
from racer_viewer.render.camera import View
from racer_viewer.render.ground import TILE, Place
from racer_viewer.render.tiles import Cover, GroundLevels, fitting_level, level_scale

SIDE_BITS = 11
SIDE = 2**SIDE_BITS
"""Width and height of the board [px], a power of two."""
MAX_DIAGONAL = SIDE - TILE - 80
"""Largest diagonal of a turned view on the board [px]; the rest is for tiles that are only partly visible."""
ONE = 65536
"""The length 1 in the fixed-point numbers of the compiled pass."""
EDGE = 4
"""Margin of the area with north up beyond the corners of the turned one [px]."""
BLOCK = 64, 32
"""Width and height of the parts that the pass fills one after the other [px]; one needs little of the board."""

Pixels = NDArray[np.uint32]


class TurnedGround:
    """Draws the ground of turned views. Making one compiles the pass, on the first run only: about a second."""

    def __init__(self) -> None:
        self._board = pygame.Surface((SIDE, SIDE), depth=32)
        self._on_board: dict[Place, tuple[int, Place, pygame.Surface]] = {}
        """Level, place and picture of the tile at each place of the board."""
        self._turned = pygame.Surface((1, 1), depth=32)
        pixels = np.zeros((1, 1), np.uint32)
        self._pass = bind(_turn, pixels, pixels.ravel(), 1, 1, 1, 1)

    def draw(self, surface: pygame.Surface, view: View, ground: GroundLevels, patient: bool = False) -> None:
        """Cover a surface. patient: draw every missing tile now."""
        flat = self.flat_view(view, ground)
        cover = ground.cover(flat, patient, finest=fitting_level(flat.scale, ground.base))
        self._put(cover, ground)
        target = surface if _fits(surface, self._board) else self._buffer(view.size)
        self._fill(_pixels(target), view, level_scale(cover.number, ground.base))
        if target is not surface:
            surface.blit(target, (0, 0))

    def flat_view(self, view: View, ground: GroundLevels) -> View:
        """Return the view with north up that holds a turned one, at the scale of a level that fits on the board."""
        number = fitting_level(view.scale, ground.base)
        while math.hypot(*view.size) * level_scale(number, ground.base) / view.scale > MAX_DIAGONAL:
            number -= 1
        scale, (low, high) = level_scale(number, ground.base), view.bounds()
        width, height = (2 * math.ceil((high[axis] - low[axis]) * scale / 2.0 + EDGE) for axis in (0, 1))
        return View(round(view.x * scale) / scale, round(view.y * scale) / scale, scale, (width, height))

    def _put(self, cover: Cover, ground: GroundLevels) -> None:
        """Copy the tiles that are not on the board yet."""
        count, fresh = SIDE // TILE, []
        for place, picture in zip(cover.places, ground.pictures(cover), strict=True):
            slot, content = (place[0] % count, place[1] % count), (cover.number, place, picture)
            if self._on_board.get(slot) != content:
                self._on_board[slot] = content
                fresh.append((picture, (slot[0] * TILE, slot[1] * TILE)))
        self._board.fblits(fresh)

    def _buffer(self, size: tuple[int, int]) -> pygame.Surface:
        if self._turned.get_size() != size:
            self._turned = pygame.Surface(size, depth=32)
        return self._turned

    def _fill(self, turned: Pixels, view: View, scale: float) -> None:
        """Fill a picture from the board, whose tiles have this scale."""
        height, width = turned.shape
        cos, sin = (part * scale / view.scale for part in view.rotation)
        """Step on the board for each pixel to the right; for each pixel down it is (−sin, cos)."""
        x = view.x * scale - (width - 1) / 2 * cos + (height - 1) / 2 * sin
        y = -view.y * scale - (width - 1) / 2 * sin - (height - 1) / 2 * cos
        start = (round((place - 0.25) * ONE) % (SIDE * ONE) for place in (x, y))
        self._pass(turned, _pixels(self._board).ravel(), *start, round(cos * ONE), round(sin * ONE))


def _fits(surface: pygame.Surface, board: pygame.Surface) -> bool:
    """Return whether the pass can write into a surface: it has the board's format, and its rows follow each other."""
    return (
        surface.get_bitsize() == board.get_bitsize()
        and surface.get_masks()[:3] == board.get_masks()[:3]
        and surface.get_pitch() == surface.get_width() * surface.get_bytesize()
    )


def _pixels(surface: pygame.Surface) -> Pixels:
    """Return the pixels (height, width) of a surface, which stays locked as long as they are in use."""
    return np.asarray(pygame.surfarray.pixels2d(surface).T)


@entry
def _turn(turned: Compiled, board: Compiled, x: int, y: int, across: int, down: int) -> None:  # pragma: no cover
    """Fill a picture (height, width) with points of the flattened board, which repeats in both directions.

    x, y: first of the two points of the first pixel, in fixed-point numbers; the other one is half a pixel from it.
    across, down: step to the right and down on the board for each pixel to the right.
    """
    height, width = turned.shape
    half, one, mask = int32(ONE // 2), uint32(1), uint32(0x7F7F7F7F)
    to_column, to_row = int32(16), int32(16 - SIDE_BITS)
    columns, rows = int32(SIDE - 1), int32((SIDE - 1) << SIDE_BITS)
    step_x, step_y = int32(across), int32(down)
    for top in range(0, height, BLOCK[1]):
        for left in range(0, width, BLOCK[0]):
            end = min(left + BLOCK[0], width)
            for row in range(top, min(top + BLOCK[1], height)):
                line = turned[row, left:end]
                first_x, first_y = int32(x + left * across - row * down), int32(y + left * down + row * across)
                for column in range(end - left):
                    px = int32(first_x + int32(column) * step_x)
                    py = int32(first_y + int32(column) * step_y)
                    upper_left = int32(((px >> to_column) & columns) | ((py >> to_row) & rows))
                    px, py = int32(px + half), int32(py + half)
                    lower_right = int32(((px >> to_column) & columns) | ((py >> to_row) & rows))
                    a, b = board[uint32(upper_left)], board[uint32(lower_right)]
                    line[column] = uint32((a & b) + (uint32((a ^ b) >> one) & mask))  # mean of all four bytes
