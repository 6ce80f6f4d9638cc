"""Settings that are known to work on this environment, by algorithm and name.

What made the difference: a policy that begins with its foot on the pedal (`first_action`), little noise on the actions
from the start, and a short horizon (gamma 0.98): the car can take nearly every bend at full speed, so all that is to be
learned is the line, and noise hides what a better line is worth.
"""

from __future__ import annotations

from typing import Any

from racer_env.errors import ConfigError
from racer_viewer.training.config import RunConfig, parse_run_config

DEFAULT_PRESET = "quick"

CIRCUITS = tuple(f"track-0{number}" for number in range(1, 7))
CLEAN = {
    "weights": {"offTrackPenalty": -0.004, "wallPenalty": -0.01},
    "episode": {"maxSteps": 600},
}
"""Leaving the road costs more than it gains. Short episodes: with starts anywhere, more of them see more corners."""

TIDY = {"weights": {"offTrackPenalty": -0.002}, "episode": {"maxSteps": 600}}
"""Leaving the road costs as much as it gains: learns faster than the usual weights, and stays on the road more."""

CHAMPION: dict[str, Any] = {
    "tracks": [*CIRCUITS, *CIRCUITS, *(f"random:{seed}" for seed in range(20))],
    "timesteps": 8_000_000,
    "num_cars": 128,
    "batch_size": 4096,
    "net": [128, 128],
    "starts": "anywhere",
    "progress_in_units": True,
    "rewards": CLEAN,
    "final_learning_rate": 1e-4,
    "log_std": -1.6,
    "final_log_std": -3.0,
    "evaluate_every": 250_000,
    "checkpoint_every": 1_000_000,
}
"""One policy for every circuit. Many circuits make it better on each than that one alone would."""

PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "ppo": {
        "quick": {"starts": "anywhere", "progress_in_units": True, "rewards": TIDY},
        "champion": CHAMPION,
        "specialist": {
            **CHAMPION,
            "begin_from": "champion",
            "tracks": ["track-01"],
            "timesteps": 4_000_000,
            "learning_rate": 5e-4,
            "log_std": -2.0,
            "evaluate_every": 100_000,
        },
    },
    "sac": {
        "quick": {
            "num_cars": 16,
            "timesteps": 800_000,
            "learning_rate": 7.3e-4,
            "final_learning_rate": 7.3e-4,
            "gamma": 0.98,
            "batch_size": 256,
            "activation": "relu",
            "log_std": -3.0,
            "evaluate_every": 20_000,
            "checkpoint_every": 100_000,
        },
    },
}


def preset(algo: str, name: str = DEFAULT_PRESET) -> RunConfig:
    """The config of a preset."""
    if algo not in PRESETS:
        raise ConfigError(f"unknown algorithm {algo!r}; known: {', '.join(PRESETS)}")
    if name not in PRESETS[algo]:
        raise ConfigError(f"{algo} has no preset {name!r}; known: {', '.join(PRESETS[algo])}")
    return parse_run_config({"algo": algo, **PRESETS[algo][name]})
