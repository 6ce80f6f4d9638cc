"""The track as compiled code reads it: flat tables and one grid of square cells.

A tick finds everything about the track in the cell that contains a point:

- walls that can be touched: segments within `WALL_NEAR` of the cell,
- walls that a ray can hit: the segments that pass through the cell, listed first,
- jump length of a ray: side of the largest wall-free square of cells ahead, for each quadrant,

and in the square of a few cells around it:

- coarse centreline samples that can be the nearest one,
- run of wall that the rays in each direction meet (see `beams`).

So nothing scans the whole track or depends on earlier positions. A point outside the grid gets the last cell and
square, which list everything: slow, but correct. A grid of one cell is plain brute force.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from racer_env.engine.centreline import Centreline, Floats
from racer_env.engine.compiled import Compiled, part
from racer_env.engine.stretches import build_stretches, symmetry_limits

CELL_SIZE = 4.0
"""Side of a grid cell [units]; at least the longest move in one tick plus the collision radius."""
MAX_CELLS = 1_000_000
"""Maximum number of cells; a larger track gets larger cells."""
WALL_NEAR = 2.0
"""Distance to a wall [units] below which `wall_contact` is set."""
TOLERANCE = 1e-6
"""Margin around a cell [units] within which it lists walls, so that rounding at its edge loses none."""
MAX_JUMP = 40
"""Maximum number of cells that a ray crosses in one jump."""
ZOOM = 2
"""Ratio of the square sizes of two levels while candidates are narrowed down."""
BLOCK_SIZE = 2**16
"""Pairs of a square and a candidate that are compared at once; all of them together would take 500 MiB."""
SQUARE_CELLS = 4
"""Cells along the side of a square."""
BEAM_DIRECTIONS = 64
"""Number of beams around a full turn: a power of two, and a multiple of the rays around a full turn."""
BEAM_WALL_GAP = 0.5
"""Minimum distance of the starting points of a beam from the walls [units]."""
MAX_RUN = 96
"""Maximum number of wall segments in the run of a beam."""
RUN_BLOCK = 8
"""Wall points that are tested together."""
MAX_CROSSINGS = 1000
"""Number of crossing walls after which no more are looked for."""
OVERLAP = MAX_RUN + RUN_BLOCK
"""Wall points that are repeated past the end of a wall, so that no run wraps."""

FRAME = np.dtype([
    ("length", "f8"), ("samples", "i8"), ("spacing", "f8"), ("gates", "i8"),
    ("left", "f8"), ("bottom", "f8"), ("cells_per_unit", "f8"), ("cell", "f8"),
    ("columns", "i8"), ("rows", "i8"), ("square_columns", "i8"), ("square_rows", "i8"),
])  # fmt: skip
"""Properties of the whole track and of its grid."""

SAMPLE = np.dtype([("x", "f8"), ("y", "f8"), ("stretch", "i8")])
"""Coarse centreline sample and the index of its stretch."""

SEGMENT = np.dtype([("x", "f8"), ("y", "f8"), ("dx", "f8"), ("dy", "f8"), ("per_square", "f8"), ("inside", "f8")])
"""Wall segment: first point, vector to the second one, 1 / squared length of that vector, and the factor that turns
a cross product with the vector into the distance from the segment's line, positive on the side of the road."""

CELL = np.dtype([
    ("walls", "i4"), ("crossing", "i4"), ("near", "i4"), ("jump", "u1", 4),
])  # fmt: skip
"""Cell: start of its walls in `lists`, number of walls through it, number of walls near it (including those, which come
first), and jumps towards +x+y, −x+y, +x−y, −x−y."""

SQUARE = np.dtype([
    ("samples", "i4"), ("candidates", "i4"), ("walls", "i4"), ("crossing", "i4"), ("beams", "i4"),
])  # fmt: skip
"""Square of cells: start and number of its centreline candidates in `lists`, start and number of the walls through it,
and its row in `beams`, or −1."""

BEAM = np.dtype([("first", "u2"), ("count", "u2"), ("other_first", "u2"), ("other_count", "u2")])
"""Runs of wall segments that the rays of a beam meet: index of the first point in `wall_points`, and number of
segments. Every ray meets a single run once; with a second run on the other wall, the nearest segment counts. Counts of
0 mean that the runs are not known."""


