"""Folders for the Hugging Face hub: a model with its card, results and config, as other SB3 models have them there.

Everything is written to disk; nothing is uploaded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from racer_env.engine import load_circuit
from racer_viewer import __version__
from racer_viewer.agents import Agent
from racer_viewer.agents.load import bundled_tracks
from racer_viewer.agents.model_writer import save_model
from racer_viewer.paths import atomic_write
from racer_viewer.training.evaluation import Evaluation, evaluate
from racer_viewer.training.export import model_content

ENVIRONMENT = "Racer-v0"
CARD_FILE, RESULTS_FILE, CONFIG_FILE, REPLAY_FILE = "README.md", "results.json", "config.json", "replay.mp4"
EPISODES = 10
"""Episodes per circuit in the results."""
DEFAULT_CIRCUITS = ("track-01", "track-02", "track-03")
"""Circuits of a model that is not a bundled one: what it was trained on is not known."""


@dataclass(frozen=True)
class HubResults:
    """Content of results.json, by the names that other models on the hub use."""

    mean_reward: float
    std_reward: float
    is_deterministic: bool
    n_eval_episodes: int
    eval_datetime: str


def circuits_of(agent: Agent) -> tuple[str, ...]:
    """Return the bundled circuits that an agent was trained on, as far as they are known."""
    named = [name for name in bundled_tracks().get(agent.name, ()) if not name.startswith("random:")]
    return tuple(named) or DEFAULT_CIRCUITS


def write_hub_folder(agent: Agent, folder: Path) -> HubResults:
    """Evaluate an agent and write the folder, except for its film; return the results."""
    content = model_content(agent)
    evaluations = evaluate(agent.act, [load_circuit(name) for name in circuits_of(agent)], EPISODES)
    rewards = [episode.reward for each in evaluations for episode in each.episodes]
    results = HubResults(
        float(np.mean(rewards)), float(np.std(rewards)), True, len(rewards), datetime.now(UTC).isoformat()
    )
    save_model(content, folder / f"{agent.name}.zip")
    texts = {
        RESULTS_FILE: json.dumps(asdict(results), indent=2) + "\n",
        CONFIG_FILE: json.dumps(_config(agent, content.settings), indent=2) + "\n",
        CARD_FILE: _card(agent, results, evaluations),
    }
    for name, text in texts.items():
        with atomic_write(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return results


def _config(agent: Agent, settings: Mapping[str, Any]) -> dict[str, Any]:
    info = agent.info
    return {
        "env_id": ENVIRONMENT,
        "algo": info.algorithm,
        "policy": "MlpPolicy",
        "policy_layers": info.policy_layers,
        "value_layers": info.value_layers,
        "activation": info.activation,
        "normalize": agent.normalised,
        "timesteps": info.timesteps,
        "racer_viewer_version": __version__,
        "settings": dict(settings),
    }


def _card(agent: Agent, results: HubResults, evaluations: Sequence[Evaluation]) -> str:
    """Return the model card: the metadata block of the hub, then text for people."""
    info = agent.info
    reward = f"{results.mean_reward:.2f} +/- {results.std_reward:.2f}"
    steps = "an unknown number of" if info.timesteps is None else f"{info.timesteps:,}"
    rows = "\n".join(
        f"| {each.track} | {_seconds(each.best_standing)} | {_seconds(each.best_flying)} | {each.completion:.0%} "
        f"| {'yes' if each.clean else 'no'} | {each.reward:.3f} |"
        for each in evaluations
    )
    package = "sb3_contrib" if info.algorithm in ("TRPO", "TQC") else "stable_baselines3"
    return f"""---
library_name: stable-baselines3
tags:
- {ENVIRONMENT}
- deep-reinforcement-learning
- reinforcement-learning
- stable-baselines3
model-index:
- name: {info.algorithm}
  results:
  - task:
      type: reinforcement-learning
      name: reinforcement-learning
    dataset:
      name: {ENVIRONMENT}
      type: {ENVIRONMENT}
    metrics:
    - type: mean_reward
      value: {reward}
      name: mean_reward
      verified: false
---

# {info.algorithm} agent for {ENVIRONMENT}

A trained {info.algorithm} agent that drives a car around racing circuits, from 14 observations (rays, speed, track
position) to steer, throttle and brake. It was trained for {steps} steps.

## Usage

```python
import gymnasium
import racer_env  # registers {ENVIRONMENT}; pip install racer-viewer
from {package} import {info.algorithm}
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

env = DummyVecEnv([lambda: gymnasium.make("{ENVIRONMENT}", track_id="{evaluations[0].track}")])
{_usage(agent)}model = {info.algorithm}.load("{agent.name}.zip")
observations = env.reset()
for _ in range(1000):
    actions, _ = model.predict(observations, deterministic=True)
    observations, rewards, dones, infos = env.step(actions)
```

## Results

Mean reward {reward} over {results.n_eval_episodes} episodes with deterministic actions. Lap times in seconds, from a
standing and from a flying start; a circuit is clean if no episode touched a wall or left the road.

| circuit | standing lap | flying lap | completion | clean | reward per episode |
|---|---|---|---|---|---|
{rows}

`{REPLAY_FILE}` shows a lap. Measure again with `racer-viewer evaluate {agent.name}.zip --episodes {EPISODES}`.
"""


def _usage(agent: Agent) -> str:
    if not agent.normalised:
        return ""
    return (
        f'env = VecNormalize.load("{agent.name}_vecnormalize.pkl", env)\n'
        "env.training = env.norm_reward = False  # only normalise observations\n"
    )


def _seconds(lap: float | None) -> str:
    return "-" if lap is None else f"{lap:.2f}"
