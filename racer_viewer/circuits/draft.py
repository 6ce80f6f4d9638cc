"""Drafts: circuits that are being edited, as immutable values; edits are functions from one draft to another.

`DraftHistory` keeps all drafts of an editor, so that undo and redo have no limit and restore exactly what was there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from racer_env.engine import Circuit, Medals
from racer_env.engine.centreline import CHORDS_PER_SEGMENT, Centreline, build_centreline
from racer_env.engine.circuit_check import MAX_COORDINATE, MAX_ROAD_WIDTH
from racer_env.engine.track import DEFAULT_GATES

DEFAULT_HALF_WIDTH = 20.0
"""Half the road width at the first point of a draft [units]."""
HALF_WIDTHS = (2.0, MAX_ROAD_WIDTH / 2.0)
"""Range of half the road width that edits keep [units]."""
GATE_COUNTS = (2, 1000)
"""Range of the number of gates, as in circuit files."""
DIGITS = 2
"""Decimals of coordinates and widths after an edit."""
SAME_START = 5.0
"""Distance from a control point at which the start line moves to it instead of to a new one [units]."""
SMOOTHING = 0.5
"""Share of the way to the middle of its neighbours that smoothing moves a point."""

Axis = Literal["x", "y"]


class Point(NamedTuple):
    """Control point: coordinates and half the road width [units]."""

    x: float
    y: float
    half_width: float


@dataclass(frozen=True)
class Draft:
    """A circuit that is being edited. It may have any number of points, and need not be drivable."""

    name: str = ""
    description: str = ""
    points: tuple[Point, ...] = ()
    gates: int = DEFAULT_GATES
    medals: Medals | None = None

    @classmethod
    def from_circuit(cls, circuit: Circuit) -> Draft:
        points = tuple(Point(*map(float, row)) for row in circuit.control_points)
        return cls(circuit.name, circuit.description, points, circuit.gates, circuit.medals)

    def to_circuit(self, circuit_id: str = "") -> Circuit:
        """Return the definition, unchecked."""
        return Circuit(self.name, self.points, self.description, self.gates, self.medals, circuit_id)

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Left, bottom, right and top of the points; zeros without any."""
        return _bounds(self.points)

    @property
    def centre(self) -> tuple[float, float]:
        """Middle of the bounds."""
        return _middle(self.points)

    @property
    def centreline(self) -> Centreline:
        """The closed spline through the points. Raises IndexError with fewer than three."""
        if len(self.points) < 3:
            raise IndexError("a centreline needs three points")
        return build_centreline(np.array(self.points, np.float64))


def add_point(draft: Draft, x: float, y: float, half_width: float | None = None) -> Draft:
    """Add a point after the last one, as wide as that by default."""
    if half_width is None:
        half_width = draft.points[-1].half_width if draft.points else DEFAULT_HALF_WIDTH
    return _edited(draft, (*draft.points, _rounded(x, y, half_width)))


def move_points(draft: Draft, indices: Collection[int], dx: float, dy: float) -> Draft:
    """Move some points by the same distance."""
    return _changed(draft, indices, lambda point: (point.x + dx, point.y + dy, point.half_width))


def place_point(draft: Draft, index: int, x: float, y: float) -> Draft:
    """Move a point to a place."""
    return _changed(draft, [index], lambda point: (x, y, point.half_width))


def insert_point(draft: Draft, arc: float) -> tuple[Draft, int]:
    """Insert a point on the centreline at this arc; return the draft and the index of the point."""
    line = draft.centreline
    arc %= line.length
    (x, y), half_width = line.points(np.array([arc]))[0], line.half_widths_at(np.array([arc]))[0]
    index = int(np.searchsorted(line.arcs[::CHORDS_PER_SEGMENT], arc, side="right"))
    points = (*draft.points[:index], _rounded(float(x), float(y), float(half_width)), *draft.points[index:])
    return _edited(draft, points), index


def delete_points(draft: Draft, indices: Collection[int]) -> Draft:
    """Delete some points."""
    _check(draft, indices)
    return _edited(draft, tuple(point for i, point in enumerate(draft.points) if i not in set(indices)))


def set_half_width(draft: Draft, indices: Collection[int], half_width: float) -> Draft:
    """Set half the road width at some points."""
    return _changed(draft, indices, lambda point: (point.x, point.y, half_width))


