"""Seeded random circuits: the same closed, drivable circuit for the same name on every machine.

Only a generator of our own and plain arithmetic on rounded points decide, so no library's next version
can change a circuit that somebody trained on.
"""

import difflib
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from racer_env.engine.centreline import Centreline, Floats, build_centreline
from racer_env.engine.circuit_check import check_track
from racer_env.engine.track import build_track
from racer_env.engine.walls import NARROWEST_WALL, WALL_OFFSET, curvatures
from racer_env.errors import CircuitError

PREFIX = "random:"
MOST_ATTEMPTS = 10_000
POINT_SPACING = 40.0
"""Distance between control points."""


@dataclass(frozen=True)
class Difficulty:
    """Ranges that a circuit is drawn from.

    points: how many corners are drawn.
    swing: how far radii swing around the mean, as a fraction of it.
    half_width: of the road.
    radius: mean distance from the middle.
    tightest: least radius of a bend along the centreline.
    """

    points: tuple[int, int]
    swing: float
    half_width: tuple[float, float]
    radius: tuple[float, float]
    tightest: float


DIFFICULTIES = {
    "easy": Difficulty((8, 11), 0.25, (22.0, 30.0), (200.0, 300.0), 60.0),
    "medium": Difficulty((10, 15), 0.45, (16.0, 26.0), (240.0, 380.0), 36.0),
    "hard": Difficulty((13, 18), 0.50, (11.0, 20.0), (280.0, 440.0), 26.0),
}
DEFAULT_DIFFICULTY = "medium"


def parse_random_name(name: str) -> tuple[int, str]:
    """Seed and difficulty from `random:SEED` or `random:SEED:DIFFICULTY`."""
    seed, _, difficulty = name.removeprefix(PREFIX).partition(":")
    difficulty = difficulty or DEFAULT_DIFFICULTY
    if not (seed.isascii() and seed.isdigit() and len(seed) <= 18):
        raise CircuitError(f"random circuit {name!r}: the seed is a whole number from 0, as in {PREFIX}1234")
    if difficulty not in DIFFICULTIES:
        close = difflib.get_close_matches(difficulty, DIFFICULTIES, n=1)
        meant = f"did you mean {close[0]}?" if close else f"known: {', '.join(DIFFICULTIES)}"
        raise CircuitError(f"random circuit {name!r}: unknown difficulty {difficulty!r}; {meant}")
    return int(seed), difficulty


def random_control_points(seed: int, difficulty: str = DEFAULT_DIFFICULTY) -> tuple[tuple[float, float, float], ...]:
    """Control points of the circuit of this seed: the first drawing that leaves room for road and walls."""
    kind = DIFFICULTIES[difficulty]
    numbers = _uniform(seed * len(DIFFICULTIES) + list(DIFFICULTIES).index(difficulty))
    for _ in range(MOST_ATTEMPTS):
        points = _closely_spaced(build_centreline(np.array(_draw(numbers, kind))))
        if _has_room(build_centreline(np.array(points)), kind.tightest) and _can_be_driven(points):
            return points
    raise CircuitError(f"no circuit found for seed {seed}, {difficulty}")


def _uniform(seed: int) -> Iterator[float]:
    """Numbers in [0, 1) from a 64-bit seed (splitmix64)."""
    mask = 2**64 - 1
    state = seed & mask
    while True:
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        yield ((z ^ (z >> 31)) >> 11) / 2**53


def _closely_spaced(line: Centreline) -> tuple[tuple[float, float, float], ...]:
    """The same line with control points close together: walls are smoothed over a number of them, and far
    apart ones would let the walls cut the corners."""
    distances = np.linspace(0.0, line.length, round(line.length / POINT_SPACING), endpoint=False)
    rows = np.column_stack([line.points(distances), line.half_widths_at(distances)])
    return tuple((round(float(x), 1), round(float(y), 1), round(float(width), 1)) for x, y, width in rows)


def _draw(numbers: Iterator[float], kind: Difficulty) -> list[tuple[float, float, float]]:
    """Points around the middle at uneven angles and radii, stretched into an oval; clockwise or not."""

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


def _has_room(line: Centreline, tightest: float) -> bool:
    """Whether bends are wide enough, and parts of the road that are not neighbours far enough apart."""
    count = max(200, int(line.length / 8.0))
    distances = np.arange(count) * line.length / count
    if np.abs(curvatures(line, distances, line.length / count)).max() > 1.0 / tightest:
        return False
    points = line.points(distances)
    walls = line.half_widths_at(distances) + WALL_OFFSET + NARROWEST_WALL
    apart = np.hypot(points[:, None, 0] - points[None, :, 0], points[:, None, 1] - points[None, :, 1])
    along = np.abs(distances[:, None] - distances[None, :])
    along = np.minimum(along, line.length - along)
    needed = walls[:, None] + walls[None, :]
    return not bool(((apart < needed) & (along > _half_turn(needed))).any())


def _half_turn(needed: Floats) -> Floats:
    """Parts of the road closer than this along it may be as near as they like: a bend is between them."""
    return needed * (math.pi / 2.0)
