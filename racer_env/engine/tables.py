"""The track as compiled code reads it: flat tables and one grid of square cells.

Every question a tick asks about the track is answered from the cell a point lies in:

- which walls can be touched here: the cell's segments that are within `WALL_NEAR` of it,
- which walls a ray can hit here: the first of those, the ones that pass through the cell,
- how far a ray may jump: the side of the largest wall-free square of cells ahead, one for each quadrant,
- which coarse centreline samples can be the nearest one: the cell's samples.

So no question scans the track, and none needs to remember where the car was. A point outside of the grid
gets the last cell, which lists everything: slow, and as right as the others. A grid of one cell is
plain brute force.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from racer_env.engine.centreline import CHORDS_PER_SEGMENT, Centreline, Floats
from racer_env.engine.compiled import building_entry, entry, part

CELL_SIZE = 4.0
"""Side of a grid cell: not below the longest move in one tick plus the collision radius."""
MOST_CELLS = 1_000_000
"""A track spread so wide that it would need more cells than this gets larger ones."""
WALL_NEAR = 2.0
"""Closer than this to a wall counts as wall contact in info and in the reward."""
TOLERANCE = 1e-6
"""Cells list what passes them this close by, so that rounding at a cell's edge loses nothing."""
LONGEST_JUMP = 255
"""Most cells that a ray crosses in one jump."""
BEAM_CELLS = 2
"""Grid cells along the side of a square from which a beam of rays starts (see `beams`)."""
BEAM_DIRECTIONS = 64
"""Beams around a full turn: a power of two, and a whole number of them between two rays of a car."""
BEAM_WALL_GAP = 0.5
"""A beam starts from points that are at least this far inside of the walls around."""
LONGEST_RUN = 48
"""Most wall segments that a beam may meet."""

FRAME = np.dtype([
    ("length", "f8"), ("samples", "i8"), ("spacing", "f8"), ("gates", "i8"),
    ("left", "f8"), ("bottom", "f8"), ("cells_per_unit", "f8"), ("cell", "f8"), ("columns", "i8"), ("rows", "i8"),
])  # fmt: skip
"""Figures of the whole track and of its grid."""

STRETCH = np.dtype([(name, "f8") for name in (
    "arc", "x0", "x1", "x2", "x3", "y0", "y1", "y2", "y3", "width0", "width1")])  # fmt: skip
"""One interval of the arc table: x, y and half-width as polynomials of the distance from `arc`."""

SAMPLE = np.dtype([("x", "f8"), ("y", "f8"), ("stretch", "i8")])
"""A coarse centreline sample and the stretch it lies in."""

SEGMENT = np.dtype([("x", "f8"), ("y", "f8"), ("dx", "f8"), ("dy", "f8"), ("per_square", "f8"), ("inside", "f8")])
"""A wall segment: its first point, the way to its second, one over that way's squared length, and what makes
a cross product with it the distance from its line, positive on the side of the road."""

CELL = np.dtype([
    ("walls", "i4"), ("crossing", "i4"), ("near", "i4"), ("samples", "i4"), ("candidates", "i4"), ("jump", "u1", 4),
])  # fmt: skip
"""Where the cell's walls start in `lists`, how many cross it, how many are near (the crossing ones first);
where its centreline candidates start, and how many they are; jumps towards +x+y, −x+y, +x−y, −x−y."""


SQUARE = np.dtype([("beams", "i4"), ("walls", "i4"), ("crossing", "i4")])
"""A square that beams start from: its row in `beams`, or −1; where the walls that pass through it start in
`lists`, and how many they are."""

BEAM = np.dtype([("first", "u2"), ("count", "u2")])
"""The run of wall segments that a beam of rays meets: index of its first point in `wall_points`, and how many
segments; none where it is not known to be one run."""


class TrackTables(NamedTuple):
    """What compiled functions get of a track. All arrays are read-only."""

    frame: NDArray[np.void]
    stretches: NDArray[np.void]
    samples: NDArray[np.void]
    segments: NDArray[np.void]
    gates: Floats
    cells: NDArray[np.void]
    lists: NDArray[np.int32]
    wall_points: Floats
    """Inner wall, then outer wall, each run on past its end by LONGEST_RUN points so that no run wraps."""
    squares: NDArray[np.void]
    beams: NDArray[np.void]


