"""Beams: what rays from a small place in nearly the same direction can meet, found once for a track.

A beam is all rays that start in one square of the grid, where it is inside of the walls, and point into one of
64 sectors. Its left-most and its right-most ray are cast. Where they first meet the same wall, every ray between
them meets that wall between those two points: nothing else can come in between, since it would have to cross one of the
two rays, the wall, or the place they start from. That holds for walls that do not cross, places that are
convex, and a run of wall that is all ahead; other beams are left unknown, and their rays walk the grid.
"""

import math

import numpy as np

from racer_env.engine.compiled import building_entry, entry, part
from racer_env.engine.rays import walk
from racer_env.engine.tables import (
    BEAM,
    BEAM_CELLS,
    BEAM_DIRECTIONS,
    BEAM_WALL_GAP,
    LONGEST_RUN,
    TOLERANCE,
    TrackTables,
)
from racer_env.engine.walls import WALL_OFFSET, walls_cross

MOST_POINTS = 65_535
"""Wall points that a beam can number."""
MOST_CORNERS = 24
"""Of a square cut by walls."""


def add_beams(tables: TrackTables) -> TrackTables:
    """The same tables with the beams of all squares that a car can be in."""
    if len(tables.wall_points) > MOST_POINTS or walls_cross(tables.segments):
        return tables
    reach = float(tables.stretches["width0"].max()) + WALL_OFFSET
    count, walls = number_squares(tables, reach)
    tables = tables._replace(
        beams=np.zeros((count, BEAM_DIRECTIONS), BEAM), lists=np.concatenate([tables.lists, walls])
    )
    fill_beams(tables, np.zeros((2, MOST_CORNERS, 2)))
    return tables


@building_entry
def number_squares(track, reach):
    """Number the squares within reach of the centreline; returns how many they are, and the walls through them."""
    frame = track.frame[0]
    count, used = 0, len(track.lists)
    walls = np.empty(4 * len(track.segments), np.int32)
    rows, columns = track.squares.shape
    half = BEAM_CELLS * frame.cell / 2.0
    for row in range(rows):
        for column in range(columns):
            x, y = frame.left + (2 * column + 1) * half, frame.bottom + (2 * row + 1) * half
            cell_row, cell_column = min(row * BEAM_CELLS, frame.rows - 1), min(column * BEAM_CELLS, frame.columns - 1)
            sample = track.samples[track.lists[track.cells[cell_row * frame.columns + cell_column].samples]]
            if (sample.x - x) ** 2 + (sample.y - y) ** 2 < (reach + 4.0 * half) ** 2:
                square = track.squares[row, column]
                square.beams, square.walls = count, used
                count += 1
                for r in range(cell_row, min(cell_row + BEAM_CELLS, frame.rows)):
                    for c in range(cell_column, min(cell_column + BEAM_CELLS, frame.columns)):
                        cell = track.cells[r * frame.columns + c]
                        for j in range(cell.walls, cell.walls + cell.crossing):
                            wall = track.lists[j]
                            known = walls[square.walls - len(track.lists) : used - len(track.lists)]
                            if wall not in known:
                                if used - len(track.lists) == len(walls):
                                    walls = np.concatenate((walls, walls))
                                walls[used - len(track.lists)] = wall
                                used += 1
                square.crossing = used - square.walls
    return count, walls[: used - len(track.lists)]


