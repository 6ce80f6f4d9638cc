"""The circuit that is being edited: its history, the selected points, and what is wrong with it. Draws nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

from racer_env.errors import CircuitError, CircuitProblem
from racer_viewer.circuits.draft import (
    Axis,
    Draft,
    DraftHistory,
    Point,
    add_point,
    change_half_width,
    delete_points,
    insert_point,
    mirror,
    move_points,
    reverse,
    rotate,
    scale,
    set_half_width,
    smooth,
    snap,
    start_at_arc,
)
from racer_viewer.circuits.preview import Preview, preview
from racer_viewer.circuits.strokes import fit_stroke
from racer_viewer.modes.waiting import BackgroundTask
from racer_viewer.translation import _, mark

SNAP_STEP = 10.0
"""Distance between the lines of the grid that points snap to [units]."""
WIDTH_STEP = 1.0
"""Change of half the road width per key press or step of the mouse wheel [units]."""
ROTATION_STEP, SCALE_STEP = math.radians(5.0), 1.05
"""Angle [rad] and factor of a key press."""
MIN_CLOSED = 3
"""Number of points from which there is a line."""


class CircuitDocument:
    """A circuit that is being edited.

    Each edit goes through `do`, and can be undone. `tick` checks the circuit in the background whenever it was changed.

    circuit_id: id in the library of own circuits; None if it was not saved yet.
    selected: indices of the selected points.
    snaps: points that are moved or added snap to the grid.
    stroke_problem: why the last stroke became no circuit.
    """

    def __init__(self, draft: Draft, circuit_id: str | None = None) -> None:
        self.history, self.circuit_id = DraftHistory(draft), circuit_id
        self.selected: frozenset[int] = frozenset()
        self.snaps = False
        self.stroke_problem: CircuitProblem | None = None
        self._preview = preview(draft, check=False)
        self._checked: Preview | None = None
        """Result of the last check."""
        self._check: BackgroundTask[Preview] | None = None

    @property
    def draft(self) -> Draft:
        return self.history.draft

    @property
    def points(self) -> tuple[Point, ...]:
        return self.draft.points

    @property
    def is_closed(self) -> bool:
        """True if there are enough points for a closed line."""
        return len(self.points) >= MIN_CLOSED

    @property
    def preview(self) -> Preview:
        """The circuit as it is now; it may not be checked yet."""
        if self._checked is not None and self._checked.draft == self.draft:
            return self._checked
        if self._preview.draft.points != self.points or self._preview.draft.gates != self.draft.gates:
            self._preview = preview(self.draft, check=False)
        return self._preview

    @property
    def is_checked(self) -> bool:
        """True if all problems of the circuit as it is now are known."""
        return self.preview.checked

    @property
    def drivable(self) -> bool:
        """True if it was checked, and cars can drive on it."""
        return self.preview.drivable

    @property
    def problems(self) -> Sequence[CircuitProblem]:
        """Problems of the circuit, of its last check while another one is running, and of the last stroke."""
        last = self._checked if self._checked is not None and not self.is_checked else self.preview
        found = list(last.problems) if self.points else []
        return [*found, self.stroke_problem] if self.stroke_problem is not None else found

    def tick(self) -> None:
        """Take the result of a check that is done, and begin one if the circuit was changed since."""
        if self._check is not None and self._check.done:
            self._checked, self._check = self._check.result(), None
        if self._check is None and not self.is_checked:
            draft = self.draft
            self._check = BackgroundTask(lambda: preview(draft), "racer-circuit-check")

    def do(self, draft: Draft, label: str, merge: str = "", selected: Collection[int] | None = None) -> None:
        """Make another draft the current one. See `DraftHistory.do`.

        selected: indices of the points that are selected then; by default the same.
        """
        if draft != self.draft:
            self.stroke_problem = None
        self.history.do(draft, label, merge)
        if selected is not None:
            self.selected = frozenset(selected)
        self._drop_missing()

    def undo(self) -> str:
        """Take the last edit back; return its name, or an empty text if there is none."""
        label = self.history.undo_label
        self._restore(self.history.undo)
        return label

    def redo(self) -> str:
        """Repeat the edit that was taken back last; return its name, or an empty text if there is none."""
        label = self.history.redo_label
        self._restore(self.history.redo)
        return label

    def select(self, indices: Collection[int]) -> None:
        self.selected = frozenset(indices)
        self._drop_missing()
        self.history.seal()

    def select_all(self) -> None:
        self.select(range(len(self.points)))

    def select_next(self, by: int = 1) -> None:
        """Select the point after the selected ones, or before them."""
        if self.points:
            now = max(self.selected) if by > 0 else min(self.selected) if self.selected else 0
            self.select([(now + by) % len(self.points) if self.selected else 0])

    def draw(self, stroke: Sequence[tuple[float, float]]) -> bool:
        """Replace the circuit by one along a stroke; return False if there is no lap in it, and keep the problem."""
        widths = [point.half_width for point in self.points]
        try:
            points = fit_stroke(stroke, sum(widths) / len(widths)) if widths else fit_stroke(stroke)
        except CircuitError as error:
            self.stroke_problem = error.problem
            return False
        draft = self.draft
        self.do(Draft(draft.name, draft.description, points, draft.gates), mark("freehand"), selected=())
        return True

    def add(self, x: float, y: float, merge: str = "") -> None:
        """Add a point after the last one, and select it."""
        self.do(add_point(self.draft, *self.snapped(x, y)), mark("add a point"), merge, selected=[len(self.points)])

    def insert_at(self, arc: float, merge: str = "") -> None:
        """Insert a point on the line at this arc, and select it."""
        draft, index = insert_point(self.draft, arc)
        self.do(draft, mark("insert a point"), merge, selected=[index])

    def insert_after(self) -> None:
        """Insert a point in the middle between a selected point and the next one."""
        if not self.is_closed:
            return
        index = max(self.selected) if self.selected else len(self.points) - 1
        line, arc = self.draft.centreline, self.preview.arc_of_point
        end = line.length if index + 1 == len(self.points) else arc(index + 1)
        self.insert_at((arc(index) + end) / 2.0)

    def delete(self, indices: Collection[int] | None = None) -> None:
        """Delete some points; by default the selected ones."""
        chosen = self.selected if indices is None else indices
        if chosen:
            kept = [index for index in range(len(self.points)) if index not in chosen]
            selected = [new for new, old in enumerate(kept) if old in self.selected]
            self.do(delete_points(self.draft, chosen), mark("delete"), selected=selected)

    def move_from(self, before: Draft, dx: float, dy: float, merge: str, snaps: bool) -> None:
        """Put the selected points where they are when moved from an earlier draft, as a drag does."""
        draft = move_points(before, self.selected, dx, dy)
        if snaps:
            draft = snap(draft, SNAP_STEP, self.selected)
        self.do(draft, mark("move"), merge)

    def nudge(self, dx: float, dy: float) -> None:
        """Move the selected points."""
        self.do(move_points(self.draft, self.selected, dx, dy), mark("move"), f"nudge {sorted(self.selected)}")

    def widen(self, steps: float, indices: Collection[int] | None = None) -> None:
        """Make the road wider or narrower at some points; by default at the selected ones, or all without any."""
        chosen = self.chosen if indices is None else indices
        draft = change_half_width(self.draft, chosen, steps * WIDTH_STEP)
        self.do(draft, mark("width"), f"width {sorted(chosen)}")

    def set_half_width(self, index: int, half_width: float) -> None:
        """Set half the road width at a point and, if that is selected, at all selected ones."""
        chosen = self.selected if index in self.selected else [index]
        self.do(set_half_width(self.draft, chosen, half_width), mark("width"), f"width handle {sorted(chosen)}")

    def start_at(self, arc: float) -> None:
        """Move the start line to this arc."""
        if self.is_closed:
            self.do(start_at_arc(self.draft, arc), mark("start line"), selected=[0])

    def reverse(self) -> None:
        """Drive in the other direction."""
        count = len(self.points)
        self.do(reverse(self.draft), mark("direction"), selected=[-index % count for index in self.selected])

    def mirror(self, axis: Axis) -> None:
        """Mirror the selected points, or all."""
        self._change_chosen(lambda chosen: mirror(self.draft, axis, chosen), mark("mirror"))

    def rotate(self, steps: int) -> None:
        """Rotate the selected points, or all, counter-clockwise."""
        self._change_chosen(lambda chosen: rotate(self.draft, steps * ROTATION_STEP, chosen), mark("rotate"), "rotate")

    def scale(self, steps: int) -> None:
        """Scale the selected points, or all."""
        self._change_chosen(lambda chosen: scale(self.draft, SCALE_STEP**steps, chosen), mark("scale"), "scale")

    def smooth(self) -> None:
        """Smooth the line at the selected points, or everywhere."""
        self._change_chosen(lambda chosen: smooth(self.draft, chosen), mark("smooth"))

    @property
    def chosen(self) -> frozenset[int]:
        """Indices of the selected points, or of all if none is selected."""
        return self.selected or frozenset(range(len(self.points)))

    def _change_chosen(self, change: Callable[[Collection[int]], Draft], label: str, merge: str = "") -> None:
        if self.points:
            self.do(change(self.chosen), label, merge and f"{merge} {sorted(self.chosen)}")

    def snapped(self, x: float, y: float) -> tuple[float, float]:
        """Return the place of a point that is put here: on the grid if points snap to it."""
        if not self.snaps:
            return x, y
        return round(x / SNAP_STEP) * SNAP_STEP, round(y / SNAP_STEP) * SNAP_STEP

    def _restore(self, step: Callable[[], Draft]) -> None:
        count = len(self.points)
        step()
        self.stroke_problem = None
        if len(self.points) != count:
            self.selected = frozenset()

    def _drop_missing(self) -> None:
        self.selected = frozenset(index for index in self.selected if 0 <= index < len(self.points))


def label_text(label: str) -> str:
    """Return the name of an edit in the user's language."""
    return _(label) if label else ""
