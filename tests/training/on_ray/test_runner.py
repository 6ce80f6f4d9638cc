"""Rollouts and statistics of one runner, without Ray."""

import socket
import time
from contextlib import closing
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("ray", reason="python run.py --with ray test …")

from racer_viewer.bench.bridge import bridge_process
from racer_viewer.bench.harness import server_process
from racer_viewer.training.config import RunConfig
from racer_viewer.training.ray.settings import RaySettings, RunnerSettings
from racer_viewer.training.sb3 import make_env, make_model
from tests.training.on_ray.ray_runs import tiny

pytestmark = pytest.mark.slow

RETURNS_VAR = 4.0


def make_runner(config: RunConfig, bridge: str | None = None) -> Any:
    """Create a runner in this process, without Ray."""
    from racer_viewer.training.ray.algorithm import ppo_config
    from racer_viewer.training.ray.runner import CarRunner

    settings = RunnerSettings.create(config, bridge)
    return CarRunner(config=ppo_config(config, RaySettings(), settings), worker_index=1, num_workers=1)


def model_of(runner: Any, config: RunConfig) -> Any:
    """Create a model of stable-baselines3 with the runner's policy and normalisation."""
    env = make_env(config)
    model = make_model(config, env)
    model.policy.load_state_dict(runner.module.policy.state_dict())
    mean, var = np.linspace(0.1, 0.9, 14), np.linspace(0.5, 2.0, 14)
    env.obs_rms.mean, env.obs_rms.var, env.ret_rms.var = mean, var, np.array(RETURNS_VAR)  # type: ignore[union-attr]
    runner.module.set_normalisation(mean, var, RETURNS_VAR, 10.0)
    return model


def rollout_of(runner: Any) -> Any:
    return runner.sample(policy=runner.module.get_state())


def test_a_rollout_is_what_stable_baselines_would_learn_from() -> None:
    """Put the same steps into the buffer of stable-baselines3: it computes the same advantages and probabilities."""
    config = tiny(rewards={"episode": {"maxSteps": 20}})
    runner = make_runner(config)
    model = model_of(runner, config)
    batch = rollout_of(runner).batch
    observations, actions = (batch[name].reshape(32, 8, -1) for name in ("obs", "actions"))
    again, buffer, env = make_runner(config), model.rollout_buffer, model.get_env()
    cars = again.start()
    starts = np.ones(8)
    for tick in range(32):
        seen = again.last_observations
        assert np.array_equal(seen, observations[tick]), "drives the same again"
        with torch.no_grad():
            values, logp, _ = model.policy.evaluate_actions(
                torch.from_numpy(env.normalize_obs(seen)), torch.from_numpy(actions[tick])
            )
        clipped = np.clip(actions[tick], env.action_space.low, env.action_space.high)
        after, rewards, dones, infos = cars.step(clipped)
        rewards = env.normalize_reward(rewards)
        for car in np.flatnonzero(dones):
            assert infos[car]["TimeLimit.truncated"]
            with torch.no_grad():
                last = torch.from_numpy(env.normalize_obs(infos[car]["terminal_observation"])[None])
                rewards[car] += config.gamma * float(model.policy.predict_values(last))
        buffer.add(env.normalize_obs(seen), actions[tick], rewards, starts, values, logp)
        again.last_observations, starts = after, dones
    with torch.no_grad():
        last_values = model.policy.predict_values(torch.from_numpy(env.normalize_obs(again.last_observations)))
    buffer.compute_returns_and_advantage(last_values, starts)
    assert np.allclose(batch["action_logp"].reshape(32, 8), buffer.log_probs, atol=1e-4)
    assert np.allclose(batch["advantages"].reshape(32, 8), buffer.advantages, atol=1e-4)
    assert np.allclose(batch["value_targets"].reshape(32, 8), buffer.returns, atol=1e-4)
    assert buffer.episode_starts.sum() > 8, "some episodes ended on the way"


def test_a_runner_reports_statistics_of_its_cars() -> None:
    runner = make_runner(tiny())
    first, second = rollout_of(runner), rollout_of(runner)
    for each in (first, second):
        assert each.stats.steps == len(each.batch["obs"]) == 8 * 32
    assert len(first.stats.returns) == 0
    assert second.stats.lengths == [50] * 8, "of 64 ticks that were driven"
    seen = np.concatenate((second.batch["obs"][8:], runner.last_observations))
    assert np.allclose(second.observations.mean, seen.mean(axis=0, dtype=np.float64))
    runner.stop()


def test_a_runner_reports_a_missing_bridge_and_drives_when_it_is_back() -> None:
    with bridge_process(uvloop=False) as url:
        runner = make_runner(tiny(), url)
        assert rollout_of(runner).stats.steps == 8 * 32
    failure = rollout_of(runner)
    assert url.removeprefix("ws://") in failure.text
    with server_process("bridge", "--port", url.rpartition(":")[2]):
        assert rollout_of(runner).stats.steps == 8 * 32
    runner.stop()


def test_a_bridge_that_does_not_answer_is_not_tried_in_every_iteration() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        runner = make_runner(tiny(), f"ws://127.0.0.1:{silent.getsockname()[1]}")
        failure, begin = rollout_of(runner), time.monotonic()
        assert "cannot connect" in failure.text
        assert rollout_of(runner) == failure
        assert time.monotonic() - begin < 5.0
