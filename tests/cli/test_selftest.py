"""`racer-viewer selftest` sees what works, and what does not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from racer_env.engine.circuits import assets_folder
from racer_viewer.cli import selftest
from racer_viewer.optional import PARTS

DATA = Path(__file__).parents[1] / "data"


def test_the_kept_runs_are_the_recorded_ones() -> None:
    with (
        np.load(DATA / "engine_traces.npz") as traces,
        np.load(assets_folder() / "recorded_runs.npz", allow_pickle=False) as kept,
    ):
        names = [str(name) for name in traces["columns"]]
        columns = [names.index(name) for name in selftest.COLUMNS]
        runs = [name.removesuffix("/actions") for name in kept.files if name.endswith("/actions")]
        assert len(runs) == 9
        for name in runs:
            assert np.array_equal(kept[f"{name}/actions"], traces[name][1:, :3])
            assert np.array_equal(kept[f"{name}/sums"], selftest.check_sums(traces[name][1:, columns]))


def test_the_engine_drives_them_the_same(tmp_path: Path) -> None:
    assert selftest.check_engine(tmp_path) == "9 recorded runs match"


def test_an_engine_that_drives_differently_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drive = selftest.drive_recorded
    monkeypatch.setattr(selftest, "drive_recorded", lambda name, actions: drive(name, actions * 0.9999999))
    with pytest.raises(selftest.SelfTestError, match="recorded runs differ"):
        selftest.check_engine(tmp_path)


def test_a_failed_check_is_reported_with_the_others_and_by_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    def broken(folder: Path) -> str:
        (folder / "leftover.txt").write_text("removed with the folder")
        raise OSError("no space left")

    assert selftest.run_checks({"disk": broken, "agent": selftest.check_agent}, as_json=False) == 1
    disk, agent, *optional = capsys.readouterr().out.splitlines()
    assert "FAILED" in disk
    assert "OSError: no space left" in disk
    assert agent.split()[:2] == ["agent", "ok"]
    assert [line.split()[0] for line in optional] == [part.title for part in PARTS.values()]


@pytest.mark.slow
def test_everything_works_here() -> None:
    command = [sys.executable, "-m", "racer_viewer", "selftest", "--json"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, env=dict(os.environ))
    assert result.returncode == 0, result.stdout + result.stderr
    report = json.loads(result.stdout)
    assert report["ok"]
    assert not report["packaged"]
    assert [(check["name"], check["outcome"]) for check in report["checks"]] == [
        (name, "ok") for name in selftest.CHECKS
    ]
