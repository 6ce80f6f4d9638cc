"""Learner processes that are detached, found again, discarded and killed; none is left over."""

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

from racer_env.errors import RacerError
from racer_viewer.training import control
from racer_viewer.training.control import connect
from racer_viewer.training.run import Run
from racer_viewer.training.run_folder import LEARNER_LOG_FILE
from racer_viewer.training.run_lock import LearnerAddress, running_learner
from racer_viewer.training.run_log_reader import load_history
from racer_viewer.training.run_monitor import RunMonitor, discard_learner, prepare_learner
from tests.processes import TIMEOUT, is_gone, wait_for
from tests.training.monitor.learners import config, event_kinds, wait_until_learning


@pytest.mark.slow
def test_a_run_in_the_background_is_found_again_with_its_whole_history(tmp_path: Path) -> None:
    first = RunMonitor.start(config(), tmp_path)
    pid = wait_until_learning(first)
    wait_for(lambda: len(first.history.steps) > 3)
    first.detach()
    first.close()
    seen = first.history
    again = RunMonitor.attach(first.folder)
    wait_for(lambda: len(again.history.steps) > len(seen.steps) + 20)
    assert again.state == "learning"
    assert again.history.steps[: len(seen.steps)].tolist() == seen.steps.tolist()
    assert again.history.events[: len(seen.events)] == seen.events
    wait_for(lambda: again.swarm() is not None)
    again.stop(discard=True)
    wait_for(lambda: again.state == "stopped")
    wait_for(lambda: is_gone(pid))
    assert not first.folder.exists()


@pytest.mark.slow
def test_a_run_whose_folder_is_removed_ends_and_says_so(tmp_path: Path) -> None:
    run = RunMonitor.start(config(), tmp_path)
    pid = wait_until_learning(run)
    shutil.move(run.folder, tmp_path / "elsewhere")
    wait_for(lambda: run.state == "stopped")
    assert "discarded or removed" in run.problem
    wait_for(lambda: is_gone(pid))


@pytest.mark.slow
def test_another_window_sees_that_a_run_was_discarded(tmp_path: Path) -> None:
    run = RunMonitor.start(config(), tmp_path)
    wait_until_learning(run)
    run.save()
    wait_for(lambda: "checkpoint" in event_kinds(run))
    other = RunMonitor.attach(run.folder)
    wait_for(lambda: other.state == "learning")
    run.stop(discard=True)
    wait_for(lambda: other.state == "stopped")
    wait_for(lambda: run.state == "stopped")
    assert not other.problem or "discarded" in other.problem
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_killed_learner_is_noticed_and_its_run_can_be_resumed(tmp_path: Path) -> None:
    run = RunMonitor.start(config(), tmp_path)
    pid = wait_until_learning(run)
    run.save()
    wait_for(lambda: "checkpoint" in event_kinds(run))
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: run.state == "failed")
    assert "signal 9" in run.problem
    assert "can be resumed" in run.problem
    (saved,) = run.folder.glob("*_steps.zip")
    steps = int(saved.stem.split("_")[-2])
    assert running_learner(run.folder) is None
    assert RunMonitor.attach(run.folder).state == "stopped"

    later = RunMonitor.continue_run(run.folder, timesteps=40_000_000)
    pid = wait_until_learning(later)
    assert later.total == 40_000_000
    wait_for(lambda: len(later.history.steps) and later.history.steps[-1] > steps + 1000)
    assert (np.diff(later.history.steps) > 0).all()
    assert f"Resumed at {steps:,} steps" in [event.text for event in later.history.events]
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
from racer_viewer.training.run_monitor import RunMonitor, discard_learner, prepare_learner

run = RunMonitor.start(load_run_config(Path(sys.argv[1])), Path(sys.argv[2]))
while not len(run.history.steps):
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
        (pid,) = watcher.stdout.readline().split()  # no heavy module was imported
        assert not is_gone(int(pid))
        watcher.kill()
    wait_for(lambda: is_gone(int(pid)))
    folder = tmp_path / "runs" / "lonely"
    assert len(list(folder.glob("lonely_*_steps.zip"))) == 1
    assert not (folder / "learner.json").exists()
    assert RunMonitor.attach(folder).history.events[-1].kind == "end"


def test_an_invalid_run_is_a_clear_problem_and_leaves_no_folder(tmp_path: Path) -> None:
    run = RunMonitor.start(config(tracks=["nowhere"], name="bad"), tmp_path)
    wait_for(lambda: run.state == "failed")
    assert "nowhere" in run.problem
    assert "Traceback" not in run.problem
    assert not run.folder.exists()
    run.close()


def test_a_prepared_process_learns_the_next_run(tmp_path: Path) -> None:
    prepared = prepare_learner()
    run = RunMonitor.start(config(), tmp_path, prepared)
    assert run.pid == prepared.pid
    wait_until_learning(run)
    assert (run.folder / LEARNER_LOG_FILE).is_file()
    run.stop(discard=True)
    wait_for(lambda: run.state == "stopped")
    wait_for(lambda: is_gone(prepared.pid))
    assert not run.folder.exists()


def test_a_run_needs_no_prepared_process_that_has_died(tmp_path: Path) -> None:
    prepared = prepare_learner()
    discard_learner(prepared)
    assert is_gone(prepared.pid)
    run = RunMonitor.start(config(), tmp_path, prepared)
    assert run.pid != prepared.pid
    run.close()
    wait_for(lambda: not run.folder.exists())


