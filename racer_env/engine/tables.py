"""The track as compiled code reads it: flat tables and one grid of square cells.

Every question a tick asks about the track is answered from the cell a point lies in:

- which walls can be touched here: the cell's segments that are within `WALL_NEAR` of it,
- which walls a ray can hit here: the first of those, the ones that pass through the cell,
- how far a ray may jump: the side of the largest wall-free square of cells ahead, one for each quadrant,

and, for a square of a few cells,
- which coarse centreline samples can be the nearest one,
- which run of wall the rays into each direction meet (see `beams`).

So no question scans the track, and none needs to remember where the car was. A point outside of the grid
gets the last cell and square, which list everything: slow, and as right as the others. A grid of one cell is
plain brute force.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from racer_env.engine.centreline import Centreline, Floats
from racer_env.engine.compiled import Compiled, part
from racer_env.engine.stretches import build_stretches, symmetry_limits

CELL_SIZE = 4.0
"""Side of a grid cell: not below the longest move in one tick plus the collision radius."""
MOST_CELLS = 1_000_000
"""A track spread so wide that it would need more cells than this gets larger ones."""
WALL_NEAR = 2.0
"""Closer than this to a wall counts as wall contact in info and in the reward."""
TOLERANCE = 1e-6
"""Cells list what passes them this close by, so that rounding at a cell's edge loses nothing."""
LONGEST_JUMP = 40
"""Most cells that a ray crosses in one jump."""
ZOOM = 2
"""How much smaller cells get from one level to the next while the candidates are narrowed down."""
SQUARE_CELLS = 4
"""Cells along the side of a square."""
BEAM_DIRECTIONS = 64
"""Beams around a full turn: a power of two, and a whole number of them between two rays of a car."""
BEAM_WALL_GAP = 0.5
"""A beam starts from points that are at least this far inside of the walls around."""
LONGEST_RUN = 96
"""Most wall segments that a beam may meet."""
RUN_BLOCK = 8
"""Wall points that are looked at together."""
RUN_ON = LONGEST_RUN + RUN_BLOCK
"""Wall points that are repeated past the end of a wall."""

FRAME = np.dtype([
    ("length", "f8"), ("samples", "i8"), ("spacing", "f8"), ("gates", "i8"),
    ("left", "f8"), ("bottom", "f8"), ("cells_per_unit", "f8"), ("cell", "f8"),
    ("columns", "i8"), ("rows", "i8"), ("square_columns", "i8"), ("square_rows", "i8"),
])  # fmt: skip
"""Figures of the whole track and of its grid."""

SAMPLE = np.dtype([("x", "f8"), ("y", "f8"), ("stretch", "i8")])
"""A coarse centreline sample and the stretch it lies in."""

SEGMENT = np.dtype([("x", "f8"), ("y", "f8"), ("dx", "f8"), ("dy", "f8"), ("per_square", "f8"), ("inside", "f8")])
"""A wall segment: its first point, the way to its second, one over that way's squared length, and what makes
a cross product with it the distance from its line, positive on the side of the road."""

CELL = np.dtype([
    ("walls", "i4"), ("crossing", "i4"), ("near", "i4"), ("jump", "u1", 4),
])  # fmt: skip
"""Where the cell's walls start in `lists`, how many cross it, how many are near (the crossing ones first);
jumps towards +x+y, −x+y, +x−y, −x−y."""

SQUARE = np.dtype([
    ("samples", "i4"), ("candidates", "i4"), ("walls", "i4"), ("crossing", "i4"), ("beams", "i4"),
])  # fmt: skip
"""Where the square's centreline candidates start in `lists`, and how many they are; where the walls through it start,
and how many they are; its row in `beams`, or −1."""

BEAM = np.dtype([("first", "u2"), ("count", "u2"), ("other_first", "u2"), ("other_count", "u2")])
"""The runs of wall segments that a beam of rays meets: index of the first point in `wall_points`, and how many
segments. One run is met once by every ray; with a second one on the other wall, the nearest segment counts. No run
where that is not known."""


