"""The list of runs: what is known of each, and what can be done with it."""

import shutil
from dataclasses import replace
from pathlib import Path

from person import Person

from racer_viewer.agents import load_agent, models_folder
from racer_viewer.modes.message import MessageScreen
from racer_viewer.modes.runs_screen import RunsScreen
from racer_viewer.modes.train_screen import TrainScreen
from racer_viewer.training.presets import preset
from racer_viewer.training.saved import write_config


def make_run(data: Path, name: str) -> Path:
    """A folder as a run leaves it, with the champion as what it has learned."""
    folder = data / "runs" / name
    write_config(replace(preset("ppo"), name=name), folder)
    for ending in (".zip", "_vecnormalize.npz"):
        shutil.copy(models_folder() / f"champion{ending}", folder / f"{name}_best{ending}")
    (folder / "progress.csv").write_text("time/total_timesteps,reward/progress\n8192,0.1\n16384,0.2\n")
    return folder


def runs(person: Person) -> RunsScreen:
    person.app.stage.push(RunsScreen(person.app.stage))
    person.frames(5)
    return person.top(RunsScreen)


def test_without_runs_it_says_how_to_make_one(person: Person) -> None:
    assert [item.label for item in runs(person).list.items] == ["None yet: Train starts one"]


def test_runs_are_listed_with_their_figures_and_damaged_ones_with_their_reason(person: Person) -> None:
    make_run(person.data, "good")
    (person.data / "runs" / "bad").mkdir()
    (person.data / "runs" / "bad" / "config.json").write_text("{")
    items = {item.label: item for item in runs(person).list.items}
    assert set(items) == {"good", "bad"}
    assert items["good"].cells[:3] == ("PPO", "track-01", "16,384")  # type: ignore[attr-defined]
    assert "not JSON" in items["bad"].hint


def test_the_best_of_a_run_is_exported_as_something_to_give_away(person: Person) -> None:
    make_run(person.data, "good")
    runs(person)
    person.press("k")
    exported = person.data / "exports" / "good.zip"
    assert str(exported) in person.app.stage.said
    assert load_agent(exported).normalised


def test_a_run_is_deleted_only_when_asked_twice(person: Person) -> None:
    folder = make_run(person.data, "good")
    runs(person)
    person.press("delete")
    person.top(MessageScreen)
    person.choose("Keep it")
    assert folder.is_dir()
    person.press("delete")
    person.choose("Delete")
    assert not folder.exists()
    assert [item.label for item in person.top(RunsScreen).list.items] == ["None yet: Train starts one"]


def test_marked_runs_are_compared_with_the_one_that_is_opened(person: Person) -> None:
    for name in ("one", "two", "three"):
        make_run(person.data, name)
    screen = runs(person)
    person.press("right", "down", "right", "down", "return")
    train = person.top(TrainScreen)
    person.frames(3)
    assert train.run.state == "stopped"
    opened = train.run.folder.name
    assert {opened, *(curves.name for curves in train.compared)} == {"one", "two", "three"}
    assert not train.lives
    assert screen in person.app.stage.screens
