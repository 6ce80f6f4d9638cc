"""The sensitivity of actions to the raw inputs is their derivative."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from racer_viewer.agents import AgentError
from tests.agents.models import SETTINGS, Trained, some_observations, trained

STEP = 1e-6


@pytest.fixture(params=SETTINGS)
def model(request: pytest.FixtureRequest, folder: Path) -> Trained:
    return trained(request.param, folder)


def mean_action_in_doubles(model: Trained, observation: torch.Tensor) -> torch.Tensor:
    """Return the mean action of stable-baselines3 for a raw observation, in double precision."""
    statistics = model.vec_normalize
    mean, var = torch.as_tensor(statistics.obs_rms.mean), torch.as_tensor(statistics.obs_rms.var)
    inputs = ((observation - mean) / torch.sqrt(var + statistics.epsilon)).clip(
        -statistics.clip_obs, statistics.clip_obs
    )
    policy = model.model.policy
    output = policy(inputs[None], deterministic=True)  # PPO also returns the value and the log probability
    actions = (output[0] if isinstance(output, tuple) else output)[0]
    low, high = torch.as_tensor(policy.action_space.low), torch.as_tensor(policy.action_space.high)
    if policy.squash_output:
        return low + 0.5 * (actions + 1.0) * (high - low)
    return actions.clip(low, high)


@pytest.fixture
def doubles(model: Trained, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("stable_baselines3.common.policies.preprocess_obs", lambda observation, *_, **__: observation)
    model.model.policy.double()
    yield
    model.model.policy.float()


def test_it_is_the_derivative_that_torch_computes(model: Trained, doubles: None) -> None:
    clipped_inputs = clipped_actions = 0
    for observation in some_observations(40, seed=1):
        ours = model.agent.sensitivity(observation)
        theirs = torch.autograd.functional.jacobian(
            lambda raw: mean_action_in_doubles(model, raw), torch.as_tensor(observation, dtype=torch.float64)
        ).numpy()
        assert ours.shape == (3, 14)
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4 * max(np.abs(theirs).max(), 1e-3))
        clipped_inputs += int((theirs == 0.0).all(axis=0).sum())
        clipped_actions += int((theirs == 0.0).all(axis=1).sum())
    assert clipped_inputs > 0
    if model.path.stem in ("ppo-silu-wide", "sac-gsde-clipped"):
        assert clipped_actions > 0


def test_it_agrees_with_finite_differences(model: Trained, doubles: None) -> None:
    agreed = total = 0
    for observation in some_observations(10, seed=2).astype(np.float64):
        ours = model.agent.sensitivity(observation)
        steps = np.eye(14) * STEP * np.sqrt(model.vec_normalize.obs_rms.var)
        with torch.no_grad():
            ends = [
                torch.stack([mean_action_in_doubles(model, torch.as_tensor(row)) for row in observation + sign * steps])
                for sign in (1, -1)
            ]
        differences = ((ends[0] - ends[1]).numpy() / (2.0 * np.diag(steps)[:, np.newaxis])).T
        agreed += int(np.isclose(ours, differences, rtol=1e-3, atol=1e-4 * max(np.abs(differences).max(), 1e-3)).sum())
        total += ours.size
    assert agreed == total


def test_it_is_of_one_observation(model: Trained) -> None:
    with pytest.raises(AgentError, match="one observation"):
        model.agent.sensitivity(np.zeros((2, 14)))
