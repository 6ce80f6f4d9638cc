"""Run log: what a run writes, and what a reader makes of it."""

import errno
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from racer_viewer.run_history import RunEvent
from racer_viewer.training import run_log as run_log_module
from racer_viewer.training import run_log_reader
from racer_viewer.training.run_log import RunLog, open_for_appending
from racer_viewer.training.run_log_reader import RunLogReader, load_history


def test_everything_written_is_read(tmp_path: Path) -> None:
    log = RunLog(tmp_path)
    log.event("begin", "Start", 0)
    log.update({"train/loss": 2.0, "train/explained_variance": float("nan")}, 100)
    log.laps([9.5, 8.25], 150)
    log.sectors([[3.0, float("nan"), 2.5]], 150)
    log.update({"train/loss": 1.0, "eval/lap": 7.0}, 200)
    log.event("end", "Finished", 200, outcome="finished")
    log.close()
    history = load_history(tmp_path)
    assert history.name == tmp_path.name
    np.testing.assert_array_equal(history.steps, [100, 200])
    assert (np.diff(history.seconds) > 0).all()
    np.testing.assert_array_equal(history.values["train/loss"], [2.0, 1.0])
    np.testing.assert_array_equal(history.values["eval/lap"], [np.nan, 7.0])
    assert "train/explained_variance" not in history.values, "NaN is not logged"
    assert (history.values["time/steps_per_second"] > 0).all()
    np.testing.assert_array_equal(history.laps, [[150, 9.5], [150, 8.25]])
    np.testing.assert_array_equal(history.sectors, [[150, 3.0, np.nan, 2.5]])
    assert [event.kind for event in history.events] == ["begin", "end"]


def test_a_growing_log_is_read_and_earlier_histories_do_not_change(tmp_path: Path) -> None:
    log, reader = RunLog(tmp_path), RunLogReader(tmp_path)
    assert not reader.advance()
    log.update({"a": 1.0}, 1)
    assert reader.advance()
    first = reader.history
    for steps in range(2, 300):
        log.update({"a": float(steps), "b": 0.5}, steps)
    reader.read_all()
    assert first.steps.tolist() == [1.0]
    assert first.values["a"].tolist() == [1.0]
    assert reader.history.steps.tolist() == list(range(1, 300))
    assert np.isnan(reader.history.values["b"][0])
    assert not reader.advance()


def test_metrics_of_the_same_step_are_one_update(tmp_path: Path) -> None:
    log, reader = RunLog(tmp_path), RunLogReader(tmp_path)
    log.update({"a": 1.0}, 8)
    reader.advance()
    first = reader.history
    log.update({"a": 2.0, "b": 3.0}, 8)
    history = reader.read_all()
    assert history.steps.tolist() == [8]
    assert (history.values["a"].tolist(), history.values["b"].tolist()) == ([2.0], [3.0])
    assert first.values["a"].tolist() == [1.0]


def test_incomplete_lines_wait_for_their_rest_and_invalid_lines_are_skipped(tmp_path: Path) -> None:
    reader, path = RunLogReader(tmp_path), tmp_path / "live.jsonl"
    line = b'{"what":"event","steps":5,"seconds":1.5,"kind":"best","text":"New best"}\n'
    path.write_bytes(b'{"what":"upd\n[1, 2]\n{"what":"magic"}\n\n' + line[:20])
    reader.advance()
    assert reader.history.events == ()
    with path.open("ab") as file:
        file.write(line[20:])
    reader.advance()
    assert reader.history.events == (RunEvent(5, 1.5, "best", "New best"),)


def test_a_resumed_run_discards_what_came_after_its_checkpoint(tmp_path: Path) -> None:
    log = RunLog(tmp_path)
    log.event("begin", "Start", 0)
    for steps in (100, 200, 300):
        log.update({"a": float(steps)}, steps)
        log.laps([9.0], steps)
        log.policy(steps, 0)
        log.event("checkpoint", "Saved", steps)
    log.close()
    with (tmp_path / "live.jsonl").open("ab") as file:
        file.write(b'{"what":"update","st')  # killed here
    seconds = load_history(tmp_path).seconds
    log = RunLog(tmp_path, 200)
    assert log.seconds >= seconds[1]
    log.event("begin", "Resumed", 200)
    log.update({"a": 0.5}, 250)
    log.close()
    reader = RunLogReader(tmp_path)
    history = reader.read_all()
    assert history.steps.tolist() == [100, 200, 250]
    assert history.values["a"].tolist() == [100, 200, 0.5]
    assert history.laps[:, 0].tolist() == [100, 200]
    assert history.policies.tolist() == [100, 200]
    assert len(reader.policies) == 2
    assert [event.text for event in history.events] == ["Start", "Saved", "Saved", "Resumed"]
    assert (np.diff(history.seconds) > 0).all()


