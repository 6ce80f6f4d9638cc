"""Beams: for each small place and direction, the run of wall that rays can meet, computed once per track.

A beam is the set of all rays that start in the part of one grid square inside the walls and point into one of 64
sectors. Its left-most and its right-most ray are cast. If both first meet the same wall, every ray between them meets
that wall between those two points: anything in front of it would have to cross one of the two rays, the wall, or the
starting place. This requires walls that do not cross, a convex starting place, a run of wall that is completely ahead,
and that the other wall is not completely between the rays. A run that turns back across the beam is rejected, since a
ray may meet it more than once. If the two rays meet different walls, a run of each is used if one wall closes the view
behind the other (`_two_runs`). All other beams stay unknown, and their rays walk the grid.
"""

import math
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from racer_env.engine.compiled import Compiled, bind, entry, part, shared
from racer_env.engine.rays import walk
from racer_env.engine.tables import (
    BEAM,
    BEAM_DIRECTIONS,
    BEAM_WALL_GAP,
    MAX_RUN,
    OVERLAP,
    SQUARE_CELLS,
    TOLERANCE,
    TrackTables,
    crossing_walls,
)
from racer_env.engine.walls import WALL_OFFSET

Ray = tuple[float, float, float, float]
"""Start x, y and direction x, y."""

MAX_WALL_POINTS = 65_535
"""Maximum number of wall points; a beam stores 16-bit indices."""
MAX_WORKERS = 8
"""Maximum number of threads that fill the beams."""
MAX_CORNERS = 24
"""Maximum number of corners of a square cut by walls."""


def add_beams(tables: TrackTables) -> TrackTables:
    """Return the tables, read-only, with the beams of all squares that a car can be in."""
    if tables.wall_points.shape[1] > MAX_WALL_POINTS or len(crossing_walls(tables)) > 0:
        tables.seal()
        return tables
    frame, squares = tables.frame[0], tables.squares[:-1]
    cell, wall = tables.walls_through_cells()
    row, column = np.divmod(cell, frame["columns"])
    square = row // SQUARE_CELLS * frame["square_columns"] + column // SQUARE_CELLS
    square, wall = np.unique([square, wall], axis=1)
    squares["crossing"] = np.bincount(square, minlength=len(squares))
    squares["walls"] = len(tables.lists) + np.cumsum(squares["crossing"]) - squares["crossing"]
    reached = _near_centreline(tables)
    squares["beams"][reached] = np.arange(np.count_nonzero(reached))
    beams = np.zeros((np.count_nonzero(reached), BEAM_DIRECTIONS), BEAM)
    tables = tables._replace(lists=np.concatenate([tables.lists, wall.astype(np.int32)]))
    tables.seal()
    _fill(tables, beams)
    beams.flags.writeable = False
    return tables._replace(beams=beams)


def _near_centreline(tables: TrackTables) -> NDArray[np.bool_]:
    """Return which squares are no farther from the centreline than the walls."""
    frame, squares = tables.frame[0], tables.squares[:-1]
    row, column = np.divmod(np.arange(len(squares)), frame["square_columns"])
    sample = tables.samples[tables.lists[squares["samples"]]]
    side = SQUARE_CELLS * frame["cell"]
    x, y = frame["left"] + (column + 0.5) * side, frame["bottom"] + (row + 0.5) * side
    reach = tables.stretches["width0"][sample["stretch"]] + WALL_OFFSET + side / math.sqrt(2.0)
    return np.asarray(np.hypot(sample["x"] - x, sample["y"] - y) < reach)


def _fill(tables: TrackTables, beams: NDArray[np.void]) -> None:
    """Fill the beams of all squares on all cores; the user waits for the track."""
    workers = min(os.cpu_count() or 1, MAX_WORKERS)
    limits = np.linspace(0, len(tables.squares) - 1, workers + 1).astype(int).tolist()
    shares = [(tables, beams, np.zeros((2, MAX_CORNERS, 2)), *limits[i : i + 2]) for i in range(workers)]
    fill = bind(fill_beams, *shares[0])
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda share: fill(*share), shares))


