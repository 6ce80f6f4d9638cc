"""Data sets of replays: plain arrays for everyone, and what is refused. tests/peers opens them with minari."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from racer_viewer.cli import main
from racer_viewer.replays import Replay, save_replay, trace_replay
from tests.replays.replay_drives import ring_run, weaving_run


def saved(folder: Path, *drives: Replay) -> list[str]:
    """Save replays; return their paths."""
    paths = [folder / f"{number}.racer" for number in range(len(drives))]
    for drive, path in zip(drives, paths, strict=True):
        save_replay(drive, path)
    return list(map(str, paths))


def test_npz_has_all_steps_of_all_drives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drives = [ring_run(300), weaving_run(150)]
    assert main(["export", *saved(tmp_path, *drives), "--npz", str(tmp_path / "laps.npz")]) == 0
    assert "450 steps of 2 drives" in capsys.readouterr().out
    with np.load(tmp_path / "laps.npz", allow_pickle=False) as file:
        data = dict(file)
    assert data["first_steps"].tolist() == [0, 300]
    for first, drive in zip((0, 300), drives, strict=True):
        trace, part = trace_replay(drive), slice(first, first + drive.ticks)
        np.testing.assert_array_equal(data["observations"][part], trace.observations[:-1])
        np.testing.assert_array_equal(data["next_observations"][part], trace.observations[1:])
        np.testing.assert_array_equal(data["actions"][part], drive.actions.astype(np.float32))
        np.testing.assert_array_equal(data["infos/progress"][part], trace.rows["components"][1:, 0])
        assert data["rewards"][part].sum() == pytest.approx(drive.reward, abs=1e-9)
        assert data["truncations"][part].nonzero()[0].tolist() == [drive.ticks - 1]
    assert not data["terminations"].any()
    about = json.loads(str(data["about"]))
    assert about["environment"] == "Racer-v0"
    assert [each["driver"] for each in about["replays"]] == ["Anna", "Anna"]


def test_a_minari_data_set_describes_itself(tmp_path: Path) -> None:
    folder = tmp_path / "sets" / "ring-v0"
    assert main(["export", *saved(tmp_path, ring_run(120)), "--minari", str(folder)]) == 0
    assert sorted(path.name for path in (folder / "data").iterdir()) == ["circuits", "main_data.hdf5", "metadata.json"]
    metadata = json.loads((folder / "data" / "metadata.json").read_text(encoding="utf-8"))
    assert metadata["dataset_id"] == "racer/ring-v0"
    assert (metadata["total_episodes"], metadata["total_steps"]) == (1, 120)
    environment = json.loads(metadata["env_spec"])
    assert environment["id"] == "Racer-v0"
    assert Path(environment["kwargs"]["track_id"]).parent == (folder / "data" / "circuits").resolve()


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the one line with which a command is refused."""
    assert main(["export", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_what_cannot_be_exported_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (drive,) = saved(tmp_path, ring_run(60))
    assert "laps-v0" in refusal(capsys, drive, "--minari", str(tmp_path / "laps"))
    assert "not a replay" in refusal(capsys, __file__, "--npz", str(tmp_path / "a.npz"))
    assert "one model" in refusal(capsys, drive, drive, "--zip", str(tmp_path / "a.zip"))
    assert "--stats is for models" in refusal(capsys, drive, "--npz", str(tmp_path / "a.npz"), "--stats", drive)
    assert main(["export", drive, "--minari", str(tmp_path / "laps-v0")]) == 0
    assert "has a data set already" in refusal(capsys, drive, "--minari", str(tmp_path / "laps-v0"))


def test_a_drive_that_the_engine_does_not_repeat_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drives = saved(tmp_path, ring_run(60), replace(ring_run(60), reward=12.0))
    line = refusal(capsys, *drives, "--minari", str(tmp_path / "laps-v0"))
    assert "1.racer" in line
    assert "reward recorded: 12" in line
    assert not (tmp_path / "laps-v0" / "data").exists()
