"""Seeded random circuits: a name gives the same drivable circuit on every machine.

`random:SEED` and `random:SEED:DIFFICULTY` draw from the ranges of a difficulty;
`random:SEED:length=1500:twist=0.6:width=36` has the length, twistiness and width of a dial.

The random generator is implemented here and points are rounded, so new versions of libraries do not change circuits on
which models were trained.
"""

import math
import re
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
CELL_ROOM = 1.35
"""Side of the smallest cell that a road runs around, in multiples of the distance between the walls."""
FEWEST_EDGES, MAX_EDGES = 8, 128
"""Number of edges of cells without twist, and with all of it and the longest lap."""
FILLING = 0.3
"""Share of cells that fill a corner; the others make the patch longer."""
JITTER = 0.12
"""Deviation from the middle of an edge, as a fraction of its length."""
ROUND_STEPS = 4
"""Number of points on the rounded line for each edge."""
STRETCH = 0.3
"""Maximum stretch of the grid, as a fraction."""
WIDTH_SWING = 0.12
"""Deviation of the road width from that of the dial, as a fraction of it."""
TIGHTEST = 26.0
"""Minimum radius of a bend of a circuit from a dial [units]."""
CALMNESS = (1.0, 0.6, 0.3)
"""Factors of the deviations from the grid that are tried before the twist is reduced."""
TWIST_STEPS = 12
"""Number of steps in which the twist is reduced."""
OVALS = (1.0, 0.8, 0.6, 0.4, 0.2, 0.0)
"""Factors of the deviations from a circle that are tried if no other drawing has room."""
OVAL_POINTS = 16
DIAL_SEEDS = 2**60
"""First seed of the drawings of dials, apart from those of the difficulties."""
SIDES = ((1, 0), (0, 1), (-1, 0), (0, -1))
CORNERS = ((1, 0), (1, 1), (0, 1), (0, 0))
RING = ((1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1))
"""Neighbours of a cell, corners of a cell, and cells around it, counter-clockwise."""

Cell = tuple[int, int]

ControlPoints = tuple[tuple[float, float, float], ...]
_NUMBER = re.compile(r"[0-9]{1,5}(\.[0-9]{1,4})?")


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


@dataclass(frozen=True)
class Dial:
    """Properties of a random circuit.

    length: lap length [units]. twist: twistiness, from 0, nearly an oval, to 1. width: road width on average [units].
    """

    length: float = 2000.0
    twist: float = 0.5
    width: float = 40.0


DIAL_RANGES: dict[str, tuple[float, float]] = {"length": (800.0, 8000.0), "twist": (0.0, 1.0), "width": (16.0, 80.0)}
"""Range of each property of a dial."""
DIAL_DIGITS = {"length": 0, "twist": 2, "width": 0}
"""Decimals of the properties in an id."""


def parse_random_name(name: str) -> tuple[int, str | Dial]:
    """Return the seed, and the difficulty or dial, of the id of a random circuit."""
    seed, _, rest = name.removeprefix(PREFIX).partition(":")
    difficulty = rest or DEFAULT_DIFFICULTY
    if not (seed.isascii() and seed.isdigit() and len(seed) <= 18):
        raise CircuitError(f"random circuit {name!r}: the seed must be a whole number of 0 or more, as in {PREFIX}1234")
    if "=" in rest:
        return int(seed), _parse_dial(name, rest)
    if difficulty not in DIFFICULTIES:
        meant = suggestion(difficulty, DIFFICULTIES)
        raise CircuitError(f"random circuit {name!r}: unknown difficulty {difficulty!r}; {meant}")
    return int(seed), difficulty


def dial_id(seed: int, dial: Dial) -> str:
    """Return the id of the random circuit with this seed and dial; its values are rounded and kept in their ranges."""
    values = (
        f"{key}={round(min(max(getattr(dial, key), low), high), DIAL_DIGITS[key]):g}"
        for key, (low, high) in DIAL_RANGES.items()
    )
    return f"{PREFIX}{seed}:{':'.join(values)}"


