"""The list of runs: facts about each, and actions on them."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from racer_env.errors import RacerError
from racer_viewer.agents import load_agent
from racer_viewer.modes.choose import WatchSetupScreen
from racer_viewer.modes.screen import MessageScreen
from racer_viewer.modes.train import run_facts
from racer_viewer.modes.train import runs as runs_screen
from racer_viewer.modes.train.end import MoreStepsScreen
from racer_viewer.modes.train.menu import TrainMenu
from racer_viewer.modes.train.runs import RunsScreen
from racer_viewer.modes.train.screen import TrainScreen
from racer_viewer.modes.train.setup import open_run
from racer_viewer.training.run_monitor import RunMonitor
from tests.modes.person import Person
from tests.modes.run_folders import make_run


def runs(person: Person) -> RunsScreen:
    screen = RunsScreen(person.app.context)
    person.app.context.push(screen)
    person.until(lambda: not screen.reading, "the list")
    person.frames(2)
    return person.top(RunsScreen)


def labels(screen: RunsScreen) -> list[str]:
    return [item.label for item in screen.list.items]


def test_without_runs_it_says_how_to_make_one(person: Person) -> None:
    assert labels(runs(person)) == ["No runs yet: start one with Train"]


def test_runs_are_listed_with_their_figures_and_damaged_ones_with_their_reason(person: Person) -> None:
    make_run(person.data, "good")
    (person.data / "runs" / "bad").mkdir()
    (person.data / "runs" / "bad" / "config.json").write_text("{")
    items = {item.label: item for item in runs(person).list.items}
    assert set(items) == {"good", "bad"}
    assert items["good"].cells[:3] == ("PPO", "Meadow Ring", "16,384")  # type: ignore[attr-defined]
    assert "not JSON" in items["bad"].hint


@pytest.mark.slow
def test_the_best_of_a_run_is_exported_as_something_to_give_away(person: Person) -> None:
    make_run(person.data, "good")
    runs(person)
    person.press("k")
    exported = person.data / "exports" / "good.zip"
    person.until(lambda: str(exported) in person.app.context.notice, "the model")
    assert load_agent(exported).normalised


def test_an_export_runs_in_the_background_and_its_result_is_shown(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = Event()

    def export(folder: Path, exports: Path) -> str:
        go.wait(60.0)
        raise RacerError(f"{folder.name} has nothing to give away")

    monkeypatch.setattr(runs_screen, "export_best", export)
    make_run(person.data, "good")
    runs(person)
    person.press("k")
    person.ticks(300)
    assert person.app.context.notice == "Exporting good ..."
    person.press("k")
    go.set()
    person.until(lambda: "nothing to give away" in person.app.context.notice, "word of it")


def test_a_run_is_deleted_only_when_asked_twice(person: Person) -> None:
    folder = make_run(person.data, "good")
    runs(person)
    person.press("delete")
    person.top(MessageScreen)
    person.choose("Cancel")
    assert folder.is_dir()
    person.press("delete")
    person.choose("Delete")
    person.until(lambda: not folder.exists(), "the run to be gone")
    screen = person.top(RunsScreen)
    person.until(lambda: labels(screen) == ["No runs yet: start one with Train"], "the list to know")


def test_marked_runs_are_compared_with_the_one_that_is_opened(person: Person) -> None:
    for name in ("one", "two", "three"):
        make_run(person.data, name)
    screen = runs(person)
    person.press("right", "down", "right", "down", "return")
    train = person.until_top(TrainScreen)
    person.until(lambda: len(train.compared) == 2, "the curves of the others")
    assert train.run.state == "stopped"
    opened = train.run.folder.name
    assert {opened, *(curves.name for curves in train.compared)} == {"one", "two", "three"}
    assert not train.is_live
    assert screen in person.app.context.screens


def test_a_learner_that_does_not_answer_holds_up_no_picture(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Event()

    def silent(folder: Path) -> int | None:
        answer.wait(60.0)
        return None

    monkeypatch.setattr(run_facts, "running_learner", silent)
    make_run(person.data, "one")
    screen = RunsScreen(person.app.context)
    person.app.context.push(screen)
    person.frames(3)
    assert labels(screen) == ["Loading runs"]
    open_run(person.app.context, make_run(person.data, "two"), [person.data / "runs" / "one"])
    train = person.until_top(TrainScreen)
    person.frames(3)
    assert train.compared == []
    answer.set()
    person.until(lambda: len(train.compared) == 1, "the other run")


def test_a_run_that_has_all_its_steps_is_asked_for_how_many_more(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int | None] = []

    def continue_run(folder: Path, timesteps: int | None = None, engine: str | None = None) -> RunMonitor:
        asked.append(timesteps)
        raise RacerError("not today")

    monkeypatch.setattr(RunMonitor, "continue_run", continue_run)
    make_run(person.data, "unfinished")
    make_run(person.data, "finished", timesteps=16_000)
    runs(person)
    person.go_to("unfinished")
    person.press("r")
    assert "not today" in person.until_top(MessageScreen).text
    person.choose("OK")
    person.go_to("finished")
    person.press("r")
    offered = [item.label for item in person.top(MoreStepsScreen).list.items]
    assert offered[0] == "100,000 more steps"
    assert offered[3] == "16,000 more steps, as many as before"
    person.choose("300,000 more steps")
    person.until_top(MessageScreen)
    assert asked == [None, 16_384 + 300_000]


def test_a_run_from_before_there_were_stories_has_its_curves(person: Person) -> None:
    open_run(person.app.context, make_run(person.data, "old"))
    train = person.until_top(TrainScreen)
    np.testing.assert_array_equal(train.run.history.steps, [8192, 16384])
    assert train.run.steps == 16384


def test_a_run_is_not_compared_with_itself(person: Person) -> None:
    folder = make_run(person.data, "mine")
    open_run(person.app.context, folder)
    train = person.until_top(TrainScreen)
    train.compare_with(folder)
    assert train.compared_folders == []
    for name, left in (("other", "No other run to compare with"), ("third", "other")):
        person.press("escape")
        person.top(TrainMenu)
        person.choose("Compare with")
        screen = person.top(RunsScreen)
        person.until(lambda screen=screen, left=left: labels(screen) == [left], left)  # type: ignore[misc]
        if left == "other":
            person.press("return")
            assert train.compared_folders == [person.data / "runs" / "other"]
        else:
            person.press("escape")
        make_run(person.data, name)


def deep_config(folder: Path) -> None:
    (folder / "config.json").write_bytes(b'{"rewards":' * 50_000)


def wrong_config(folder: Path) -> None:
    (folder / "config.json").write_text('{"tracks": [[]], "timesteps": "many", "net": {"a": 1e300}}')


def config_that_is_a_folder(folder: Path) -> None:
    (folder / "config.json").unlink()
    (folder / "config.json").mkdir()


def not_utf8(folder: Path) -> None:
    (folder / "config.json").write_bytes(b'{"name": "\xff\xfe", "net": 1e999}')


def wrong_log(folder: Path) -> None:
    (folder / "live.jsonl").write_bytes(
        b'{"what":"update","steps":"inf","seconds":1,"values":{"a":1}}\n'
        b'{"what":"update","steps":1e300,"seconds":1,"values":{"a":1}}\n'
        b'{"what":"update","steps":5,"seconds":[],"values":{"a":1}}\n'
        b'{"what":"update","steps":6,"seconds":1,"values":[1]}\n'
        b'{"what":"update","steps":7,"seconds":1e999,"values":{"a":1e999}}\n'
        b'{"what":"event","steps":1e999,"seconds":0,"kind":"begin","text":"x"}\n'
        b'{"what":"event","steps":1,"seconds":0,"kind":"weights","text":"x","rewards":{"weights":7}}\n'
        b'{"what":"event","steps":1,"seconds":0,"kind":"begin","text":"x","circuits":{"a":[]}}\n'
        b'{"what":"laps","laps":[[1],[2,"a"]],"sectors":[[5]]}\n'
        b'{"what":"policy","steps":1,"offset":-7}\n' + b"[" * 100_000 + b"\n\xff\xfe\n"
    )


def binary_log(folder: Path) -> None:
    (folder / "live.jsonl").write_bytes(bytes(range(256)) * 10_000)


def deep_lock(folder: Path) -> None:
    (folder / "learner.json").write_bytes(b"[" * 100_000)


def config_that_is_a_pipe(folder: Path) -> None:
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")


def other_pipes(folder: Path) -> None:
    """Replace what a learner writes with pipes that nobody writes to, and its log with a device without an end."""
    for name in ("learner.json", "swarm.bin", "policies.bin", "learner.log"):
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)
    (folder / "live.jsonl").unlink()
    (folder / "live.jsonl").symlink_to("/dev/zero")


def old_date(folder: Path) -> None:
    os.utime(folder, (-(10**11), -(10**11)))


DAMAGE: dict[Callable[[Path], None], str] = {
    deep_config: "not JSON", wrong_config: "tracks", config_that_is_a_folder: "directory", not_utf8: "not JSON",
    wrong_log: "damaged: 12 lines of its log", binary_log: "damaged: 10,000 lines of its log", deep_lock: "",
    old_date: "", config_that_is_a_pipe: "not a regular file", other_pipes: "",
}  # fmt: skip


def test_damaged_runs_are_listed_with_their_reason_and_stop_no_list(person: Person) -> None:
    if sys.platform == "win32":
        del DAMAGE[config_that_is_a_folder], DAMAGE[old_date], DAMAGE[config_that_is_a_pipe], DAMAGE[other_pipes]
    for damage in DAMAGE:
        damage(make_run(person.data, damage.__name__))
    good = make_run(person.data, "good")
    (good / ".good-12-ab.tmp.zip").write_bytes(b"half of a model")
    (good / "good_progress.csv").write_text("a,1e999\n\0\n")
    (person.data / "runs" / ".removed").mkdir()
    if sys.platform == "linux":
        os.mkdir(os.fsencode(person.data / "runs") + b"/\xff\xfe")
    items = {item.label: item for item in runs(person).list.items}
    assert items.keys() >= {"good", *(damage.__name__ for damage in DAMAGE)}
    assert ".removed" not in items
    assert items["good"].hint == ""
    for damage, reason in DAMAGE.items():
        assert reason in items[damage.__name__].hint
    for label in items:
        person.go_to(label)
        person.frames()
    person.press("escape")
    person.choose("Watch")
    screen = person.top(WatchSetupScreen)
    person.frames(3)
    rows = {item.label: item for item in screen.list.items}
    assert rows.keys() >= {"good_best", *(f"{damage.__name__}_best" for damage in DAMAGE)}
    assert not any(label.startswith(".") for label in rows)
    person.until(lambda: "is damaged" in rows["deep_config_best"].hint, "the reason")
    person.until(lambda: "is damaged" in rows["wrong_config_best"].hint, "the reason")
    assert "is damaged" not in rows["good_best"].hint


@pytest.mark.parametrize(
    "damage", [wrong_log, binary_log, deep_lock, old_date, other_pipes], ids=lambda each: each.__name__
)
def test_a_run_with_a_damaged_log_is_opened(person: Person, damage: Callable[[Path], None]) -> None:
    if sys.platform == "win32" and damage is other_pipes:
        pytest.skip("Windows has no pipes in folders")
    folder = make_run(person.data, "damaged")
    damage(folder)
    open_run(person.app.context, folder)
    person.until_top(TrainScreen)
    person.frames(5)
