"""Rays: distances from the car to the walls in nine directions.

Most rays start in a place and a direction from which only one short run of a wall is visible; the table of `beams`
lists it. The others walk the grid.
"""

import math

import numpy as np

from racer_env.engine.compiled import Compiled, part, shared
from racer_env.engine.tables import BEAM_DIRECTIONS, BEAM_WALL_GAP, MAX_RUN, RUN_BLOCK, cell_at, square_at

RAY_COUNT = 9
RAY_RANGE = 200.0
"""Maximum distance that a ray reports [units]."""
RAY_ANGLES = np.linspace(-math.pi / 2.0, math.pi / 2.0, RAY_COUNT)
"""Directions of the rays relative to the heading [rad], right to left."""
PARALLEL = 1e-10
"""Minimum cross product of a ray and a wall that can meet."""

_COS = tuple(float(value) for value in np.cos(RAY_ANGLES))
_SIN = tuple(float(value) for value in np.sin(RAY_ANGLES))
_BEAMS_PER_RADIAN = BEAM_DIRECTIONS / (2.0 * math.pi)
_BEAMS_BETWEEN_RAYS = BEAM_DIRECTIONS // (2 * (RAY_COUNT - 1))
_FIRST_BEAM = -_BEAMS_BETWEEN_RAYS * (RAY_COUNT // 2)


@part
def cast_rays(track: Compiled, x: float, y: float, heading: float, sin: float, cos: float, distances: Compiled) -> None:
    """Set the distance to the nearest wall along each ray, at most RAY_RANGE.

    sin, cos: sine and cosine of the heading.
    """
    beams = _beams_at(track, x, y)
    direction = math.floor(heading * _BEAMS_PER_RADIAN) + _FIRST_BEAM
    for ray in range(RAY_COUNT):
        dx = cos * _COS[ray] - sin * _SIN[ray]
        dy = sin * _COS[ray] + cos * _SIN[ray]
        if beams >= 0:
            beam = track.beams[beams, (direction + ray * _BEAMS_BETWEEN_RAYS) & (BEAM_DIRECTIONS - 1)]
            first, count = int(beam.first), int(beam.count)
            other_first, other_count = int(beam.other_first), int(beam.other_count)
        else:
            first = count = other_first = other_count = 0
        if count > 0 and other_count == 0:
            distances[ray] = _meet_run(track.wall_points, first, count, x, y, dx, dy)
        elif count > 0:
            nearest = _nearest_of_run(track.wall_points, first, count, x, y, dx, dy, RAY_RANGE)
            distances[ray] = _nearest_of_run(track.wall_points, other_first, other_count, x, y, dx, dy, nearest)
        else:
            distances[ray] = walk(track, x, y, dx, dy, RAY_RANGE)[0]


@part
def _beams_at(track: Compiled, x: float, y: float) -> int:
    """Return the row of `beams` that is valid for a point, or −1."""
    square = track.squares[square_at(track.frame[0], x, y)]
    for j in range(square.walls, square.walls + square.crossing):
        wall = track.segments[track.lists[j]]
        if (wall.dx * (y - wall.y) - wall.dy * (x - wall.x)) * wall.inside < BEAM_WALL_GAP:
            return -1
    return square.beams


@part
def _meet_run(points: Compiled, first: int, count: int, x: float, y: float, dx: float, dy: float) -> float:
    """Return the distance to a run of wall segments that the ray meets once.

    The points of the run lie on one side of the ray up to where it passes between two of them. Counting those points
    has no branch that depends on the data.
    """
    xs, ys = points[0], points[1]
    begin, end = np.uint64(first), np.uint64(count)  # unsigned: no check for a negative index
    line = dx * y - dy * x
    starts_left = dx * ys[begin] - dy * xs[begin] >= line
    passed = -1
    for i in range(_whole_blocks(count + 1)):
        point = begin + i
        passed += ((dx * ys[point] - dy * xs[point] >= line) == starts_left) & (i <= end)
    met = begin + np.uint64(min(passed, count - 1))
    ax, ay = xs[met] - x, ys[met] - y
    bx, by = xs[met + np.uint64(1)] - x, ys[met + np.uint64(1)] - y
    return min(RAY_RANGE, (ax * by - ay * bx) / (dx * (by - ay) - dy * (bx - ax)))


@shared
def _nearest_of_run(
    points: Compiled, first: int, count: int, x: float, y: float, dx: float, dy: float, nearest: float
) -> float:
    """Return the distance to the nearest segment of a run that the ray meets, at most `nearest`.

    Like `_meet_run`, the search for the first and the last of these segments has no branch that depends on the data.
    """
    xs, ys = points[0], points[1]
    begin, end = np.uint64(first), np.uint64(count)
    lowest, highest = MAX_RUN, -1
    for i in range(_whole_blocks(count)):
        point = begin + i
        side = dx * (ys[point] - y) - dy * (xs[point] - x)
        next_side = dx * (ys[point + np.uint64(1)] - y) - dy * (xs[point + np.uint64(1)] - x)
        meets = ((side >= 0.0) != (next_side >= 0.0)) & (i < end)
        number = int(np.int64(i))  # a signed one, as the results are
        lowest = min(lowest, number if meets else MAX_RUN)
        highest = max(highest, number if meets else -1)
    for i in range(lowest, highest + 1):
        nearest = _meet_segment(xs, ys, begin + np.uint64(i), x, y, dx, dy, nearest)
    return nearest


@part
def _whole_blocks(count: int) -> np.uint64:
    """Return a number of points rounded up to whole blocks, which vector instructions test at once."""
    return np.uint64(count + RUN_BLOCK - 1) & ~np.uint64(RUN_BLOCK - 1)


@part
def _meet_segment(
    xs: Compiled, ys: Compiled, point: np.uint64, x: float, y: float, dx: float, dy: float, nearest: float
) -> float:
    """Return the distance to the wall segment that starts with a point, at most `nearest`."""
    ax, ay = xs[point] - x, ys[point] - y
    bx, by = xs[point + np.uint64(1)] - x, ys[point + np.uint64(1)] - y
    side, next_side = dx * ay - dy * ax, dx * by - dy * bx
    if (side >= 0.0) != (next_side >= 0.0) and abs(next_side - side) >= PARALLEL:
        distance = (ax * by - ay * bx) / (next_side - side)
        if 0.0 <= distance < nearest:
            return distance
    return nearest


@part
def walk(track: Compiled, x: float, y: float, dx: float, dy: float, reach: float) -> tuple[float, int]:
    """Return the distance to the first wall along a ray and the wall's index; `reach` and −1 if there is none.

    Jumps from one wall-free square of cells to the next, and tests walls only in the cells that they pass through.
    """
    frame = track.frame[0]
    columns, rows, per_unit = frame.columns, frame.rows, frame.cells_per_unit
    start_column, start_row = (x - frame.left) * per_unit, (y - frame.bottom) * per_unit
    index = cell_at(frame, x, y)
    outside = index == columns * rows
    column, row = int(start_column), int(start_row)
    slope_x, slope_y = dx * per_unit, dy * per_unit
    per_column, per_row = 1.0 / slope_x, 1.0 / slope_y
    side_x, side_y = 1 if dx < 0.0 else 0, 1 if dy < 0.0 else 0
    step_x, step_y = 1 - 2 * side_x, 1 - 2 * side_y
    nearest, wall = reach, -1
    while True:
        cell = track.cells[index]
        jump = int(cell.jump[side_x + 2 * side_y])
        if jump == 0:
            known = int(wall)  # numba would compile `_first_hit` for the constant −1 too
            nearest, wall = _first_hit(track, cell, x, y, dx, dy, nearest, known)
            if outside:
                return nearest, wall
            jump = 1
        next_column, next_row = column + step_x * jump, row + step_y * jump
        to_column = (next_column + side_x - start_column) * per_column
        to_row = (next_row + side_y - start_row) * per_row
        if to_column < to_row:
            travelled = to_column
            column, row = next_column, _onward(row, int(start_row + travelled * slope_y), step_y)
        else:
            travelled = to_row
            column, row = _onward(column, int(start_column + travelled * slope_x), step_x), next_row
        if travelled >= nearest or column < 0 or column >= columns or row < 0 or row >= rows:
            return nearest, wall
        index = row * columns + column


@part
def _onward(old: int, new: int, step: int) -> int:
    """Return the new cell index, unless rounding at a cell's corner would move the ray backwards."""
    return new if (new - old) * step > 0 else old


@part
def _first_hit(
    track: Compiled, cell: Compiled, x: float, y: float, dx: float, dy: float, nearest: float, wall: int
) -> tuple[float, int]:
    """Return distance and index of the nearest wall that passes through a cell, if it is nearer than `nearest`."""
    for j in range(cell.walls, cell.walls + cell.crossing):
        i = track.lists[j]
        segment = track.segments[i]
        cross = dx * segment.dy - dy * segment.dx
        if abs(cross) >= PARALLEL:
            ox, oy = segment.x - x, segment.y - y
            along_ray = (ox * segment.dy - oy * segment.dx) / cross
            along_wall = (ox * dy - oy * dx) / cross
            if 0.0 <= along_ray < nearest and 0.0 <= along_wall <= 1.0:
                nearest, wall = along_ray, i
    return nearest, wall