def build_tables(
    line: Centreline, inner: Floats, outer: Floats, gates: Floats, cell_size: float = CELL_SIZE
) -> TrackTables:
    count = max(100, math.ceil(line.length / 2.0))
    spacing = line.length / count
    stretches, first = _stretches(line, spacing)
    samples = np.zeros(count, SAMPLE)
    arcs = np.arange(count) * line.length / count
    points = line.points(arcs)
    samples["x"], samples["y"] = points[:, 0], points[:, 1]
    samples["stretch"] = first + np.clip(np.searchsorted(line.arcs, arcs, side="right") - 1, 0, len(line.arcs) - 2)
    segments = np.concatenate([_segments(inner, points[0]), _segments(outer, points[0])])

    frame = np.zeros(1, FRAME)
    frame["length"], frame["samples"], frame["spacing"], frame["gates"] = line.length, count, spacing, len(gates)
    low = np.minimum(inner.min(axis=0), outer.min(axis=0)) - WALL_NEAR - CELL_SIZE
    high = np.maximum(inner.max(axis=0), outer.max(axis=0)) + WALL_NEAR + CELL_SIZE
    width, height = (float(extent) for extent in high - low)
    cell = min(max(cell_size, math.sqrt(width * height / MOST_CELLS)), max(width, height))
    frame["left"], frame["bottom"], frame["cell"], frame["cells_per_unit"] = low[0], low[1], cell, 1.0 / cell
    frame["columns"], frame["rows"] = math.ceil(width / cell), math.ceil(height / cell)

    cells = np.zeros(int(frame["columns"][0] * frame["rows"][0]) + 1, CELL)
    lists = np.concatenate([fill_walls(frame, segments, cells), fill_candidates(frame, samples, cells)])
    cells["samples"] += len(lists) - int(cells["candidates"].sum())
    fill_jumps(frame, cells)
    squares = np.zeros((math.ceil(frame["rows"][0] / BEAM_CELLS), math.ceil(frame["columns"][0] / BEAM_CELLS)), SQUARE)
    squares["beams"] = -1
    return TrackTables(
        frame, stretches, samples, segments, np.array(gates), cells, lists,
        wall_points=np.concatenate([np.resize(wall[:-1], (len(wall) + LONGEST_RUN, 2)) for wall in (inner, outer)]),
        squares=squares,
        beams=np.zeros((0, BEAM_DIRECTIONS), BEAM),
    )  # fmt: skip


def _stretches(line: Centreline, spacing: float) -> tuple[NDArray[np.void], int]:
    """The arc table as cubics in the distance, with a few repeated at both ends so that the search around
    the start line never wraps; and the index of the one that starts at distance 0."""
    count = len(line.arcs) - 1
    lengths = np.diff(line.arcs)
    rate = np.where(lengths > 0.0, 1.0 / CHORDS_PER_SEGMENT / np.where(lengths > 0.0, lengths, 1.0), 0.0)
    segment, step = np.divmod(np.arange(count), CHORDS_PER_SEGMENT)
    t = (step / CHORDS_PER_SEGMENT)[:, None]
    a0, a1, a2, a3 = np.moveaxis(line.cubics[segment], 1, 0)
    rate2 = rate[:, None]
    coefficients = (
        a0 + t * (a1 + t * (a2 + t * a3)),
        (a1 + t * (2.0 * a2 + t * 3.0 * a3)) * rate2,
        (a2 + t * 3.0 * a3) * rate2**2,
        a3 * rate2**3,
    )
    table = np.zeros(count, STRETCH)
    table["arc"] = line.arcs[:-1]
    for power, values in enumerate(coefficients):
        table[f"x{power}"], table[f"y{power}"] = values[:, 0], values[:, 1]
    widths = np.append(line.half_widths, line.half_widths[0])
    knots = line.arcs[::CHORDS_PER_SEGMENT]
    spans = np.diff(knots)
    slopes = np.where(spans > 0.0, np.diff(widths) / np.where(spans > 0.0, spans, 1.0), 0.0)
    table["width1"] = slopes[segment]
    table["width0"] = widths[segment] + slopes[segment] * (line.arcs[:-1] - knots[segment])

    before = count - int(np.searchsorted(line.arcs, line.length - 2.0 * spacing, side="right")) + 1
    after = int(np.searchsorted(line.arcs, 2.0 * spacing, side="right"))
    head, tail = table[count - before :].copy(), table[:after].copy()
    head["arc"] -= line.length
    tail["arc"] += line.length
    end = np.zeros(1, STRETCH)
    end["arc"] = np.inf
    return np.concatenate([head, table, tail, end]), before


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
def cell_at(frame, x, y):
    """The index of the cell a point lies in; the last one, which lists everything, outside of the grid."""
    column = (x - frame.left) * frame.cells_per_unit
    row = (y - frame.bottom) * frame.cells_per_unit
    if 0.0 <= column < frame.columns and 0.0 <= row < frame.rows:
        return int(row) * frame.columns + int(column)
    return frame.columns * frame.rows