def test_pauses_do_not_count_as_learning_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(run_log_module.time, "monotonic", lambda: now[0])
    log = RunLog(tmp_path)
    now[0] = 110.0
    log.pause(5)
    now[0] = 500.0
    assert log.seconds == 10.0
    log.resume(5)
    now[0] = 503.0
    assert log.seconds == 13.0
    reader = RunLogReader(tmp_path)
    reader.read_all()
    assert not reader.paused


def test_a_full_disk_is_reported_and_nothing_is_lost_when_there_is_space_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems: list[str] = []
    file: Any = FullDisk(tmp_path / "live.jsonl")
    monkeypatch.setattr(run_log_module, "open_for_appending", lambda path: file)
    log = RunLog(tmp_path, on_problem=problems.append)
    log.update({"a": 1.0}, 1)
    log.update({"a": 2.0}, 2)
    assert len(problems) == 1
    assert "No space left" in problems[0]
    file.full = False
    log.update({"a": 3.0}, 3)
    log.close()
    reader = RunLogReader(tmp_path)
    reader.add_event(RunEvent(0, 0.0, "problem", problems[0]))
    history = reader.read_all()
    assert history.values["a"].tolist() == [1.0, 2.0, 3.0]
    assert [event.kind for event in history.events] == ["problem"], "the same problem is shown once"


