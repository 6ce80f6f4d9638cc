"""The list of models to watch: order, facts and lap times."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from racer_env.engine import load_circuit
from racer_viewer.agents import bundled_models, load_agent, models_folder
from racer_viewer.app.menu import MenuScreen
from racer_viewer.modes import models
from racer_viewer.modes.choose import OpponentsScreen, PlaySetupScreen, WatchSetupScreen
from racer_viewer.modes.models import known_models, trained_on
from racer_viewer.modes.play import PlayScreen
from racer_viewer.modes.screen import MessageScreen
from racer_viewer.modes.watch import WatchScreen
from racer_viewer.training.config import RunConfig
from racer_viewer.training.evaluation import evaluate
from racer_viewer.ui.item_list import Row
from tests.modes.person import Person
from tests.processes import wait_for

FIVE_MINUTES = 300.0


def make_run(data: Path, run: str, name: str, source: str = "learning-5-clean", age: float = 0.0) -> Path:
    """Make a run with one model, of this age [s]."""
    folder = data / "runs" / run
    folder.mkdir(parents=True, exist_ok=True)
    model = folder / f"{name}.zip"
    shutil.copy(models_folder() / f"{source}.zip", model)
    then = time.time() - age
    os.utime(model, (then, then))
    return model


def open_list(person: Person) -> WatchSetupScreen:
    person.choose("Watch")
    person.frames()
    return person.top(WatchSetupScreen)


def row(screen: WatchSetupScreen, label: str) -> Row:
    (found,) = [item for item in screen.list.items if isinstance(item, Row) and item.label == label]
    return found


def finish_measuring(person: Person, screen: WatchSetupScreen) -> None:
    """Wait until all models are measured, without frames in between that the thread would wait for."""
    screen.timer.resume()
    wait_for(lambda: not screen.timer.running, "the lap times")
    person.frames()


def names(person: Person) -> list[str]:
    return [model.name for model in known_models(person.data)]


def test_bundled_models_come_first_then_runs_with_the_newest_first(person: Person) -> None:
    make_run(person.data, "old", "old_best", age=2 * FIVE_MINUTES)
    make_run(person.data, "new", "new", age=FIVE_MINUTES)
    make_run(person.data, "new", "new_best")
    make_run(person.data, "middle", "middle", age=FIVE_MINUTES)
    screen = open_list(person)
    labels = [item.label for item in screen.list.items]
    bundled = [path.stem for path in bundled_models()]
    assert labels == ["Circuit", *bundled, "new", "new_best", "middle", "old_best", "Open file..."]
    assert labels[1] == "champion"


def test_what_a_run_saves_on_its_way_is_listed_only_while_there_is_nothing_better(tmp_path: Path) -> None:
    make_run(tmp_path, "going", "going_4096_steps", age=FIVE_MINUTES)
    make_run(tmp_path, "going", "going_8192_steps")
    make_run(tmp_path, "done", "done_4096_steps", age=FIVE_MINUTES)
    make_run(tmp_path, "done", "done", age=FIVE_MINUTES)
    listed = [model.name for model in known_models(tmp_path) if model.origin != "bundled"]
    assert listed == ["going_8192_steps", "done"]


def test_a_row_shows_algorithm_training_and_date(person: Person) -> None:
    model = make_run(person.data, "mine", "mine", "sac-track-01")
    config = RunConfig(algo="sac", tracks=("track-02", "track-02", "random:3", "random:4"), name="mine")
    (model.parent / "config.json").write_text(config.to_json(), encoding="utf-8")
    os.utime(model, (1_700_000_000, 1_700_000_000))
    screen = open_list(person)
    person.until(lambda: row(screen, "mine").cells[0] == "SAC", "the list")
    assert row(screen, "mine").cells[1] == "Speedway + 2 random"
    assert row(screen, "mine").cells[3] == "2023-11-14"
    assert "run mine: mine.zip · 683,264 steps" in row(screen, "mine").hint
    assert row(screen, "champion").cells[:2] == ("PPO", "6 circuits + 20 random")
    assert row(screen, "specialist-track-03").cells[1] == "Gauntlet"


@pytest.mark.parametrize("content", [None, b"", b"{", b"\xff\xfe", b"[1]", b'{"tracks": 7}', b'{"what": 1}'])
def test_a_run_with_a_lost_or_damaged_config_is_listed_all_the_same(tmp_path: Path, content: bytes | None) -> None:
    model = make_run(tmp_path, "mine", "mine")
    if content is not None:
        (model.parent / "config.json").write_bytes(content)
    mine = known_models(tmp_path)[-1]
    assert (mine.name, mine.tracks, trained_on(mine.tracks)) == ("mine", (), "")


def test_lap_times_are_those_of_an_evaluation_and_the_chosen_model_is_driven_first(person: Person) -> None:
    screen = open_list(person)
    person.go_to("specialist-track-01")
    person.until(lambda: row(screen, "specialist-track-01").cells[2] not in ("…", ""), "the list")
    waiting = [item for item in screen.list.items if isinstance(item, Row) and item.cells[2] == "…"]
    assert len(waiting) >= 5
    agent = load_agent("specialist-track-01")
    (result,) = evaluate(agent.act, [load_circuit("track-01")], enough_laps=2)
    assert result.clean
    assert row(screen, "specialist-track-01").cells[2] == f"{result.best_standing:.2f} / {result.best_flying:.2f}"


def test_a_lap_that_was_not_clean_has_a_sign_and_one_that_never_ended_is_said(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_bundled(monkeypatch, "learning-1-crashes", "learning-4-fast")
    screen = open_list(person)
    finish_measuring(person, screen)
    assert row(screen, "learning-1-crashes").cells[2] == "no lap"
    assert row(screen, "learning-4-fast").cells[2] == "* 8.70 / 7.07"


def test_times_are_kept_by_what_drives_where_and_not_by_name(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    only_bundled(monkeypatch, "learning-4-fast")
    driven = count_drives(monkeypatch)
    screen = open_list(person)
    finish_measuring(person, screen)
    assert len(driven) == 1
    person.press("escape")
    make_run(person.data, "copy", "other-name", "learning-4-fast")
    screen = open_list(person)
    finish_measuring(person, screen)
    assert len(driven) == 1
    assert row(screen, "learning-4-fast").cells[2] == row(screen, "other-name").cells[2] == "* 8.70 / 7.07"
    person.press("up")
    person.go_to("Circuit")
    person.press("right")
    finish_measuring(person, screen)
    assert len(driven) == 2
    person.frames()
    assert row(screen, "other-name").cells[2] not in ("* 8.70 / 7.07", "…")


@pytest.mark.parametrize("content", [b"\xff", b'{"a": {"standing": "x"}}'])
def test_a_damaged_file_of_times_only_costs_another_drive(
    person: Person, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    only_bundled(monkeypatch, "learning-4-fast")
    file = person.data / models.CACHE_FILE
    file.write_bytes(content)
    screen = open_list(person)
    finish_measuring(person, screen)
    assert row(screen, "learning-4-fast").cells[2] == "* 8.70 / 7.07"
    assert len(json.loads(file.read_bytes())) == 1


def test_a_file_of_times_that_cannot_be_written_is_no_reason_to_complain(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_bundled(monkeypatch, "learning-4-fast")
    (person.data / models.CACHE_FILE).mkdir()
    screen = open_list(person)
    finish_measuring(person, screen)
    assert row(screen, "learning-4-fast").cells[2] == "* 8.70 / 7.07"
    assert not person.app.context.notice


def test_the_thread_ends_with_the_screen_and_rests_while_another_one_is_on_top(person: Person) -> None:
    screen = open_list(person)
    person.choose("champion")
    person.top(WatchScreen)
    person.until(lambda: not screen.timer.alive, "the thread to end")
    person.app.context.pop_to(WatchSetupScreen)
    assert screen.timer.alive
    person.press("escape")
    person.top(MenuScreen)
    person.until(lambda: not screen.timer.alive, "the thread to end")
    assert len(screen.timer.facts) < len(bundled_models()) or screen.timer.running


def test_marked_models_are_watched_together_with_the_chosen_one_first(person: Person) -> None:
    screen = open_list(person)
    person.go_to("learning-3-slow")
    person.press("right", "down", "left", "down")
    assert [item.label for item in screen.list.items if isinstance(item, Row) and item.marked] == [
        "learning-3-slow",
        "learning-4-fast",
    ]
    assert dict(screen.keys())["Enter"] == "watch 3 together"
    person.press("return")
    watch = person.top(WatchScreen)
    assert [each.name for each in watch.setup.entrants] == ["learning-5-clean", "learning-3-slow", "learning-4-fast"]
    person.app.context.pop_to(WatchSetupScreen)
    assert row(screen, "learning-3-slow").marked
    person.go_to("learning-4-fast")
    person.press("return")
    watch = person.top(WatchScreen)
    assert [each.name for each in watch.setup.entrants] == ["learning-4-fast", "learning-3-slow"]


def test_at_most_eight_are_marked(person: Person) -> None:
    screen = open_list(person)
    for _ in range(9):
        person.press("down", "right")
    marked = [item.label for item in screen.list.items if isinstance(item, Row) and item.marked]
    assert len(marked) == 8
    assert "At most 8" in person.app.context.notice
    assert screen.list.item is not None
    assert screen.list.item.label not in marked


def test_a_broken_model_says_why_in_its_hint_and_on_screen(person: Person) -> None:
    run = person.data / "runs" / "broken"
    run.mkdir(parents=True)
    (run / "broken.zip").write_bytes(b"no zip at all")
    screen = open_list(person)
    person.go_to("champion")
    person.press("right")
    person.until(lambda: row(screen, "broken").cells[2] == "cannot drive", "the list")
    assert row(screen, "broken").hint.startswith("broken.zip: is not a zip file")
    assert row(screen, "broken").marked is None
    person.choose("broken")
    assert "broken.zip" in person.top(MessageScreen).text
    person.press("return")
    person.top(WatchSetupScreen)


def test_models_of_the_same_name_stay_apart_here_and_among_opponents(person: Person) -> None:
    make_run(person.data, "first", "twin", "learning-4-fast", age=FIVE_MINUTES)
    make_run(person.data, "second", "twin", "learning-5-clean")
    make_run(person.data, "third", "champion", "sac-track-01", age=2 * FIVE_MINUTES)
    assert names(person)[0] == "champion"
    assert names(person)[-3:] == ["second/twin", "first/twin", "third/champion"]
    person.choose("Play")
    person.choose("Opponents")
    person.top(OpponentsScreen)
    person.choose("first/twin")
    person.choose("third/champion")
    person.press("escape")
    assert person.app.context.settings.opponents == ("first/twin", "third/champion")
    assert person.top(PlaySetupScreen).list.items[-1].value == "first/twin, third/champion"
    person.choose("Start")
    play = person.top(PlayScreen)
    assert [each.agent.info.path for each in play.live.setup.entrants if each.agent] == [
        person.data / "runs" / "first" / "twin.zip",
        person.data / "runs" / "third" / "champion.zip",
    ]


def test_settings_that_remember_bare_names_still_mean_the_same_models(person: Person) -> None:
    make_run(person.data, "night", "night_best")
    person.app.context.change(opponents=("night_best", "champion", "gone"))
    person.choose("Play")
    assert person.top(PlaySetupScreen).list.items[-1].value == "night_best, champion"
    person.choose("Opponents")
    person.choose("champion")
    assert person.app.context.settings.opponents == ("night/night_best",)


def test_an_eighth_opponent_is_not_switched_on(person: Person) -> None:
    person.choose("Play")
    person.choose("Opponents")
    screen = person.top(OpponentsScreen)
    person.press(*["return", "down"] * 8)
    rows = [item for item in screen.list.items[:8] if isinstance(item, Row)]
    assert [row.marked for row in rows] == [True] * 7 + [False]
    assert len(person.app.context.settings.opponents) == 7


def test_a_random_circuit_is_another_one_each_time_and_is_remembered(person: Person) -> None:
    person.choose("Play")
    screen = person.top(PlaySetupScreen)
    person.go_to("Circuit")
    person.press("left")
    first = screen.picker.circuit
    assert person.app.context.settings.circuit == first.id == f"random:{first.name.removeprefix('Random ')}"
    person.press("right", "left")
    assert screen.picker.circuit != first
    second = screen.picker.circuit
    person.press("escape")
    person.choose("Play")
    assert person.top(PlaySetupScreen).picker.circuit == second
    person.choose("Start")
    assert person.top(PlayScreen).view.after.track.circuit == second


@pytest.mark.slow
def test_the_list_and_watching_load_neither_torch_nor_stable_baselines(tmp_path: Path) -> None:
    program = f"""
