"""The story of a run: what is written of it, and what is read."""

import json
import os
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest

from racer_viewer.run_history import RunEvent
from racer_viewer.training import run_log as story_module
from racer_viewer.training.run_log import RunLog
from racer_viewer.training.run_log_reader import RunLogReader, load_history


def test_what_is_told_is_read(tmp_path: Path) -> None:
    story = RunLog(tmp_path)
    story.event("begin", "Begins", 0)
    story.update({"train/loss": 2.0, "train/explained_variance": float("nan")}, 100)
    story.laps([9.5, 8.25], 150)
    story.sectors([[3.0, float("nan"), 2.5]], 150)
    story.update({"train/loss": 1.0, "eval/lap": 7.0}, 200)
    story.event("end", "Finished", 200, outcome="finished")
    story.close()
    curves = load_history(tmp_path)
    assert curves.name == tmp_path.name
    np.testing.assert_array_equal(curves.steps, [100, 200])
    assert (np.diff(curves.seconds) > 0).all()
    np.testing.assert_array_equal(curves.values["train/loss"], [2.0, 1.0])
    np.testing.assert_array_equal(curves.values["eval/lap"], [np.nan, 7.0])
    assert "train/explained_variance" not in curves.values, "what is no number was not told"
    assert (curves.values["time/steps_per_second"] > 0).all()
    np.testing.assert_array_equal(curves.laps, [[150, 9.5], [150, 8.25]])
    np.testing.assert_array_equal(curves.sectors, [[150, 3.0, np.nan, 2.5]])
    assert [event.kind for event in curves.events] == ["begin", "end"]


def test_a_story_is_read_as_it_grows_and_curves_that_were_given_out_stay(tmp_path: Path) -> None:
    story, reader = RunLog(tmp_path), RunLogReader(tmp_path)
    assert not reader.advance()
    story.update({"a": 1.0}, 1)
    assert reader.advance()
    first = reader.history
    for steps in range(2, 300):
        story.update({"a": float(steps), "b": 0.5}, steps)
    reader.read_all()
    assert first.steps.tolist() == [1.0]
    assert first.values["a"].tolist() == [1.0]
    assert reader.history.steps.tolist() == list(range(1, 300))
    assert np.isnan(reader.history.values["b"][0])
    assert not reader.advance()


def test_figures_of_the_same_step_are_one_update(tmp_path: Path) -> None:
    story, reader = RunLog(tmp_path), RunLogReader(tmp_path)
    story.update({"a": 1.0}, 8)
    reader.advance()
    first = reader.history
    story.update({"a": 2.0, "b": 3.0}, 8)
    curves = reader.read_all()
    assert curves.steps.tolist() == [8]
    assert (curves.values["a"].tolist(), curves.values["b"].tolist()) == ([2.0], [3.0])
    assert first.values["a"].tolist() == [1.0]


def test_half_a_line_waits_for_its_other_half_and_nonsense_is_passed_over(tmp_path: Path) -> None:
    reader, path = RunLogReader(tmp_path), tmp_path / "live.jsonl"
    line = b'{"what":"event","steps":5,"seconds":1.5,"kind":"best","text":"New best"}\n'
    path.write_bytes(b'{"what":"upd\n[1, 2]\n{"what":"magic"}\n\n' + line[:20])
    reader.advance()
    assert reader.history.events == ()
    with path.open("ab") as file:
        file.write(line[20:])
    reader.advance()
    assert reader.history.events == (RunEvent(5, 1.5, "best", "New best"),)


def test_a_run_that_goes_on_takes_back_what_came_after_its_checkpoint(tmp_path: Path) -> None:
    story = RunLog(tmp_path)
    story.event("begin", "Begins", 0)
    for steps in (100, 200, 300):
        story.update({"a": float(steps)}, steps)
        story.laps([9.0], steps)
        story.policy(steps, 0)
        story.event("checkpoint", "Saved", steps)
    story.close()
    with (tmp_path / "live.jsonl").open("ab") as file:
        file.write(b'{"what":"update","st')  # killed here
    seconds = load_history(tmp_path).seconds
    story = RunLog(tmp_path, 200)
    assert story.seconds >= seconds[1]
    story.event("begin", "Goes on", 200)
    story.update({"a": 0.5}, 250)
    story.close()
    reader = RunLogReader(tmp_path)
    curves = reader.read_all()
    assert curves.steps.tolist() == [100, 200, 250]
    assert curves.values["a"].tolist() == [100, 200, 0.5]
    assert curves.laps[:, 0].tolist() == [100, 200]
    assert curves.policies.tolist() == [100, 200]
    assert len(reader.policies) == 2
    assert [event.text for event in curves.events] == ["Begins", "Saved", "Saved", "Goes on"]
    assert (np.diff(curves.seconds) > 0).all()


def test_pauses_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(story_module.time, "monotonic", lambda: now[0])
    story = RunLog(tmp_path)
    now[0] = 110.0
    story.pause(5)
    now[0] = 500.0
    assert story.seconds == 10.0
    story.resume(5)
    now[0] = 503.0
    assert story.seconds == 13.0
    reader = RunLogReader(tmp_path)
    reader.read_all()
    assert not reader.paused


def no_room() -> BinaryIO:
    return Path("/dev/full").open("wb", buffering=0)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a disk that is full")