class FullDisk:
    """A log file on a disk that is full until `full` is set to False."""

    def __init__(self, path: Path) -> None:
        self._file, self.full = open_for_appending(path), True

    def write(self, data: bytes) -> None:
        if self.full:
            self._file.write(data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        self._file.write(data)

    def close(self) -> None:
        self._file.close()


def test_a_folder_without_a_log_has_an_empty_history(tmp_path: Path) -> None:
    assert len(load_history(tmp_path / "nothing").steps) == 0


def test_laps_are_compared_with_those_on_the_same_circuit(tmp_path: Path) -> None:
    log = RunLog(tmp_path)
    log.event("begin", "Start", 0, circuits=["long", "short", "never"])
    log.laps([20.0, 6.0, 18.0], 100, [0, 1, 0])
    log.sectors([[7.0, 6.0, 7.0], [2.0, float("nan"), 2.0]], 100, [0, 1])
    log.laps([6.5], 200, [1])
    log.close()
    history = load_history(tmp_path)
    np.testing.assert_array_equal(history.laps, [[100, 20.0], [100, 6.0], [100, 18.0], [200, 6.5]])
    assert history.best_laps() == {"long": 18.0, "short": 6.0}
    assert history.best_lap("never") is None
    assert history.best_lap("elsewhere") is None
    np.testing.assert_array_equal(history.laps_on("short"), [[100, 6.0], [200, 6.5]])
    np.testing.assert_array_equal(history.sectors_on("long"), [[100, 7.0, 6.0, 7.0]])


def test_a_log_without_circuits_is_read_as_of_one_circuit(tmp_path: Path) -> None:
    (tmp_path / "live.jsonl").write_text(
        '{"what":"event","steps":0,"seconds":0.1,"kind":"begin","text":"Start"}\n'
        '{"what":"laps","laps":[[50,9.5],[60,9.0]],"sectors":[[50,3.0,null,3.5]]}\n'
    )
    history = load_history(tmp_path)
    assert history.circuits == ()
    assert history.best_lap("track-01") == 9.0
    np.testing.assert_array_equal(history.sectors_on("track-01"), [[50, 3.0, np.nan, 3.5]])
    log = RunLog(tmp_path, 55)
    log.event("begin", "Resumed", 55, circuits=["track-01"])
    log.laps([8.0], 70, [0])
    log.close()
    history = load_history(tmp_path)
    assert history.laps[:, 1].tolist() == [9.5, 8.0]
    assert history.lap_circuits.tolist() == [-1.0, 0.0]
    assert history.best_laps() == {"track-01": 8.0}


def test_changed_weights_are_forgotten_when_the_run_is_resumed(tmp_path: Path) -> None:
    log, reader = RunLog(tmp_path), RunLogReader(tmp_path)
    log.event("begin", "Start", 0)
    log.event("weights", "speedBonus from 0 to 1", 10, rewards={"weights": {"speedBonus": 1.0}})
    reader.read_all()
    assert reader.rewards == {"weights": {"speedBonus": 1.0}}
    log.event("begin", "Resumed", 10)  # with the weights in config.json
    reader.read_all()
    assert reader.rewards is None


def test_every_line_is_strict_json(tmp_path: Path) -> None:
    log = RunLog(tmp_path)
    log.sectors([[1.0, float("nan"), 2.0]], 1)
    log.update({"a": float("inf")}, 2)
    log.close()

    def refuse(word: str) -> None:
        raise AssertionError(word)

    lines = (tmp_path / "live.jsonl").read_text().splitlines()
    assert {json.loads(line, parse_constant=refuse)["what"] for line in lines} == {"laps", "update"}


def test_a_damaged_line_changes_nothing_and_is_counted(tmp_path: Path) -> None:
    log = RunLog(tmp_path)
    log.update({"a": 1.0}, 1)
    log.close()
    with (tmp_path / "live.jsonl").open("ab") as file:
        for line in ('"seconds":null,"values":{}', '"seconds":1,"values":{"a":2,"b":"x"}', '"values":{"b":1}'):
            file.write(f'{{"what":"update","steps":9,{line}}}\n'.encode())
    history = load_history(tmp_path)
    assert history.damaged == 3
    assert history.steps.tolist() == [1.0]
    assert len(history.seconds) == 1
    assert set(history.values) == {"a", "time/steps_per_second"}
    assert all(len(column) == 1 for column in history.values.values())


def test_a_log_of_any_content_takes_little_memory(tmp_path: Path) -> None:
    names = "".join(f',"{number}":0' for number in range(510))
    lines = (f'{{"what":"update","steps":{step},"seconds":0,"values":{{"a":1{names}}}}}' for step in range(500))
    path = tmp_path / "live.jsonl"
    path.write_text("\n".join([*lines, '{"what":"update","steps":600,"seconds":0,"values":{"x":1,"y":2}}', ""]))
    history = load_history(tmp_path)
    assert (len(history.values), len(history.steps), history.damaged) == (511, 500, 1)
    path.write_bytes(b"x" * (40 * 2**20) + b"\n")
    reader = RunLogReader(tmp_path)
    while reader.advance():
        pass
    assert reader.history.damaged == 1


def test_what_is_kept_of_a_log_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, limit in (("MAX_POLICIES", 30), ("MAX_LAPS", 40), ("MAX_EVENTS", 50), ("MAX_CELLS", 120)):
        monkeypatch.setattr(run_log_reader, name, limit)
    lines = (
        '{"what":"policy","steps":5,"offset":0}', '{"what":"laps","laps":[[1,2]],"sectors":[]}',
        '{"what":"event","steps":1,"seconds":1,"kind":"x","text":"' + "x" * 3000 + '"}',
        *(f'{{"what":"update","steps":{step},"seconds":1,"values":{{}}}}' for step in range(70)),
    )  # fmt: skip
    path = tmp_path / "live.jsonl"
    path.write_text("\n".join(lines[:3] * 60 + lines[3:]) + "\n")
    reader = RunLogReader(tmp_path)
    history = reader.read_all()
    assert (len(reader.policies), len(history.policies), len(history.laps)) == (30, 30, 40)
    assert (len(history.events), len(history.steps), len(history.seconds)) == (50, 60, 60)
    assert history.damaged == 30 + 20 + 10 + 10
    assert len(history.events[0].text) == run_log_reader.MAX_TEXT_LENGTH < 3000


def test_an_update_that_is_replaced_does_not_change_a_history_that_was_read_before(tmp_path: Path) -> None:
    log, reader = RunLog(tmp_path), RunLogReader(tmp_path)
    log.update({"a": 1.0}, 5)
    before = reader.read_all()
    log.update({"a": 2.0, "b": 3.0}, 5)
    log.update({"a": 4.0}, 5)
    log.update({"a": 6.0}, 7)
    after = reader.read_all()
    assert before.values["a"].tolist() == [1.0]
    assert after.values["a"].tolist() == [4.0, 6.0]
    np.testing.assert_array_equal(after.values["b"], [3.0, np.nan])


def test_laps_with_and_without_a_circuit_stand_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "live.jsonl").write_text(
        '{"what":"laps","laps":[[50,9.5],[60,9.0,1]],"sectors":[[50,3.0,null,3.5,2],[60,1,2,3]]}\n'
    )
    history = load_history(tmp_path)
    assert history.laps.tolist() == [[50, 9.5], [60, 9.0]]
    assert history.lap_circuits.tolist() == [-1.0, 1.0]
    np.testing.assert_array_equal(history.sectors, [[50, 3.0, np.nan, 3.5], [60, 1, 2, 3]])
    assert history.sector_circuits.tolist() == [2.0, -1.0]
