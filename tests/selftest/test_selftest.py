"""`racer-viewer selftest` sees what works, and what does not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from racer_viewer.selftest import checks, recorded, run
from racer_viewer.selftest.checks import CHECKS, SelfTestError

DATA = Path(__file__).parents[1] / "data"


def test_the_kept_runs_are_the_recorded_ones() -> None:
    with (
        np.load(DATA / "engine_traces.npz") as traces,
        np.load(recorded.assets_folder() / "recorded_runs.npz", allow_pickle=False) as kept,
    ):
        names = [str(name) for name in traces["columns"]]
        columns = [names.index(name) for name in recorded.COLUMNS]
        runs = [name.removesuffix("/actions") for name in kept.files if name.endswith("/actions")]
        assert len(runs) == 9
        for name in runs:
            assert np.array_equal(kept[f"{name}/actions"], traces[name][1:, :3])
            assert np.array_equal(kept[f"{name}/sums"], recorded.check_sums(traces[name][1:, columns]))


def test_the_engine_drives_them_the_same(tmp_path: Path) -> None:
    assert checks.engine(tmp_path) == "9 recorded runs come out the same"


def test_an_engine_that_drives_differently_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drive = recorded._drive
    monkeypatch.setattr(recorded, "_drive", lambda name, actions: drive(name, actions * 0.9999999))
    with pytest.raises(SelfTestError, match="come out differently"):
        checks.engine(tmp_path)


def test_what_fails_is_told_with_the_rest_and_by_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(folder: Path) -> str:
        (folder / "left behind.txt").write_text("and removed")
        raise OSError("no space left")

    monkeypatch.setattr(run, "CHECKS", {"disk": broken, "agent": checks.agent_lap})
    assert run.run(as_json=False) == 1
    disk, agent = capsys.readouterr().out.splitlines()
    assert "FAILED" in disk
    assert "OSError: no space left" in disk
    assert agent.split()[:2] == ["agent", "ok"]


@pytest.mark.slow
def test_everything_works_here() -> None:
    command = [sys.executable, "-m", "racer_viewer", "selftest", "--json"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, env=dict(os.environ))
    assert result.returncode == 0, result.stdout + result.stderr
    told = json.loads(result.stdout)
    assert told["ok"]
    assert not told["packaged"]
    assert [(check["name"], check["outcome"]) for check in told["checks"]] == [(name, "ok") for name in CHECKS]