class TrackTables(NamedTuple):
    """What compiled functions get of a track."""

    frame: NDArray[np.void]
    stretches: NDArray[np.void]
    samples: NDArray[np.void]
    limits: NDArray[np.void]
    segments: NDArray[np.void]
    gates: Floats
    cells: NDArray[np.void]
    lists: NDArray[np.int32]
    wall_points: Floats
    """x and y of the inner, then the outer wall, each run on past its end so that no run of points wraps."""
    squares: NDArray[np.void]
    beams: NDArray[np.void]

    def walls_through_cells(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Every pair of a cell and a wall that passes through it, in the order of the cells."""
        counts = self.cells["crossing"][:-1].astype(np.int64)
        cell = np.repeat(np.arange(len(counts)), counts)
        within = np.arange(len(cell)) - (np.cumsum(counts) - counts)[cell]
        return cell, self.lists[self.cells["walls"][cell] + within]

    def seal(self) -> None:
        """Make all arrays read-only."""
        for table in self:
            table.flags.writeable = False


def build_tables(
    line: Centreline, inner: Floats, outer: Floats, gates: Floats, cell_size: float = CELL_SIZE
) -> TrackTables:
    """All tables of a track but the beams, which `beams` adds."""
    count = max(100, math.ceil(line.length / 2.0))
    arcs = np.arange(count) * line.length / count
    stretches, first = build_stretches(line, line.length / count)
    points = line.points(arcs)
    samples = np.zeros(count, SAMPLE)
    samples["x"], samples["y"] = points[:, 0], points[:, 1]
    samples["stretch"] = first + np.clip(np.searchsorted(line.arcs, arcs, side="right") - 1, 0, len(line.arcs) - 2)
    limits = symmetry_limits(stretches, arcs, line.length / count)
    segments = np.concatenate([_segments(inner, points[0]), _segments(outer, points[0])])
    frame = _frame(np.concatenate([inner, outer]), cell_size)
    frame["length"], frame["samples"], frame["spacing"] = line.length, count, line.length / count
    frame["gates"] = len(gates)

    cells = np.zeros(int(frame["columns"][0] * frame["rows"][0]) + 1, CELL)
    walls = _fill_walls(frame[0], segments, cells)
    _fill_jumps(frame[0], cells)
    squares = np.zeros(int(frame["square_columns"][0] * frame["square_rows"][0]) + 1, SQUARE)
    squares["beams"] = -1
    candidates = _fill_candidates(frame[0], samples, squares)
    squares["samples"] += len(walls)
    return TrackTables(
        frame, stretches, samples, limits, segments, np.array(gates), cells, np.concatenate([walls, candidates]),
        wall_points=np.concatenate([np.resize(wall[:-1], (len(wall) + RUN_ON, 2)) for wall in (inner, outer)]).T.copy(),
        squares=squares,
        beams=np.zeros((0, BEAM_DIRECTIONS), BEAM),
    )  # fmt: skip


def _frame(points: Floats, cell_size: float) -> NDArray[np.void]:
    """The grid around these points, with a cell to spare on every side."""
    low = points.min(axis=0) - WALL_NEAR - CELL_SIZE
    width, height = (float(extent) for extent in points.max(axis=0) + WALL_NEAR + CELL_SIZE - low)
    cell = min(max(cell_size, math.sqrt(width * height / MOST_CELLS)), max(width, height))
    frame = np.zeros(1, FRAME)
    frame["left"], frame["bottom"], frame["cell"], frame["cells_per_unit"] = low[0], low[1], cell, 1.0 / cell
    for across, extent in (("columns", width), ("rows", height)):
        frame[across] = math.ceil(extent / cell)
        frame[f"square_{across}"] = math.ceil(extent / cell / SQUARE_CELLS)
    return frame


def _segments(wall: Floats, road: Floats) -> NDArray[np.void]:
    """A closed wall as segments; `road` is a point of the centreline at its first one."""
    ways = np.diff(wall, axis=0)
    squares = np.sum(ways**2, axis=1)
    segments = np.zeros(len(ways), SEGMENT)
    segments["x"], segments["y"] = wall[:-1, 0], wall[:-1, 1]
    segments["dx"], segments["dy"] = ways[:, 0], ways[:, 1]
    segments["per_square"] = np.where(squares > 0.0, 1.0 / np.where(squares > 0.0, squares, 1.0), 0.0)
    side = ways[0, 0] * (road[1] - wall[0, 1]) - ways[0, 1] * (road[0] - wall[0, 0])
    segments["inside"] = math.copysign(1.0, side) * np.sqrt(segments["per_square"])
    return segments


@part
def cell_at(frame: Compiled, x: float, y: float) -> int:
    """The index of the cell a point lies in; the last one, which lists everything, outside of the grid."""
    column, row = (x - frame.left) * frame.cells_per_unit, (y - frame.bottom) * frame.cells_per_unit
    if 0.0 <= column < frame.columns and 0.0 <= row < frame.rows:
        return int(row) * frame.columns + int(column)
    return frame.columns * frame.rows


@part
def square_at(frame: Compiled, x: float, y: float) -> int:
    """The index of the square a point lies in; the last one, which lists everything, outside of the grid."""
    column, row = (x - frame.left) * frame.cells_per_unit, (y - frame.bottom) * frame.cells_per_unit
    if 0.0 <= column < frame.columns and 0.0 <= row < frame.rows:
        return int(row) // SQUARE_CELLS * frame.square_columns + int(column) // SQUARE_CELLS
    return frame.square_columns * frame.square_rows


@part
def squared_distance(segment: Compiled, x: float, y: float) -> float:
    """From a point to the nearest point of a wall segment."""
    ax, ay = x - segment.x, y - segment.y
    along = min(1.0, max(0.0, (ax * segment.dx + ay * segment.dy) * segment.per_square))
    ox, oy = ax - along * segment.dx, ay - along * segment.dy
    return ox * ox + oy * oy


def _fill_walls(frame: np.void, segments: NDArray[np.void], cells: NDArray[np.void]) -> NDArray[np.int32]:
    """Set the walls of every cell; returns their lists, those that pass through a cell before those near it."""
    half = frame["cell"] / 2.0
    reach = half * math.sqrt(2.0) + WALL_NEAR + TOLERANCE
    starts = np.stack([segments["x"], segments["y"]], axis=1) - (frame["left"], frame["bottom"])
    ways = np.stack([segments["dx"], segments["dy"]], axis=1)
    limits = np.array([frame["columns"], frame["rows"]]) - 1
    low = np.clip((np.minimum(starts, starts + ways) - reach) // frame["cell"], 0, limits).astype(np.int64)
    high = np.clip((np.maximum(starts, starts + ways) + reach) // frame["cell"], 0, limits).astype(np.int64)
    window = np.indices((high - low).max(axis=0) + 1).reshape(2, -1).T
    places = low[:, None] + window
    wall, step = np.nonzero((places <= high[:, None]).all(axis=2))
    place = places[wall, step]

    offset = (place + 0.5) * frame["cell"] - starts[wall]
    way = ways[wall]
    along = np.clip(np.sum(offset * way, axis=1) * segments["per_square"][wall], 0.0, 1.0)
    gap = offset - along[:, None] * way
    beyond = np.abs(offset[:, 0] * way[:, 1] - offset[:, 1] * way[:, 0])
    grown = half + TOLERANCE
    crosses = beyond <= grown * np.abs(way).sum(axis=1)
    for axis in (0, 1):
        first, second = -offset[:, axis], way[:, axis] - offset[:, axis]
        crosses &= (np.minimum(first, second) <= grown) & (np.maximum(first, second) >= -grown)

    near = np.sum(gap * gap, axis=1) <= reach * reach
    wall, crosses, cell = wall[near], crosses[near], (place[:, 1] * frame["columns"] + place[:, 0])[near]
    order = np.lexsort((wall, ~crosses, cell))
    outside = len(cells) - 1
    cells["near"] = np.bincount(cell, minlength=len(cells))
    cells["crossing"] = np.bincount(cell[crosses], minlength=len(cells))
    cells["near"][outside] = cells["crossing"][outside] = len(segments)
    cells["walls"] = np.cumsum(cells["near"]) - cells["near"]
    return np.concatenate([wall[order], np.arange(len(segments))]).astype(np.int32)


def _fill_candidates(frame: np.void, samples: NDArray[np.void], squares: NDArray[np.void]) -> NDArray[np.int32]:
    """Set which coarse centreline samples are nearest to some point of a square; returns the lists.

    Works from one square over everything down to the small ones: a sample that is nearest somewhere in a square was
    nearest somewhere in the larger square around it. The difference of the squared distances to two samples is
    linear over a square, so each is compared with the one nearest to the centre at a single corner.
    """
    lists = np.arange(len(samples))
    starts, counts, columns = np.zeros(1, np.int64), np.array([len(samples)]), 1
    level = math.ceil(math.log(max(frame["square_columns"], frame["square_rows"], 2), ZOOM) - 1e-9)
    for scale in (ZOOM**k for k in reversed(range(level))):
        half = scale * SQUARE_CELLS * frame["cell"] / 2.0
        new_columns, new_rows = -(-frame["square_columns"] // scale), -(-frame["square_rows"] // scale)
        row, column = np.divmod(np.arange(new_columns * new_rows), new_columns)
        parent = row // ZOOM * columns + column // ZOOM
        columns, counts = new_columns, counts[parent]
        first = np.cumsum(counts) - counts
        place = np.repeat(np.arange(len(parent)), counts)
        sample = lists[np.arange(len(place)) + (starts[parent] - first)[place]]

        x, y = samples["x"][sample], samples["y"][sample]
        distance = (x - (frame["left"] + (2 * column + 1) * half)[place]) ** 2
        distance += (y - (frame["bottom"] + (2 * row + 1) * half)[place]) ** 2
        least = np.minimum.reduceat(distance, first)
        nearest = np.empty(len(parent), np.int64)
        nearest[place[distance == least[place]]] = sample[distance == least[place]]
        apart = np.abs(x - samples["x"][nearest][place]) + np.abs(y - samples["y"][nearest][place])
        kept = distance - least[place] <= 2.0 * half * apart + TOLERANCE
        lists, counts = sample[kept], np.bincount(place[kept], minlength=len(parent))
        starts = np.cumsum(counts) - counts
    squares["samples"] = np.append(starts, len(lists))
    squares["candidates"] = np.append(counts, len(samples))
    return np.concatenate([lists, np.arange(len(samples))]).astype(np.int32)


def _fill_jumps(frame: np.void, cells: NDArray[np.void]) -> None:
    """Set how many cells ahead, in each quadrant, the largest wall-free square of cells reaches."""
    open_cells = (cells["crossing"][:-1] == 0).reshape(frame["rows"], frame["columns"])
    for quadrant in range(4):
        turned = open_cells[:: -1 if quadrant & 2 else 1, :: -1 if quadrant & 1 else 1]
        jump = np.zeros(turned.shape, np.uint8)
        fits = turned.copy()
        for _ in range(LONGEST_JUMP):
            jump += fits
            fits[:-1] &= fits[1:]
            fits[:, :-1] &= fits[:, 1:]
            fits[-1] = fits[:, -1] = False
        turned_back = jump[:: -1 if quadrant & 2 else 1, :: -1 if quadrant & 1 else 1]
        cells["jump"][:-1, quadrant] = turned_back.reshape(-1)
