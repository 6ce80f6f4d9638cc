"""Normalisation statistics: found beside a model, read from every kind of file, and exact enough to resume training."""

import json
import pickle
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from racer_env.env import RacerEnv
from racer_viewer.agents import (
    AgentError,
    Statistics,
    find_stats,
    load_agent,
    load_stats,
    restore_stats,
    save_stats,
    stats_of,
)
from racer_viewer.agents.load import MissingStatisticsWarning
from racer_viewer.cli import main
from tests.agents.models import ACTION_SPACE, make_env, some_observations, trained


def drive(env: VecNormalize, steps: int, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    results = []
    for _ in range(steps):
        observations, rewards, _, _ = env.step(rng.uniform(0, 1, (env.num_envs, 3)).astype(np.float32))
        results.append((observations, rewards))
    return results


@pytest.fixture
def env() -> VecNormalize:
    env = make_env()
    env.seed(5)
    env.reset()
    drive(env, 100, seed=1)
    return env


def assert_same(one: Statistics, other: Statistics) -> None:
    for mine, theirs in ((one.observations, other.observations), (one.returns, other.returns)):
        assert (mine is None) == (theirs is None)
        if mine is not None and theirs is not None:
            np.testing.assert_array_equal(mine.mean, theirs.mean)
            np.testing.assert_array_equal(mine.var, theirs.var)
            assert mine.count == theirs.count
    for name in ("clip_obs", "clip_reward", "epsilon", "gamma", "norm_reward"):
        assert getattr(one, name) == getattr(other, name)


@pytest.mark.parametrize("settings", [{}, {"norm_reward": False, "gamma": 0.995, "clip_obs": 3.5, "epsilon": 1e-6}])
def test_what_is_saved_is_loaded_to_the_last_digit(env: VecNormalize, tmp_path: Path, settings: Any) -> None:
    for name, value in settings.items():
        setattr(env, name, value)
    save_stats(tmp_path / "x.npz", env)
    env.save(str(tmp_path / "x.pkl"))
    expected = stats_of(env)
    assert_same(load_stats(tmp_path / "x.npz"), expected)
    assert_same(load_stats(tmp_path / "x.pkl"), expected)
    save_stats(tmp_path / "again.npz", load_stats(tmp_path / "x.pkl"))
    assert_same(load_stats(tmp_path / "again.npz"), expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.npz", "x.npz", "x.pkl"]


def test_a_restored_normalisation_goes_on_exactly_as_the_saved_one(env: VecNormalize, tmp_path: Path) -> None:
    save_stats(tmp_path / "x.npz", env)
    restored = make_env()
    restore_stats(load_stats(tmp_path / "x.npz"), restored)
    for one in (env, restored):
        one.seed(9)
        one.reset()
    for mine, theirs in zip(drive(restored, 200, seed=2), drive(env, 200, seed=2), strict=True):
        np.testing.assert_array_equal(mine[0], theirs[0])
        np.testing.assert_array_equal(mine[1], theirs[1])
    assert_same(stats_of(restored), stats_of(env))


def test_a_copy_does_not_follow_the_original(env: VecNormalize) -> None:
    stats = stats_of(env)
    assert stats.observations is not None
    before = stats.observations.mean.copy()
    env.obs_rms.mean += 1.0
    np.testing.assert_array_equal(stats.observations.mean, before)


def test_statistics_of_another_size_are_not_restored(env: VecNormalize) -> None:
    other = SimpleNamespace(**vars(env) | {"obs_rms": SimpleNamespace(mean=np.zeros(5), var=np.ones(5), count=1.0)})
    with pytest.raises(AgentError, match="of 14 values, but 5"):
        restore_stats(stats_of(env), other)


@pytest.mark.parametrize("protocol", range(2, 6))
def test_pickles_of_every_protocol_are_read(env: VecNormalize, tmp_path: Path, protocol: int) -> None:
    env.observation_space.sample()
    env.action_space.sample()
    (tmp_path / "x.pkl").write_bytes(pickle.dumps(env, protocol))
    if protocol == 2:
        with pytest.raises(AgentError, match=r"_codecs\.encode"):
            load_stats(tmp_path / "x.pkl")
    else:
        assert_same(load_stats(tmp_path / "x.pkl"), stats_of(env))


@pytest.mark.parametrize("protocol", [4, 5])
def test_pickles_with_the_names_of_the_other_numpy_are_read(env: VecNormalize, tmp_path: Path, protocol: int) -> None:
    data = pickle.dumps(env, protocol)
    for module in ("multiarray", "numeric"):
        new, old = (text.encode() for text in (f"numpy._core.{module}", f"numpy.core.{module}"))
        data = data.replace(b"\x8c" + bytes([len(new)]) + new, b"\x8c" + bytes([len(old)]) + old)
    assert b"numpy._core" not in data
    assert b"numpy.core" in data
    (tmp_path / "x.pkl").write_bytes(data)
    assert_same(load_stats(tmp_path / "x.pkl"), stats_of(env))


def test_statistics_of_several_inputs_are_refused(tmp_path: Path) -> None:
    class Several(gymnasium.Env[Any, Any]):
        observation_space = spaces.Dict({"a": spaces.Box(0, 1, (14,)), "b": spaces.Box(0, 1, (2,))})
        action_space = ACTION_SPACE

        def reset(self, **_: Any) -> Any:
            return self.observation_space.sample(), {}

    VecNormalize(DummyVecEnv([Several])).save(str(tmp_path / "x.pkl"))
    with pytest.raises(AgentError, match="several inputs"):
        load_stats(tmp_path / "x.pkl")


def test_a_normalisation_of_rewards_only_leaves_observations_alone(tmp_path: Path, folder: Path) -> None:
    env = VecNormalize(make_env().venv, norm_obs=False)
    env.save(str(tmp_path / "x.pkl"))
    save_stats(tmp_path / "x.npz", env)
    for name in ("x.pkl", "x.npz"):
        assert load_stats(tmp_path / name).observations is None
        assert not load_agent(trained("ppo", folder).path, stats=tmp_path / name).normalised
    restored = make_env()
    restore_stats(load_stats(tmp_path / "x.npz"), restored)
    assert not restored.norm_obs
    with pytest.raises(AgentError, match="not normalised"):
        save_stats(tmp_path / "x.json", env)


def test_the_json_of_an_export_is_enough_to_drive_and_not_to_learn(env: VecNormalize, tmp_path: Path) -> None:
    save_stats(tmp_path / "vecnorm_stats.json", env)
    content = json.loads((tmp_path / "vecnorm_stats.json").read_text())
    assert sorted(content) == ["clip_obs", "epsilon", "obs_mean", "obs_var"]
    stats = load_stats(tmp_path / "vecnorm_stats.json")
    assert stats.observations is not None
    np.testing.assert_array_equal(stats.observations.mean, env.obs_rms.mean)
    np.testing.assert_array_equal(stats.observations.var, env.obs_rms.var)
    assert (stats.clip_obs, stats.epsilon) == (env.clip_obs, env.epsilon)
    with pytest.raises(AgentError, match="training cannot be resumed"):
        restore_stats(stats, env)


@pytest.mark.parametrize(
    ("model", "beside", "found"),
    [
        ("a.zip", ["a_vecnormalize.pkl", "a_vecnormalize.npz", "vecnormalize.pkl"], "a_vecnormalize.pkl"),
        ("a.zip", ["a_vecnormalize.npz", "vecnormalize.pkl"], "a_vecnormalize.npz"),
        ("a.zip", ["b_vecnormalize.pkl", "vecnormalize.pkl", "vecnormalize.npz"], "vecnormalize.pkl"),
        ("a.zip", ["vecnormalize.npz"], "vecnormalize.npz"),
        ("a.zip", ["b_vecnormalize.npz", "vecnorm_stats.json"], None),
        ("r_1_500_steps.zip", ["r_1_vecnormalize_500_steps.pkl", "vecnormalize.pkl"], "r_1_vecnormalize_500_steps.pkl"),
        ("r_5_steps.zip", ["r_vecnormalize_6_steps.pkl", "r_5_steps_vecnormalize.npz"], "r_5_steps_vecnormalize.npz"),
        ("model.onnx", ["vecnormalize.pkl", "vecnorm_stats.json"], "vecnorm_stats.json"),
        ("Racer-v0.zip", ["Racer-v0/vecnormalize.pkl", "Other-v0/vecnormalize.pkl"], "Racer-v0/vecnormalize.pkl"),
        ("best_model.zip", ["Racer-v0/vecnormalize.pkl"], "Racer-v0/vecnormalize.pkl"),
        ("best_model.zip", ["Racer-v0/vecnormalize.pkl", "Other-v0/vecnormalize.pkl"], None),
    ],
)  # fmt: skip
def test_statistics_are_looked_for_beside_the_model(
    tmp_path: Path, model: str, beside: list[str], found: str | None
) -> None:
    for name in beside:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert find_stats(tmp_path / model) == (None if found is None else tmp_path / found)


def test_missing_statistics_are_reported(folder: Path, tmp_path: Path) -> None:
    model = trained("ppo", folder)
    alone = tmp_path / "alone.zip"
    alone.write_bytes(model.path.read_bytes())
    with pytest.warns(MissingStatisticsWarning, match=r"alone\.zip was trained .* alone_vecnormalize\.pkl beside it"):
        agent = load_agent(alone)
    assert not agent.normalised
    assert agent.info.problem is not None
    shutil.copy(model.path.with_name("ppo_vecnormalize.pkl"), tmp_path / "alone_vecnormalize.pkl")
    assert load_agent(alone).info.problem is None


def test_a_model_of_raw_observations_is_not_warned_about(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    model = PPO("MlpPolicy", DummyVecEnv([RacerEnv]), n_steps=64, batch_size=64, device="cpu")
    model.learn(64)
    model.save(tmp_path / "raw.zip")
    assert load_agent(tmp_path / "raw.zip").info.problem is None
    assert not [each for each in recwarn if issubclass(each.category, MissingStatisticsWarning)]


def test_the_command_line_reports_missing_statistics_and_takes_them(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = tmp_path / "alone.zip"
    alone.write_bytes(trained("ppo", folder).path.read_bytes())
    stats = str(folder / "ppo_vecnormalize.pkl")
    for verb in (["evaluate", str(alone), "--track", "track-01"], ["export", str(alone), "--zip", str(tmp_path / "b")]):
        assert main(verb) == 0
        errors = [line for line in capsys.readouterr().err.splitlines() if "statistics" in line]
        assert len(errors) == 1
        assert errors[0].startswith("racer-viewer: alone.zip was trained with normalised observations")
        assert main([*verb, "--stats", stats]) == 0
        assert "statistics" not in capsys.readouterr().err
    assert main(["evaluate", str(alone), "champion", "--stats", stats]) == 2
    assert "--stats is for one model" in capsys.readouterr().err


def test_an_agent_is_used_like_a_model_of_stable_baselines() -> None:
    agent, env = load_agent("champion"), DummyVecEnv([lambda: gymnasium.make("Racer-v0", max_episode_steps=600)])
    mean, deviation = evaluate_policy(agent, env, n_eval_episodes=2, warn=False)
    assert mean > 1.0, "more than a lap in ten seconds"
    assert deviation < 0.1
    observation, state = np.full((1, 14), 0.5, np.float32), (np.zeros(2, np.float32),)
    actions, after = agent.predict(observation, state, np.ones(1, bool))
    np.testing.assert_array_equal(actions, agent.act(observation))
    assert after is state
    assert not np.array_equal(agent.predict(observation, deterministic=False)[0], actions)


def test_given_statistics_win_over_those_beside_the_model(folder: Path, tmp_path: Path) -> None:
    model = trained("ppo", folder)
    other = trained("sac", folder)
    save_stats(tmp_path / "given.npz", other.vec_normalize)
    agent = load_agent(model.path, stats=tmp_path / "given.npz")
    assert agent.info.stats_path == tmp_path / "given.npz"
    observations = some_observations()
    expected = model.model.predict(other.vec_normalize.normalize_obs(observations), deterministic=True)[0]
    np.testing.assert_allclose(agent.act(observations), expected, rtol=0, atol=1e-5)


def test_statistics_of_another_number_of_observations_are_refused(folder: Path, tmp_path: Path) -> None:
    stats = {"obs_mean": [0.0] * 20, "obs_var": [1.0] * 20, "clip_obs": 10, "epsilon": 1e-8}
    (tmp_path / "x.json").write_text(json.dumps(stats))
    with pytest.raises(AgentError, match=r"\(20,\); a racing agent takes 14"):
        load_agent(trained("ppo", folder).path, stats=tmp_path / "x.json")


def test_broken_statistics_beside_a_model_are_not_passed_over(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(trained("ppo", folder).path.read_bytes())
    (tmp_path / "vecnormalize.pkl").write_bytes(b"\x80\x04N.")
    with pytest.raises(AgentError, match=r"vecnormalize\.pkl: is a pickle, but not of a VecNormalize"):
        load_agent(tmp_path / "a.zip")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"obs_mean": [0.0] * 13}, "not as many"),
        ({"obs_mean": [float("nan")] * 14}, "finite"),
        ({"obs_var": [-1.0] * 14}, "negative"),
        ({"obs_var": [0.0] * 14, "epsilon": 0.0}, "zero"),
        ({"obs_var": "x"}, "not a file of statistics"),
        ({"clip_obs": float("nan")}, "clip_obs"),
        ({"clip_obs": None}, "not a file of statistics"),
        ({"epsilon": -1.0}, "epsilon"),
    ],
)
def test_statistics_that_make_no_sense_are_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    stats = {"obs_mean": [0.0] * 14, "obs_var": [1.0] * 14, "clip_obs": 10.0, "epsilon": 1e-8}
    (tmp_path / "x.json").write_text(json.dumps(stats | change))
    with pytest.raises(AgentError, match=message):
        load_stats(tmp_path / "x.json")


@pytest.mark.parametrize("name", ["missing.pkl", "missing.npz", "x.txt"])
def test_a_file_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "x.txt").touch()
    with pytest.raises(AgentError, match=r"no such file|statistics must be a \.npz, \.pkl, \.json file"):
        load_stats(tmp_path / name)
    with pytest.raises(AgentError, match="saved as"):
        save_stats(tmp_path / "x.pkl", Statistics(None))
