"""Driving on a circuit that is being edited: test drives, the champion, and agents that learn there."""

import time

import pygame
import pytest

from racer_viewer.circuits.library import CircuitLibrary
from racer_viewer.modes.editor.testdrive import TestDriveScreen
from racer_viewer.modes.editor.trials import ChampionTrial, TrainingTrial
from racer_viewer.replays.records import medals_of
from racer_viewer.training.run_folder import latest_model
from racer_viewer.training.run_lock import running_learner
from tests.modes.editing import Draughtsman, oval
from tests.modes.person import Person


@pytest.fixture
def drawn(person: Person) -> Draughtsman:
    user = Draughtsman(person)
    user.stroke(oval())
    user.checked()
    return user


def test_a_test_drive_starts_at_once_and_comes_back(drawn: Draughtsman) -> None:
    person = drawn.person
    person.press("t")
    drive = person.until_top(TestDriveScreen)
    assert drive.view.after.track.length == pytest.approx(drawn.screen.document.preview.track.length)
    person.hold("w")
    person.until(lambda: float(drive.view.after.car["speed"]) > 20.0, "the car to drive")
    person.release("w")
    person.press("t")
    assert person.app.context.top is drawn.screen
    assert not list((person.data / "circuits").glob("*")), "nothing was saved"


def test_a_test_drive_starts_at_the_mouse(drawn: Draughtsman) -> None:
    person, preview = drawn.person, drawn.screen.document.preview
    person.point(*drawn.pixel_of_point(5))
    person.hold("left shift")
    person.press("t")
    person.release("left shift")
    drive = person.until_top(TestDriveScreen)
    person.until(lambda: float(drive.view.after.car["step_count"]) > 0, "the first tick")
    car = drive.view.after.car
    arc, _ = preview.nearest_arc(float(car["x"]), float(car["y"]))
    assert arc == pytest.approx(preview.arc_of_point(5), abs=10.0)


def test_a_circuit_with_problems_is_not_driven(drawn: Draughtsman) -> None:
    drawn.move(drawn.pixel_of_point(2), drawn.pixel_of_point(len(drawn.points) // 2))
    drawn.checked()
    drawn.person.picture()
    assert drawn.screen.canvas.labels
    drawn.person.press("t", "w", "g")
    assert drawn.person.app.context.top is drawn.screen
    assert drawn.screen.trial is None


def test_the_champion_drives_and_proposes_medals(drawn: Draughtsman) -> None:
    person, document = drawn.person, drawn.screen.document
    person.press("w")
    trial = drawn.screen.trial
    assert isinstance(trial, ChampionTrial)
    person.until(lambda: trial.clean_lap is not None, "the champion's lap")
    author = pytest.approx(trial.clean_lap, abs=0.01)
    # Another test may have left medals for the same oval.
    person.until(lambda: getattr(medals_of(document.draft.to_circuit()), "author", None) == author, "the medals")
    medals = medals_of(document.draft.to_circuit())
    assert medals.gold == pytest.approx(1.04 * trial.clean_lap, abs=0.02)
    person.press("k")
    [entry] = CircuitLibrary(person.data).entries()
    assert entry.circuit.medals == medals
    person.press("w")
    assert drawn.screen.trial is None


@pytest.mark.slow
def test_from_an_empty_canvas_to_an_agent_that_laps(person: Person) -> None:
    """Draw, fix a problem that is shown, save, test-drive, and train to a clean lap; then edit while it learns."""
    user = Draughtsman(person)
    screen, document = user.screen, user.screen.document
    begin = time.monotonic()
    user.stroke(oval())
    user.checked()
    assert document.drivable

    first = user.points
    user.move(user.pixel_of_point(2), user.pixel_of_point(len(first) // 2))
    user.checked()
    person.picture()
    assert not document.drivable
    problem = document.problems[0]
    [text, place], *_ = screen.canvas.labels
    assert text
    assert pygame.Rect(0, 0, 1280, 720).contains(place)
    assert place.inflate(200, 200).collidepoint(user.pixel_of(problem.x, problem.y))
    user.move(user.pixel_of_point(2), user.pixel_of(*first[2][:2]))
    user.checked()
    assert document.drivable, document.problems

    person.press("n")
    person.write("Oval of mine")
    person.press("return")
    person.press("k")
    [entry] = CircuitLibrary(person.data).entries()
    assert entry.drivable
    assert entry.name == "Oval of mine"

    person.press("t")
    drive = person.until_top(TestDriveScreen)
    person.hold("w")
    person.until(lambda: float(drive.view.after.car["speed"]) > 20.0, "the car to drive")
    person.release("w")
    person.press("escape")

    person.press("g")
    trial = screen.trial
    assert isinstance(trial, TrainingTrial)
    person.until(lambda: trial.clean_lap is not None, "a clean lap")
    seconds = time.monotonic() - begin
    print(f"from an empty canvas to a clean lap: {seconds:.0f} s")
    assert 3.0 < trial.clean_lap < 60.0

    before = trial.run.config.circuits
    place = user.pixel_of_point(4)
    user.move(place, (place[0] + 12, place[1] + 12))
    person.until(lambda: trial.run.config.circuits != before, "the edited circuit")
    [flag] = [event for event in trial.run.history.events if event.kind == "circuit"]
    assert flag.text.startswith("Oval of mine")
    person.until(lambda: trial.clean_lap is not None, "a clean lap on the edited circuit")
    person.press("g")
    assert screen.trial is None
    person.until(lambda: running_learner(trial.run.folder) is None, "the end of the run")
    assert latest_model(trial.run.folder) is not None, "the run was saved"