@entry
def fill_beams(track: Compiled, beams: Compiled, corners: Compiled, first: int, last: int) -> None:
    """Set the runs that the beams of squares[first:last] meet.

    corners: scratch space.
    """
    for i in range(first, last):
        square = track.squares[i]
        if square.beams >= 0:
            row, column = i // track.frame[0].square_columns, i % track.frame[0].square_columns
            place = _open_part(track, square, row, column, corners)
            if place >= 0:
                _fill_square(track, beams[square.beams], corners[place % 2, : place // 2])


@shared
def _open_part(track: Compiled, square: Compiled, row: int, column: int, corners: Compiled) -> int:
    """Cut a square by the walls through it.

    Returns twice the number of its corners, plus the plane of `corners` that holds them; or −1 if nothing is left.
    """
    half = SQUARE_CELLS * track.frame[0].cell / 2.0
    x, y = track.frame[0].left + (2 * column + 1) * half, track.frame[0].bottom + (2 * row + 1) * half
    for i in range(4):
        corners[0, i, 0] = x + (half if 0 < i < 3 else -half)
        corners[0, i, 1] = y + (half if i > 1 else -half)
    plane, count = 0, 4
    for j in range(square.walls, square.walls + square.crossing):
        if count > MAX_CORNERS - 2:
            return -1
        count = _cut(track.segments[track.lists[j]], corners[plane, :count], corners[1 - plane])
        plane = 1 - plane
        if count < 3:
            return -1
    return 2 * count + plane


@part
def _cut(wall: Compiled, corners: Compiled, kept: Compiled) -> int:
    """Keep the part of a convex place on the inside of a wall's line. Returns its number of corners."""
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


@shared
def _fill_square(track: Compiled, beams: Compiled, corners: Compiled) -> None:
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
        left_ray = (corners[left_corner, 0], corners[left_corner, 1], left_dx, left_dy)
        right_ray = (corners[right_corner, 0], corners[right_corner, 1], right_dx, right_dy)
        beam = beams[direction]
        beam.first, beam.count, beam.other_first, beam.other_count = _runs_between(track, left_ray, right_ray)


@shared
def _runs_between(track: Compiled, left: Ray, right: Ray) -> tuple[int, int, int, int]:
    """Return the one or two runs that all rays between two rays meet, as in a BEAM; zeros if they are not known."""
    left_distance, left_wall = _first_wall(track, left, 0.0)
    right_distance, right_wall = _first_wall(track, right, 0.0)
    size = len(track.segments) // 2
    if left_wall < 0 or right_wall < 0:
        return 0, 0, 0, 0
    if left_wall // size == right_wall // size:
        left_end = _end_met(track.segments[left_wall], left, left_distance)
        right_end = _end_met(track.segments[right_wall], right, right_distance)
        first, count = _one_run(track, left, right, left_wall, right_wall, left_end, right_end)
        return first, count, 0, 0
    first, count, other_first, other_count = _two_runs(track, left, -1.0, left_wall, right, 1.0, right_wall)
    if count == 0:
        first, count, other_first, other_count = _two_runs(track, right, 1.0, right_wall, left, -1.0, left_wall)
    return first, count, other_first, other_count


@shared
def _first_wall(track: Compiled, ray: Ray, distance: float) -> tuple[float, int]:
    """Return the first wall that a ray meets beyond some distance."""
    x, y = ray[0] + distance * ray[2], ray[1] + distance * ray[3]
    return walk(track, x, y, ray[2], ray[3], math.inf)


@part
def _one_run(
    track: Compiled, left: Ray, right: Ray, left_wall: int, right_wall: int, left_end: int, right_end: int
) -> tuple[int, int]:
    """Return the run of one wall between the points where the left and the right ray meet it, or 0, 0."""
    size = len(track.segments) // 2
    apart = (right_wall - left_wall) % size
    if apart <= size // 2:
        start, count = left_wall + min(0, left_end), apart + 1 - min(0, left_end) + max(0, right_end)
    else:
        start, count = right_wall + min(0, right_end), size - apart + 1 - min(0, right_end) + max(0, left_end)
    wall = left_wall // size
    if count > MAX_RUN or _between(track, (1 - wall) * size, left, right):
        return 0, 0
    first = _first_point(track, start, wall)
    return (first, count) if _crossed_once(track.wall_points, first, count, left, right) else (0, 0)


@shared
def _two_runs(
    track: Compiled, far: Ray, far_side: float, far_wall: int, near: Ray, near_side: float, near_wall: int
) -> tuple[int, int, int, int]:
    """Return two runs if one wall spans the beam and the other juts into it, else zeros.

    The wall that the far ray meets must lead across the beam and out past the near ray. The wall that the near ray
    meets must lead into the beam and out past the near ray again. If the near ray beyond that point next meets the
    spanning wall, nothing else is in the beam in front of it.
    Sides are 1 if the beam is to the left of a ray, else −1.
    """
    first, count, last = _follow(track, far_wall, far, far_side, far, far_side, near, near_side)
    other_first, other_count, other_last = _follow(track, near_wall, near, near_side, far, far_side, near, near_side)
    if count == 0 or other_count == 0:
        return 0, 0, 0, 0
    out = track.segments[other_last]
    cross = near[2] * out.dy - near[3] * out.dx
    distance = ((out.x - near[0]) * out.dy - (out.y - near[1]) * out.dx) / cross
    if not distance > 0.0 or _first_wall(track, near, distance + TOLERANCE)[1] != last:
        return 0, 0, 0, 0
    return first, count, other_first, other_count


@part
def _follow(
    track: Compiled, wall: int, entry: Ray, entry_side: float, far: Ray, far_side: float, near: Ray, near_side: float
) -> tuple[int, int, int]:
    """Follow a wall from the segment that a ray meets, through the beam, and out past the near ray.

    Returns the first point of that run, its number of segments (0 if it leads past the far ray, backwards, or too far)
    and its last segment.
    """
    size = len(track.segments) // 2
    base = wall // size * size
    ahead = track.segments[base + (wall + 1 - base) % size]
    step = 1 if _side(entry, ahead.x, ahead.y) * entry_side > 0.0 else -1
    point = wall - base + max(0, step)
    for count in range(1, MAX_RUN + 1):
        corner = track.segments[base + point % size]
        edge = (near[0] - far[0]) * (corner.y - far[1]) - (near[1] - far[1]) * (corner.x - far[0])
        if edge * far_side >= 0.0 or _side(far, corner.x, corner.y) * far_side <= 0.0:
            return 0, 0, -1
        if _side(near, corner.x, corner.y) * near_side <= 0.0:
            start = wall if step > 0 else wall - count + 1
            last = base + (wall - base + step * (count - 1)) % size
            return _first_point(track, start, wall // size), count, last
        point += step
    return 0, 0, -1


@part
def _side(ray: Ray, x: float, y: float) -> float:
    """Return a positive number to the left of a ray, a negative one to its right."""
    return ray[2] * (y - ray[1]) - ray[3] * (x - ray[0])


@part
def _first_point(track: Compiled, segment: int, wall: int) -> int:
    """Return the index in `wall_points` of the first point of a segment, which may lie past the ends of its wall."""
    size = len(track.segments) // 2
    return (segment - wall * size) % size + wall * (size + 1 + OVERLAP)


@part
def _between(track: Compiled, first: int, left: Ray, right: Ray) -> bool:
    """Return whether the wall that starts with segment `first` may be completely between both rays.

    Then its first point and the point half way around are both between them.
    """
    a, b = track.segments[first], track.segments[first + len(track.segments) // 4]
    return (
        _side(left, a.x, a.y) <= 0.0
        and _side(right, a.x, a.y) >= 0.0
        and _side(left, b.x, b.y) <= 0.0
        and _side(right, b.x, b.y) >= 0.0
    )


@part
def _crossed_once(points: Compiled, first: int, count: int, left: Ray, right: Ray) -> bool:
    """Return whether a run of wall is ahead of the line between both corners and never turns back across the beam."""
    edge_x, edge_y = left[0] - right[0], left[1] - right[1]
    across = 0.0
    for i in range(first, first + count):
        x, y = points[0, i], points[1, i]
        dx, dy = points[0, i + 1] - x, points[1, i + 1] - y
        if i > first and edge_x * (y - right[1]) - edge_y * (x - right[0]) >= 0.0:
            return False
        left_cross, right_cross = left[2] * dy - left[3] * dx, right[2] * dy - right[3] * dx
        if across == 0.0:
            across = 1.0 if left_cross > 0.0 else -1.0
        if left_cross * across <= 0.0 or right_cross * across <= 0.0:
            return False
    return True


@part
def _end_met(segment: Compiled, ray: Ray, distance: float) -> int:
    """Return −1 or 1 if a ray meets a wall segment at its first or last point, where it may also meet the neighbour."""
    x, y = ray[0] + distance * ray[2] - segment.x, ray[1] + distance * ray[3] - segment.y
    along = (x * segment.dx + y * segment.dy) * segment.per_square
    return -1 if along < TOLERANCE else 1 if along > 1.0 - TOLERANCE else 0