@part
def squared_distance(segment, x, y):
    """From a point to the nearest point of a wall segment."""
    ax, ay = x - segment.x, y - segment.y
    along = min(1.0, max(0.0, (ax * segment.dx + ay * segment.dy) * segment.per_square))
    ox, oy = ax - along * segment.dx, ay - along * segment.dy
    return ox * ox + oy * oy


@part
def passes_through(segment, x, y, half):
    """Whether a segment meets the square of this centre and half side (separating axes)."""
    half += TOLERANCE
    ax, ay = segment.x - x, segment.y - y
    bx, by = ax + segment.dx, ay + segment.dy
    if min(ax, bx) > half or max(ax, bx) < -half or min(ay, by) > half or max(ay, by) < -half:
        return False
    return abs(ax * segment.dy - ay * segment.dx) <= half * (abs(segment.dx) + abs(segment.dy))


@building_entry
def fill_walls(frames, segments, cells):
    """Set the walls of every cell; returns their lists, those that pass through a cell before those near it."""
    frame = frames[0]
    half = frame.cell / 2.0
    reach = half * math.sqrt(2.0) + WALL_NEAR + TOLERANCE
    everything = len(cells) - 1
    lists = np.empty(0, np.int32)
    for fill in (False, True):
        for i in range(len(segments)):
            segment = segments[i]
            left, right = min(0.0, segment.dx) - reach, max(0.0, segment.dx) + reach
            low, high = min(0.0, segment.dy) - reach, max(0.0, segment.dy) + reach
            first_column = max(0, int((segment.x + left - frame.left) * frame.cells_per_unit))
            last_column = min(frame.columns - 1, int((segment.x + right - frame.left) * frame.cells_per_unit))
            first_row = max(0, int((segment.y + low - frame.bottom) * frame.cells_per_unit))
            last_row = min(frame.rows - 1, int((segment.y + high - frame.bottom) * frame.cells_per_unit))
            for row in range(first_row, last_row + 1):
                for column in range(first_column, last_column + 1):
                    x = frame.left + (column + 0.5) * frame.cell
                    y = frame.bottom + (row + 0.5) * frame.cell
                    if squared_distance(segment, x, y) <= reach * reach:
                        crosses = passes_through(segment, x, y, half)
                        _note_wall(cells[row * frame.columns + column], i, crosses, fill, lists)
            _note_wall(cells[everything], i, True, fill, lists)
        if not fill:
            total = 0
            for c in range(len(cells)):
                cells[c].walls = total
                total += cells[c].near
                cells[c].near = cells[c].crossing
                cells[c].crossing = 0
            lists = np.empty(total, np.int32)
    return lists


@part
def _note_wall(cell, segment, crosses, fill, lists):
    """Count a wall for a cell, or, once there is room for it, write it down.

    While writing, `near` runs on from where the crossing ones will end.
    """
    if crosses:
        if fill:
            lists[cell.walls + cell.crossing] = segment
        cell.crossing += 1
    elif fill:
        lists[cell.walls + cell.near] = segment
    if not (crosses and fill):
        cell.near += 1


