"""Learners that are left, found again, discarded and killed: none is ever left over."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from racer_viewer.training.live import WatchedRun, running_learner
from racer_viewer.training.run import Run
from tests.training.live.learners import begin, config, is_gone, kinds, wait_for


@pytest.mark.slow
def test_a_run_in_the_background_is_found_again_with_its_whole_story(tmp_path: Path) -> None:
    first = WatchedRun.start(config(), tmp_path)
    pid = begin(first)
    wait_for(lambda: len(first.curves.steps) > 3)
    first.detach()
    first.close()
    seen = first.curves
    again = WatchedRun.attach(first.folder)
    wait_for(lambda: len(again.curves.steps) > len(seen.steps) + 20)
    assert again.state == "learning"
    assert again.curves.steps[: len(seen.steps)].tolist() == seen.steps.tolist()
    assert again.curves.events[: len(seen.events)] == seen.events
    wait_for(lambda: again.swarm() is not None)
    again.stop(discard=True)
    wait_for(lambda: again.state == "stopped")
    wait_for(lambda: is_gone(pid))
    assert not first.folder.exists()


@pytest.mark.slow
def test_a_killed_learner_is_noticed_and_its_run_goes_on_later(tmp_path: Path) -> None:
    run = WatchedRun.start(config(), tmp_path)
    pid = begin(run)
    run.save()
    wait_for(lambda: "checkpoint" in kinds(run))
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: run.state == "failed")
    assert "signal 9" in run.problem
    assert "can go on" in run.problem
    (saved,) = run.folder.glob("*_steps.zip")
    steps = int(saved.stem.split("_")[-2])
    assert running_learner(run.folder) is None
    assert WatchedRun.attach(run.folder).state == "stopped"

    later = WatchedRun.go_on(run.folder, timesteps=40_000_000)
    pid = begin(later)
    assert later.total == 40_000_000
    wait_for(lambda: len(later.curves.steps) and later.curves.steps[-1] > steps + 1000)
    assert (np.diff(later.curves.steps) > 0).all()
    assert f"Goes on from {steps:,} steps" in [event.text for event in later.curves.events]
    os.kill(pid, signal.SIGTERM)
    wait_for(lambda: later.state == "stopped")
    assert is_gone(pid)
    assert len(list(run.folder.glob("*_steps.zip"))) == 2
    assert not (run.folder / "learner.json").exists()
    assert not (run.folder / "swarm.bin").exists()


WATCHER = """
import sys, time
from pathlib import Path
from racer_viewer.training.config import load_run_config
from racer_viewer.training.live import WatchedRun

run = WatchedRun.start(load_run_config(Path(sys.argv[1])), Path(sys.argv[2]))
while not len(run.curves.steps):
    assert run.state in ("starting", "learning"), run.problem
    time.sleep(0.01)
run.policy().act([0.5] * 14)
print(run.pid, *{"torch", "stable_baselines3"} & set(sys.modules), flush=True)
time.sleep(1000)
"""


@pytest.mark.slow
def test_a_learner_whose_window_is_killed_saves_and_ends(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(config(name="lonely").to_json())
    command = [sys.executable, "-c", WATCHER, str(tmp_path / "config.json"), str(tmp_path / "runs")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watcher:
        assert watcher.stdout is not None
        (pid,) = watcher.stdout.readline().split()  # and nothing heavy was imported
        assert not is_gone(int(pid))
        watcher.kill()
    wait_for(lambda: is_gone(int(pid)))
    folder = tmp_path / "runs" / "lonely"
    assert len(list(folder.glob("lonely_*_steps.zip"))) == 1
    assert not (folder / "learner.json").exists()
    assert WatchedRun.attach(folder).curves.events[-1].kind == "end"


def test_what_cannot_be_learned_is_a_clear_problem_and_leaves_nothing(tmp_path: Path) -> None:
    run = WatchedRun.start(config(tracks=["nowhere"], name="bad"), tmp_path)
    wait_for(lambda: run.state == "failed")
    assert "nowhere" in run.problem
    assert "Traceback" not in run.problem
    assert not run.folder.exists()
    run.close()


def test_a_window_that_closes_before_the_learner_listens_leaves_none(tmp_path: Path) -> None:
    run = WatchedRun.start(config(), tmp_path)
    pid = run.pid
    assert pid is not None
    run.close()
    wait_for(lambda: is_gone(pid))
    wait_for(lambda: not run.folder.exists())


@pytest.mark.slow
def test_a_refusal_removes_no_run_that_was_there_before(tmp_path: Path) -> None:
    outcome = Run(replace(config(name="old"), timesteps=512), tmp_path).learn()
    (outcome.folder / "live.jsonl").unlink()
    run = WatchedRun.go_on(outcome.folder)
    wait_for(lambda: run.state == "failed")
    assert "has learned its 512 steps" in run.problem
    assert (outcome.folder / "old.zip").is_file()


def test_a_run_that_has_learned_is_seen_without_a_learner(tmp_path: Path) -> None:
    outcome = Run(replace(config(name="done"), timesteps=512), tmp_path).learn()
    run = WatchedRun.attach(outcome.folder)
    assert run.state == "finished"
    assert run.steps == 512
    assert run.swarm() is None
    run.pause()
    run.close()
    assert run.state == "finished"
