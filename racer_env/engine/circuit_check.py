"""Check that a car can drive on a track; every problem has its place and names the control point that is wrong."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from racer_env.engine.centreline import CHORDS_PER_SEGMENT, Floats
from racer_env.engine.tables import MAX_CROSSINGS, WALL_NEAR, crossing_walls
from racer_env.engine.track import MIN_CONTROL_POINTS, Track
from racer_env.engine.walls import WALL_OFFSET, signed_area
from racer_env.errors import CircuitError, CircuitProblem

CAR_WIDTH = 2.0
MAX_CONTROL_POINTS = 1000
MAX_ROAD_WIDTH = 200.0
MAX_COORDINATE = 1e6
MAX_LAP_LENGTH = 20_000.0
"""Maximum lap length [units], two minutes at top speed; longer tracks take seconds and gigabytes to build."""
CLEARANCE_STEP = 4.0
"""Distance between the centreline points that are checked for walls nearby [units]."""
CHECKED_AT_ONCE = 256
"""Number of those points that are compared with the walls near them at once; all together may take a gigabyte."""
FOLD_LENGTH = 4.0
"""Length of wall, in multiples of the distance from the centreline to it, within which a wall that crosses itself is
one bend that is too tight."""
SAME_PLACE, SAME_CROSSING = 1.0, 3.0
"""Distance within which problems are one, in multiples of the distance from the centreline to the wall. If a road
crosses another one, walls cross in four places around that."""
MAX_PROBLEMS = 50
"""Maximum number of problems that are listed."""


def check_points(points: Floats) -> None:
    """Raise a CircuitError for control points that cannot make a track; a cheap check before anything is built."""
    _raise_first(_point_problems(points))


def check_track(track: Track) -> None:
    """Raise a CircuitError that names the control point if a car cannot drive on this track."""
    _raise_first(_point_problems(track.control_points))
    _raise_first(_track_problems(track, every_crossing=False))


def point_problems(points: Floats) -> list[CircuitProblem]:
    """Return what is wrong with some control points, before anything is built."""
    return _bounded(_point_problems(points))


def track_problems(track: Track) -> list[CircuitProblem]:
    """Return everything that is wrong with a track; problems at nearly the same place count once."""
    points = _bounded(_point_problems(track.control_points))
    if any(problem.kind in ("many", "far", "long") for problem in points):
        return points  # its tables would take too long to build
    return [*points, *_by_place(track, _track_problems(track, every_crossing=True))][:MAX_PROBLEMS]


def _raise_first(problems: Iterable[CircuitProblem]) -> None:
    for problem in problems:
        raise CircuitError(problem.reason, problem)


def _by_place(track: Track, problems: Iterable[CircuitProblem]) -> list[CircuitProblem]:
    """Return the first problem of each place; crossing walls are put in the middle of all that cross there."""
    places: list[tuple[CircuitProblem, list[tuple[float, float]]]] = []
    for problem in problems:
        here = (each for first, each in places if _is_same_place(track, first, problem))
        members = next(here, None)
        if members is not None and problem.kind == "cross":
            members.append((problem.x, problem.y))
        elif members is None and len(places) < MAX_PROBLEMS:
            places.append((problem, [(problem.x, problem.y)]))
    middles = (np.mean(members, axis=0) for _, members in places)
    return [replace(first, x=float(x), y=float(y)) for (first, _), (x, y) in zip(places, middles, strict=True)]


def _is_same_place(track: Track, first: CircuitProblem, other: CircuitProblem) -> bool:
    reach = (SAME_CROSSING if first.kind == "cross" else SAME_PLACE) * (
        float(track.control_points[first.control_point or 0, 2]) + WALL_OFFSET
    )
    return math.hypot(first.x - other.x, first.y - other.y) < reach


def _bounded(problems: Iterable[CircuitProblem]) -> list[CircuitProblem]:
    return [problem for problem, _ in zip(problems, range(MAX_PROBLEMS), strict=False)]


def _point_problems(points: Floats) -> Iterator[CircuitProblem]:
    if len(points) < MIN_CONTROL_POINTS:
        reason = f"a circuit needs at least {MIN_CONTROL_POINTS} control points, not {len(points)}"
        yield CircuitProblem("few", reason, *_first_point(points))
        return
    if len(points) > MAX_CONTROL_POINTS:
        reason = f"a circuit has at most {MAX_CONTROL_POINTS} control points, not {len(points)}"
        yield CircuitProblem("many", reason, *_first_point(points))
        return
    # What keeps a track from being built comes first: the list of problems is cut.
    for i, (x, y, _) in enumerate(points.tolist()):
        if max(abs(x), abs(y)) > MAX_COORDINATE:
            reason = f"control point {i}: {x:g}, {y:g} is farther out than {MAX_COORDINATE:g}"
            yield CircuitProblem("far", reason, x, y, i)
    steps = np.hypot(*(points - np.roll(points, 1, axis=0))[:, :2].T)
    if steps.sum() > MAX_LAP_LENGTH:
        reason = f"the lap is over {steps.sum():.0f} units long: at most {MAX_LAP_LENGTH:.0f}"
        yield CircuitProblem("long", reason, *_first_point(points))
    for i, ((x, y, half_width), step) in enumerate(zip(points.tolist(), steps.tolist(), strict=True)):
        if 2.0 * half_width <= CAR_WIDTH:
            reason = (
                f"control point {i}: the road is {2.0 * half_width:g} wide there, narrower than the car;"
                f" its half-width must be more than {CAR_WIDTH / 2.0:g}"
            )
            yield CircuitProblem("narrow", reason, x, y, i)
        if half_width > MAX_ROAD_WIDTH / 2.0:
            reason = f"control point {i}: half-width {half_width:g} is more than {MAX_ROAD_WIDTH / 2.0:g}"
            yield CircuitProblem("wide", reason, x, y, i)
        if step < CAR_WIDTH:
            yield CircuitProblem("same", f"control point {i} is nearly the same as the one before it", x, y, i)


def _first_point(points: Floats) -> tuple[float, float]:
    return (float(points[0, 0]), float(points[0, 1])) if len(points) else (0.0, 0.0)


def _track_problems(track: Track, every_crossing: bool) -> Iterator[CircuitProblem]:
    if track.length > MAX_LAP_LENGTH:
        reason = f"the lap is {track.length:.0f} units long: at most {MAX_LAP_LENGTH:.0f}"
        yield CircuitProblem("long", reason, *_first_point(track.control_points))
        return
    pairs = crossing_walls(track.grid, every_crossing)
    yield from _crossings(track, pairs[:MAX_CROSSINGS])
    if len(pairs) <= MAX_CROSSINGS:  # else it is a tangle, in which looking for more takes seconds
        yield from _lack_of_room(track)


def _crossings(track: Track, pairs: NDArray[np.int64]) -> Iterator[CircuitProblem]:
    """Yield a problem for each pair of wall segments that cross each other."""
    samples, spacing = len(track.inner) - 1, track.length / (len(track.inner) - 1)
    for first, second in pairs.tolist():
        along = [number % samples for number in (first, second)]
        places = [_control_point(track, spacing * number) for number in along]
        named = (
            f"control points {places[0]} and {places[1]}" if places[0] != places[1] else f"control point {places[0]}"
        )
        segment = track.grid.segments[first]
        x, y = float(segment["x"]), float(segment["y"])
        apart = spacing * min(abs(along[0] - along[1]), samples - abs(along[0] - along[1]))
        half_width = float(track.control_points[places[0], 2])
        folds = first // samples == second // samples and apart < FOLD_LENGTH * (half_width + WALL_OFFSET)
        reason = (
            f"the walls cross near x {x:.0f}, y {y:.0f}, after {named}:"
            " move the road apart there, make it narrower, or the bend wider"
        )
        yield CircuitProblem("tight" if folds else "cross", reason, x, y, places[0])


def _lack_of_room(track: Track) -> Iterator[CircuitProblem]:
    """Yield the places of roads that are so close that they overlap without crossing walls."""
    if signed_area(track.inner) * signed_area(track.outer) <= 0.0:
        middle = track.centreline.points(np.arange(0.0, track.length, 1.0)).mean(axis=0)
        nearest = int(np.argmin(np.hypot(*(track.control_points[:, :2] - middle).T)))
        reason = (
            "the inner wall is turned inside out: the road comes back too close to itself,"
            f" as at control point {nearest}"
        )
        yield CircuitProblem("close", reason, *_xy(track.control_points[nearest]), nearest)
    distances = np.arange(0.0, track.length, CLEARANCE_STEP)
    points = track.centreline.points(distances)
    touched = [
        _touched_by_walls(track, points[i : i + CHECKED_AT_ONCE]) for i in range(0, len(points), CHECKED_AT_ONCE)
    ]
    for number in np.flatnonzero(np.concatenate(touched)).tolist():
        control_point = _control_point(track, distances[number])
        reason = (
            f"a wall stands on the road after control point {control_point}:"
            " move the road apart there, or make the bend wider"
        )
        yield CircuitProblem("close", reason, *_xy(points[number]), control_point)


def _xy(row: Sequence[float] | Floats) -> tuple[float, float]:
    return float(row[0]), float(row[1])


def _touched_by_walls(track: Track, points: Floats) -> NDArray[np.bool_]:
    """Return which points are closer than WALL_NEAR to a wall, from the walls that their cells list, or beyond it."""
    grid = track.grid
    frame = grid.frame[0]
    column, row = ((points - (frame["left"], frame["bottom"])) // frame["cell"]).astype(np.int64).T
    outside = (column < 0) | (row < 0) | (column >= frame["columns"]) | (row >= frame["rows"])
    cell = grid.cells[np.where(outside, -1, row * frame["columns"] + column)]
    point = np.repeat(np.arange(len(points)), cell["near"])
    within = np.arange(len(point)) - (np.cumsum(cell["near"]) - cell["near"])[point]
    wall = grid.segments[grid.lists[cell["walls"][point] + within]]
    x, y = points[point, 0] - wall["x"], points[point, 1] - wall["y"]
    along = np.clip((x * wall["dx"] + y * wall["dy"]) * wall["per_square"], 0.0, 1.0)
    close = np.hypot(x - along * wall["dx"], y - along * wall["dy"]) < WALL_NEAR
    return outside | (np.bincount(point[close], minlength=len(points)) > 0)


def _control_point(track: Track, arc: float) -> int:
    """Return the index of the last control point before this arc."""
    knots = track.centreline.arcs[::CHORDS_PER_SEGMENT]
    return int(np.searchsorted(knots, arc, side="right")) - 1