@entry
def fill_beams(track, corners):
    """Set the run of wall segments of every beam that meets only one. `corners` is room to work in."""
    rows, columns = track.squares.shape
    for row in range(rows):
        for column in range(columns):
            square = track.squares[row, column]
            if square.beams >= 0:
                place = _open_part(track, square, row, column, corners)
                if place >= 0:
                    _fill_square(track, track.beams[square.beams], corners[place % 2, : place // 2])


@part
def _open_part(track, square, row, column, corners):
    """Cut a square by the walls through it.

    Returns twice the number of its corners, plus the plane of `corners` that they are in; or −1 if nothing is left.
    """
    half = BEAM_CELLS * track.frame[0].cell / 2.0
    x, y = track.frame[0].left + (2 * column + 1) * half, track.frame[0].bottom + (2 * row + 1) * half
    for i in range(4):
        corners[0, i, 0] = x + (half if 0 < i < 3 else -half)
        corners[0, i, 1] = y + (half if i > 1 else -half)
    plane, count = 0, 4
    for j in range(square.walls, square.walls + square.crossing):
        if count > MOST_CORNERS - 2:
            return -1
        count = _cut(track.segments[track.lists[j]], corners[plane, :count], corners[1 - plane])
        plane = 1 - plane
        if count < 3:
            return -1
    return 2 * count + plane


@part
def _cut(wall, corners, kept):
    """Keep what of a convex place is on the inside of a wall's line; returns the number of corners kept."""
    count = 0
    for i in range(len(corners)):
        ax, ay = corners[i, 0], corners[i, 1]
        bx, by = corners[(i + 1) % len(corners), 0], corners[(i + 1) % len(corners), 1]
        a = (wall.dx * (ay - wall.y) - wall.dy * (ax - wall.x)) * wall.inside - BEAM_WALL_GAP
        b = (wall.dx * (by - wall.y) - wall.dy * (bx - wall.x)) * wall.inside - BEAM_WALL_GAP
        if a >= 0.0:
            kept[count, 0], kept[count, 1] = ax, ay
            count += 1
        if (a >= 0.0) != (b >= 0.0):
            kept[count, 0], kept[count, 1] = ax + (bx - ax) * a / (a - b), ay + (by - ay) * a / (a - b)
            count += 1
    return count


@part
def _fill_square(track, beams, corners):
    """Set the beams of one place, given by its corners."""
    sector = 2.0 * math.pi / BEAM_DIRECTIONS
    for direction in range(BEAM_DIRECTIONS):
        left, right = (direction + 1) * sector + TOLERANCE, direction * sector - TOLERANCE
        left_dx, left_dy, right_dx, right_dy = math.cos(left), math.sin(left), math.cos(right), math.sin(right)
        left_corner = right_corner = 0
        left_most, right_most = -math.inf, math.inf
        for i in range(len(corners)):
            left_side = left_dx * corners[i, 1] - left_dy * corners[i, 0]
            right_side = right_dx * corners[i, 1] - right_dy * corners[i, 0]
            if left_side > left_most:
                left_most, left_corner = left_side, i
            if right_side < right_most:
                right_most, right_corner = right_side, i
        first, count = _run_between(
            track,
            (corners[left_corner, 0], corners[left_corner, 1], left_dx, left_dy),
            (corners[right_corner, 0], corners[right_corner, 1], right_dx, right_dy),
        )
        beams[direction].first = first
        beams[direction].count = count


@part
def _run_between(track, left, right):
    """The run of one wall from where the left ray meets it to where the right ray does, or 0, 0 if it is not known."""
    left_distance, left_wall = walk(track, left[0], left[1], left[2], left[3], math.inf)
    right_distance, right_wall = walk(track, right[0], right[1], right[2], right[3], math.inf)
    size = len(track.segments) // 2
    if left_wall < 0 or right_wall < 0 or left_wall // size != right_wall // size:
        return 0, 0
    left_end = _end_met(track.segments[left_wall], left, left_distance)
    right_end = _end_met(track.segments[right_wall], right, right_distance)
    behind = (right_wall - left_wall) % size
    if behind <= size // 2:
        start, count = left_wall + min(0, left_end), behind + 1 - min(0, left_end) + max(0, right_end)
    else:
        start, count = right_wall + min(0, right_end), size - behind + 1 - min(0, right_end) + max(0, left_end)
    if count > LONGEST_RUN:
        return 0, 0
    wall = left_wall // size
    first = (start - wall * size) % size + wall * (size + 1 + LONGEST_RUN)
    for i in range(first + 1, first + count):
        px, py = track.wall_points[i, 0] - right[0], track.wall_points[i, 1] - right[1]
        if (left[0] - right[0]) * py - (left[1] - right[1]) * px >= 0.0:
            return 0, 0
    return first, count


@part
def _end_met(segment, ray, distance):
    """−1 or 1 where a ray meets a wall segment at its first or last point, so that its neighbour may be met too."""
    x, y = ray[0] + distance * ray[2] - segment.x, ray[1] + distance * ray[3] - segment.y
    along = (x * segment.dx + y * segment.dy) * segment.per_square
    return -1 if along < TOLERANCE else 1 if along > 1.0 - TOLERANCE else 0