def _parse_dial(name: str, text: str) -> Dial:
    """Return the dial of the part of an id after the seed; properties that are left out have their defaults."""
    values: dict[str, float] = {}
    for part in text.replace(",", ":").split(":"):
        key, _, value = part.partition("=")
        if key not in DIAL_RANGES:
            raise CircuitError(f"random circuit {name!r}: unknown property {key!r}; {suggestion(key, DIAL_RANGES)}")
        low, high = DIAL_RANGES[key]
        number = float(value) if _NUMBER.fullmatch(value) else math.nan
        if not low <= number <= high or key in values:
            raise CircuitError(f"random circuit {name!r}: {key} must be one number from {low:g} to {high:g}")
        values[key] = number
    return Dial(**values)


def random_name(name: str) -> str:
    """Return the name of a random circuit as people say it, such as `Random 1234` for `random:1234:hard`."""
    return f"Random {name.removeprefix(PREFIX).partition(':')[0]}"


def random_control_points(seed: int, kind: str | Dial = DEFAULT_DIFFICULTY) -> ControlPoints:
    """Return the control points of a seed: the first drawing with room for road and walls."""
    if isinstance(kind, Dial):
        return _dialled_points(seed, kind)
    ranges = DIFFICULTIES[kind]
    numbers = _uniform(seed * len(DIFFICULTIES) + list(DIFFICULTIES).index(kind))
    for _ in range(MAX_ATTEMPTS):
        points = _closely_spaced(build_centreline(np.array(_draw(numbers, ranges))))
        if _has_room(build_centreline(np.array(points)), ranges.min_radius) and _can_be_driven(points):
            return points
    raise CircuitError(f"no circuit found for seed {seed}, {kind}")


def _dialled_points(seed: int, dial: Dial) -> ControlPoints:
    """Return the control points of a dial: of drawings with less and less twist the first one with room, or an oval.

    The road runs around a patch of square cells. Twistiness sets their size, from a few large ones to those between
    which two roads just fit. A seed grows the same patch for each dial, so that the circuit changes with the dial
    instead of becoming another one.
    """
    half_width = dial.width / 2.0
    most = max(dial.length / (CELL_ROOM * 2.0 * (half_width + WALL_OFFSET)), float(FEWEST_EDGES))
    further = FEWEST_EDGES * (most / FEWEST_EDGES) ** dial.twist - FEWEST_EDGES
    counts = (FEWEST_EDGES + 2 * round(further * step / TWIST_STEPS / 2.0) for step in range(TWIST_STEPS, 0, -1))
    for count, calm in dict.fromkeys((count, calm) for count in counts for calm in CALMNESS):
        drawn = np.array(_draw_around_cells(_uniform(DIAL_SEEDS + seed), dial, count, calm))
        points = _scaled(_rounded(drawn), dial.length)
        if _has_room(build_centreline(np.array(points)), TIGHTEST) and _can_be_driven(points):
            return points
    ovals = (_oval(_uniform(DIAL_SEEDS + seed), half_width, calm) for calm in OVALS)
    fitting = (_scaled(oval, dial.length) for oval in ovals)
    return next(points for points in fitting if _can_be_driven(points))


def _oval(numbers: Iterator[float], half_width: float, calm: float) -> Floats:
    """Return points on an oval. calm: factor of its deviation from a circle, on which every dial leaves room."""
    turned, stretch = 2.0 * math.pi * next(numbers), 1.0 + calm * next(numbers)
    angles = (1.0 if next(numbers) < 0.5 else -1.0) * 2.0 * math.pi * np.arange(OVAL_POINTS) / OVAL_POINTS
    x, y = stretch * np.cos(angles), np.sin(angles)
    cos, sin = math.cos(turned), math.sin(turned)
    return np.column_stack([cos * x - sin * y, sin * x + cos * y, np.full(OVAL_POINTS, half_width)])


def _scaled(drawn: Floats, length: float) -> ControlPoints:
    """Return control points close together along the line through some points, with this lap length."""
    factors = np.array([length / build_centreline(drawn).length] * 2 + [1.0])
    return _closely_spaced(build_centreline(drawn * factors))


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


def _closely_spaced(line: Centreline) -> ControlPoints:
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


