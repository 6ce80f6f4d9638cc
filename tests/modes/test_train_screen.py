"""Training with its live picture, through the real app and a real learner in a process of its own."""

import os
import signal
import time
from dataclasses import replace

import numpy as np
import pytest

from racer_env.engine import load_circuit
from racer_viewer.app.menu import MenuScreen
from racer_viewer.modes.play import PlayScreen
from racer_viewer.modes.screen import MessageScreen
from racer_viewer.modes.train import setup
from racer_viewer.modes.train.end import TrainEndScreen
from racer_viewer.modes.train.menu import LeaveTrainingScreen, TrainMenu, WeightsScreen
from racer_viewer.modes.train.panels import TrainLayout
from racer_viewer.modes.train.runs import RunsScreen
from racer_viewer.modes.train.screen import TrainScreen
from racer_viewer.modes.train.setup import TrainSetupScreen, open_run, open_training
from racer_viewer.training.config import RunConfig, preset
from racer_viewer.training.run_folder import write_config
from racer_viewer.training.run_lock import running_learner
from racer_viewer.training.run_monitor import LearnerProcess, prepare_learner
from tests.modes.person import Person
from tests.processes import is_gone, wait_for


def quick(**values: object) -> RunConfig:
    config = replace(preset("ppo"), num_cars=16, n_steps=64, batch_size=512, checkpoint_every=4096, evaluate_every=4096)
    return replace(config, **{"timesteps": 1_000_000, "name": "mine", **values})  # type: ignore[arg-type]


def training(person: Person, config: RunConfig) -> TrainScreen:
    open_training(person.app.context, config)
    return person.top(TrainScreen)


def test_the_first_click_starts_the_quick_preset(person: Person) -> None:
    person.choose("Train")
    form = person.top(TrainSetupScreen)
    person.frames(3)
    assert form.list.item is not None
    assert form.list.item.label == "Start"
    config = form.config
    assert (config.algo, config.tracks, config.num_cars) == ("ppo", ("track-01",), 64)
    person.go_to("Preset")
    person.press("right")
    assert len(form.config.tracks) > 6, "the champion learns everywhere"
    person.go_to("Algorithm")
    person.press("right")
    assert form.config.algo == "sac"


