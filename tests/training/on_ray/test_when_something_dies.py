"""Runs on Ray outlive what dies within them, and are gone on with where they do not."""

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

from ray_processes import Program, wait_until
from ray_runs import SETTINGS, ray_run

from racer_env.errors import RacerError
from racer_viewer.agents import load_agent
from racer_viewer.training.run_log_reader import RunLogReader, load_history
from racer_viewer.training.run_monitor import RunMonitor

pytestmark = pytest.mark.slow


def disturbed(run: Any, disturb: Callable[[int], None]) -> list[set[str]]:
    """Learn, do something to one of two runners, and end when another one is in its place: processes of all
    iterations.
    """
    seen: list[set[str]] = []

    def watch(algorithm: Any) -> None:
        seen.append({each.process for each in algorithm.last.gathered})
        if len(seen) == 3:
            disturb(int(min(seen[-1]).split()[0]))
        if len(seen) > 3 and len(seen[-1]) == 2 and seen[-1] != seen[0]:
            run.stop()

    run.on_iteration = watch
    run.learn()
    return seen


@pytest.mark.skipif(sys.platform == "win32", reason="Windows knows no such signals")
@pytest.mark.parametrize("order", ["SIGKILL", "SIGSTOP"])
def test_a_runner_that_dies_or_hangs_is_replaced_and_the_run_goes_on(
    order: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from racer_viewer.training.ray import algorithm

    monkeypatch.setattr(algorithm, "LEAST_SILENCE_SECONDS", 5.0)
    run = ray_run(tmp_path, timesteps=10**7, checkpoint_every=0, evaluate_every=0)
    seen = disturbed(run, lambda runner: os.kill(runner, getattr(signal, order)))
    assert len(seen[0]) == len(seen[-1]) == 2
    assert len(seen[-1] - seen[0]) == 1, "one of them is new"
    curves = load_history(run.folder)
    assert curves.last_steps > 3 * 256
    problems = [event.text for event in curves.events if event.kind == "problem"]
    assert "1 of 2 runners had died, and was started anew" in problems
    if order == "SIGSTOP":
        assert problems[0] == "1 of 2 runners died, and will be replaced"
    (model,) = run.folder.glob("*_steps.zip")
    assert load_agent(model).normalised


def test_a_runner_that_there_is_no_room_for_is_asked_for_ever_more_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time all others wait for its answer."""
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


def test_runners_that_are_lost_late_are_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray takes longer to see that a machine is gone than there is patience for runners that do not gather."""
    from racer_viewer.training.ray import run as module
    from racer_viewer.training.ray.algorithm import Iteration

    monkeypatch.setattr(module, "RETRY_SECONDS", 0.0)
    run, told = ray_run(tmp_path), []
    run._watch = SimpleNamespace(tell_problem=told.append)
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    run._note_troubles(Iteration([SimpleNamespace(runner=1, process="1 on a")], [], 0, 0.1))
    now[0] = 100.0
    run._note_troubles(Iteration([], [], 2, 99.0))
    assert told == ["2 of 2 runners died, and will be replaced"]
    monkeypatch.setattr(run, "save_now", lambda: told.append("saved"))
    now[0] = 161.0
    with pytest.raises(RacerError, match="no runner drives any more"):
        run._note_troubles(Iteration([], [], 0, 0.0))
    assert told[-1] == "saved"


def test_a_run_that_is_told_to_end_saves_what_it_learned_and_says_how_to_go_on(tmp_path: Path) -> None:
    command = ["train", "--engine", "ray", "--runners", 2, "--num-cars", 8, *SETTINGS, "--data-dir", tmp_path]
    folder = tmp_path / "runs" / "ended"
    with Program(*command, "--timesteps", 10**7, "--name", "ended", log=tmp_path / "log") as program:
        wait_until(lambda: list(folder.glob("ended_*_steps.zip")), "a checkpoint")
        seen = RunMonitor.attach(folder)
        wait_until(lambda: seen.steps_per_second > 0.0, "a window to see how fast it is")
        assert len(seen.history.policies)
        seen.detach()
        program.process.terminate()
        assert program.wait() == 128 + signal.SIGTERM, program.output
        wait_until(lambda: not program.others(), "all processes to end")
    assert f"train --resume {folder} --engine ray --runners 2" in program.output
    assert load_history(folder).events[-1].text.startswith("Stopped after")


def test_a_driver_that_is_killed_leaves_nothing_running_and_goes_on_from_its_last_checkpoint(tmp_path: Path) -> None:
    command = ["train", "--engine", "ray", "--num-cars", 8, *SETTINGS, "--data-dir", tmp_path]
    folder = tmp_path / "runs" / "killed"
    with Program(*command, "--timesteps", 10**7, "--name", "killed", log=tmp_path / "log") as program:
        wait_until(lambda: list(folder.glob("killed_*_steps.zip")), "a checkpoint")
        program.process.kill()
        program.process.wait()
        latest = max(int(path.stem.split("_")[1]) for path in folder.glob("killed_*_steps.zip"))
        total = latest + 2048
        with Program(
            "train", "--engine", "ray", "--resume", folder, "--timesteps", total, log=tmp_path / "log2"
        ) as again:
            assert again.wait() == 0, again.output
        wait_until(lambda: not program.others(), "all processes to end")  # Ray's own take about a minute
    story = RunLogReader(folder)
    events = story.read_all().events
    assert [event.text for event in events if event.kind == "begin"][-1] == f"Goes on from {latest:,} steps"
    assert (np.diff(story.history.steps) > 0.0).all()
    assert load_agent(folder / "killed.zip").info.timesteps >= total