def change_half_width(draft: Draft, indices: Collection[int], by: float) -> Draft:
    """Make the road wider or narrower at some points."""
    return _changed(draft, indices, lambda point: (point.x, point.y, point.half_width + by))


def start_at_point(draft: Draft, index: int) -> Draft:
    """Move the start line to a point, which becomes the first one."""
    _check(draft, [index])
    return _edited(draft, draft.points[index:] + draft.points[:index])


def start_at_arc(draft: Draft, arc: float) -> Draft:
    """Move the start line to this arc: to a control point nearby, or to a new one."""
    line = draft.centreline
    arc %= line.length
    apart = np.abs(line.arcs[::CHORDS_PER_SEGMENT] - arc)
    nearest = int(np.argmin(apart))
    if apart[nearest] <= SAME_START:
        return start_at_point(draft, nearest % len(draft.points))
    return start_at_point(*insert_point(draft, arc))


def reverse(draft: Draft) -> Draft:
    """Drive in the other direction, from the same start line."""
    return _edited(draft, draft.points[:1] + draft.points[:0:-1])


def mirror(draft: Draft, axis: Axis = "x", indices: Collection[int] | None = None) -> Draft:
    """Swap left and right (`x`) or top and bottom (`y`) about the middle of the chosen points, or of all."""
    chosen = _chosen(draft, indices)
    left, bottom, right, top = _bounds(draft.points[i] for i in chosen)
    if axis == "x":
        return _changed(draft, chosen, lambda point: (left + right - point.x, point.y, point.half_width))
    return _changed(draft, chosen, lambda point: (point.x, bottom + top - point.y, point.half_width))


def rotate(
    draft: Draft, angle: float, indices: Collection[int] | None = None, centre: tuple[float, float] | None = None
) -> Draft:
    """Rotate some points, or all, counter-clockwise [rad]; about their middle by default."""
    chosen = _chosen(draft, indices)
    x, y = centre or _middle(draft.points[i] for i in chosen)
    cos, sin = math.cos(angle), math.sin(angle)
    return _changed(
        draft,
        chosen,
        lambda point: (
            x + cos * (point.x - x) - sin * (point.y - y),
            y + sin * (point.x - x) + cos * (point.y - y),
            point.half_width,
        ),
    )


def scale(
    draft: Draft,
    factor: float,
    indices: Collection[int] | None = None,
    centre: tuple[float, float] | None = None,
    widths: bool = False,
) -> Draft:
    """Scale some points, or all, about their middle by default. widths: scale the road width too."""
    chosen = _chosen(draft, indices)
    x, y = centre or _middle(draft.points[i] for i in chosen)
    wider = factor if widths else 1.0
    return _changed(
        draft,
        chosen,
        lambda point: (x + factor * (point.x - x), y + factor * (point.y - y), point.half_width * wider),
    )


def translate(draft: Draft, dx: float, dy: float) -> Draft:
    """Move the whole circuit."""
    return move_points(draft, range(len(draft.points)), dx, dy)


def snap(draft: Draft, step: float, indices: Collection[int] | None = None) -> Draft:
    """Move some points, or all, to the nearest lines of a grid."""
    return _changed(
        draft,
        _chosen(draft, indices),
        lambda point: (round(point.x / step) * step, round(point.y / step) * step, point.half_width),
    )


def smooth(draft: Draft, indices: Collection[int] | None = None) -> Draft:
    """Move some points, or all, towards the middle of their neighbours, all at once."""
    chosen, points = _chosen(draft, indices), draft.points
    new = list(points)
    for i in chosen:
        before, here, after = points[i - 1], points[i], points[(i + 1) % len(points)]
        middle = [(first + second) / 2.0 for first, second in zip(before, after, strict=True)]
        new[i] = _rounded(*(old + SMOOTHING * (mean - old) for old, mean in zip(here, middle, strict=True)))
    return _edited(draft, tuple(new))


def set_text(draft: Draft, name: str | None = None, description: str | None = None) -> Draft:
    """Set the name or the description."""
    return replace(
        draft,
        name=draft.name if name is None else name,
        description=draft.description if description is None else description,
    )


def set_gates(draft: Draft, gates: int) -> Draft:
    """Set the number of gates, within the range of circuit files."""
    return replace(draft, gates=min(max(gates, GATE_COUNTS[0]), GATE_COUNTS[1]))