class TrackTables(NamedTuple):
    """Tables of a track that compiled functions read."""

    frame: NDArray[np.void]
    stretches: NDArray[np.void]
    samples: NDArray[np.void]
    limits: NDArray[np.void]
    segments: NDArray[np.void]
    gates: Floats
    cells: NDArray[np.void]
    lists: NDArray[np.int32]
    wall_points: Floats
    """Points of the inner, then of the outer wall, (2, n): each wall is continued past its end by OVERLAP points."""
    squares: NDArray[np.void]
    beams: NDArray[np.void]

    def walls_through_cells(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return all pairs of a cell and a wall that passes through it, in the order of the cells."""
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
    """Build all tables of a track except the beams, which `beams.add_beams` adds."""
    return add_search(build_wall_grid(line, inner, outer, gates, cell_size))


def build_wall_grid(
    line: Centreline, inner: Floats, outer: Floats, gates: Floats, cell_size: float = CELL_SIZE
) -> TrackTables:
    """Build the tables of a track without what `add_search` and `beams.add_beams` add, which takes half as long."""
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
    squares = np.zeros(int(frame["square_columns"][0] * frame["square_rows"][0]) + 1, SQUARE)
    squares["beams"] = -1
    continued = [np.resize(wall[:-1], (len(wall) + OVERLAP, 2)) for wall in (inner, outer)]
    return TrackTables(
        frame, stretches, samples, limits, segments, np.array(gates), cells, walls,
        wall_points=np.concatenate(continued).T.copy(),
        squares=squares,
        beams=np.zeros((0, BEAM_DIRECTIONS), BEAM),
    )  # fmt: skip


def add_search(tables: TrackTables) -> TrackTables:
    """Return the tables of a wall grid with the jumps of rays and the candidates for the nearest centreline sample."""
    cells, squares = tables.cells.copy(), tables.squares.copy()
    _fill_jumps(tables.frame[0], cells)
    candidates = _fill_candidates(tables.frame[0], tables.samples, squares)
    squares["samples"] += len(tables.lists)
    return tables._replace(cells=cells, squares=squares, lists=np.concatenate([tables.lists, candidates]))


def _frame(points: Floats, cell_size: float) -> NDArray[np.void]:
    """Return the frame of the grid around these points, with a spare cell on every side."""
    low = points.min(axis=0) - WALL_NEAR - CELL_SIZE
    width, height = (float(extent) for extent in points.max(axis=0) + WALL_NEAR + CELL_SIZE - low)
    cell = min(max(cell_size, math.sqrt(width * height / MAX_CELLS)), max(width, height))
    frame = np.zeros(1, FRAME)
    frame["left"], frame["bottom"], frame["cell"], frame["cells_per_unit"] = low[0], low[1], cell, 1.0 / cell
    for across, extent in (("columns", width), ("rows", height)):
        frame[across] = math.ceil(extent / cell)
        frame[f"square_{across}"] = math.ceil(extent / cell / SQUARE_CELLS)
    return frame


def _segments(wall: Floats, road: Floats) -> NDArray[np.void]:
    """Return a closed wall as segments.

    road: point of the centreline beside the first segment.
    """
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
    """Return the index of the cell that contains a point; outside the grid the last one, which lists everything."""
    column, row = (x - frame.left) * frame.cells_per_unit, (y - frame.bottom) * frame.cells_per_unit
    if 0.0 <= column < frame.columns and 0.0 <= row < frame.rows:
        return int(row) * frame.columns + int(column)
    return frame.columns * frame.rows


@part
def square_at(frame: Compiled, x: float, y: float) -> int:
    """Return the index of the square that contains a point; outside the grid the last one, which lists everything."""
    column, row = (x - frame.left) * frame.cells_per_unit, (y - frame.bottom) * frame.cells_per_unit
    if 0.0 <= column < frame.columns and 0.0 <= row < frame.rows:
        return int(row) // SQUARE_CELLS * frame.square_columns + int(column) // SQUARE_CELLS
    return frame.square_columns * frame.square_rows


@part
def squared_distance(segment: Compiled, x: float, y: float) -> float:
    """Return the squared distance from a point to a wall segment."""
    ax, ay = x - segment.x, y - segment.y
    along = min(1.0, max(0.0, (ax * segment.dx + ay * segment.dy) * segment.per_square))
    ox, oy = ax - along * segment.dx, ay - along * segment.dy
    return ox * ox + oy * oy


def _fill_walls(frame: np.void, segments: NDArray[np.void], cells: NDArray[np.void]) -> NDArray[np.int32]:
    """Set the walls of every cell. Returns their lists: walls through a cell first, then those near it."""
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
    """Set the coarse centreline samples that are nearest to some point of a square. Returns their lists.

    Works from one square over everything down to the small ones: a sample that is nearest somewhere in a square is
    nearest somewhere in the larger square around it. The difference of the squared distances to two samples is
    linear over a square, so each is compared with the one nearest to the centre at a single corner.
    """
    lists = np.arange(len(samples), dtype=np.int32)
    starts, counts, columns = np.zeros(1, np.int64), np.array([len(samples)]), 1
    level = math.ceil(math.log(max(frame["square_columns"], frame["square_rows"], 2), ZOOM) - 1e-9)
    for scale in (ZOOM**k for k in reversed(range(level))):
        half = scale * SQUARE_CELLS * frame["cell"] / 2.0
        new_columns, new_rows = -(-frame["square_columns"] // scale), -(-frame["square_rows"] // scale)
        row, column = np.divmod(np.arange(new_columns * new_rows), new_columns)
        parent = row // ZOOM * columns + column // ZOOM
        x, y = frame["left"] + (2 * column + 1) * half, frame["bottom"] + (2 * row + 1) * half
        columns, starts, counts = new_columns, starts[parent], counts[parent]
        blocks = np.flatnonzero(np.diff(np.cumsum(counts) // BLOCK_SIZE)) + 1
        narrowed = [
            _narrow(samples, lists, half, *square)
            for square in zip(*(np.split(each, blocks) for each in (x, y, starts, counts)), strict=True)
        ]
        lists, counts = (np.concatenate(each) for each in zip(*narrowed, strict=True))
        starts = np.cumsum(counts) - counts
    squares["samples"] = np.append(starts, len(lists))
    squares["candidates"] = np.append(counts, len(samples))
    return np.concatenate([lists, np.arange(len(samples))]).astype(np.int32)


def _narrow(
    samples: NDArray[np.void],
    lists: NDArray[np.int32],
    half: float,
    x: Floats,
    y: Floats,
    starts: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the candidates that are nearest to some point of each square, and their number per square.

    half: half the side of a square.
    x, y: centres of the squares.
    starts, counts: place of each square's candidates in `lists`.
    """
    first = np.cumsum(counts) - counts
    place = np.repeat(np.arange(len(counts)), counts)
    sample = lists[np.arange(len(place)) + (starts - first)[place]]
    sample_x, sample_y = samples["x"][sample], samples["y"][sample]
    distance = (sample_x - x[place]) ** 2
    distance += (sample_y - y[place]) ** 2
    least = np.minimum.reduceat(distance, first)[place]
    nearest = np.empty(len(counts), np.int64)
    nearest[place[distance == least]] = sample[distance == least]
    apart = np.abs(sample_x - samples["x"][nearest][place]) + np.abs(sample_y - samples["y"][nearest][place])
    kept = distance - least <= 2.0 * half * apart + TOLERANCE
    return sample[kept], np.bincount(place[kept], minlength=len(counts))


def _fill_jumps(frame: np.void, cells: NDArray[np.void]) -> None:
    """Set the side of the largest wall-free square of cells that starts in each cell, in each quadrant."""
    open_cells = (cells["crossing"][:-1] == 0).reshape(frame["rows"], frame["columns"])
    for quadrant in range(4):
        turned = open_cells[:: -1 if quadrant & 2 else 1, :: -1 if quadrant & 1 else 1]
        jump = np.zeros(turned.shape, np.uint8)
        fits = turned.copy()
        for _ in range(MAX_JUMP):
            jump += fits
            fits[:-1] &= fits[1:]
            fits[:, :-1] &= fits[:, 1:]
            fits[-1] = fits[:, -1] = False
        turned_back = jump[:: -1 if quadrant & 2 else 1, :: -1 if quadrant & 1 else 1]
        cells["jump"][:-1, quadrant] = turned_back.reshape(-1)


def crossing_walls(tables: TrackTables, every: bool = False) -> NDArray[np.int64]:
    """Return pairs of wall segments that cross each other, (k, 2); none if no walls cross.

    A car cannot drive where walls cross, and beams assume that they do not. Only segments that share a cell can cross.
    every: go on after the first ones found, until MAX_CROSSINGS; there are very many where a road runs over itself.
    """
    cell, wall = tables.walls_through_cells()
    pairs, apart = np.zeros((0, 2), np.int64), 1
    while apart < len(cell) and (together := cell[apart:] == cell[:-apart]).any():
        found = np.stack([wall[:-apart][together], wall[apart:][together]], axis=1).astype(np.int64)
        crossing = found[_cross(tables.segments[found[:, 0]], tables.segments[found[:, 1]])]
        pairs = np.unique(np.concatenate([pairs, crossing]), axis=0) if len(crossing) else pairs
        if len(pairs) and (not every or len(pairs) > MAX_CROSSINGS):
            break
        apart += 1
    return pairs


def _cross(a: NDArray[np.void], b: NDArray[np.void]) -> NDArray[np.bool_]:
    """Return whether a[i] and b[i] cross properly. Neighbours on a wall share a point and do not cross."""
    ox, oy = b["x"] - a["x"], b["y"] - a["y"]
    from_a = [a["dx"] * y - a["dy"] * x for x, y in ((ox, oy), (ox + b["dx"], oy + b["dy"]))]
    from_b = [b["dx"] * y - b["dy"] * x for x, y in ((-ox, -oy), (a["dx"] - ox, a["dy"] - oy))]
    # A shared point gives a product of zero, up to rounding; a real crossing is not that close to zero.
    scale = 1e-9 * np.hypot(a["dx"], a["dy"]) * np.hypot(b["dx"], b["dy"])
    return np.asarray((from_a[0] * from_a[1] < -(scale**2)) & (from_b[0] * from_b[1] < -(scale**2)))
