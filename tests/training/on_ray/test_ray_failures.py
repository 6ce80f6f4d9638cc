"""Runs on Ray survive lost runners, and can be resumed after a crash."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray", reason="python run.py --with ray test …")

from racer_viewer.agents import load_agent
from racer_viewer.training.learner import LearnerError
from racer_viewer.training.run_log_reader import RunLogReader, load_history
from racer_viewer.training.run_monitor import RunMonitor
from tests.training.on_ray.ray_processes import Program, wait_for
from tests.training.on_ray.ray_runs import SETTINGS, make_ray_run

pytestmark = pytest.mark.slow


def learn_with_disturbance(runs: Path, disturb: Callable[[int], None]) -> tuple[Path, list[set[str]]]:
    """Learn, disturb one of two runners, and stop when it has been replaced.

    Returns the folder of the run, and the processes of all iterations.
    """
    seen: list[set[str]] = []

    def watch(algorithm: Any) -> None:
        seen.append({each.process for each in algorithm.last.rollouts})
        if len(seen) == 3:
            disturb(int(min(seen[-1]).split()[0]))
        if len(seen) > 3 and len(seen[-1]) == 2 and seen[-1] != seen[0]:
            run.stop()

    run = make_ray_run(runs, on_iteration=watch, timesteps=10**7, checkpoint_every=0, evaluate_every=0)
    run.learn()
    return run.folder, seen


@pytest.mark.usefixtures("local_ray")
@pytest.mark.skipif(sys.platform == "win32", reason="Windows knows no such signals")
@pytest.mark.parametrize("order", ["SIGKILL", "SIGSTOP"])
def test_a_runner_that_dies_or_hangs_is_replaced_and_the_run_goes_on(
    order: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from racer_viewer.training.ray import algorithm

    monkeypatch.setattr(algorithm, "MIN_ROLLOUT_TIMEOUT", 5.0)
    folder, seen = learn_with_disturbance(tmp_path, lambda runner: os.kill(runner, getattr(signal, order)))
    assert len(seen[0]) == len(seen[-1]) == 2
    assert len(seen[-1] - seen[0]) == 1, "one of them is new"
    curves = load_history(folder)
    assert curves.last_steps > 3 * 256
    problems = [event.text for event in curves.events if event.kind == "problem"]
    assert "1 of 2 runners had died and was replaced" in problems
    if order == "SIGSTOP":
        assert problems[0] == "1 of 2 runners died and will be replaced"
    (model,) = folder.glob("*_steps.zip")
    assert load_agent(model).normalised


def test_a_runner_without_a_free_cpu_is_checked_at_growing_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    """All other runners wait during a check."""
    from racer_viewer.training.ray import algorithm as module

    asked, now = list[int](), [0]
    monkeypatch.setattr(module.PPO, "restore_env_runners", lambda algorithm, group: asked.append(now[0]) or [])
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    algorithm = object.__new__(module.RacerPPO)
    group = SimpleNamespace(
        num_healthy_remote_workers=lambda: 2 if now[0] > 200 else 1, num_remote_env_runners=lambda: 2
    )
    for second in range(300):
        now[0] = second
        algorithm.restore_env_runners(group)
    assert asked[:9] == [0, 1, 3, 7, 15, 31, 63, 123, 183]
    assert asked[9:] == list(range(243, 300)), "once all are there, RLlib itself asks nobody"


def test_lost_runners_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray may take longer to notice a lost node than the idle timeout allows."""
    from racer_viewer.training.ray import learner as module
    from racer_viewer.training.ray.algorithm import Iteration

    problems: list[str] = []
    health, now = module.RunnerHealth(2, problems.append), [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    rollout: Any = SimpleNamespace(runner=1, process="1 on a")
    health.check(Iteration([rollout], [], 0, 0.1))
    now[0] = 100.0
    health.check(Iteration([], [], 2, 99.0))
    assert problems == ["2 of 2 runners died and will be replaced"]
    now[0] = 161.0
    with pytest.raises(LearnerError, match="no runner can drive any more, the policy was saved"):
        health.check(Iteration([], [], 0, 0.0))


def test_a_terminated_run_saves_its_policy_and_says_how_to_resume(tmp_path: Path) -> None:
    command = ["train", "--engine", "ray", "--runners", 2, "--num-cars", 8, *SETTINGS, "--data-dir", tmp_path]
    folder = tmp_path / "runs" / "ended"
    with Program(*command, "--timesteps", 10**7, "--name", "ended", log=tmp_path / "log") as program:
        wait_for(lambda: list(folder.glob("ended_*_steps.zip")), "a checkpoint")
        seen = RunMonitor.attach(folder)
        wait_for(lambda: seen.steps_per_second > 0.0, "a window to see how fast it is")
        assert len(seen.history.policies)
        seen.detach()
        program.process.terminate()
        assert program.wait() == 128 + signal.SIGTERM, program.output
        wait_for(lambda: not program.others(), "all processes to end")
    assert f"train --resume {folder} --engine ray --runners 2" in program.output
    assert load_history(folder).events[-1].text.startswith("Stopped after")


def test_a_killed_run_leaves_no_process_and_is_resumed_from_its_last_checkpoint(tmp_path: Path) -> None:
    command = ["train", "--engine", "ray", "--num-cars", 8, *SETTINGS, "--data-dir", tmp_path]
    folder = tmp_path / "runs" / "killed"
    with Program(*command, "--timesteps", 10**7, "--name", "killed", log=tmp_path / "log") as program:
        wait_for(lambda: list(folder.glob("killed_*_steps.zip")), "a checkpoint")
        program.process.kill()
        program.process.wait()
        latest = max(int(path.stem.split("_")[1]) for path in folder.glob("killed_*_steps.zip"))
        total = latest + 2048
        with Program(
            "train", "--engine", "ray", "--resume", folder, "--timesteps", total, log=tmp_path / "log2"
        ) as again:
            assert again.wait() == 0, again.output
        wait_for(lambda: not program.others(), "all processes to end")  # Ray's own take about a minute
    log = RunLogReader(folder)
    events = log.read_all().events
    assert [event.text for event in events if event.kind == "begin"][-1] == f"Resumed at {latest:,} steps"
    assert (np.diff(log.history.steps) > 0.0).all()
    assert load_agent(folder / "killed.zip").info.timesteps >= total