def set_medals(draft: Draft, medals: Medals | None) -> Draft:
    """Set the medal times."""
    return replace(draft, medals=medals)


def _changed(draft: Draft, indices: Collection[int], change: Callable[[Point], tuple[float, float, float]]) -> Draft:
    """Return the draft with some points changed by a function that returns x, y and half-width."""
    _check(draft, indices)
    points = list(draft.points)
    for i in set(indices):
        points[i] = _rounded(*change(points[i]))
    return _edited(draft, tuple(points))


def _edited(draft: Draft, points: tuple[Point, ...]) -> Draft:
    """Return the draft with other points. Medal times belong to the circuit they were measured on."""
    return draft if points == draft.points else replace(draft, points=points, medals=None)


def _chosen(draft: Draft, indices: Collection[int] | None) -> Collection[int]:
    return range(len(draft.points)) if indices is None else indices


def _check(draft: Draft, indices: Iterable[int]) -> None:
    for index in indices:
        if not 0 <= index < len(draft.points):
            raise IndexError(f"there is no control point {index} among {len(draft.points)}")


def _rounded(x: float, y: float, half_width: float) -> Point:
    """Return a point with rounded numbers within the ranges of circuit files."""
    low, high = HALF_WIDTHS
    return Point(_coordinate(x), _coordinate(y), round(min(max(half_width, low), high), DIGITS))


def _coordinate(value: float) -> float:
    return round(min(max(value, -MAX_COORDINATE), MAX_COORDINATE), DIGITS) + 0.0


def _bounds(points: Iterable[Point]) -> tuple[float, float, float, float]:
    rows: Sequence[Point] = tuple(points)
    if not rows:
        return 0.0, 0.0, 0.0, 0.0
    xs, ys = [point.x for point in rows], [point.y for point in rows]
    return min(xs), min(ys), max(xs), max(ys)


def _middle(points: Iterable[Point]) -> tuple[float, float]:
    left, bottom, right, top = _bounds(points)
    return (left + right) / 2.0, (bottom + top) / 2.0


@dataclass(frozen=True)
class _Edit:
    """An edit: drafts before and after, and its name."""

    before: Draft
    after: Draft
    label: str


class DraftHistory:
    """All edits of a draft. draft: the current state."""

    def __init__(self, draft: Draft) -> None:
        self.draft = self._saved = draft
        self._done: list[_Edit] = []
        self._undone: list[_Edit] = []
        self._merge = ""

    @property
    def can_undo(self) -> bool:
        return bool(self._done)

    @property
    def can_redo(self) -> bool:
        return bool(self._undone)

    @property
    def undo_label(self) -> str:
        """Name of the edit that `undo` takes back; empty without one."""
        return self._done[-1].label if self._done else ""

    @property
    def redo_label(self) -> str:
        """Name of the edit that `redo` repeats; empty without one."""
        return self._undone[-1].label if self._undone else ""

    @property
    def dirty(self) -> bool:
        """True if the draft differs from the one that was saved last."""
        return self.draft != self._saved

    def do(self, draft: Draft, label: str = "", merge: str = "") -> None:
        """Make another draft the current one; without a difference nothing happens.

        merge: consecutive edits with the same text, such as the steps of a drag, are one edit to undo.
        """
        continues = bool(merge) and merge == self._merge and bool(self._done)
        if draft != self.draft:
            before = self._done.pop().before if continues else self.draft
            if draft != before:
                self._done.append(_Edit(before, draft, label))
            self.draft = draft
            self._undone.clear()
            self._merge = merge if self._done and self._done[-1].after is draft else ""

    def seal(self) -> None:
        """End merging: the next edit is one of its own."""
        self._merge = ""

    def undo(self) -> Draft:
        """Take the last edit back, if there is one; return the draft."""
        if self._done:
            edit = self._done.pop()
            self._undone.append(edit)
            self.draft = edit.before
        self.seal()
        return self.draft

    def redo(self) -> Draft:
        """Repeat the edit that was taken back last, if there is one; return the draft."""
        if self._undone:
            edit = self._undone.pop()
            self._done.append(edit)
            self.draft = edit.after
        self.seal()
        return self.draft

    def saved(self) -> None:
        """Mark the draft as saved; undo still goes back beyond it."""
        self._saved = self.draft
        self.seal()
