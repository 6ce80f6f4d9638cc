"""Settings that are known to work on this environment, by algorithm and name."""

from __future__ import annotations

from typing import Any

from racer_env.errors import ConfigError
from racer_viewer.training.config import RunConfig, parse_run_config

DEFAULT_PRESET = "quick"

PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "ppo": {
        "quick": {},
    },
    "sac": {
        "quick": {
            "num_cars": 16,
            "timesteps": 300_000,
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
