"""Small runs on Ray."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from racer_viewer.optional import RAY
from racer_viewer.training.config import RunConfig, parse_run_config
from racer_viewer.training.ray.settings import RaySettings

TINY = {
    "num_cars": 8,
    "n_steps": 32,
    "batch_size": 64,
    "n_epochs": 1,
    "net": [8],
    "timesteps": 2048,
    "checkpoint_every": 512,
    "evaluate_every": 1024,
    "rewards": {"episode": {"maxSteps": 50}},
}
SETTINGS = ["--set", "n_steps=32", "--set", "n_epochs=1", "--set", "checkpoint_every=1024", "--set", "net=16,16"]
"""Options of the command line for a similar run."""


def tiny(**changes: object) -> RunConfig:
    return parse_run_config({**TINY, "name": "tiny", **changes})


def make_ray_run(
    runs: Path,
    runners: int = 2,
    bridges: str | None = None,
    on_iteration: Callable[[Any], None] = lambda algorithm: None,
    **changes: object,
) -> Any:
    """Create a small run on a local Ray, with its folder."""
    RAY.require()
    from racer_viewer.training.ray.learner import ray_run

    settings = RaySettings(runners=runners)
    run = ray_run(tiny(**changes), runs, settings, bridges=bridges, on_iteration=on_iteration)
    run.folder.mkdir(parents=True)
    return run
