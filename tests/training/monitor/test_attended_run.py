"""Runs at a terminal: windows attach to them, control them and leave them."""

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from racer_viewer.training import run_monitor
from racer_viewer.training.control import DISCARD, WATCH, ControlClient
from racer_viewer.training.run import Run
from racer_viewer.training.run_folder import remove_run
from racer_viewer.training.run_lock import running_learner
from racer_viewer.training.run_monitor import RunMonitor
from racer_viewer.training.sb3 import SB3Learner
from tests.processes import TIMEOUT, wait_for
from tests.training.monitor.learners import config, event_kinds, learning_here, wait_until_learning


@pytest.fixture
def training(tmp_path: Path) -> Iterator[Run]:
    with learning_here(config(name="mine"), tmp_path) as training:
        yield training


def attach(training: Run) -> RunMonitor:
    run = RunMonitor.attach(training.folder)
    wait_until_learning(run)
    return run


def test_a_window_sees_cars_policies_and_events(training: Run) -> None:
    run = attach(training)
    wait_for(lambda: len(run.history.policies) > 2 and run.swarm() is not None)
    swarm = run.swarm()
    assert swarm is not None
    wait_for(lambda: (now := run.swarm()) is not None and now.tick > swarm.tick)
    assert run.policy().act([0.5] * 14).shape == (3,)
    assert run.pid == running_learner(training.folder)
    run.save()
    wait_for(lambda: "checkpoint" in event_kinds(run))
    run.stop()
    wait_for(lambda: run.state == "stopped")
    assert not run.problem
    assert running_learner(training.folder) is None


def test_a_run_continues_at_full_speed_when_its_last_window_closes(training: Run) -> None:
    run = attach(training)
    run.set_pace(0.5)
    assert run.pace == 0.5
    run.pause()
    wait_for(lambda: run.state == "paused")
    again = RunMonitor.attach(training.folder)
    wait_for(lambda: again.state == "paused")
    wait_for(lambda: again.pace == 0.5)
    again.detach()
    again.close()
    assert run.state == "paused", "the first window still watches"
    run.close()
    last = RunMonitor.attach(training.folder)
    wait_for(lambda: last.state == "learning" and last.pace is None)
    steps = last.steps
    wait_for(lambda: last.steps > steps + 2000)
    assert event_kinds(last).count("resumed") == 1


def test_some_of_the_weights_are_changed(training: Run) -> None:
    run = attach(training)
    before = dict(run.weights)
    run.set_weights({"wallPenalty": -0.5})
    wait_for(lambda: run.weights["wallPenalty"] == -0.5)
    assert run.weights == {**before, "wallPenalty": -0.5}
    run.set_weights({"wallPenalty": -0.5})
    run.set_weights({"speedBonus": 0.125})
    wait_for(lambda: run.weights["speedBonus"] == 0.125)
    assert run.weights == {**before, "wallPenalty": -0.5, "speedBonus": 0.125}
    assert event_kinds(run).count("weights") == 2, "unchanged weights are no event"
    assert RunMonitor.attach(training.folder).weights == run.weights


def test_terms_are_changed_while_a_run_learns(training: Run) -> None:
    run = attach(training)
    run.set_weights({}, {"smooth": "-0.01 * abs(steer_change)", "fast": "0.001"})
    wait_for(lambda: list(run.config.rewards.formulas) == ["smooth", "fast"])
    wait_for(lambda: np.isfinite(run.history.values.get("reward/fast", [np.nan])[-1]))
    assert run.history.values["reward/fast"][-1] == pytest.approx(0.001)
    run.set_weights({"speedBonus": 0.5}, {"fast": "0.002"})
    wait_for(lambda: run.weights["speedBonus"] == 0.5)
    assert run.config.rewards.formulas == {"fast": "0.002"}
    last = [event.text for event in run.history.events if event.kind == "weights"][-1]
    assert last == "speedBonus from 0 to 0.5, term smooth removed, term fast changed"
    run.set_weights({"speedBonus": 0.25})
    wait_for(lambda: run.weights["speedBonus"] == 0.25)
    assert run.config.rewards.formulas == {"fast": "0.002"}, "terms that are not sent stay"


def test_a_hostile_formula_in_a_command_changes_nothing(training: Run) -> None:
    run, client = attach(training), ControlClient(training.folder)
    client.connect()
    for terms in ({"own": "__import__('os')"}, {"own": 7}, [1], "speed", {"progress": "1"}):
        client.send_command("weights", weights={}, terms=terms)
    client.send_command("save")
    client.flush(wait=True)
    wait_for(lambda: "checkpoint" in event_kinds(run))
    assert event_kinds(run).count("problem") == 5
    assert run.config.rewards.formulas == {}
    client.close()


@pytest.mark.parametrize("times", [10**400, "fast", [1.0], float("nan")])
def test_a_wrong_pace_does_not_end_the_run(training: Run, times: object) -> None:
    run, client = attach(training), ControlClient(training.folder)
    client.connect()
    client.send_command("pace", times=times)
    client.send_command("save")
    client.flush(wait=True)
    wait_for(lambda: "checkpoint" in event_kinds(run))
    steps = run.steps
    wait_for(lambda: run.steps > steps + 5000)
    client.close()


def test_a_run_that_has_just_ended_can_be_discarded(tmp_path: Path) -> None:
    with learning_here(config(name="short", timesteps=2048), tmp_path) as training:
        run = RunMonitor.attach(training.folder)
        wait_for(lambda: run.state == "finished")
        assert training.folder.is_dir()
        run.stop(discard=True)
        assert not training.folder.exists()


def test_a_run_is_discarded_if_the_command_comes_after_the_last_tick(tmp_path: Path) -> None:
    saving, commanded = threading.Event(), threading.Event()

    class SlowToSave(SB3Learner):
        def save(self, path: Path) -> Path:
            saving.set()
            assert commanded.wait(TIMEOUT)
            return super().save(path)

    with learning_here(config(name="late", timesteps=2048), tmp_path, SlowToSave) as training:
        assert saving.wait(TIMEOUT)
        client = ControlClient(training.folder)
        client.connect()
        for command in (DISCARD, WATCH):
            client.send_command(command)
        client.flush(wait=False)
        replies: list[object] = []
        wait_for(lambda: replies.extend(client.messages()) or len(replies) == 2)  # one per WATCH
        commanded.set()
        wait_for(lambda: training.discarded)
        client.close()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
def test_no_file_of_a_run_is_open_when_it_is_removed(
    training: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Learner and window are in this process: Windows would refuse to remove files that either has open."""
    removed: list[Path] = []

    def remove(folder: Path) -> None:
        handles = [str(each.readlink()) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
        assert not [handle for handle in handles if handle.startswith(str(folder))]
        assert str(folder) not in Path("/proc/self/maps").read_text()
        removed.append(folder)
        remove_run(folder)

    monkeypatch.setattr(run_monitor, "remove_run", remove)
    run = attach(training)
    wait_for(lambda: run.swarm() is not None)
    run.stop(discard=True)
    wait_for(lambda: run.state not in ("learning", "paused"))
    assert run.state == "stopped", run.problem
    assert removed == [training.folder]
    assert run.swarm() is not None, "the last state stays"
    assert not training.folder.exists()
