"""Small runs on Ray, which are quick."""

from pathlib import Path
from typing import Any

from racer_viewer.training.config import RunConfig, parse_run_config
from racer_viewer.training.ray.cluster import check_ray
from racer_viewer.training.ray.settings import Spread

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
"""The same at the command line, more or less."""


def tiny(**changes: object) -> RunConfig:
    return parse_run_config({**TINY, "name": "tiny", **changes})


def ray_run(runs: Path, runners: int = 2, bridge: str | None = None, **changes: object) -> Any:
    check_ray()
    from racer_viewer.training.ray.run import RayRun

    run = RayRun(tiny(**changes), runs, None, bridge, Spread(runners=runners))
    run.folder.mkdir(parents=True)
    return run
