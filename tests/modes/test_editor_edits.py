"""Edits in the editor: what mouse, keys and gamepad do to the points, and that undo restores every one exactly."""

import random
import time

import pygame
import pytest

from racer_env.engine import circuits
from racer_viewer.circuits.draft import Draft, Point
from racer_viewer.modes.editor.actions import ACTIONS
from racer_viewer.modes.editor.menu import EditorMenu
from racer_viewer.modes.editor.mouse import Tool
from racer_viewer.modes.help import HelpScreen
from racer_viewer.ui.intents import Modifiers, RightClick, Scroll
from tests.modes.editing import Draughtsman, oval
from tests.modes.person import Person

RING = Draft.from_circuit(circuits()[0])
LASTING = ("test", "test here", "champion", "train", "open training", "name", "save", "undo", "redo", "move")
"""Commands that change no points, or that go back."""


@pytest.fixture
def ring(person: Person) -> Draughtsman:
    user = Draughtsman(person, RING)
    user.checked()
    return user


def test_any_edits_are_undone_and_redone_exactly(ring: Draughtsman) -> None:
    """Press random keys and drag random points, then take everything back and repeat it."""
    chance, screen, history = random.Random(5), ring.screen, ring.screen.document.history
    edits = [action for action in ACTIONS if action.name not in LASTING]
    states = [screen.document.draft]
    for _ in range(160):
        if chance.random() < 0.5:
            screen.run(chance.choice(edits))
        else:
            width, height = screen.canvas.camera.size
            place = chance.randrange(width), chance.randrange(height)
            if screen.document.points and chance.random() < 0.7:
                place = ring.pixel_of_point(chance.randrange(len(ring.points)))
            screen.mouse.press(*place)
            for _ in range(chance.randrange(4)):
                place = place[0] + chance.randrange(-60, 60), place[1] + chance.randrange(-60, 60)
                screen.mouse.drag_to(*place, Modifiers(ctrl=chance.random() < 0.2))
            screen.mouse.release(*place)
        history.seal()
        if screen.document.draft != states[-1]:
            states.append(screen.document.draft)
        if chance.random() < 0.15 and len(states) > 1:
            screen.undo()
            states.pop()
            assert screen.document.draft == states[-1]
    assert len(states) > 30, "most edits change something"
    ring.person.picture()
    seen = [screen.document.draft]
    while history.can_undo:
        screen.undo()
        seen.append(screen.document.draft)
    assert seen == states[::-1]
    assert screen.document.draft == RING
    for state in states[1:]:
        screen.redo()
        assert screen.document.draft == state


def test_the_wheel_changes_the_width_of_a_point_and_zooms_elsewhere(ring: Draughtsman) -> None:
    before, scale = ring.points, ring.screen.canvas.camera.scale
    ring.person.scroll(3, *ring.pixel_of_point(2))
    assert ring.points[2].half_width == before[2].half_width + 3.0
    assert ring.points[:2] + ring.points[3:] == before[:2] + before[3:]
    place = ring.screen.facts.area.centerx, ring.screen.facts.area.bottom + 60
    world = ring.screen.canvas.camera.view.to_world(*place)
    ring.person.scroll(2, *place)
    assert ring.screen.canvas.camera.scale > 1.2 * scale
    assert ring.screen.canvas.camera.view.to_world(*place) == pytest.approx(world)
    ring.screen.handle(Scroll(-1, *place, Modifiers(shift=True)))
    assert [point.half_width for point in ring.points] == pytest.approx(
        [point.half_width - 1.0 + 3.0 * (index == 2) for index, point in enumerate(before)]
    )


def test_handles_at_the_edges_of_the_road_change_its_width(ring: Draughtsman) -> None:
    ring.person.click(*ring.pixel_of_point(2))
    x, y, half_width = ring.points[2]
    line, arc = ring.screen.document.draft.centreline, ring.screen.document.preview.arc_of_point(2)
    [(dx, dy)] = line.tangents(line.arcs[:1] + arc).tolist()
    edge = ring.pixel_of(x - half_width * dy, y + half_width * dx)
    ring.move(edge, ring.pixel_of(x - 1.5 * half_width * dy, y + 1.5 * half_width * dx))
    assert ring.points[2].half_width == pytest.approx(1.5 * half_width, rel=0.1)
    assert ring.points[2][:2] == (x, y)


def test_a_rectangle_selects_points_which_move_and_turn_together(ring: Draughtsman) -> None:
    before = ring.points
    places = [ring.pixel_of_point(index) for index in range(len(before))]
    ring.person.press("q")
    left, top = min(x for x, y in places) - 30, min(y for x, y in places) - 30
    middle = sum(x for x, y in places) // len(places)
    ring.move((left, top), (middle, max(y for x, y in places) + 30))
    chosen = ring.screen.document.selected
    assert chosen == {index for index, (x, y) in enumerate(places) if x <= middle}
    ring.person.press("right", "up")
    assert all(
        ring.points[index][:2] == pytest.approx((before[index].x + 10.0, before[index].y + 10.0)) for index in chosen
    )
    ring.person.press("x", "y", ",", ".", "page up")
    assert all(ring.points[index] == before[index] for index in range(len(before)) if index not in chosen)


