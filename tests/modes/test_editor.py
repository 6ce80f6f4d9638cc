"""The editor in the real app: a scripted mouse draws, drags, undoes and saves."""

import pytest

from racer_viewer.circuits.library import CircuitLibrary
from racer_viewer.modes.editor.menu import LeaveEditorScreen
from racer_viewer.modes.editor.mouse import Tool
from tests.modes.editing import Draughtsman, oval
from tests.modes.person import Person


@pytest.fixture
def drawn(person: Person) -> Draughtsman:
    """A circuit that was drawn freehand on an empty canvas."""
    user = Draughtsman(person)
    user.stroke(oval())
    user.checked()
    return user


def test_a_stroke_on_an_empty_canvas_becomes_a_circuit(drawn: Draughtsman) -> None:
    document = drawn.screen.document
    assert document.drivable, document.problems
    assert 12 <= len(drawn.points) <= 40
    assert drawn.screen.mouse.tool is Tool.EDIT


def test_a_circuit_is_saved_and_closed_without_a_question(drawn: Draughtsman) -> None:
    person = drawn.person
    person.press("n")
    person.write("Potato")
    person.press("return")
    person.press("k")
    [entry] = CircuitLibrary(person.data).entries()
    assert (entry.name, entry.drivable) == ("Potato", True)
    assert entry.draft().points == drawn.points
    person.press("escape")
    person.choose("Leave")
    assert drawn.screen not in person.app.context.screens


def test_leaving_with_changes_asks_and_saves(drawn: Draughtsman) -> None:
    person = drawn.person
    person.press("escape")
    person.choose("Leave")
    person.top(LeaveEditorScreen)
    person.choose("Save and leave")
    assert drawn.screen not in person.app.context.screens
    assert len(CircuitLibrary(person.data).entries()) == 1


def test_points_are_dragged_inserted_deleted_and_brought_back(drawn: Draughtsman) -> None:
    person, first = drawn.person, drawn.points
    begin = drawn.pixel_of_point(3)
    drawn.move(begin, (begin[0] + 30, begin[1] - 20))
    assert drawn.pixel_of_point(3) == (begin[0] + 30, begin[1] - 20)
    moved = drawn.points
    assert [i for i, point in enumerate(moved) if point != first[i]] == [3]
    arc = drawn.screen.document.preview.arc_of_point(6) + 40.0
    line = drawn.screen.document.draft.centreline
    [(x, y)] = line.points(arc * (line.arcs[:1] + 1.0)).tolist()
    place = drawn.pixel_of(x, y)
    drawn.move(place, (place[0], place[1] + 12))
    assert len(drawn.points) == len(first) + 1
    person.press("delete")
    assert drawn.points == moved
    person.press("u", "u", "u")
    assert drawn.points == first
    person.press("u")
    assert not drawn.points
    for _ in range(4):
        person.hold("left shift")
        person.press("u")
        person.release("left shift")
    assert drawn.points == moved
