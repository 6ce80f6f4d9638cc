"""Seeded random circuits: a name gives the same drivable circuit on every machine.

The random generator is implemented here and points are rounded, so new versions of libraries do not change circuits on
which models were trained.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from racer_env.engine.centreline import Centreline, Floats, build_centreline
from racer_env.engine.circuit_check import check_track
from racer_env.engine.track import build_track
from racer_env.engine.walls import MIN_WALL_DISTANCE, WALL_OFFSET, curvatures
from racer_env.errors import CircuitError, suggestion

PREFIX = "random:"
MAX_ATTEMPTS = 10_000
"""Maximum number of drawings before a seed is given up."""
POINT_SPACING = 40.0
"""Distance between control points [units]."""


@dataclass(frozen=True)
class Difficulty:
    """Ranges that a circuit is drawn from.

    points: number of corners.
    swing: deviation of the radii from their mean, as a fraction of it.
    half_width: half the road width [units].
    radius: mean distance from the middle [units].
    min_radius: minimum radius of a bend along the centreline [units].
    """

    points: tuple[int, int]
    swing: float
    half_width: tuple[float, float]
    radius: tuple[float, float]
    min_radius: float


DIFFICULTIES = {
    "easy": Difficulty((8, 11), 0.25, (22.0, 30.0), (200.0, 300.0), 60.0),
    "medium": Difficulty((10, 15), 0.45, (16.0, 26.0), (240.0, 380.0), 36.0),
    "hard": Difficulty((13, 18), 0.50, (11.0, 20.0), (280.0, 440.0), 26.0),
}
DEFAULT_DIFFICULTY = "medium"


def parse_random_name(name: str) -> tuple[int, str]:
    """Return seed and difficulty of `random:SEED` or `random:SEED:DIFFICULTY`."""
    seed, _, difficulty = name.removeprefix(PREFIX).partition(":")
    difficulty = difficulty or DEFAULT_DIFFICULTY
    if not (seed.isascii() and seed.isdigit() and len(seed) <= 18):
        raise CircuitError(f"random circuit {name!r}: the seed must be a whole number of 0 or more, as in {PREFIX}1234")
    if difficulty not in DIFFICULTIES:
        meant = suggestion(difficulty, DIFFICULTIES)
        raise CircuitError(f"random circuit {name!r}: unknown difficulty {difficulty!r}; {meant}")
    return int(seed), difficulty


def random_name(name: str) -> str:
    """Return the name of a random circuit as people say it, such as `Random 1234` for `random:1234:hard`."""
    return f"Random {name.removeprefix(PREFIX).partition(':')[0]}"


def random_control_points(seed: int, difficulty: str = DEFAULT_DIFFICULTY) -> tuple[tuple[float, float, float], ...]:
    """Return the control points of a seed: the first drawing with room for road and walls."""
    kind = DIFFICULTIES[difficulty]
    numbers = _uniform(seed * len(DIFFICULTIES) + list(DIFFICULTIES).index(difficulty))
    for _ in range(MAX_ATTEMPTS):
        points = _closely_spaced(build_centreline(np.array(_draw(numbers, kind))))
        if _has_room(build_centreline(np.array(points)), kind.min_radius) and _can_be_driven(points):
            return points
    raise CircuitError(f"no circuit found for seed {seed}, {difficulty}")


def _uniform(seed: int) -> Iterator[float]:
    """Yield numbers in [0, 1) from a 64-bit seed (splitmix64)."""
    mask = 2**64 - 1
    state = seed & mask
    while True:
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        yield ((z ^ (z >> 31)) >> 11) / 2**53


def _closely_spaced(line: Centreline) -> tuple[tuple[float, float, float], ...]:
    """Return control points of the same line that are close together.

    Walls are smoothed over a number of control points; with distant ones they would cut the corners.
    """
    distances = np.linspace(0.0, line.length, round(line.length / POINT_SPACING), endpoint=False)
    rows = np.column_stack([line.points(distances), line.half_widths_at(distances)])
    return tuple((round(float(x), 1), round(float(y), 1), round(float(width), 1)) for x, y, width in rows)


def _draw(numbers: Iterator[float], kind: Difficulty) -> list[tuple[float, float, float]]:
    """Draw points around the middle at uneven angles and radii, stretched into an oval, in either direction."""

    def between(low: float, high: float) -> float:
        return low + (high - low) * next(numbers)

    count = int(between(kind.points[0], kind.points[1] + 1))
    mean_radius = between(*kind.radius)
    stretch = between(1.0, 1.6)
    direction = 1.0 if next(numbers) < 0.5 else -1.0
    points = []
    for i in range(count):
        angle = direction * 2.0 * math.pi * (i + between(-0.3, 0.3)) / count
        radius = mean_radius * (1.0 + kind.swing * between(-1.0, 1.0))
        x, y = stretch * radius * math.cos(angle), radius * math.sin(angle)
        points.append((x, y, between(*kind.half_width)))
    return points


def _can_be_driven(points: tuple[tuple[float, float, float], ...]) -> bool:
    try:
        check_track(build_track(points))
    except CircuitError:
        return False
    return True


def _has_room(line: Centreline, min_radius: float) -> bool:
    """Return whether bends are wide enough and separate parts of the road far enough apart."""
    count = max(200, int(line.length / 8.0))
    distances = np.arange(count) * line.length / count
    if np.abs(curvatures(line, distances, line.length / count)).max() > 1.0 / min_radius:
        return False
    points = line.points(distances)
    walls = line.half_widths_at(distances) + WALL_OFFSET + MIN_WALL_DISTANCE
    apart = np.hypot(points[:, None, 0] - points[None, :, 0], points[:, None, 1] - points[None, :, 1])
    along = np.abs(distances[:, None] - distances[None, :])
    along = np.minimum(along, line.length - along)
    needed = walls[:, None] + walls[None, :]
    return not bool(((apart < needed) & (along > _half_turn(needed))).any())


def _half_turn(needed: Floats) -> Floats:
    """Return the distance along the road below which two parts may be close: they belong to one bend."""
    return needed * (math.pi / 2.0)