def test_a_window_that_closes_before_the_learner_listens_leaves_no_process(tmp_path: Path) -> None:
    run = RunMonitor.start(config(), tmp_path)
    pid = run.pid
    assert pid is not None
    run.close()
    wait_for(lambda: is_gone(pid))
    wait_for(lambda: not run.folder.exists())


@pytest.mark.slow
def test_a_refused_run_that_existed_before_is_not_removed(tmp_path: Path) -> None:
    outcome = Run(replace(config(name="old"), timesteps=512), tmp_path).learn()
    (outcome.folder / "live.jsonl").unlink()
    (outcome.folder / "config.json").write_text(config(name="old", net=[4, 4]).to_json())
    run = RunMonitor.continue_run(outcome.folder)
    wait_for(lambda: run.state == "failed")
    assert "does not fit" in run.problem
    assert (outcome.folder / "old.zip").is_file()


@pytest.mark.slow
def test_a_learner_that_is_detached_while_it_starts_continues(tmp_path: Path) -> None:
    run = RunMonitor.start(config(), tmp_path)
    run.detach()
    run.close()
    assert not run.connected
    pid = run.pid
    assert pid is not None
    wait_for(lambda: len(load_history(run.folder).steps) > 20)
    again = RunMonitor.attach(run.folder)
    assert again.pid == pid
    again.stop(discard=True)
    wait_for(lambda: is_gone(pid) and not run.folder.exists())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_suspended_learner_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts: list[LearnerAddress] = []

    def counted_connect(address: LearnerAddress) -> Connection:
        attempts.append(address)
        return connect(address)

    monkeypatch.setattr(control, "HANDSHAKE_TIMEOUT", 0.3)
    run = RunMonitor.start(config(), tmp_path)
    pid = wait_until_learning(run)
    wait_for(lambda: run.steps > 0)
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_for(lambda: run.steps_per_second == 0.0)
        assert running_learner(run.folder) == pid
        with pytest.raises(RacerError, match="training already"):
            RunMonitor.continue_run(run.folder)
        late = RunMonitor.attach(run.folder)
        wait_for(lambda: len(late.history.events) > 0)
        monkeypatch.setattr(control, "connect", counted_connect)
        wait_for(lambda: len(attempts) > 3)
        assert (run.state, late.state, run.problem, late.problem) == ("learning", "learning", "", "")
        steps = run.steps
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_for(lambda: run.steps > steps + 1000 and late.steps > steps + 1000)
    wait_for(lambda: late.connected)
    late.detach()
    late.close()
    run.close()
    wait_for(lambda: is_gone(pid))
    assert RunMonitor.attach(run.folder).state == "stopped"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_learner_waits_for_a_suspended_window(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(config(name="dozing").to_json())
    folder = tmp_path / "runs" / "dozing"
    command = [sys.executable, "-c", WATCHER, str(tmp_path / "config.json"), str(tmp_path / "runs")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watcher:
        wait_for(lambda: (folder / "learner.log").exists())
        watcher.send_signal(signal.SIGSTOP)  # before or after it has connected
        wait_for(lambda: len(load_history(folder).steps) > 20)
        pid = running_learner(folder)
        assert pid is not None
        watcher.send_signal(signal.SIGCONT)
        assert watcher.stdout is not None
        assert watcher.stdout.readline().split() == [str(pid)]
        assert running_learner(folder) == pid
        watcher.kill()
    wait_for(lambda: is_gone(pid))


@pytest.mark.slow
def test_a_run_at_a_terminal_is_paused_and_discarded_by_a_window(tmp_path: Path) -> None:
    options = [f"--set={key}={value}" for key, value in
               {"net": "8", "n_steps": 16, "batch_size": 128, "evaluate_every": 0}.items()]  # fmt: skip
    command = [sys.executable, "-P", "-m", "racer_viewer", "train", "--headless", "--data-dir", str(tmp_path)]
    command += ["--name", "mine", "--num-cars", "8", "--timesteps", "50000000", *options]
    folder = tmp_path / "runs" / "mine"
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        wait_for(lambda: running_learner(folder) == process.pid)
        lost = RunMonitor.attach(folder)
        wait_until_learning(lost)
        lost.detach()
        lost.close()
        run = RunMonitor.attach(folder)
        wait_until_learning(run)
        run.pause()
        wait_for(lambda: run.state == "paused")
        run.resume()
        wait_for(lambda: run.state == "learning")
        run.stop(discard=True)
        out, _ = process.communicate(timeout=TIMEOUT)
    finally:
        process.kill()
    assert process.returncode == 0
    assert "Discarded after" in out
    wait_for(lambda: run.state == "stopped")
    assert not folder.exists()


@pytest.mark.slow
def test_a_run_is_resumed_from_a_chosen_model(tmp_path: Path) -> None:
    outcome = Run(replace(config(name="old"), timesteps=1024, checkpoint_every=256), tmp_path).learn()
    model = outcome.folder / "old_512_steps.zip"
    run = RunMonitor.continue_run(model, timesteps=40_000_000)
    pid = wait_until_learning(run)
    assert (run.folder, run.total) == (outcome.folder, 40_000_000)
    assert "Resumed at 512 steps" in [event.text for event in run.history.events]
    run.close()
    wait_for(lambda: is_gone(pid))


def test_a_run_that_has_ended_is_opened_without_a_learner(tmp_path: Path) -> None:
    outcome = Run(replace(config(name="done"), timesteps=512), tmp_path).learn()
    run = RunMonitor.attach(outcome.folder)
    assert run.state == "finished"
    assert run.steps == 512
    assert run.swarm() is None
    run.pause()
    run.close()
    assert run.state == "finished"
