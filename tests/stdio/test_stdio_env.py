"""Environments in another process behave as in this one."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

import racer_env
from racer_env.errors import BridgeError, ContractError
from racer_env.stdio import Expected, StdioClient, StdioEnv
from tests.processes import process_exists
from tests.stdio.helpers import ODD_ENVIRONMENT, hostile


def assert_same_episodes(env_id: str, steps: int, seed: int = 5, **make_kwargs: Any) -> None:
    """Check that equal seeds and actions give identical results in both processes."""
    here, there = gymnasium.make(env_id, **make_kwargs), StdioEnv.hosting(env_id, make_kwargs)
    try:
        assert there.observation_space == here.observation_space
        assert there.action_space == here.action_space
        here.action_space.seed(seed)
        assert_same(here.reset(seed=seed), there.reset(seed=seed))
        for _ in range(steps):
            action = here.action_space.sample()
            result = here.step(action)
            assert_same(result, there.step(action))
            if result[2] or result[3]:
                assert_same(here.reset(), there.reset())
    finally:
        there.close()
        here.close()
    assert not process_exists(there.client.pid)


def assert_same(here: tuple[Any, ...], there: tuple[Any, ...]) -> None:
    np.testing.assert_array_equal(here[0], there[0], strict=True)
    assert here[1:] == there[1:]


def test_cartpole_gives_the_same_episodes() -> None:
    assert_same_episodes("CartPole-v1", 150)


@pytest.mark.slow
@pytest.mark.parametrize("env_id", ["Racer-v0", "RacerDiscrete-v0"])
def test_the_racer_gives_the_same_episodes(env_id: str) -> None:
    assert racer_env
    assert_same_episodes(env_id, 60, start={"arc": [0.0, 1.0], "speed": [20.0, 60.0]}, track_id="track-02")


@pytest.mark.slow
@pytest.mark.parametrize("env_id", ["FrozenLake-v1", "Pendulum-v1", "Blackjack-v1", "LunarLander-v3", "CarRacing-v3"])
def test_other_environments_give_the_same_episodes(env_id: str) -> None:
    if env_id == "Blackjack-v1":
        with pytest.raises(BridgeError, match="observations of a Tuple space cannot be sent"):
            StdioEnv.hosting(env_id)
    else:
        assert_same_episodes(env_id, 8 if env_id == "CarRacing-v3" else 60)


def test_reset_options_reach_the_environment() -> None:
    env = StdioEnv.hosting("odd_envs:Odd-v0", environment=ODD_ENVIRONMENT)
    try:
        assert env.reset(options={"a": [1]})[1]["options"] == {"a": [1]}
        assert env.action_space == spaces.Discrete(11)
        assert env.step(0)[1] == 0.5
        with pytest.raises(BridgeError, match="refused the request: KeyError"):
            env.step(5)
        assert env.step(10)[0].tolist() == [0.25, 5.0]
    finally:
        env.close()


def test_a_plain_helper_is_an_environment_too() -> None:
    env = StdioEnv(hostile(), Expected(obs_shape=(3,)))
    try:
        assert env.action_space == spaces.Discrete(2)
        assert env.observation_space == spaces.Box(-np.inf, np.inf, (3,), np.float32)
        assert env.observation_space.contains(env.reset(seed=1)[0])
    finally:
        env.close()
    with pytest.raises(BridgeError, match="is closed"):
        env.reset()


def test_an_invalid_observation_never_reaches_a_learner() -> None:
    env = StdioEnv(hostile(on="step", change={"obs": [0.0, 2.0, 0.0]}), Expected(obs_low=-1.0, obs_high=1.0))
    env.reset()
    with pytest.raises(ContractError, match=r"observation\[1\]: -1 to 1 expected, got 2"):
        env.step(0)
    assert not process_exists(env.client.pid)


@pytest.mark.filterwarnings("ignore")
def test_the_environment_checker_of_gymnasium_passes() -> None:
    env = StdioEnv.hosting("CartPole-v1")
    check_env(env, skip_render_check=True)
    env.close()
    assert not process_exists(env.client.pid)


@pytest.mark.slow
def test_a_learner_learns_in_another_process() -> None:
    ppo = pytest.importorskip("stable_baselines3").PPO
    from stable_baselines3.common.env_checker import check_env as sb3_check

    env = StdioEnv.hosting("CartPole-v1")
    sb3_check(env)
    here = ppo("MlpPolicy", gymnasium.make("CartPole-v1"), n_steps=64, seed=3, device="cpu").learn(128)
    there = ppo("MlpPolicy", env, n_steps=64, seed=3, device="cpu").learn(128)
    for ours, theirs in zip(here.policy.parameters(), there.policy.parameters(), strict=True):
        np.testing.assert_array_equal(ours.detach().numpy(), theirs.detach().numpy())
    env.close()
    assert not process_exists(env.client.pid)


def test_the_classes_are_exported() -> None:
    assert racer_env.StdioEnv is StdioEnv
    assert racer_env.StdioClient is StdioClient
