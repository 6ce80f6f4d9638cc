"""Agents drive fast and import nothing heavier than numpy."""

import subprocess
import sys
import timeit
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from racer_env.bridge import interface
from racer_viewer.agents import load_agent, policies
from tests.agents.models import some_observations, trained

HEAVY = ("torch", "stable_baselines3", "gymnasium", "gym", "numba", "onnxruntime", "pandas", "pygame")

PROGRAM = """
import sys
import racer_env.errors

before = set(sys.modules)
from racer_viewer.agents import load_agent

for path in sys.argv[1:]:
    agent = load_agent(path)
    agent.act([0.5] * 14)
    agent.act([[0.5] * 14], deterministic=False)
    agent.values([0.5] * 14)
    agent.spread([0.5] * 14)
    agent.sensitivity([0.5] * 14)
print(*{name.split(".")[0] for name in set(sys.modules) - before})
print(*{name.split(".")[0] for name in sys.modules})
"""


def test_an_agent_drives_without_torch_or_stable_baselines_or_the_environment(folder: Path) -> None:
    """Modules that `racer_env` imports to register its environments are not counted."""
    paths = [str(trained(name, folder).path) for name in ("ppo", "sac-gsde")]
    result = subprocess.run([sys.executable, "-c", PROGRAM, *paths], capture_output=True, text=True, check=True)
    added, loaded = (set(line.split()) for line in result.stdout.splitlines())
    assert "racer_viewer" in added
    assert added.isdisjoint(HEAVY)
    assert loaded.isdisjoint({"torch", "stable_baselines3"})


def test_the_spaces_are_those_of_the_environment() -> None:
    np.testing.assert_array_equal(policies.OBSERVATION_LOW, interface.OBSERVATION_LOW)
    np.testing.assert_array_equal(policies.OBSERVATION_HIGH, interface.OBSERVATION_HIGH)
    np.testing.assert_array_equal(policies.ACTION_LOW, interface.ACTION_LOW)
    np.testing.assert_array_equal(policies.ACTION_HIGH, interface.ACTION_HIGH)


@pytest.mark.parametrize("name", ["ppo", "sac"])
def test_one_action_takes_less_than_fifty_microseconds(name: str, folder: Path) -> None:
    agent = load_agent(trained(name, folder).path)
    observation = some_observations(1)[0]
    best = min(timeit.repeat(lambda: agent.act(observation), number=50, repeat=60)) / 50
    assert best < 50e-6


def test_an_agent_cannot_be_changed(folder: Path) -> None:
    agent = trained("ppo", folder).agent
    with pytest.raises(AttributeError):
        agent.policy = None  # type: ignore[misc, assignment]
    policy: Any = agent.policy
    for limit in (policy.box.low, policy.box.high, policies.ACTION_LOW, policies.ACTION_HIGH):
        assert not limit.flags.writeable
    actor = policy.actor
    for layer in (*actor.hidden, actor.head):
        with pytest.raises(ValueError, match="read-only"):
            layer.weights[0, 0] = 1.0
        with pytest.raises(ValueError, match="read-only"):
            layer.bias[0] = 1.0


def test_acting_leaves_the_observations_as_they_were(folder: Path) -> None:
    agent = trained("ppo-linear", folder).agent
    observations = some_observations(10)
    before = observations.copy()
    actions = agent.act(observations)
    kept = actions.copy()
    actions += 1.0
    np.testing.assert_array_equal(observations, before)
    np.testing.assert_array_equal(agent.act(observations), kept)
