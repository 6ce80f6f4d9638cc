"""Drafts of circuits: edits, their history, and the preview with problems and figures."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from racer_env.engine import Medals, circuits, load_circuit
from racer_viewer.circuits.draft import (
    DEFAULT_HALF_WIDTH,
    HALF_WIDTHS,
    Draft,
    DraftHistory,
    Point,
    add_point,
    change_half_width,
    delete_points,
    insert_point,
    mirror,
    move_points,
    place_point,
    reverse,
    rotate,
    scale,
    set_gates,
    set_half_width,
    set_medals,
    set_text,
    smooth,
    snap,
    start_at_arc,
    start_at_point,
    translate,
)
from racer_viewer.circuits.preview import preview

MEADOW = Draft.from_circuit(circuits()[0])
Sequence = list[tuple[str, tuple[float, ...]]]
"""Names of edits, each with three numbers."""
numbers = st.floats(-2000.0, 2000.0)


@st.composite
def edits(draw: st.DrawFn) -> Sequence:
    """Draw a list of names of edits, each with numbers."""
    names = st.sampled_from(
        ["add", "move", "place", "insert", "delete", "width", "wider", "start", "start at", "reverse", "mirror",
         "rotate", "scale", "translate", "snap", "smooth", "text", "gates", "undo", "redo", "seal", "save"]
    )  # fmt: skip
    return draw(st.lists(st.tuples(names, st.tuples(numbers, numbers, numbers)), max_size=30))


def edited(draft: Draft, name: str, values: tuple[float, ...]) -> Draft:
    """Apply an edit; those that need points do nothing without them."""
    a, b, c = values
    count = len(draft.points)
    chosen = [] if not count else sorted({int(abs(a)) % count, int(abs(b)) % count})
    index = int(abs(c)) % max(count, 1)
    match name:
        case "add":
            return add_point(draft, a, b)
        case "move":
            return move_points(draft, chosen, b, c)
        case "place" if count:
            return place_point(draft, index, a, b)
        case "insert" if count > 3 and draft.centreline.length > 0.0:
            return insert_point(draft, a)[0]
        case "delete":
            return delete_points(draft, chosen)
        case "width":
            return set_half_width(draft, chosen, c)
        case "wider":
            return change_half_width(draft, chosen, c)
        case "start" if count:
            return start_at_point(draft, index)
        case "start at" if count > 3 and draft.centreline.length > 0.0:
            return start_at_arc(draft, a)
        case "reverse":
            return reverse(draft)
        case "mirror":
            return mirror(draft, "x" if a > 0.0 else "y", chosen if b > 0.0 else None)
        case "rotate":
            return rotate(draft, a, chosen if b > 0.0 else None)
        case "scale":
            return scale(draft, abs(a) / 1000.0, chosen if b > 0.0 else None, widths=c > 0.0)
        case "translate":
            return translate(draft, a, b)
        case "snap":
            return snap(draft, 1.0 + abs(a) / 50.0)
        case "smooth":
            return smooth(draft, chosen)
        case "text":
            return set_text(draft, name=f"{a}", description=f"{b}")
        case "gates":
            return set_gates(draft, int(c))
    return draft


@settings(max_examples=150, deadline=None)
@given(edits())
def test_any_sequence_of_edits_and_undos_restores_the_exact_circuit(sequence: Sequence) -> None:
    history, states, undone = DraftHistory(MEADOW), [MEADOW], list[Draft]()
    for name, values in sequence:
        if name == "undo":
            history.undo()
            if len(states) > 1:
                undone.append(states.pop())
        elif name == "redo":
            history.redo()
            if undone:
                states.append(undone.pop())
        elif name in ("seal", "save"):
            history.seal() if name == "seal" else history.saved()
        else:
            draft = edited(history.draft, name, values)
            history.do(draft, name)
            if draft != states[-1]:
                states.append(draft)
                undone.clear()
        assert history.draft == states[-1]
        assert (history.can_undo, history.can_redo) == (len(states) > 1, bool(undone))
    while history.can_undo:
        assert history.undo() is not None
        undone.append(states.pop())
        assert history.draft == states[-1]
    assert history.draft == MEADOW
    while history.can_redo:
        history.redo()
        assert history.draft == undone.pop()


@settings(max_examples=60, deadline=None)
@given(edits())
def test_an_edited_draft_is_a_circuit_or_says_what_is_wrong_with_it(sequence: Sequence) -> None:
    draft = MEADOW
    for name, values in sequence:
        draft = edited(draft, name, values)
        assert Draft.from_circuit(draft.to_circuit()) == draft
    shown = preview(draft)
    assert shown.drivable != bool(shown.problems)
    if shown.drivable:
        assert load_circuit(draft.to_circuit("mine")).length == shown.facts.length
    for problem in shown.problems:
        assert math.isfinite(problem.x + problem.y)
        assert problem.control_point is None or 0 <= problem.control_point < len(draft.points)


def test_steps_of_one_drag_are_one_edit() -> None:
    history = DraftHistory(MEADOW)
    for x in range(5):
        history.do(place_point(history.draft, 2, x, 0.0), "Move", merge="drag 2")
    history.do(reverse(history.draft), "Reverse")
    history.do(place_point(history.draft, 2, 7.0, 0.0), "Move", merge="drag 2")
    assert [history.undo_label, history.undo() == MEADOW] == ["Move", False]
    assert history.undo_label == "Reverse"
    history.undo()
    assert history.undo() == MEADOW
    assert not history.can_undo


def test_a_drag_that_ends_where_it_began_leaves_no_edit() -> None:
    history, point = DraftHistory(MEADOW), MEADOW.points[2]
    for x in (5.0, 3.0, 0.0):
        history.do(place_point(MEADOW, 2, point.x + x, point.y), "Move", merge="drag")
    assert (history.draft, history.can_undo) == (MEADOW, False)
    history.do(place_point(history.draft, 2, 9.0, 9.0), "Move", merge="drag")
    assert history.undo() == MEADOW


def test_a_history_knows_whether_the_draft_was_saved() -> None:
    history = DraftHistory(MEADOW)
    history.do(reverse(MEADOW))
    assert history.dirty
    history.saved()
    assert not history.dirty
    history.undo()
    assert history.dirty
    history.redo()
    assert not history.dirty


def test_a_point_on_the_line_keeps_the_road_where_it_was() -> None:
    before = preview(MEADOW)
    draft, index = insert_point(MEADOW, 0.3 * before.track.length)
    assert len(draft.points) == len(MEADOW.points) + 1
    assert draft.points[:index] + draft.points[index + 1 :] == MEADOW.points
    arc, distance = before.nearest_arc(*draft.points[index][:2])
    assert (arc, distance) == (pytest.approx(0.3 * before.track.length, abs=1.0), pytest.approx(0.0, abs=0.5))
    assert preview(draft).track.length == pytest.approx(before.track.length, rel=0.01)


def test_the_start_line_moves_to_a_place_on_the_road() -> None:
    before = preview(MEADOW)
    at = before.track.centreline.points(np.array([500.0]))[0]
    shown = preview(start_at_arc(MEADOW, 500.0))
    assert shown.track.start[:2] == pytest.approx(tuple(at), abs=0.1)
    assert shown.track.length == pytest.approx(before.track.length, rel=0.02)
    near = before.arc_of_point(4) + 3.0
    assert start_at_arc(MEADOW, near) == start_at_point(MEADOW, 4)
    assert start_at_arc(MEADOW, before.track.length - 1.0).points == MEADOW.points


def test_the_other_direction_starts_at_the_same_line() -> None:
    x, y, heading = preview(MEADOW).track.start
    back = preview(reverse(MEADOW))
    assert back.track.start[:2] == (x, y)
    assert math.cos(back.track.start[2] - heading) == pytest.approx(-1.0)
    assert reverse(reverse(MEADOW)).points == MEADOW.points


def test_mirrored_rotated_and_moved_circuits_are_as_long_as_before() -> None:
    length = preview(MEADOW).track.length
    for draft in (mirror(MEADOW), mirror(MEADOW, "y"), rotate(MEADOW, 1.0), translate(MEADOW, 100.0, -50.0)):
        assert preview(draft).drivable
        assert preview(draft).track.length == pytest.approx(length, rel=1e-4)
    assert preview(scale(MEADOW, 1.5)).track.length == pytest.approx(1.5 * length, rel=1e-4)
    assert mirror(mirror(MEADOW)).points == MEADOW.points
    assert rotate(MEADOW, math.pi / 2).centre == pytest.approx(MEADOW.centre)


def test_widths_stay_within_the_range_of_circuits() -> None:
    assert change_half_width(MEADOW, [0], -1000.0).points[0].half_width == HALF_WIDTHS[0]
    assert set_half_width(MEADOW, [0], 1000.0).points[0].half_width == HALF_WIDTHS[1]
    assert preview(change_half_width(MEADOW, [0, 1], 5.0)).facts.widest == 60.0
    assert scale(MEADOW, 0.5, widths=True).points[0].half_width == MEADOW.points[0].half_width / 2


def test_an_empty_draft_grows_point_by_point() -> None:
    draft = Draft()
    for number, (x, y) in enumerate(((0, 0), (300, 0), (300, 300), (0, 300))):
        shown = preview(draft)
        assert [problem.kind for problem in shown.problems] == ["few"]
        assert (shown.track, shown.facts, len(shown.line) >= number) == (None, None, True)
        draft = add_point(draft, x, y)
    assert preview(draft).drivable
    assert draft.points[-1].half_width == DEFAULT_HALF_WIDTH
    assert preview(draft).nearest_point(290, 310) == (2, pytest.approx(math.hypot(10, 10)))


def test_medal_times_do_not_outlive_the_circuit_they_were_measured_on() -> None:
    draft = set_medals(MEADOW, Medals(10.0, 11.0, 12.0))
    assert set_text(draft, name="Other").medals is not None
    assert move_points(draft, [], 1.0, 1.0).medals is not None
    assert move_points(draft, [0], 1.0, 1.0).medals is None
    assert reverse(draft).medals is None


def test_a_point_that_does_not_exist_cannot_be_edited() -> None:
    for edit in (lambda: move_points(MEADOW, [99], 1, 1), lambda: delete_points(MEADOW, [-1]),
                 lambda: start_at_point(MEADOW, 14)):  # fmt: skip
        with pytest.raises(IndexError, match="no control point"):
            edit()


CROSSED = [(-200, -100), (-50, -50), (50, 50), (200, 100), (280, 0), (200, -100), (50, -50), (-50, 50), (-200, 100),
           (-280, 0)]  # fmt: skip
FOLDED = [(-300, 0), (-100, -10), (100, -10), (150, 60), (170, -20), (190, 60), (300, -10), (400, 0), (400, 300),
          (0, 350), (-300, 300)]  # fmt: skip


def drawn(places: list[tuple[float, float]], half_width: float = 10.0) -> Draft:
    return Draft(points=tuple(Point(x, y, half_width) for x, y in places))


def test_a_road_that_crosses_itself_has_one_problem_where_it_does() -> None:
    [problem] = preview(drawn(CROSSED)).problems
    assert problem.kind == "cross"
    assert math.hypot(problem.x, problem.y) < 30.0
    assert problem.control_point in (1, 6)


def test_a_bend_that_is_too_tight_has_its_place() -> None:
    shown = preview(drawn(FOLDED))
    assert "tight" in [problem.kind for problem in shown.problems]
    assert all(130 < problem.x < 210 for problem in shown.problems if problem.kind == "tight")


def test_every_bad_point_is_a_problem_of_its_own() -> None:
    points = list(MEADOW.points)
    points[3] = Point(*points[3][:2], 0.5)
    points[7] = Point(*points[7][:2], 500.0)
    points[9] = points[8]
    kinds = [(problem.kind, problem.control_point) for problem in preview(Draft(points=tuple(points)), False).problems]
    assert kinds == [("narrow", 3), ("wide", 7), ("same", 9)]


def test_what_cannot_be_built_is_not_built() -> None:
    many = Draft(points=tuple(Point(float(i), float(i % 7), 10.0) for i in range(1001)))
    far = place_point(MEADOW, 2, 1e9, 0.0)
    assert [preview(many).track, [problem.kind for problem in preview(many).problems]] == [None, ["many"]]
    assert [preview(far).track, [problem.kind for problem in preview(far).problems]] == [None, ["long"]]


def test_a_list_full_of_small_problems_does_not_hide_a_large_one() -> None:
    narrow = tuple(Point(float(i), float(i % 7), 0.5) for i in range(100))
    assert preview(Draft(points=(*narrow, Point(5e5, 0.0, 10.0)))).track is None
    assert preview(Draft(points=(*narrow, *[Point(5e300, 0.0, 10.0)] * 3))).track is None


def test_problems_are_those_that_refuse_the_circuit() -> None:
    """The first message of a preview is the one that a file of this circuit is refused with."""
    from racer_env.errors import CircuitError

    for draft in (drawn(CROSSED), drawn(FOLDED), drawn([(0, 0)] * 3), place_point(MEADOW, 2, 1e9, 0.0)):
        with pytest.raises(CircuitError) as error:
            load_circuit(draft.to_circuit())
        assert error.value.problem is not None
        assert error.value.problem.kind in [problem.kind for problem in preview(draft).problems]
