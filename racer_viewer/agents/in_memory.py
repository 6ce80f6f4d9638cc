"""Agents from arrays that are in memory already: the policies that a run keeps while it learns."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from racer_viewer.agents.agent import Agent, AgentInfo
from racer_viewer.agents.build import build_policy
from racer_viewer.agents.description import Description
from racer_viewer.agents.errors import AgentError, shown
from racer_viewer.agents.networks import Floats
from racer_viewer.agents.stats import Normaliser, Statistics


@dataclass(frozen=True, eq=False)
class ArrayTensors:
    """Tensors by name."""

    arrays: Mapping[str, Floats]

    @property
    def names(self) -> Collection[str]:
        return self.arrays.keys()

    def read(self, name: str) -> Floats:
        numbers = np.array(self.arrays[name], np.float32, order="C")
        if not np.isfinite(numbers).all():
            raise AgentError(f"its tensor {shown(name)} holds numbers that are not finite: the training went astray")
        return numbers


def agent_of_arrays(
    arrays: Mapping[str, Floats], description: Description, stats: Statistics, info: AgentInfo
) -> Agent:
    """The agent that these tensors and this normalisation are; `info` tells where they are from."""
    with np.errstate(over="ignore"):
        policy, numbers = build_policy(ArrayTensors(arrays), description)
    info = info.of_policy(policy, description, numbers)
    return Agent(info, policy, None if stats.observations is None else Normaliser(stats))