def test_points_snap_to_the_grid(ring: Draughtsman) -> None:
    ring.person.press("v")
    place = ring.pixel_of_point(5)
    ring.move(place, (place[0] + 31, place[1] - 17))
    assert all(value % 10.0 == 0.0 for value in ring.points[5][:2])


def test_the_start_line_moves_and_the_direction_turns(ring: Draughtsman) -> None:
    before = ring.points
    ring.person.click(*ring.pixel_of_point(4))
    ring.person.press("s")
    assert ring.points == before[4:] + before[:4]
    ring.person.press("r")
    assert ring.points[0] == before[4]
    assert ring.points[1] == before[3]


def test_a_right_click_deletes_a_point_and_a_right_drag_moves_the_view(ring: Draughtsman) -> None:
    before, view = ring.points, ring.screen.canvas.camera.view
    ring.person.click(*ring.pixel_of_point(3), button=pygame.BUTTON_RIGHT)
    assert ring.points == before[:3] + before[4:]
    ring.screen.handle(RightClick(640, 600))
    assert len(ring.points) == len(before) - 1
    event = pygame.event.Event(pygame.MOUSEMOTION, pos=(700, 640), rel=(60, 40), buttons=(0, 0, 1))
    pygame.event.post(event)
    ring.person.frames()
    moved = ring.screen.canvas.camera.view
    assert (moved.x - view.x) * view.scale == pytest.approx(-60.0)
    assert (moved.y - view.y) * view.scale == pytest.approx(40.0)


def test_clicks_add_points_until_the_first_one_is_clicked(person: Person) -> None:
    user = Draughtsman(person)
    places = oval(count=12)[:-1]
    for place in places:
        person.click(*place)
    assert user.screen.mouse.tool is Tool.POINTS
    assert len(user.points) == len(places)
    person.click(*places[0])
    assert user.screen.mouse.tool is Tool.EDIT
    user.checked()
    assert user.screen.document.drivable


def test_a_stroke_without_a_lap_says_why_at_its_place(person: Person) -> None:
    user = Draughtsman(person)
    user.stroke([(600, 300), (620, 310), (640, 300)])
    person.picture()
    assert not user.points
    [(text, place)] = user.screen.canvas.labels
    assert text
    assert place.inflate(160, 160).collidepoint(620, 305)
    user.stroke(oval())
    assert user.points
    assert not user.screen.document.stroke_problem


def test_a_circuit_that_is_far_too_small_is_shown_with_its_problems(person: Person) -> None:
    corners = ((0.0, 0.0), (9.0, 0.0), (9.0, 9.0), (0.0, 9.0))
    user = Draughtsman(person, Draft("Dot", points=tuple(Point(x, y, 5.0) for x, y in corners)))
    user.checked()
    person.picture()
    assert user.screen.document.problems
    assert user.screen.canvas.labels


def test_a_gamepad_draws_drags_and_reaches_all_commands(person: Person) -> None:
    user = Draughtsman(person, RING)
    person.pad(pygame.CONTROLLER_BUTTON_DPAD_LEFT)
    cursor = user.screen.mouse.position
    assert cursor is not None
    user.screen.mouse.hover(*user.pixel_of_point(1))
    before = user.points
    person.pad(pygame.CONTROLLER_BUTTON_A)
    for _ in range(3):
        person.pad(pygame.CONTROLLER_BUTTON_DPAD_UP)
    person.pad(pygame.CONTROLLER_BUTTON_A)
    assert user.points[1].y > before[1].y + 10.0
    assert user.points[2:] == before[2:]
    person.pad(pygame.CONTROLLER_BUTTON_RIGHTSHOULDER)
    assert user.points[1].half_width == before[1].half_width + 1.0
    person.pad(pygame.CONTROLLER_BUTTON_X)
    assert len(user.points) == len(before) - 1
    person.pad(pygame.CONTROLLER_BUTTON_START)
    person.top(EditorMenu)
    person.choose("Undo")
    assert len(user.points) == len(before)


def test_help_lists_every_key_and_the_menu_every_command(ring: Draughtsman) -> None:
    person = ring.person
    person.press("escape")
    labels = [item.label for item in person.top(EditorMenu).list.items]
    assert {action.label for action in ACTIONS if action.name != "move"} <= set(labels)
    person.press("escape", "f1")
    listed = {key for group in person.top(HelpScreen).own_groups for key in group.keys}
    assert {(action.cap, action.label) for action in ACTIONS} <= listed


@pytest.mark.slow
def test_a_drag_of_a_circuit_of_30_points_takes_less_than_50_ms(person: Person) -> None:
    """Measure one step of a drag with its picture, in processor time of this thread, and the smallest of some."""
    user = Draughtsman(person)
    user.stroke(oval())
    while len(user.points) < 30:
        user.screen.document.insert_after()
    x, y = user.pixel_of_point(3)
    user.screen.mouse.press(x, y)
    times = []
    for step in range(12):
        begin = time.thread_time()
        user.screen.mouse.drag_to(x + 6 + step, y - step)
        person.picture()
        times.append(time.thread_time() - begin)
    assert min(times) < 0.05, [round(1000.0 * each) for each in times]
