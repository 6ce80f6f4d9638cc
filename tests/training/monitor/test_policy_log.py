"""Policy log: logged policies act exactly as they did during training."""

import errno
import os
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest

from racer_viewer.agents import AgentError, load_agent
from racer_viewer.training import policy_log, run_log
from racer_viewer.training.config import RunConfig, parse_run_config
from racer_viewer.training.learner import Callback
from racer_viewer.training.metric_files import TableFile
from racer_viewer.training.policy_log import PolicyLayout, PolicyLog
from racer_viewer.training.run import Run
from racer_viewer.training.run_log import RunLog
from racer_viewer.training.run_log_reader import load_history
from racer_viewer.training.run_monitor import RunMonitor
from racer_viewer.training.sb3 import SB3Learner

OBSERVATIONS = np.random.default_rng(3).uniform(-0.2, 1.0, (40, 14)).astype(np.float32)


def config(**changes: object) -> RunConfig:
    values: dict[str, Any] = {
        "num_cars": 8, "n_steps": 16, "batch_size": 64, "n_epochs": 2, "net": [16, 8], "timesteps": 640,
        "checkpoint_every": 256, "evaluate_every": 0, "name": "tiny", "rewards": {"episode": {"maxSteps": 50}},
    }  # fmt: skip
    return parse_run_config({**values, **changes})


class RecordedActions(Callback):
    """Actions at the start of every rollout, by steps: of the torch policy, or of a model that the learner saves."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.actions: dict[int, np.ndarray] = {}

    def on_rollout_start(self) -> None:
        learner = self.learner
        if isinstance(learner, SB3Learner):
            normalised = learner.env.normalize_obs(OBSERVATIONS)
            self.actions[learner.steps] = learner.model.predict(normalised, deterministic=True)[0]
        else:
            saved = learner.save(self._folder / "now.zip")
            self.actions[learner.steps] = load_agent(saved).act(OBSERVATIONS)


@pytest.mark.parametrize(
    "changes",
    [
        {"engine": "sb3"},
        {"engine": "sb3", "activation": "relu"},
        {"engine": "native"},
        {
            "algo": "sac",
            "learning_starts": 64,
            "buffer_size": 2000,
            "batch_size": 16,
            "train_freq": 1,
            "gradient_steps": 1,
        },
    ],
)
def test_a_logged_policy_acts_as_it_did_in_training(changes: dict[str, Any], tmp_path: Path) -> None:
    recorded = RecordedActions(tmp_path)
    outcome = Run(config(**changes), tmp_path).learn(callbacks=[recorded])
    run = RunMonitor.attach(outcome.folder)
    assert run.state == "finished"
    assert len(run.history.policies) > 5
    compared = 0
    for number, steps in enumerate(run.history.policies.tolist()):
        if steps in recorded.actions:
            np.testing.assert_allclose(run.policy(number).act(OBSERVATIONS), recorded.actions[steps], atol=2e-6)
            compared += 1
    assert compared >= len(run.history.policies) - 1
    assert outcome.model is not None
    final = load_agent(outcome.model)
    np.testing.assert_array_equal(run.policy().act(OBSERVATIONS), final.act(OBSERVATIONS))
    info = run.policy().info
    assert (info.algorithm, info.policy_layers, info.timesteps) == (
        final.info.algorithm, final.info.policy_layers, final.info.timesteps,
    )  # fmt: skip
    with pytest.raises(AgentError, match="no policy number 9999"):
        run.policy(9999)


def test_a_run_without_a_window_writes_its_log(tmp_path: Path) -> None:
    outcome = Run(config(), tmp_path).learn()
    history = load_history(outcome.folder)
    assert history.steps.tolist() == [128, 256, 384, 512, 640]
    assert {"reward/progress", "rollout/ep_rew_mean", "train/approx_kl", "time/fps"} <= set(history.values)
    assert np.isfinite(history.values["rollout/ep_rew_mean"]).any()
    kinds = [event.kind for event in history.events]
    assert kinds[0] == "begin"
    assert kinds[-1] == "end"
    assert kinds.count("checkpoint") == 3, "two during the run and one at its end"


def test_a_resumed_run_appends_policies_to_the_same_file(tmp_path: Path) -> None:
    outcome = Run(config(), tmp_path).learn()
    (outcome.folder / "config.json").write_text(config(timesteps=1024).to_json())
    Run.in_folder(outcome.folder).learn()
    run = RunMonitor.attach(outcome.folder)
    steps = run.history.policies
    assert steps[0] == 0
    assert steps[-1] == 1024
    assert (np.diff(steps) >= 0).all()
    assert (np.diff(run.history.steps) > 0).all()
    first, last = run.policy(0).act(OBSERVATIONS), run.policy().act(OBSERVATIONS)
    assert not np.array_equal(first, last)


def test_the_file_stays_small_however_long_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_log, "MAX_FILE_SIZE", 100_000)
    log, layout = RunLog(tmp_path), PolicyLayout("ppo", "tanh", 10.0, 1e-8, {"a": (100,)})
    policies = PolicyLog(tmp_path, log, layout)
    for steps in range(20_000):
        policies.offer(lambda: bytes(layout.size), steps)
    policies.close()
    log.close()
    kept = load_history(tmp_path).policies
    size = (tmp_path / "policies.bin").stat().st_size
    assert size == len(kept) * layout.size <= 100_000
    gaps = np.diff(kept)
    assert gaps[0] == 1
    assert kept[-1] > 5000, "far beyond the 160 that fit"
    assert (np.diff(gaps) >= 0).all()


def open_full_disk() -> BinaryIO:
    return Path("/dev/full").open("wb", buffering=0)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a full disk")
def test_a_full_disk_does_not_end_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_log, "open_for_appending", lambda path: open_full_disk())

    def write(file: TableFile, values: dict[str, float], steps: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(TableFile, "write", write)
    problems: list[str] = []
    outcome = Run(config(), tmp_path).learn(on_problem=problems.append)
    assert outcome.finished
    assert "No space left" in problems[0]
