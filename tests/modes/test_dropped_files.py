"""Dropped files are opened on every screen; unsupported and damaged ones are refused with a reason."""

from __future__ import annotations

import json
import math
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pygame
import pytest

from racer_env.engine import Circuit, Config, Start, Track, circuits
from racer_env.engine.circuits import assets_folder
from racer_viewer.agents import models_folder
from racer_viewer.agents.load import MissingStatisticsWarning
from racer_viewer.modes import circuits as known
from racer_viewer.modes.choose import PlaySetupScreen, WatchSetupScreen
from racer_viewer.modes.play import PlayScreen
from racer_viewer.modes.replay_screen import ReplayScreen
from racer_viewer.modes.screen import MessageScreen
from racer_viewer.modes.waiting import WaitingScreen
from racer_viewer.modes.watch import WatchScreen
from racer_viewer.replays import ReplayRecorder, save_replay
from tests.agents.models import trained
from tests.modes.person import Person

CHAMPION = models_folder() / "champion.zip"


@pytest.fixture(autouse=True)
def _no_circuits_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget circuits of earlier tests."""
    monkeypatch.setattr(known, "user_circuits", {})


@pytest.fixture
def circuit_file(tmp_path: Path) -> Path:
    content = (assets_folder() / "circuits" / "track-02.json").read_text(encoding="utf-8")
    path = tmp_path / "my-ring.json"
    path.write_text(content.replace('"Speedway"', '"My ring"'), encoding="utf-8")
    return path


def drop(person: Person, path: Path) -> None:
    pygame.event.post(pygame.event.Event(pygame.DROPFILE, file=str(path)))
    person.frames(3)
    wait_while_preparing(person)


def wait_while_preparing(person: Person) -> None:
    person.until(lambda: getattr(person.app.context.top, "title", "") != "Preparing the circuit", "the circuit")


def refused(person: Person, path: Path) -> str:
    """Drop a file; return the message, after closing it with Enter."""
    below = person.app.context.top
    drop(person, path)
    text = person.top(MessageScreen).text
    person.press("return")
    assert person.app.context.top is below
    return text


def test_a_model_is_watched_on_the_circuit_of_the_settings(person: Person) -> None:
    person.app.context.change(circuit="track-03")
    drop(person, CHAMPION)
    watch = person.top(WatchScreen)
    assert [each.name for each in watch.setup.entrants] == ["champion"]
    assert watch.setup.circuit == "track-03"


def test_a_model_is_watched_on_the_first_circuit_where_that_of_the_settings_is_gone(person: Person) -> None:
    for gone in ("/nowhere/ring.json", "random:no-number", "track-99"):
        person.app.context.change(circuit=gone)
        drop(person, CHAMPION)
        assert person.top(WatchScreen).setup.circuit == circuits()[0].id


def test_a_model_without_its_statistics_is_watched_with_a_warning(person: Person, tmp_path: Path) -> None:
    bare = tmp_path / "bare.zip"
    training = tmp_path / "training"
    training.mkdir()
    trained("ppo", training).path.rename(bare)
    with pytest.warns(MissingStatisticsWarning):
        drop(person, bare)
    assert [each.name for each in person.top(WatchScreen).setup.entrants] == ["bare"]
    assert "statistics" in person.app.context.notice


def test_another_model_joins_the_race_that_is_watched(person: Person) -> None:
    drop(person, CHAMPION)
    watch = person.top(WatchScreen)
    drop(person, models_folder() / "sac-track-01.zip")
    assert person.app.context.top is watch
    assert [each.name for each in watch.setup.entrants] == ["champion", "sac-track-01"]


@pytest.mark.slow
def test_a_model_can_be_dropped_on_every_screen(person: Person) -> None:
    for label in ("Play", "Watch", "Replays", "Records", "Settings"):
        person.choose(label)
        below = person.app.context.top
        assert below is not None
        drop(person, CHAMPION)
        person.top(WatchScreen)
        person.app.context.pop_to(type(below))
        assert person.app.context.top is below
        person.frames(2)
        person.press("escape")


def test_a_model_dropped_before_the_engine_is_ready_is_opened_as_soon_as_it_is(person: Person) -> None:
    warmup = person.app.context.warmup
    warmup.done = 0.5
    drop(person, CHAMPION)
    person.top(WaitingScreen)
    warmup.done = 1.0
    person.frames(2)
    person.top(WatchScreen)


def test_an_ending_may_be_in_capitals(person: Person, tmp_path: Path) -> None:
    shutil.copy(CHAMPION, tmp_path / "DRIVER.ZIP")
    drop(person, tmp_path / "DRIVER.ZIP")
    assert person.top(WatchScreen).setup.entrants[0].name == "DRIVER"


def test_a_replay_is_driven_again(person: Person, tmp_path: Path) -> None:
    recorder = ReplayRecorder(circuits()[0], Config(), Start(), 0, "me")
    for _ in range(30):
        recorder.add([0.0, 1.0, 0.0], 0.0)
    save_replay(recorder.replay(), tmp_path / "drive.racer")
    drop(person, tmp_path / "drive.racer")
    person.top(ReplayScreen)


def test_a_circuit_can_be_chosen_from_then_on(person: Person, circuit_file: Path) -> None:
    drop(person, circuit_file)
    assert "Circuit My ring added" in person.app.context.notice
    person.choose("Play")
    screen = person.top(PlaySetupScreen)
    assert screen.picker.circuit.name == "My ring"
    person.go_to("Circuit")
    names = []
    for _ in range(len(circuits()) + 2):
        names.append(screen.picker.circuit.name)
        person.press("left")
    assert names == ["My ring", *(circuit.name for circuit in reversed(circuits())), names[-1]]
    assert names[-1].startswith("Random")
    assert screen.picker.circuit.name == "My ring"
    person.choose("Start")
    circuit = person.until_top(PlayScreen).view.after.track.circuit
    assert circuit is not None
    assert (circuit.name, circuit.id) == ("My ring", "my-ring")


def test_a_list_that_is_open_has_a_dropped_circuit_at_once(person: Person, circuit_file: Path) -> None:
    person.choose("Watch")
    drop(person, circuit_file)
    screen = person.top(WatchSetupScreen)
    assert screen.picker.circuit.name == "My ring"
    assert screen.picker.circuit_id == str(circuit_file)


def test_models_are_watched_on_a_dropped_circuit(person: Person, circuit_file: Path) -> None:
    drop(person, circuit_file)
    drop(person, CHAMPION)
    circuit = person.top(WatchScreen).view.after.track.circuit
    assert circuit is not None
    assert circuit.name == "My ring"


def test_a_dropped_circuit_whose_file_is_gone_is_no_longer_offered(person: Person, circuit_file: Path) -> None:
    drop(person, circuit_file)
    circuit_file.unlink()
    person.choose("Play")
    person.frames(2)
    assert person.top(PlaySetupScreen).picker.circuit == circuits()[0]


def test_a_folder_is_refused_with_what_could_be_dropped_instead(person: Person, tmp_path: Path) -> None:
    assert "is a folder. Drop a model (.zip" in refused(person, tmp_path)


def test_a_file_that_is_gone_is_refused(person: Person, tmp_path: Path) -> None:
    assert "does not exist" in refused(person, tmp_path / "gone.zip")


def test_files_of_other_kinds_are_refused(person: Person, tmp_path: Path) -> None:
    for name in ("notes.txt", "README", "champion_vecnormalize.pkl", ".zip"):
        (tmp_path / name).write_bytes(b"something")
        text = refused(person, tmp_path / name)
        assert text.startswith(f"{name}: ")
        assert "Drop a model" in text


def not_a_zip(path: Path) -> None:
    path.write_bytes(b"no zip at all")


def half_a_model(path: Path) -> None:
    content = CHAMPION.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def statistics(path: Path) -> None:
    path.write_text('{"obs_mean": [0.0]}', encoding="utf-8")


def crossing(path: Path) -> None:
    points = [[0, 0, 20], [300, 200, 20], [300, 0, 20], [0, 200, 20]]
    path.write_text(f'{{"name": "Eight", "control_points": {points}}}', encoding="utf-8")


DAMAGED: tuple[tuple[str, Callable[[Path], None], str], ...] = (
    ("model.zip", not_a_zip, "not a zip file"),
    ("half.zip", half_a_model, "damaged or truncated"),
    ("model.onnx", not_a_zip, "onnx"),
    ("drive.racer", not_a_zip, "drive.racer"),
    ("ring.json", not_a_zip, "is not JSON"),
    ("vecnorm_stats.json", statistics, "vecnorm_stats.json"),
    ("eight.json", crossing, "point"),
)


def test_a_damaged_file_says_what_is_wrong_with_it(person: Person, tmp_path: Path) -> None:
    for name, write, reason in DAMAGED:
        write(tmp_path / name)
        assert reason in refused(person, tmp_path / name)
    assert person.app.context.settings.circuit == "track-01"


def test_a_circuit_with_1000_points_is_never_built_by_the_thread_of_the_window(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    angles = [math.tau * number / 1000 for number in range(1000)]
    radii = [600.0 + 30.0 * math.sin(9.0 * angle) for angle in angles]
    points = [[r * math.cos(angle), r * math.sin(angle), 12.0] for r, angle in zip(radii, angles, strict=True)]
    path = tmp_path / "large.json"
    path.write_text(json.dumps({"name": "Large", "control_points": points}), encoding="utf-8")
    builders: list[threading.Thread] = []
    build = Circuit.build

    def build_and_note(circuit: Circuit) -> Track:
        if circuit.name == "Large":
            builders.append(threading.current_thread())
        return build(circuit)

    monkeypatch.setattr(Circuit, "build", build_and_note)
    person.choose("Play")
    drop(person, path)
    assert person.top(PlaySetupScreen).picker.circuit_id == str(path)
    person.frames(30)
    person.choose("Start")
    wait_while_preparing(person)
    assert person.top(PlayScreen).live.setup.circuit == str(path)
    assert builders
    assert threading.main_thread() not in builders
