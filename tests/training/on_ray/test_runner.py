"""What one runner gathers and tells, without a Ray around it."""

import socket
import time
from contextlib import closing
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("ray", reason="python run.py --with ray test …")

from ray_runs import tiny

from racer_viewer.bench.bridge import bridge_process
from racer_viewer.bench.harness import served
from racer_viewer.training.config import RunConfig
from racer_viewer.training.ray.settings import RunnerSettings, Spread
from racer_viewer.training.sb3 import make_env, make_model

pytestmark = pytest.mark.slow

RETURNS_VAR = 4.0


def make_runner(config: RunConfig, bridge: str | None = None) -> Any:
    """A runner in this process, without a Ray around it."""
    from racer_viewer.training.ray.algorithm import ppo_config
    from racer_viewer.training.ray.runner import CarRunner

    settings = RunnerSettings.of(config, bridge)
    return CarRunner(config=ppo_config(config, Spread(), settings), worker_index=1, num_workers=1)


def model_of(runner: Any, config: RunConfig) -> Any:
    """A model of stable-baselines3 with the runner's policy and normalisation."""
    env = make_env(config)
    model = make_model(config, env)
    model.policy.load_state_dict(runner.module.policy.state_dict())
    mean, var = np.linspace(0.1, 0.9, 14), np.linspace(0.5, 2.0, 14)
    env.obs_rms.mean, env.obs_rms.var, env.ret_rms.var = mean, var, np.array(RETURNS_VAR)  # type: ignore[union-attr]
    runner.module.set_normalisation(mean, var, RETURNS_VAR, 10.0)
    return model


def gathered_by(runner: Any) -> Any:
    return runner.sample(policy=runner.module.get_state())


def test_what_a_runner_gathers_is_what_stable_baselines_would_learn_from() -> None:
    """The same driving, put into the other engine's buffer: its advantages and probabilities are the same."""
    config = tiny(rewards={"episode": {"maxSteps": 20}})
    runner = make_runner(config)
    model = model_of(runner, config)
    batch = gathered_by(runner).batch
    observations, actions = (batch[name].reshape(32, 8, -1) for name in ("obs", "actions"))
    again, buffer, env = make_runner(config), model.rollout_buffer, model.get_env()
    again._start()
    starts = np.ones(8)
    for tick in range(32):
        seen = again._last_observations
        assert np.array_equal(seen, observations[tick]), "drives the same again"
        with torch.no_grad():
            values, logp, _ = model.policy.evaluate_actions(
                torch.from_numpy(env.normalize_obs(seen)), torch.from_numpy(actions[tick])
            )
        clipped = np.clip(actions[tick], env.action_space.low, env.action_space.high)
        after, rewards, dones, infos = again._cars.step(clipped)
        rewards = env.normalize_reward(rewards)
        for car in np.flatnonzero(dones):
            assert infos[car]["TimeLimit.truncated"]
            with torch.no_grad():
                last = torch.from_numpy(env.normalize_obs(infos[car]["terminal_observation"])[None])
                rewards[car] += config.gamma * float(model.policy.predict_values(last))
        buffer.add(env.normalize_obs(seen), actions[tick], rewards, starts, values, logp)
        again._last_observations, starts = after, dones
    with torch.no_grad():
        last_values = model.policy.predict_values(torch.from_numpy(env.normalize_obs(again._last_observations)))
    buffer.compute_returns_and_advantage(last_values, starts)
    assert np.allclose(batch["action_logp"].reshape(32, 8), buffer.log_probs, atol=1e-4)
    assert np.allclose(batch["advantages"].reshape(32, 8), buffer.advantages, atol=1e-4)
    assert np.allclose(batch["value_targets"].reshape(32, 8), buffer.returns, atol=1e-4)
    assert buffer.episode_starts.sum() > 8, "some episodes ended on the way"


def test_a_runner_tells_what_its_cars_did() -> None:
    runner = make_runner(tiny())
    first, second = gathered_by(runner), gathered_by(runner)
    for each in (first, second):
        assert each.report.steps == len(each.batch["obs"]) == 8 * 32
    assert len(first.report.driven.returns) == 0
    assert second.report.driven.lengths == [50] * 8, "of 64 ticks that were driven"
    seen = np.concatenate((second.batch["obs"][8:], runner._last_observations))
    assert np.allclose(second.observations.mean, seen.mean(axis=0, dtype=np.float64))
    runner.stop()


def test_a_runner_without_its_bridge_says_so_and_drives_when_it_is_there() -> None:
    with bridge_process(uvloop=False) as url:
        runner = make_runner(tiny(), url)
        assert gathered_by(runner).report.steps == 8 * 32
    trouble = gathered_by(runner)
    assert url.removeprefix("ws://") in trouble.text
    with served("bridge", "--port", url.rpartition(":")[2]):
        assert gathered_by(runner).report.steps == 8 * 32
    runner.stop()


def test_a_bridge_that_keeps_one_waiting_is_not_asked_in_every_iteration() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        runner = make_runner(tiny(), f"ws://127.0.0.1:{silent.getsockname()[1]}")
        trouble, begin = gathered_by(runner), time.monotonic()
        assert "cannot connect" in trouble.text
        assert gathered_by(runner) == trouble
        assert time.monotonic() - begin < 5.0