def test_a_full_disk_is_told_and_nothing_is_lost_when_there_is_room_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    with monkeypatch.context() as patched:
        patched.setattr(story_module, "_open_for_appending", lambda path: no_room())
        story = RunLog(tmp_path, on_problem=told.append)
        story.update({"a": 1.0}, 1)
        story.update({"a": 2.0}, 2)
    assert len(told) == 1
    assert "No space left" in told[0]
    story._file = None
    story.update({"a": 3.0}, 3)
    reader = RunLogReader(tmp_path)
    reader.add_event(RunEvent(0, 0.0, "problem", told[0]))
    curves = reader.read_all()
    assert curves.values["a"].tolist() == [1.0, 2.0, 3.0]
    assert [event.kind for event in curves.events] == ["problem"], "it is not told twice"


def test_a_run_from_before_there_were_stories_has_the_curves_of_its_figures(tmp_path: Path) -> None:
    (tmp_path / "progress.csv").write_text(
        "time/total_timesteps,time/time_elapsed,train/loss\n100,1,\n200,2,0.5\n300,3,0.4\n", encoding="utf-8"
    )
    (tmp_path / "progress_200.csv").write_text(
        "time/total_timesteps,time/time_elapsed,train/loss\n250,1,0.3\nnonsense\n", encoding="utf-8"
    )
    curves = load_history(tmp_path)
    assert curves.steps.tolist() == [100, 200, 250]
    assert curves.seconds.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(curves.values["train/loss"], [np.nan, 0.5, 0.3])
    assert len(load_history(tmp_path / "nothing").steps) == 0


def test_laps_are_compared_with_those_on_the_same_circuit(tmp_path: Path) -> None:
    story = RunLog(tmp_path)
    story.event("begin", "Begins", 0, circuits=["long", "short", "never"])
    story.laps([20.0, 6.0, 18.0], 100, [0, 1, 0])
    story.sectors([[7.0, 6.0, 7.0], [2.0, float("nan"), 2.0]], 100, [0, 1])
    story.laps([6.5], 200, [1])
    story.close()
    curves = load_history(tmp_path)
    np.testing.assert_array_equal(curves.laps, [[100, 20.0], [100, 6.0], [100, 18.0], [200, 6.5]])
    assert curves.best_laps() == {"long": 18.0, "short": 6.0}
    assert curves.best_lap("never") is None
    assert curves.best_lap("elsewhere") is None
    np.testing.assert_array_equal(curves.laps_on("short"), [[100, 6.0], [200, 6.5]])
    np.testing.assert_array_equal(curves.sectors_on("long"), [[100, 7.0, 6.0, 7.0]])


def test_a_story_that_tells_no_circuits_is_read_as_of_one(tmp_path: Path) -> None:
    (tmp_path / "live.jsonl").write_text(
        '{"what":"event","steps":0,"seconds":0.1,"kind":"begin","text":"Begins"}\n'
        '{"what":"laps","laps":[[50,9.5],[60,9.0]],"sectors":[[50,3.0,null,3.5]]}\n'
    )
    curves = load_history(tmp_path)
    assert curves.circuits == ()
    assert curves.best_lap("track-01") == 9.0
    np.testing.assert_array_equal(curves.sectors_on("track-01"), [[50, 3.0, np.nan, 3.5]])
    story = RunLog(tmp_path, 55)
    story.event("begin", "Goes on", 55, circuits=["track-01"])
    story.laps([8.0], 70, [0])
    story.close()
    curves = load_history(tmp_path)
    assert curves.laps[:, 1].tolist() == [9.5, 8.0]
    assert curves.lap_circuits.tolist() == [-1.0, 0.0]
    assert curves.best_laps() == {"track-01": 8.0}


def test_a_run_from_before_there_were_stories_keeps_its_curves_when_it_goes_on(tmp_path: Path) -> None:
    (tmp_path / "progress.csv").write_text(
        "time/total_timesteps,time/time_elapsed,train/loss\n100,1,0.7\n200,2,0.5\n300,3,0.4\n", encoding="utf-8"
    )
    story = RunLog(tmp_path, 200)
    assert story.seconds >= 2.0
    story.event("begin", "Goes on", 200)
    story.update({"train/loss": 0.3, "train/new": 1.0}, 250)
    story.close()
    (tmp_path / "progress_200.csv").write_text("time/total_timesteps,train/loss\n250,0.3\n", encoding="utf-8")
    curves = load_history(tmp_path)
    assert curves.steps.tolist() == [100, 200, 250]
    assert curves.values["train/loss"].tolist() == [0.7, 0.5, 0.3]
    np.testing.assert_array_equal(curves.values["train/new"], [np.nan, np.nan, 1.0])
    assert (np.diff(curves.seconds) > 0).all()


def test_new_weights_are_those_of_the_run_as_it_goes_on(tmp_path: Path) -> None:
    story, reader = RunLog(tmp_path), RunLogReader(tmp_path)
    story.event("begin", "Begins", 0)
    story.event("weights", "speedBonus from 0 to 1", 10, rewards={"weights": {"speedBonus": 1.0}})
    reader.read_all()
    assert reader.rewards == {"weights": {"speedBonus": 1.0}}
    story.event("begin", "Goes on", 10)  # with what its config.json says by now
    reader.read_all()
    assert reader.rewards is None


def test_every_line_is_json_that_anyone_can_read(tmp_path: Path) -> None:
    story = RunLog(tmp_path)
    story.sectors([[1.0, float("nan"), 2.0]], 1)
    story.update({"a": float("inf")}, 2)
    story.close()

    def refuse(word: str) -> None:
        raise AssertionError(word)

    lines = (tmp_path / "live.jsonl").read_text().splitlines()
    assert {json.loads(line, parse_constant=refuse)["what"] for line in lines} == {"laps", "update"}