def _draw_around_cells(
    numbers: Iterator[float], dial: Dial, edges: int, calm: float
) -> list[tuple[float, float, float]]:
    """Draw points in the middle of the edges of a patch of cells, from the middle of its longest straight.

    edges: number of edges around the patch. calm: factor of the deviations from the grid.
    """
    angle, stretch = 2.0 * math.pi * next(numbers), 1.0 + calm * STRETCH * next(numbers)
    direction = 1 if next(numbers) < 0.5 else -1
    wobble = [next(numbers) for _ in range(3 * MAX_EDGES)]
    corners = _outline(_grown_cells(numbers, edges))
    count = len(corners)
    longest = max(range(count), key=lambda i: (_straight(corners, i), -i))
    cos, sin = math.cos(angle), math.sin(angle)
    points = []
    for i in range(count):
        here, after = corners[(longest + direction * i) % count], corners[(longest + direction * i + 1) % count]
        dx, dy, wider = (2.0 * wobble[(3 * i + k) % len(wobble)] - 1.0 for k in range(3))
        x = stretch * ((here[0] + after[0]) / 2.0 + calm * JITTER * dx)
        y = (here[1] + after[1]) / 2.0 + calm * JITTER * dy
        points.append((cos * x - sin * y, sin * x + cos * y, dial.width / 2.0 * (1.0 + calm * WIDTH_SWING * wider)))
    return points


def _rounded(points: Floats) -> Floats:
    """Return points along the closed cubic B-spline of some points, ROUND_STEPS for each."""
    t = (np.arange(ROUND_STEPS) / ROUND_STEPS)[None, :, None]
    before, here, after, beyond = (np.roll(points, shift, axis=0)[:, None] for shift in (1, 0, -1, -2))
    rows = (1.0 - t) ** 3 * before + (3.0 * t**3 - 6.0 * t**2 + 4.0) * here
    rows += (1.0 + 3.0 * t + 3.0 * t**2 - 3.0 * t**3) * after + t**3 * beyond
    return np.asarray(rows.reshape(-1, 3) / 6.0)


def _grown_cells(numbers: Iterator[float], edges: int) -> set[Cell]:
    """Grow a patch of cells without holes until there are so many edges around it."""
    cells: set[Cell] = {(0, 0)}
    around = 4
    while around < edges:
        touching = sorted({(x + dx, y + dy) for x, y in cells for dx, dy in SIDES} - cells)
        joined = {cell: sum((cell[0] + dx, cell[1] + dy) in cells for dx, dy in SIDES) for cell in touching}
        possible = [cell for cell in touching if joined[cell] <= 2 and _keeps_outline(cells, cell)]
        wanted = 2 if next(numbers) < FILLING else 1
        chosen = [cell for cell in possible if joined[cell] == wanted] or [
            cell for cell in possible if joined[cell] == 1
        ]
        cell = chosen[int(next(numbers) * len(chosen))]
        cells.add(cell)
        around += 4 - 2 * joined[cell]
    return cells


def _keeps_outline(cells: set[Cell], cell: Cell) -> bool:
    """Return whether a patch with a further cell has one outline that touches itself nowhere."""
    x, y = cell
    ring = [(x + dx, y + dy) in cells for dx, dy in RING]
    changes = sum(ring[i] != ring[i - 1] for i in range(len(ring)))
    alone = any(ring[i] and not ring[i - 1] and not ring[(i + 1) % len(ring)] for i in range(1, len(ring), 2))
    return changes == 2 and not alone


def _outline(cells: set[Cell]) -> list[Cell]:
    """Return the corners around a patch of cells, counter-clockwise, one for each edge."""
    after: dict[Cell, Cell] = {}
    for x, y in cells:
        for (dx, dy), start, end in zip(SIDES, CORNERS, (*CORNERS[1:], CORNERS[0]), strict=True):
            if (x + dx, y + dy) not in cells:
                after[x + start[0], y + start[1]] = (x + end[0], y + end[1])
    corners = [min(after)]
    while (corner := after[corners[-1]]) != corners[0]:
        corners.append(corner)
    return corners


def _straight(corners: list[Cell], number: int) -> int:
    """Return how many edges the outline runs straight on to both sides of an edge, the smaller of both."""

    def runs(step: int) -> int:
        length = 0
        while length < len(corners) and _way(corners, number + step * (length + 1)) == _way(corners, number):
            length += 1
        return length

    return min(runs(1), runs(-1))


def _way(corners: list[Cell], number: int) -> Cell:
    (x, y), (end_x, end_y) = corners[number % len(corners)], corners[(number + 1) % len(corners)]
    return end_x - x, end_y - y


def _can_be_driven(points: ControlPoints) -> bool:
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
