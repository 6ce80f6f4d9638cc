"""Where the panels lie: two columns at the edges of the window, the middle stays free.

A panel lies in its home column if there is room, else in the other one. Where not all fit, the least important are
made compact, one after another; if they do not fit even so, the least important are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pygame

IMPORTANCE = ("timing", "speed", "map", "gaps", "inputs", "reward", "agent", "physics")
"""The first are left out last."""
LEFT = ("timing", "gaps", "inputs", "physics", "speed")
"""At home in the left column, from top to bottom; the others are at home in the right one."""
RIGHT = ("reward", "agent", "map")
FROM_BELOW = ("speed", "map")
"""These lie at the bottom of their column."""
GAP = 8
"""Between two panels, at scale 1 [px]."""
COLUMN_SHARE = 0.3
"""Of the window's width that a column and its margin may take."""


@dataclass(frozen=True)
class Wish:
    """A panel that is to be shown, and its height in both forms [px]."""

    name: str
    full: int
    compact: int


@dataclass(frozen=True)
class Place:
    name: str
    compact: bool
    rect: pygame.Rect


@dataclass(frozen=True)
class Room:
    """The window, and the width of a column [px]."""

    window: tuple[int, int]
    width: int
    margin: int
    gap: int

    @property
    def height(self) -> int:
        """Of a column, with one gap more than needed, so that every panel can bring its own."""
        return self.window[1] - 2 * self.margin + self.gap


def arrange(wishes: Iterable[Wish], room: Room) -> list[Place]:
    """The places of as many of the panels as there is room for, in the order of `LEFT` and `RIGHT`."""
    ranked = sorted(wishes, key=lambda wish: IMPORTANCE.index(wish.name))
    for kept in range(len(ranked), 0, -1):
        for compact in range(kept + 1):
            small = {wish.name for wish in ranked[kept - compact : kept]}
            heights = {wish.name: wish.compact if wish.name in small else wish.full for wish in ranked[:kept]}
            columns = _columns(heights, room)
            if columns is not None:
                return [
                    Place(name, name in small, rect)
                    for side, names in enumerate(columns)
                    for name, rect in _stack(names, heights, _left_edge(side, room), room)
                ]
    return []


def _columns(heights: dict[str, int], room: Room) -> tuple[list[str], list[str]] | None:
    """The names in the left and in the right column; None if they do not fit."""
    columns: tuple[list[str], list[str]] = [], []
    free = [room.height, room.height]
    for name, height in heights.items():
        home = 0 if name in LEFT else 1
        side = next((side for side in (home, 1 - home) if free[side] >= height + room.gap), None)
        if side is None:
            return None
        columns[side].append(name)
        free[side] -= height + room.gap
    return columns


def _left_edge(side: int, room: Room) -> int:
    return room.margin if side == 0 else room.window[0] - room.margin - room.width


def _stack(names: Sequence[str], heights: dict[str, int], left: int, room: Room) -> list[tuple[str, pygame.Rect]]:
    """The panels of one column."""
    order = [name for name in (*LEFT, *RIGHT) if name in names]
    placed: list[tuple[str, pygame.Rect]] = []
    top, bottom = room.margin, room.window[1] - room.margin
    for name in order:
        if name not in FROM_BELOW:
            placed.append((name, pygame.Rect(left, top, room.width, heights[name])))
            top += heights[name] + room.gap
    for name in order:
        if name in FROM_BELOW:
            bottom -= heights[name]
            placed.append((name, pygame.Rect(left, bottom, room.width, heights[name])))
            bottom -= room.gap
    return placed
