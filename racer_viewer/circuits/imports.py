"""Circuits from other programs' files: centrelines with or without widths, borders, and drawings.

A file is read into a closed line with half-widths. The line is scaled until roads have room beside each other and the
lap has a length to drive well; parts that are still too close are moved apart. It is then fitted with few control
points, like a stroke.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from racer_env.engine.centreline import Floats, build_centreline
from racer_env.engine.circuits import read_circuit
from racer_env.engine.walls import WALL_OFFSET
from racer_env.errors import CircuitError, os_reason, short
from racer_viewer.circuits.draft import Draft, set_text
from racer_viewer.circuits.preview import preview
from racer_viewer.circuits.strokes import SMOOTHING, fit_road, resampled, sample_count, smoothed
from racer_viewer.circuits.svg_lines import svg_lines
from racer_viewer.paths import open_regular
from racer_viewer.plain_text import plain_line

MAX_IMPORT_BYTES = 4 * 2**20
"""Maximum size of a file that is imported [bytes]."""
MAX_ROWS, MAX_LINES = 20_000, 50_000
"""Maximum number of points in it, and of lines of text."""
MAX_VALUE = 1e9
"""Maximum absolute value of a coordinate or width in a file."""
MIN_LAP, TYPICAL_LAP, LONGEST_LAP = 1000.0, 2400.0, 9000.0
"""Range of lap lengths that are kept as they are in the file, and the length of a lap outside of it [units]."""
MEAN_HALF_WIDTHS = (14.0, 24.0)
"""Range of half the road width on average: real roads are too narrow for a car at 160 units/s [units]."""
HALF_WIDTHS = (9.0, 36.0)
"""Range of half the road width at each point [units]."""
DEFAULT_HALF_WIDTH = 18.0
"""Half the road width of lines without widths [units]."""
MAX_OPENING = 0.25
"""Maximum distance between the ends of a line, as a share of its length."""
SPLINE_POINTS = 300
"""Number of points up to which a line is rounded through its points like a circuit, instead of straight in between."""
MAX_SEARCHED = 300
"""Number of places at which parts of the road that are too close are looked for."""
SPARE_ROOM = 6.0
"""Distance between two walls that are beside each other [units]."""
SAME_BEND = 1.7
"""Distance along the line within which two places are parts of the same bend, in multiples of the room they need."""
MAX_PUSHES = 30
"""Maximum number of steps in which roads are moved apart."""
PUSH_SMOOTHING = 40.0
"""Standard deviation along the line over which a push is spread [units]."""
GROWTHS = (1.0, 1.6, 2.5)
"""Factors of the scale that are tried one after the other until a car can drive on the circuit."""
MOST_PUSHING = 0.6
"""Missing room, as a share of the room that two roads need, from which the next scale is tried at once."""
MAX_CHANGE = 0.12
"""Change of the lap length, as a share of it, up to which a circuit counts as the one in the file."""
X_NAMES, Y_NAMES = ("x", "x_m"), ("y", "y_m")
LEFT_NAMES, RIGHT_NAMES = ("w_tr_left_m", "width_left", "left"), ("w_tr_right_m", "width_right", "right")
"""Names of columns, in lower case."""
CSV_EXPECTED = "rows of x, y or x_m, y_m, w_tr_right_m, w_tr_left_m"
NPY_EXPECTED = "an array (n, 6) of centre, inner and outer border, or (n, 2) or (n, 4) of a centreline"
SVG_EXPECTED = "a drawing with the circuit as its longest path, polygon or polyline"
MAX_NPY_HEADER = 512
"""Maximum size of the header of a .npy file [bytes]."""
_NPY_HEADER = re.compile(
    rb"\x93NUMPY(?:\x01\x00..|\x02\x00....)\{'descr': '([<|][fiu][1248])', 'fortran_order': (False|True), "
    rb"'shape': \((\d{1,10}), (\d{1,10})\),? ?\} *\n",
    re.DOTALL,
)
_SEPARATORS = re.compile(r"[\s,;]+")


@dataclass(frozen=True)
class RoadLine:
    """Line of a circuit in a file, in its units. points: (n, 2). half_widths: (n,); None if they are unknown."""

    points: Floats
    half_widths: Floats | None = None


def import_circuit(path: Path) -> Draft:
    """Return the circuit in a file, named after the file, scaled to drive well; it may still have problems.

    Raises CircuitError with a line that says what was expected.
    """
    suffix = path.suffix.lower()
    if suffix == ".json":
        return Draft.from_circuit(read_circuit(path))
    if suffix not in READERS:
        raise CircuitError(f"{path.name}: circuits are imported from {', '.join(IMPORT_SUFFIXES)}")
    expected, read = READERS[suffix]
    try:
        with open_regular(path) as file:
            data = file.read(MAX_IMPORT_BYTES + 1)
    except OSError as error:
        raise CircuitError(f"cannot read {path}: {os_reason(error)}") from None
    try:
        if len(data) > MAX_IMPORT_BYTES:
            raise CircuitError(f"it is larger than {MAX_IMPORT_BYTES // 2**20} MiB")
        road = drivable_road(closed_line(read(data)))
    except CircuitError as error:
        raise CircuitError(f"{plain_line(path.name)}: expected {expected}; {error}", error.problem) from None
    return set_text(road, name=name_of(path))


def name_of(path: Path) -> str:
    """Return the name of a circuit by that of its file: `brands_hatch.csv` is Brands Hatch."""
    words = plain_line(re.sub(r"[\s_-]+", " ", path.stem)).strip()
    return words.title() if words == words.lower() else words


def read_csv(data: bytes) -> RoadLine:
    """Read rows of numbers; `#` begins a comment. A line of names before the first row says which column is which."""
    names: list[str] = []
    rows: list[list[float]] = []
    lines = data.decode("utf-8-sig", "replace").splitlines()
    if len(lines) > MAX_LINES:
        raise CircuitError(f"it has more than {MAX_LINES} lines")
    for number, line in enumerate(lines, 1):
        content, _, comment = line.partition("#")
        words = [word for word in _SEPARATORS.split(content.strip()) if word]
        if not words:
            named = [word.lower() for word in _SEPARATORS.split(comment.strip())]
            names = named if not rows and {*X_NAMES} & {*named} else names
            continue
        try:
            row = [float(word) for word in words[:64]]
        except ValueError:
            if rows:
                raise CircuitError(f"line {number} has {short(content.strip())}") from None
            names = [word.strip("\"'").lower() for word in words]
            continue
        if rows and len(row) != len(rows[0]):
            raise CircuitError(f"line {number} has {len(row)} numbers, and the first row has {len(rows[0])}")
        if len(rows) == MAX_ROWS:
            raise CircuitError(f"it has more than {MAX_ROWS} rows")
        rows.append(row)
    if not rows:
        raise CircuitError("it has no rows of numbers")
    return _columns(np.array(rows, np.float64), names)


def read_npy(data: bytes) -> RoadLine:
    """Read a numpy array of plain numbers; its header is parsed here, nothing is evaluated or unpickled."""
    header = _NPY_HEADER.match(data, 0, MAX_NPY_HEADER)
    if header is None:
        what = "is of objects or has another form" if data.startswith(b"\x93NUMPY") else "is none"
        raise CircuitError(f"the file's array {what}")
    kind, order, count, columns = (part.decode() for part in header.groups())
    content = data[header.end() :]
    if int(count) > MAX_ROWS or int(columns) not in (2, 4, 6):
        raise CircuitError(f"it has an array ({count}, {columns})")
    if len(content) != int(count) * int(columns) * np.dtype(kind).itemsize:
        raise CircuitError("it ends too early, or goes on after the array")
    with np.errstate(all="ignore"):
        shape = (int(count), int(columns)) if order == "False" else (int(columns), int(count))
        rows = np.frombuffer(content, kind).reshape(shape).astype(np.float64)
    rows = rows if order == "False" else rows.T
    if rows.shape[1] != 6:
        return _columns(rows, [])
    inner, outer = rows[:, 2:4], rows[:, 4:6]
    with np.errstate(all="ignore"):
        return RoadLine((inner + outer) / 2.0, np.hypot(*(outer - inner).T) / 2.0)


def read_svg(data: bytes) -> RoadLine:
    """Read the longest line of a drawing."""
    lines = [line for line in svg_lines(data) if np.isfinite(line).all()]
    if not lines:
        raise CircuitError("it has no line of three points")
    with np.errstate(all="ignore"):
        return RoadLine(max(lines, key=lambda line: float(np.hypot(*np.diff(line, axis=0).T).sum())))


READERS: dict[str, tuple[str, Callable[[bytes], RoadLine]]] = {
    ".csv": (CSV_EXPECTED, read_csv),
    ".txt": (CSV_EXPECTED, read_csv),
    ".npy": (NPY_EXPECTED, read_npy),
    ".svg": (SVG_EXPECTED, read_svg),
}
"""Description of the file that is expected, and its reader, by the ending."""
IMPORT_SUFFIXES = (*READERS, ".json")


def _columns(rows: Floats, names: Sequence[str]) -> RoadLine:
    """Return the line in the columns of a table; without names they are x, y, and width to the right and left."""
    count = rows.shape[1]
    known = {name: index for index, name in enumerate(names)} if len(names) == count else {}

    def column(choices: Sequence[str], otherwise: int) -> Floats | None:
        found = next((known[name] for name in choices if name in known), None)
        if found is None:
            found = otherwise if not named and otherwise < count in (2, 4) else None
        return None if found is None else rows[:, found]

    named = any(name in known for name in X_NAMES) and any(name in known for name in Y_NAMES)
    x, y = column(X_NAMES, 0), column(Y_NAMES, 1)
    if x is None or y is None:
        raise CircuitError(f"it has {count} columns and does not name x and y")
    line, right, left = np.column_stack([x, y]), column(RIGHT_NAMES, 2), column(LEFT_NAMES, 3)
    if right is None or left is None:
        return RoadLine(line)
    with np.errstate(all="ignore"):
        ahead = np.roll(line, -1, axis=0) - np.roll(line, 1, axis=0)
        normal = np.column_stack([-ahead[:, 1], ahead[:, 0]]) / np.maximum(np.hypot(*ahead.T), 1e-12)[:, None]
        return RoadLine(line + normal * ((left - right) / 2.0)[:, None], (left + right) / 2.0)


def closed_line(line: RoadLine) -> RoadLine:
    """Return a line without repeated points, which ends before it begins. Raises CircuitError if it is not closed."""
    rows = line.points if line.half_widths is None else np.column_stack([line.points, line.half_widths])
    if not (np.isfinite(rows).all() and (np.abs(rows) <= MAX_VALUE).all()):
        raise CircuitError(f"it has numbers that are not between {-MAX_VALUE:g} and {MAX_VALUE:g}")
    if line.half_widths is not None and (line.half_widths <= 0.0).any():
        raise CircuitError(f"the road has no width at point {int(np.argmax(line.half_widths <= 0.0))}")
    size = float(np.ptp(rows[:, :2], axis=0).max(initial=0.0)) if len(rows) else 0.0
    if len(rows):
        steps = np.hypot(*(rows - np.roll(rows, 1, axis=0))[:, :2].T)
        rows = rows[steps > 1e-6 * size]
    if len(rows) < 4:
        raise CircuitError(f"it has {len(rows)} different points: a circuit needs at least 4")
    steps = np.hypot(*(np.roll(rows, -1, axis=0) - rows)[:, :2].T)
    if steps[-1] > max(MAX_OPENING * steps[:-1].sum(), 1.5 * steps[:-1].max()):
        raise CircuitError("the line is not closed: its ends are far from each other")
    return RoadLine(rows[:, :2], None if line.half_widths is None else rows[:, 2])


def drivable_road(line: RoadLine) -> Draft:
    """Return a circuit along a closed line, scaled and with room between its parts, with as few problems as can be."""
    rows = _even_rows(line)
    length = _length(rows)
    scale = 1.0 if MIN_LAP <= length <= LONGEST_LAP else TYPICAL_LAP / length
    if _crosses_itself(rows):
        return Draft(points=fit_road(_scaled(rows, scale)))
    *smaller, last = [scale * growth for growth in GROWTHS if length * scale * growth <= LONGEST_LAP]
    roads = [road for road in (_scaled(rows, each) for each in smaller) if _Room(road).worst < MOST_PUSHING]
    found: list[tuple[tuple[bool, bool, int], Draft]] = []
    for road in (*roads, _scaled(rows, last)):
        draft = Draft(points=fit_road(with_room(road)))
        problems = preview(draft).problems
        is_other = not 1.0 - MAX_CHANGE < draft.centreline.length / _length(road) < 1.0 + MAX_CHANGE
        found.append(((bool(problems), is_other, len(problems)), draft))
        if not problems and not is_other:
            break
    return min(found, key=lambda each: each[0])[1]


class _Room:
    """Room between the parts of a road.

    places: indices of the rows that are compared.
    needed: distance that two of them need between their centres [units].
    """

    def __init__(self, road: Floats) -> None:
        spacing = _length(road) / len(road)
        self.places = np.arange(0, len(road), max(1, len(road) // MAX_SEARCHED))
        apart = np.abs(self.places[:, None] - self.places[None, :]) * spacing
        half_widths = road[self.places, 2]
        self.needed = half_widths[:, None] + half_widths[None, :] + 2.0 * WALL_OFFSET + SPARE_ROOM
        self._others = np.minimum(apart, len(road) * spacing - apart) > SAME_BEND * self.needed
        self.worst = float((self.lack(road)[0] / self.needed).max())
        """Largest part of the room that two places lack."""

    def lack(self, road: Floats) -> tuple[Floats, Floats]:
        """Return the distance that each two places lack, and the ways between them."""
        here = road[self.places, :2]
        ways = here[:, None] - here[None, :]
        return np.where(self._others, np.maximum(self.needed - np.hypot(*np.moveaxis(ways, 2, 0)), 0.0), 0.0), ways


def with_room(road: Floats) -> Floats:
    """Return a closed line of x, y and half-width with parts that are too close for their walls moved apart."""
    room, road = _Room(road), road.copy()
    numbers, rows = np.arange(len(road)), np.arange(len(room.places))
    for _ in range(MAX_PUSHES):
        lack, ways = room.lack(road)
        nearest = np.argmax(lack, axis=1)
        missing, way = lack[rows, nearest], ways[rows, nearest]
        if missing.max() < 0.5:
            break
        push = way * (0.5 * missing / np.maximum(np.hypot(*way.T), 1e-9))[:, None]
        spread = np.column_stack([np.interp(numbers, room.places, each, period=len(road)) for each in push.T])
        road[:, :2] += smoothed(np.column_stack([road[:, :2], spread]), PUSH_SMOOTHING)[:, 2:]
    return resampled(road, len(road))


def _even_rows(line: RoadLine) -> Floats:
    """Return evenly spaced rows of x, y and half-width (NaN if unknown) in the middle of the plane."""
    widths = np.full(len(line.points), np.nan) if line.half_widths is None else line.half_widths
    rows = np.column_stack([line.points, widths])
    rows[:, :2] -= (rows[:, :2].min(axis=0) + rows[:, :2].max(axis=0)) / 2.0
    if len(rows) <= SPLINE_POINTS:
        curve = build_centreline(np.column_stack([rows[:, :2], np.nan_to_num(widths, nan=1.0)]))
        at = np.linspace(0.0, curve.length, 2048, endpoint=False)
        known = curve.half_widths_at(at) if line.half_widths is not None else np.full(len(at), np.nan)
        rows = np.column_stack([curve.points(at), known])
    return resampled(rows, 2048)


def _scaled(rows: Floats, scale: float) -> Floats:
    """Return the line as large as it is driven, smoothed, with half-widths that a car has room on."""
    length = _length(rows) * scale
    road = resampled(rows * (scale, scale, scale), sample_count(length))
    if np.isnan(road[:, 2]).any():
        road[:, 2] = DEFAULT_HALF_WIDTH
    else:
        mean = float(road[:, 2].mean())
        road[:, 2] *= float(np.clip(mean, *MEAN_HALF_WIDTHS)) / mean
    road[:, 2] = np.clip(road[:, 2], *HALF_WIDTHS)
    return smoothed(road, SMOOTHING)


def _crosses_itself(rows: Floats) -> bool:
    """Return whether a closed line crosses itself, as the polygon through about MAX_SEARCHED of its points does."""
    line = rows[:: max(1, len(rows) // MAX_SEARCHED), :2]
    ways = np.roll(line, -1, axis=0) - line

    def side(start: Floats, way: Floats, point: Floats) -> Floats:
        return np.asarray(way[..., 0] * (point - start)[..., 1] - way[..., 1] * (point - start)[..., 0])

    a, a_way, b, b_way = line[:, None], ways[:, None], line[None, :], ways[None, :]
    on_both_sides_of_a = side(a, a_way, b) * side(a, a_way, b + b_way) < 0.0
    on_both_sides_of_b = side(b, b_way, a) * side(b, b_way, a + a_way) < 0.0
    return bool((on_both_sides_of_a & on_both_sides_of_b).any())


def _length(rows: Floats) -> float:
    return float(np.hypot(*(np.roll(rows, -1, axis=0) - rows)[:, :2].T).sum())
