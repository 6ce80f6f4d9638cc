"""An agent answers as stable-baselines3 does with the same files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from racer_viewer.agents import AgentError, load_agent
from tests.agents.models import LEARNED, SETTINGS, Trained, some_observations, trained

TOLERANCE = 1e-5
GSDE = [name for name in SETTINGS if "gsde" in name]
GAUSSIAN = [name for name in SETTINGS if "gsde" not in name]
OLD_MODELS = sorted((Path(__file__).parent / "data").glob("*.zip"))


@pytest.fixture(params=SETTINGS)
def any_model(request: pytest.FixtureRequest, folder: Path) -> Trained:
    return trained(request.param, folder)


def assert_close(ours: Any, theirs: Any) -> None:
    assert ours.dtype == np.float32
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE)


def distribution(model: Any) -> Any:
    return model.policy.action_dist if hasattr(model.policy, "action_dist") else model.actor.action_dist


def test_mean_actions_are_the_same(any_model: Trained) -> None:
    observations = some_observations()
    theirs = any_model.predict(observations)
    assert_close(any_model.agent.act(observations), theirs)
    assert any_model.agent.normalised
    assert np.ptp(theirs, axis=0).min() > 0.01


def test_one_observation_is_answered_as_one_of_many(any_model: Trained) -> None:
    observations = some_observations(20)
    many = any_model.agent.act(observations)
    for observation, expected in zip(observations, many, strict=True):
        one = any_model.agent.act(observation)
        assert one.shape == (3,)
        assert_close(one, expected)
        assert_close(one, any_model.predict(observation))
    assert any_model.agent.act(observations[:0]).shape == (0, 3)


def test_observations_may_be_lists_or_doubles(any_model: Trained) -> None:
    observation = some_observations(1)[0]
    expected = any_model.agent.act(observation)
    assert_close(any_model.agent.act(observation.astype(np.float64)), expected)
    assert_close(any_model.agent.act(observation.tolist()), expected)


@pytest.mark.parametrize("name", GAUSSIAN)
def test_sampled_actions_are_the_same_for_the_same_noise(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = trained(name, folder)
    observations = some_observations()
    noise = np.random.default_rng(1).standard_normal((len(observations), 3)).astype(np.float32)
    monkeypatch.setattr(torch.distributions.normal, "_standard_normal", lambda *_, **__: torch.as_tensor(noise))
    assert model.agent.noise_shape == (3,)
    assert_close(model.agent.act(observations, noise=noise), model.predict(observations, deterministic=False))
    assert_close(model.agent.act(observations[0], noise=noise[0]), model.agent.act(observations, noise=noise)[0])


@pytest.mark.parametrize("name", GSDE)
def test_sampled_actions_of_gsde_are_the_same_for_the_same_exploration_matrix(name: str, folder: Path) -> None:
    model = trained(name, folder)
    observations = some_observations()
    theirs = distribution(model.model)
    noise = np.random.default_rng(1).standard_normal(model.agent.noise_shape).astype(np.float32)
    with torch.no_grad():
        theirs.exploration_mat = theirs.get_std(log_std_of(model.model)) * torch.as_tensor(noise)
    assert_close(model.agent.act(observations, noise=noise), model.predict(observations, deterministic=False))


def log_std_of(model: Any) -> torch.Tensor:
    return model.policy.log_std if hasattr(model.policy, "log_std") else model.actor.log_std


def test_sampled_actions_have_the_same_distribution(any_model: Trained) -> None:
    observation = some_observations(1)
    rows = np.repeat(observation, 4000, axis=0)
    ours = any_model.agent.act(rows, deterministic=False, rng=np.random.default_rng(2))
    torch.manual_seed(0)
    if any_model.model.use_sde:
        any_model.model.policy.reset_noise(len(rows))
    theirs = any_model.predict(rows, deterministic=False)
    if any_model.model.use_sde:
        any_model.model.policy.reset_noise(1)
    error = 5.0 * theirs.std(axis=0) / np.sqrt(len(rows)) + 1e-6
    assert (np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) < 1.5 * error).all()
    assert (np.abs(ours.std(axis=0) - theirs.std(axis=0)) < 1.5 * error).all()
    quantiles = [np.quantile(actions, (0.1, 0.5, 0.9), axis=0) for actions in (ours, theirs)]
    assert np.abs(quantiles[0] - quantiles[1]).max() < 0.15


def test_the_same_generator_draws_the_same_actions(any_model: Trained) -> None:
    observations = some_observations(50)
    draws = [any_model.agent.act(observations, False, np.random.default_rng(seed)) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert (draws[0] != draws[2]).any()
    assert any_model.agent.act(observations, deterministic=False).shape == (50, 3)


@pytest.mark.parametrize("name", [name for name in SETTINGS if name.startswith("ppo")])
def test_values_are_the_same(name: str, folder: Path) -> None:
    model = trained(name, folder)
    observations = some_observations()
    with torch.no_grad():
        theirs = model.model.policy.predict_values(model.normalised(observations)).numpy()[:, 0]
    ours = model.agent.values(observations)
    assert ours is not None
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=TOLERANCE)
    one = model.agent.values(observations[0])
    assert one is not None
    assert one.shape == ()


def test_sac_has_no_values(folder: Path) -> None:
    assert trained("sac", folder).agent.values(some_observations(3)) is None


@pytest.mark.parametrize("name", [name for name in SETTINGS if name.startswith("ppo") and "squashed" not in name])
def test_the_spread_of_ppo_is_that_of_its_distribution(name: str, folder: Path) -> None:
    model = trained(name, folder)
    observations = some_observations(200)
    with torch.no_grad():
        theirs = model.model.policy.get_distribution(model.normalised(observations)).distribution.stddev.numpy()
    ours = model.agent.spread(observations)
    assert ours is not None
    np.testing.assert_allclose(np.sqrt(ours**2 + 1e-6 * ("gsde" in name)), theirs, rtol=1e-4)
    assert model.agent.spread(observations[0]).shape == (3,)


@pytest.mark.parametrize("name", [name for name in SETTINGS if name.startswith("sac") or "squashed" in name])
def test_the_spread_of_squashed_actions_is_that_of_many_drawn_ones(name: str, folder: Path) -> None:
    model = trained(name, folder)
    for observation in some_observations(3):
        drawn = model.agent.act(np.tile(observation, (10_000, 1)), False, np.random.default_rng(3))
        np.testing.assert_allclose(model.agent.spread(observation), drawn.std(axis=0), rtol=0.05, atol=1e-6)


def test_learning_has_moved_the_models_that_learned(folder: Path) -> None:
    for name in LEARNED:
        info = trained(name, folder).agent.info
        assert info.timesteps is not None
        assert info.timesteps >= 128


def test_without_statistics_observations_are_taken_as_they_are(folder: Path, tmp_path: Path) -> None:
    model = trained("ppo-relu", folder)
    alone = tmp_path / "alone.zip"
    alone.write_bytes(model.path.read_bytes())
    agent = load_agent(alone)
    observations = some_observations()
    assert not agent.normalised
    assert agent.info.stats_path is None
    assert_close(agent.act(observations), model.model.predict(observations, deterministic=True)[0])


@pytest.mark.parametrize("path", OLD_MODELS, ids=lambda path: path.stem)
def test_models_of_older_versions_answer_as_they_did_there(path: Path) -> None:
    expected = np.load(path.with_name(f"{path.stem}_expected.npz"))
    agent = load_agent(path)
    assert agent.normalised
    assert_close(agent.act(expected["observations"]), expected["actions"])
    if "values" in expected:
        assert_close(agent.values(expected["observations"]), expected["values"])


def test_the_facts_about_a_model_are_known(folder: Path) -> None:
    model = trained("ppo-elu-separate", folder)
    info = model.agent.info
    assert (info.name, info.algorithm, info.activation) == ("ppo-elu-separate", "PPO", "ELU")
    assert (info.policy_layers, info.value_layers) == ((24,), (48, 12))
    assert info.parameters == sum(parameter.numel() for parameter in model.model.policy.parameters())
    assert info.file_bytes == model.path.stat().st_size
    assert info.modified.timestamp() == pytest.approx(model.path.stat().st_mtime, abs=1e-3)
    assert info.stats_path == model.path.with_name("ppo-elu-separate_vecnormalize.pkl")
    sac = trained("sac", folder)
    assert sac.agent.info.parameters == sum(parameter.numel() for parameter in sac.model.actor.parameters())
    assert (sac.agent.info.policy_layers, sac.agent.info.value_layers) == ((256, 256), None)
    assert sac.agent.info.activation == "ReLU"


def test_shared_layers_are_counted_once() -> None:
    info = load_agent(next(path for path in OLD_MODELS if path.name.startswith("shared"))).info
    assert info.policy_layers == (16, 8)
    assert info.value_layers == (16, 10, 6)
    assert info.parameters == 3 + 15 * 16 + 17 * 8 + 9 * 3 + 17 * 10 + 11 * 6 + 7


@pytest.mark.parametrize("wrong", [np.zeros(13), np.zeros((2, 15)), np.zeros((2, 2, 14)), 1.0, []])
def test_observations_of_another_shape_are_refused(any_model: Trained, wrong: Any) -> None:
    with pytest.raises(AgentError, match="observations must have shape"):
        any_model.agent.act(wrong)


def test_noise_of_another_shape_is_refused(any_model: Trained) -> None:
    with pytest.raises(AgentError, match="noise must have shape"):
        any_model.agent.act(np.zeros((5, 14)), noise=np.zeros((7, 3)))
