"""Check that a car can drive on a track; errors name the control point that is wrong."""

import numpy as np
from numpy.typing import NDArray

from racer_env.engine.centreline import CHORDS_PER_SEGMENT, Floats
from racer_env.engine.tables import WALL_NEAR, crossing_walls
from racer_env.engine.track import Track
from racer_env.engine.walls import signed_area
from racer_env.errors import CircuitError

CAR_WIDTH = 2.0
MAX_CONTROL_POINTS = 1000
MAX_ROAD_WIDTH = 200.0
MAX_COORDINATE = 1e6
MAX_LAP_LENGTH = 20_000.0
"""Maximum lap length [units], two minutes at top speed; longer tracks take seconds and gigabytes to build."""
CLEARANCE_STEP = 4.0
"""Distance between the centreline points that are checked for walls nearby [units]."""


def check_points(points: Floats) -> None:
    """Raise a CircuitError for control points that cannot make a track; a cheap check before anything is built."""
    if len(points) > MAX_CONTROL_POINTS:
        raise CircuitError(f"a circuit has at most {MAX_CONTROL_POINTS} control points, not {len(points)}")
    for i, (x, y, half_width) in enumerate(points):
        if 2.0 * half_width <= CAR_WIDTH:
            raise CircuitError(
                f"control point {i}: the road is {2.0 * half_width:g} wide there, narrower than the car;"
                f" its half-width must be more than {CAR_WIDTH / 2.0:g}"
            )
        if half_width > MAX_ROAD_WIDTH / 2.0:
            raise CircuitError(f"control point {i}: half-width {half_width:g} is more than {MAX_ROAD_WIDTH / 2.0:g}")
        if max(abs(x), abs(y)) > MAX_COORDINATE:
            raise CircuitError(f"control point {i}: {x:g}, {y:g} is farther out than {MAX_COORDINATE:g}")
        if np.hypot(x - points[i - 1, 0], y - points[i - 1, 1]) < CAR_WIDTH:
            raise CircuitError(f"control point {i} is nearly the same as the one before it")
    straight = float(np.hypot(*(points - np.roll(points, 1, axis=0))[:, :2].T).sum())
    if straight > MAX_LAP_LENGTH:
        raise CircuitError(f"the lap is over {straight:.0f} units long: at most {MAX_LAP_LENGTH:.0f}")


def check_track(track: Track) -> None:
    """Raise a CircuitError that names the control point if a car cannot drive on this track."""
    check_points(track.control_points)
    if track.length > MAX_LAP_LENGTH:
        raise CircuitError(f"the lap is {track.length:.0f} units long: at most {MAX_LAP_LENGTH:.0f}")
    _check_walls_apart(track)
    _check_room(track)


def _check_walls_apart(track: Track) -> None:
    crossings = crossing_walls(track.grid)
    if len(crossings) > 0:
        samples = len(track.inner) - 1
        first, second = (_control_point(track, track.length * int(i % samples) / samples) for i in crossings[0])
        segment = track.grid.segments[crossings[0, 0]]
        places = f"control points {first} and {second}" if first != second else f"control point {first}"
        raise CircuitError(
            f"the walls cross near x {segment['x']:.0f}, y {segment['y']:.0f}, after {places}:"
            " move the road apart there, make it narrower, or the bend wider"
        )


def _check_room(track: Track) -> None:
    """Refuse roads that are so close that they overlap without crossing walls."""
    if signed_area(track.inner) * signed_area(track.outer) <= 0.0:
        middle = track.centreline.points(np.arange(0.0, track.length, 1.0)).mean(axis=0)
        nearest = int(np.argmin(np.hypot(*(track.control_points[:, :2] - middle).T)))
        raise CircuitError(
            "the inner wall is turned inside out: the road comes back too close to itself,"
            f" as at control point {nearest}"
        )
    distances = np.arange(0.0, track.length, CLEARANCE_STEP)
    blocked = _touched_by_walls(track, track.centreline.points(distances))
    if blocked.any():
        raise CircuitError(
            f"a wall stands on the road after control point {_control_point(track, distances[np.argmax(blocked)])}:"
            " move the road apart there, or make the bend wider"
        )


def _touched_by_walls(track: Track, points: Floats) -> NDArray[np.bool_]:
    """Return which points are closer than WALL_NEAR to a wall, from the walls that their cells list."""
    grid = track.grid
    frame = grid.frame[0]
    column, row = ((points - (frame["left"], frame["bottom"])) // frame["cell"]).astype(np.int64).T
    cell = grid.cells[row * frame["columns"] + column]
    point = np.repeat(np.arange(len(points)), cell["near"])
    within = np.arange(len(point)) - (np.cumsum(cell["near"]) - cell["near"])[point]
    wall = grid.segments[grid.lists[cell["walls"][point] + within]]
    x, y = points[point, 0] - wall["x"], points[point, 1] - wall["y"]
    along = np.clip((x * wall["dx"] + y * wall["dy"]) * wall["per_square"], 0.0, 1.0)
    close = np.hypot(x - along * wall["dx"], y - along * wall["dy"]) < WALL_NEAR
    return np.asarray(np.bincount(point[close], minlength=len(points)) > 0)


def _control_point(track: Track, arc: float) -> int:
    """Return the index of the last control point before this arc."""
    knots = track.centreline.arcs[::CHORDS_PER_SEGMENT]
    return int(np.searchsorted(knots, arc, side="right")) - 1
