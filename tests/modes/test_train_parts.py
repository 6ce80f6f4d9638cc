"""The parts of a training's screen, on runs that have ended: what the mouse does, what is paid, what is drawn when."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pygame
import pytest

from racer_env.engine import Config, load_circuit, parse_config
from racer_viewer.agents import CHAMPION, load_agent
from racer_viewer.app.menu import MenuScreen
from racer_viewer.modes.play import PlayScreen
from racer_viewer.modes.race import NO_ACTION
from racer_viewer.modes.results import ResultsScreen
from racer_viewer.modes.screen import MessageScreen
from racer_viewer.modes.train import pictures as train_pictures
from racer_viewer.modes.train.end import TrainEndScreen
from racer_viewer.modes.train.menu import WeightsScreen
from racer_viewer.modes.train.panels import PACES, TrainLayout, pace_index, pace_name
from racer_viewer.modes.train.screen import TrainScreen
from racer_viewer.modes.train.setup import open_run
from racer_viewer.modes.train.showcase import STUCK_TICKS, Showcase
from racer_viewer.render.camera import Mode
from racer_viewer.training.config import PAID_UNITS, preset
from racer_viewer.training.run_monitor import RunMonitor
from racer_viewer.ui.theme import COLOUR_BLIND, ORDINARY
from tests.modes.person import Person
from tests.modes.run_folders import make_logged_run, make_run

REWARDS = preset("ppo").rewards
WEIGHTS = REWARDS.to_json()["weights"]


def opened(person: Person, folder: Path) -> TrainScreen:
    open_run(person.app.context, folder)
    screen = person.until_top(TrainScreen)
    person.frames(3)
    return screen


@pytest.fixture
def train(person: Person) -> TrainScreen:
    return opened(person, make_run(person.data, "mine"))


def middle(train: TrainScreen, part: TrainLayout) -> tuple[int, int]:
    x, y = train.panes[part].center
    return x, y


def test_only_the_showcase_is_moved_and_zoomed_by_the_mouse(person: Person, train: TrainScreen) -> None:
    train.view.camera.mode = Mode.FREE
    person.frames(40)
    for part in (TrainLayout.SWARM, TrainLayout.CURVES):
        before = train.view.camera.view
        person.scroll(2, *middle(train, part))
        person.button_down(*middle(train, part))
        person.drag(60, 40, middle(train, TrainLayout.SHOWCASE))
        person.click(*middle(train, part))
        person.frames(20)
        assert train.view.camera.view == before, f"what begins on {part.value} is not for the camera"
    person.button_down(*middle(train, TrainLayout.SHOWCASE))
    person.drag(60, 40, middle(train, TrainLayout.SWARM))
    person.frames(20)
    assert train.view.camera.view != before


def test_what_is_under_the_mouse_stays_there_when_it_zooms(person: Person, train: TrainScreen) -> None:
    train.view.camera.mode = Mode.FREE
    person.frames(40)
    place = train.panes[TrainLayout.SHOWCASE]
    x, y = place.x + 150, place.y + 120
    before = train.view.camera.view.to_world(x - place.x, y - place.y)
    scale = train.view.camera.view.scale
    person.scroll(3, x, y)
    person.frames(60)
    assert train.view.camera.view.scale > 1.3 * scale
    assert train.view.camera.view.to_world(x - place.x, y - place.y) == pytest.approx(before, abs=0.3)


def test_the_wheel_over_the_curves_smooths_them(person: Person, train: TrainScreen) -> None:
    before = train.smoothing
    person.scroll(1, *middle(train, TrainLayout.CURVES))
    assert train.smoothing == pytest.approx(before + 0.05)
    for _ in range(30):
        person.scroll(1, *middle(train, TrainLayout.CURVES))
    assert train.smoothing == 0.95


def test_other_colours_are_those_of_the_showcase_too(person: Person, train: TrainScreen) -> None:
    assert colours(train) == [ORDINARY.player]
    before = train.showcase.setup
    person.app.context.change(colour_blind=True)
    person.frames(2)
    assert train.showcase.setup is before, "the race goes on"
    assert colours(train) == [COLOUR_BLIND.player]
    train.race_policy(True)
    person.app.context.change(colour_blind=False)
    person.frames(2)
    assert colours(train) == [ORDINARY.player, ORDINARY.cars[0]]


def colours(train: TrainScreen) -> list[tuple[int, int, int]]:
    return [style.colour for style in train.view.after.styles]


def changed(**weights: float) -> Config:
    return parse_config({**REWARDS.to_json(), "weights": {**WEIGHTS, **weights}})


def paid(showcase: Showcase) -> dict[str, Any]:
    weights: dict[str, Any] = parse_config(showcase.setup.config).to_json()["weights"]
    return weights


def test_the_showcase_pays_what_the_run_pays() -> None:
    run = replace(preset("ppo"), progress_in_units=False)
    showcase = Showcase("track-02", run, REWARDS, ORDINARY, "You")
    assert paid(showcase) == WEIGHTS
    showcase.set_rewards(changed(wallPenalty=-0.03))
    assert paid(showcase) == {**WEIGHTS, "wallPenalty": -0.03}
    showcase.set_rewards(parse_config({"terms": {"own": "speed"}}))
    assert [each.label for each in showcase.tick.snapshot.reward_components][6:] == ["own"]
    showcase.close()


def test_progress_in_units_is_paid_by_the_length_of_the_circuit() -> None:
    run = replace(preset("ppo"), progress_in_units=True)
    showcase = Showcase("track-02", run, changed(progress=2.0), ORDINARY, "You")
    assert paid(showcase)["progress"] == pytest.approx(2.0 * load_circuit("track-02").length / PAID_UNITS)
    showcase.close()


class Circling:
    """An agent that never stands still and never gets anywhere."""

    noise_shape = None

    def act(self, seen: object, **options: object) -> np.ndarray:
        return np.array([1.0, 0.3, 0.0])

    def values(self, seen: object) -> None:
        return None

    spread = sensitivity = values


def test_a_policy_that_gets_nowhere_begins_anew_though_it_does_not_stand() -> None:
    showcase = Showcase("track-01", preset("ppo"), REWARDS, ORDINARY, "You")
    showcase.swap(Circling())  # type: ignore[arg-type]
    for _ in range(STUCK_TICKS):
        showcase.step(NO_ACTION)
    (car,) = showcase.tick.episodes
    assert car.ticks == STUCK_TICKS
    assert not car.ending
    for _ in range(STUCK_TICKS):
        showcase.step(NO_ACTION)
    (car,) = showcase.tick.episodes
    assert car.ticks < STUCK_TICKS, "it started again from the start line"
    showcase.close()


def test_new_weights_do_not_take_the_wheel_from_a_person() -> None:
    showcase = Showcase("track-01", preset("ppo"), REWARDS, ORDINARY, "You")
    showcase.let_player_drive(True)
    setup = showcase.setup
    showcase.set_rewards(changed(wallPenalty=-0.03))
    assert showcase.setup is setup
    showcase.let_player_drive(False)
    assert paid(showcase)["wallPenalty"] == -0.03
    showcase.close()


def test_only_the_weights_that_were_changed_are_sent(
    person: Person, train: TrainScreen, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[dict[str, float]] = []
    monkeypatch.setattr(RunMonitor, "set_weights", lambda run, weights, terms=None: sent.append(dict(weights)))
    person.app.context.push(WeightsScreen(person.app.context, train))
    person.go_to("Wall")
    person.press("left")
    person.choose("Apply")
    assert sent == [{"wallPenalty": pytest.approx(WEIGHTS["wallPenalty"] - 0.001)}]
    person.app.context.push(WeightsScreen(person.app.context, train))
    person.choose("Apply")
    assert len(sent) == 1
    assert person.app.context.notice == "No weights were changed"


def test_changed_weights_are_not_dropped_without_a_question(
    person: Person, train: TrainScreen, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[dict[str, float]] = []
    monkeypatch.setattr(RunMonitor, "set_weights", lambda run, weights, terms=None: sent.append(dict(weights)))
    person.app.context.push(WeightsScreen(person.app.context, train))
    person.go_to("Wall")
    person.press("left", "escape")
    assert "Wall" in person.top(MessageScreen).text
    person.press("escape")
    person.top(WeightsScreen)
    person.press("escape")
    person.choose("Discard changes")
    assert not isinstance(person.app.context.top, WeightsScreen)
    assert sent == []
    person.app.context.push(WeightsScreen(person.app.context, train))
    person.go_to("Wall")
    person.press("left", "escape")
    person.choose("Apply")
    assert sent == [{"wallPenalty": pytest.approx(WEIGHTS["wallPenalty"] - 0.001)}]
    person.app.context.push(WeightsScreen(person.app.context, train))
    person.press("escape")
    assert not isinstance(person.app.context.top, (WeightsScreen, MessageScreen))


def test_a_pace_that_somebody_else_asked_for_has_a_name() -> None:
    assert [pace_name(pace) for pace in (*PACES, 3.0)] == ["real time", "2×", "10×", "full speed", "3×"]
    assert [pace_index(pace) for pace in (*PACES, 3.0, 500.0)] == [0, 1, 2, 3, 1, 2]


def test_the_whole_of_a_long_problem_can_be_read(
    person: Person, train: TrainScreen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunMonitor, "state", "failed")
    pictures = []
    for last in ("alpha", "omega"):
        train.run.problem = f"{'The learner has ended, and these are its last words. ' * 5} {last}"
        person.app.context.push(TrainEndScreen(person.app.context, train))
        pictures.append(pygame.surfarray.array3d(person.picture())[:, :220])
        person.app.context.pop()
    assert (pictures[0] != pictures[1]).any()


def test_a_race_against_what_was_learned_leads_back_to_the_end_of_the_training(
    person: Person, train: TrainScreen
) -> None:
    end = TrainEndScreen(person.app.context, train)
    person.app.context.push(end)
    person.choose("Race this agent")
    person.until_top(PlayScreen)
    person.press("escape")
    person.choose("Back to the run")
    assert person.top(TrainEndScreen) is end
    person.choose("Race this agent")
    person.until_top(PlayScreen)
    person.press("escape")
    person.choose("Finish")
    person.top(ResultsScreen)
    person.press("escape")
    assert person.top(TrainEndScreen) is end
    person.choose("Main menu")
    person.top(MenuScreen)


def test_swarm_and_curves_take_turns_and_wait_when_a_picture_takes_long(
    person: Person, train: TrainScreen, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[TrainLayout] = []
    pictures = train.pictures
    monkeypatch.setattr(pictures, "redraw", lambda part, *others: drawn.append(part))
    monkeypatch.setattr(train_pictures, "MAX_FRAME_TIME", 1e9)
    for _ in range(6):
        train.draw(person.app.surface, 1.0)
    assert len(drawn) == 6
    assert drawn[:2] == drawn[2:4] == drawn[4:]
    assert set(drawn) == {TrainLayout.SWARM, TrainLayout.CURVES}
    drawn.clear()
    monkeypatch.setattr(train_pictures, "MAX_FRAME_TIME", -1.0)
    for _ in range(16):
        train.draw(person.app.surface, 1.0)
    assert len(drawn) == 4
    assert set(drawn) == {TrainLayout.SWARM, TrainLayout.CURVES}


def test_after_the_end_cars_drive_on_the_circuit_that_is_shown(person: Person) -> None:
    train = opened(person, make_run(person.data, "many", tracks=("track-01", "track-02")))
    train.showcase.swap(load_agent(CHAMPION))
    person.press("page down")
    train.showcase.swap(load_agent(CHAMPION))
    cars = train.cars()
    assert cars is not None
    assert set(cars.cars["track"].tolist()) == {1}


def test_policies_are_dragged_through_along_a_chart(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    update = {"what": "update", "seconds": 1.0, "values": {"reward/progress": 0.1}}
    lines = [{**update, "steps": steps} for steps in range(1000, 9000, 1000)]
    train = opened(person, make_logged_run(person.data, "told", lines))
    chosen_steps: list[float] = []
    monkeypatch.setattr(train.policy, "choose_at", chosen_steps.append)
    place = train.panes[TrainLayout.CURVES]
    x, y = place.x + place.width // 4, place.y + place.height // 6
    person.button_down(x, y)
    for step in range(1, 4):
        person.drag(20, 0, (x + 20 * step, y))
    assert len(chosen_steps) == 4
    assert chosen_steps == sorted(chosen_steps)
    assert chosen_steps[0] < chosen_steps[-1]