import os, sys
os.environ.update(SDL_VIDEODRIVER="dummy", SDL_AUDIODRIVER="dummy")
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from pathlib import Path
from tests.modes.person import Person
person = Person(Path({str(tmp_path)!r}))
person.choose("Watch")
screen = person.app.context.top
person.press("down")
person.until(lambda: screen.list.item.cells[2] not in ("", "…"), "the lap times")
print(screen.list.item.cells[2])
person.press("return")
person.frames(10)
print(type(person.app.context.top).__name__)
print(*(name for name in ("torch", "stable_baselines3", "onnxruntime") if name in sys.modules))
person.app.close()
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert result.stdout.splitlines()[-3:] == ["8.37 / 6.67", "WatchScreen", ""]


def only_bundled(monkeypatch: pytest.MonkeyPatch, *stems: str) -> None:
    """Pretend that only these models are bundled: measuring all of them takes seconds."""
    paths = [path for path in bundled_models() if path.stem in stems]
    monkeypatch.setattr("racer_viewer.modes.models.bundled_models", lambda: paths)


def count_drives(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list that grows with every measured drive."""
    driven: list[object] = []

    def counting(*arguments: object, **named: object) -> object:
        driven.append(arguments)
        return evaluate(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(models, "evaluate", counting)
    return driven