def test_the_form_prepares_the_process_of_the_next_run(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[LearnerProcess] = []

    def prepare() -> LearnerProcess:
        prepared.append(prepare_learner())
        return prepared[-1]

    monkeypatch.setattr(setup, "prepare_learner", prepare)
    person.app.context.warmup.wait()
    person.choose("Train")
    person.until(lambda: len(prepared) == 1, "the first process")
    person.press("escape")
    wait_for(lambda: is_gone(prepared[0].pid))
    person.choose("Train")
    person.until(lambda: len(prepared) == 2, "the second process")
    person.choose("Start")
    run = person.top(TrainScreen).run
    assert run.pid == prepared[1].pid
    person.until(lambda: run.state == "learning", "the learner")
    run.stop(discard=True)
    person.until(lambda: run.state == "stopped", "the end of the run")
    assert len(prepared) == 2


def test_a_circuit_can_be_chosen_only_where_the_preset_has_none_of_its_own(person: Person) -> None:
    person.choose("Train")
    form = person.top(TrainSetupScreen)
    person.go_to("Preset")
    person.press("right")
    before, chosen = form.config.tracks, person.app.context.settings.circuit
    person.go_to("Circuits")
    fixed = form.list.item
    assert fixed is not None
    assert (fixed.value, fixed.enabled) == ("26 of the preset", False)
    person.press("right", "return")
    person.click_item("Circuits")
    assert (form.config.tracks, person.app.context.settings.circuit) == (before, chosen)
    person.go_to("Preset")
    person.press("right")
    person.go_to("Circuit")
    person.press("right")
    assert form.config.tracks == ("track-02",), "the specialist learns where it is told to"


def test_a_run_is_seen_while_it_learns_and_ends_with_an_offer_to_race_it(person: Person) -> None:
    screen = training(person, quick(timesteps=12_000))
    pid = screen.run.pid
    person.until(lambda: screen.run.state == "learning", "the learner")
    person.until(lambda: len(screen.run.history.policies) > 2, "some updates")
    person.until(lambda: screen.showcase.newest is not None, "the newest policy drives")
    person.until(lambda: screen.run.swarm() is not None, "the cars that learn")
    for layout in TrainLayout:
        screen.layout = layout
        person.frames(2)
    person.until(lambda: isinstance(person.app.context.top, TrainEndScreen), "the end")
    assert screen.run.state == "finished"
    assert screen.run.steps >= 12_000
    person.choose("Review the run")
    assert person.top(TrainScreen) is screen
    newest = screen.showcase.newest
    person.press("left", "left")
    assert screen.showcase.newest is not newest, "the policy of that moment drives again"
    screen.app.push(TrainEndScreen(screen.app, screen))
    person.choose("Race this agent")
    play = person.top(PlayScreen)
    assert [entrant.name for entrant in play.live.setup.entrants] == ["You", "mine"]
    person.until(lambda: is_gone(pid), "the learner to be gone")


@pytest.mark.slow
def test_what_can_be_done_while_it_learns(person: Person) -> None:
    screen = training(person, quick())
    person.until(lambda: len(screen.run.history.policies) > 3, "some updates")
    person.press("space")
    person.until(lambda: screen.run.state == "paused", "the pause")
    person.press("space")
    person.until(lambda: screen.run.state == "learning", "it to go on")
    person.press("-", "-", "-")
    assert screen.run.state == "learning"
    before, begin = screen.run.steps, time.monotonic()
    person.until(lambda: time.monotonic() - begin > 1.5, "real time")
    assert screen.run.steps - before < 16 * 60 * 6, "real time is some thousand steps a second at most"
    person.press("=", "=", "=", "k")
    person.until(lambda: any(event.kind == "checkpoint" for event in screen.run.history.events), "a checkpoint")
    person.press("left", "left")
    assert [entrant.ghost for entrant in screen.showcase.entrants] == [False, True], "then and now"
    person.press("t")
    person.hold("up")
    person.until(lambda: float(screen.view.after.car["speed"]) > 20.0, "the person to drive")
    person.release("up")
    assert [entrant.name for entrant in screen.showcase.entrants] == ["You", "newest"]
    person.press("t", "escape")
    person.top(TrainMenu)
    person.choose("Reward weights")
    person.top(WeightsScreen)
    person.press("right", "right")
    person.choose("Apply")
    person.until(lambda: any(event.kind == "weights" for event in screen.run.history.events), "the new weights")
    screen.run.stop(discard=True)
    person.until(lambda: not screen.run.folder.exists(), "the folder to be removed")


@pytest.mark.slow
def test_a_window_that_is_closed_asks_and_the_run_goes_on_in_the_background(person: Person) -> None:
    import pygame

    screen = training(person, quick())
    person.until(lambda: len(screen.run.history.policies) > 1, "some updates")
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    person.frames()
    person.top(LeaveTrainingScreen)
    person.press("escape")
    person.top(TrainScreen)
    person.press("escape")
    person.choose("Leave")
    person.top(LeaveTrainingScreen)
    person.choose("Keep training in background")
    folder = screen.run.folder
    assert not isinstance(person.app.context.top, TrainScreen)
    pid = running_learner(folder)
    assert pid is not None
    menu = person.top(MenuScreen)
    person.until(lambda: "Training run" in [item.label for item in menu.list.items], "the run in the main menu")
    assert menu.cards is not None
    assert menu.cards.learning is not None
    assert menu.cards.learning.folder == folder, "its curve is on a card"
    person.choose("Train")
    person.choose("Runs")
    runs = person.top(RunsScreen)
    person.until(lambda: [item.label for item in runs.list.items] == ["mine"], "the list")
    person.press("return")
    again = person.until_top(TrainScreen)
    assert again is not screen
    person.until(lambda: again.run.state == "learning" and len(again.run.history.policies) > 1, "the run again")
    again.run.stop()
    person.until(lambda: isinstance(person.app.context.top, TrainEndScreen), "its end")
    person.until(lambda: is_gone(pid), "the learner to be gone")


@pytest.mark.slow
def test_a_killed_learner_is_reported_and_can_be_resumed(person: Person) -> None:
    screen = training(person, quick())
    person.until(lambda: bool(list(screen.run.folder.glob("*_steps.zip"))), "a checkpoint")
    assert screen.run.pid is not None
    os.kill(screen.run.pid, signal.SIGKILL)
    person.until(lambda: isinstance(person.app.context.top, TrainEndScreen), "the bad news")
    end = person.top(TrainEndScreen)
    assert end.content.title == "Training failed"
    assert end.content.subtitle
    steps = float(np.max(screen.run.history.policies))
    person.choose("Resume")
    again = person.until_top(TrainScreen)
    person.until(lambda: again.run.state == "learning" and again.run.steps > steps, "it to go on")
    pid = again.run.pid
    person.app.close()
    wait_for(lambda: is_gone(pid), "the learner to end with its window")


def test_what_cannot_be_learned_is_a_message(person: Person) -> None:
    open_training(person.app.context, quick(tracks=("nowhere",)))
    assert "nowhere" in person.top(MessageScreen).text


def test_a_run_on_several_circuits_shows_any_of_them(person: Person) -> None:
    folder = person.data / "runs" / "many"
    write_config(replace(preset("ppo"), name="many", tracks=("track-01", "track-02", "track-01", "track-03")), folder)
    open_run(person.app.context, folder)
    screen = person.until_top(TrainScreen)
    person.press("page down")
    person.frames(3)
    assert screen.showcase.track is load_circuit("track-02")
    person.press("page up", "page up")
    person.frames(3)
    assert screen.showcase.track is load_circuit("track-03")