@entry
def fill_jumps(frames, cells):
    """Set how many cells ahead, in each quadrant, the largest wall-free square of cells reaches."""
    frame = frames[0]
    for quadrant in range(4):
        step_x, step_y = (1, -1)[quadrant & 1], (1, -1)[quadrant >> 1]
        for r in range(frame.rows):
            row = frame.rows - 1 - r if step_y > 0 else r
            for c in range(frame.columns):
                column = frame.columns - 1 - c if step_x > 0 else c
                cell = cells[row * frame.columns + column]
                if cell.crossing > 0:
                    continue
                smallest = LONGEST_JUMP - 1
                if 0 <= row + step_y < frame.rows and 0 <= column + step_x < frame.columns:
                    beside = cells[row * frame.columns + column + step_x].jump[quadrant]
                    above = cells[(row + step_y) * frame.columns + column].jump[quadrant]
                    across = cells[(row + step_y) * frame.columns + column + step_x].jump[quadrant]
                    smallest = min(smallest, beside, above, across)
                else:
                    smallest = 0
                cell.jump[quadrant] = smallest + 1


@building_entry
def fill_candidates(frames, samples, cells):
    """Set the coarse centreline samples of every cell that are nearest to some point of it; returns the lists.

    Works from one square over everything down to the cells, a quarter of the side at a time: a sample
    that is nearest somewhere in a square was nearest somewhere in the larger square around it.
    """
    frame = frames[0]
    level = 0
    while 4**level < max(frame.columns, frame.rows):
        level += 1
    starts = np.zeros(2, np.int64)
    starts[1] = len(samples)
    lists = np.arange(len(samples)).astype(np.int32)
    columns, rows = 1, 1
    while level > 0:
        level -= 1
        scale = 4**level
        new_columns = (frame.columns + scale - 1) // scale
        new_rows = (frame.rows + scale - 1) // scale
        new_starts = np.zeros(new_columns * new_rows + 1, np.int64)
        new_lists = np.empty(max(64, 4 * len(lists)), np.int32)
        used = 0
        half = scale * frame.cell / 2.0
        for row in range(new_rows):
            for column in range(new_columns):
                x = frame.left + (2 * column + 1) * half
                y = frame.bottom + (2 * row + 1) * half
                parent = (row // 4) * columns + column // 4
                known = lists[starts[parent] : starts[parent + 1]]
                if used + len(known) > len(new_lists):
                    new_lists = np.concatenate((new_lists, np.empty(len(new_lists) + len(known), np.int32)))
                used += _nearest_somewhere(samples, known, x, y, half, new_lists[used:])
                new_starts[row * new_columns + column + 1] = used
        starts, lists, columns, rows = new_starts, new_lists[:used], new_columns, new_rows
    for c in range(len(cells) - 1):
        cells[c].samples = starts[c]
        cells[c].candidates = starts[c + 1] - starts[c]
    cells[len(cells) - 1].samples = len(lists)
    cells[len(cells) - 1].candidates = len(samples)
    return np.concatenate((lists, np.arange(len(samples)).astype(np.int32)))


@part
def _nearest_somewhere(samples, known, x, y, half, found):
    """Write down which of the known samples are nearest to some point of a square; returns how many.

    The difference of the squared distances to two samples is linear over the square, so comparing each
    with the one nearest to the centre is a test at one corner.
    """
    best, best_square = known[0], np.inf
    for i in known:
        square = (samples[i].x - x) ** 2 + (samples[i].y - y) ** 2
        if square < best_square:
            best, best_square = i, square
    count = 0
    for i in known:
        dx, dy = samples[i].x - samples[best].x, samples[i].y - samples[best].y
        square = (samples[i].x - x) ** 2 + (samples[i].y - y) ** 2
        if square - best_square <= 2.0 * half * (abs(dx) + abs(dy)) + TOLERANCE:
            found[count] = i
            count += 1
    return count
