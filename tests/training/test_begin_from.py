"""Runs that start with the weights of another model."""

from pathlib import Path

import numpy as np
import pytest

from racer_env.errors import RacerError
from racer_viewer.agents import load_agent
from racer_viewer.training.config import RunConfig, parse_run_config
from racer_viewer.training.run import Run

TINY = {"num_cars": 8, "n_steps": 16, "batch_size": 64, "timesteps": 128, "evaluate_every": 0}


def config(**values: object) -> RunConfig:
    return parse_run_config({**TINY, "name": "child", **values})


def test_it_drives_like_the_model_and_learns_from_there(tmp_path: Path) -> None:
    """A tiny learning rate keeps the weights of the model; the noise is that of the run's config."""
    still = {"learning_rate": 1e-12, "final_learning_rate": 1e-12, "net": [128, 128], "log_std": -2.0}
    outcome = Run(config(begin_from="champion", **still), tmp_path).learn()
    child, champion = load_agent(outcome.model), load_agent("champion")
    observations = np.random.default_rng(0).uniform(0, 1, (100, 14)).astype(np.float32)
    assert child.normaliser is not None
    difference = np.abs(child.act(observations) - champion.act(observations)).max()
    fresh = load_agent(Run(config(name="fresh", net=[128, 128]), tmp_path).learn().model)
    assert difference < 0.1 * np.abs(fresh.act(observations) - champion.act(observations)).max()
    assert np.allclose(np.log(child.spread(observations[0])), -2.0, atol=1e-3)
    assert outcome.steps == 128


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"begin_from": "champion", "net": [64, 64]}, "hidden layers 128,128"),
        ({"begin_from": "champion", "algo": "sac", "net": [128, 128]}, "it is PPO"),
        ({"begin_from": "nobody"}, "there is no such file"),
    ],
)
def test_a_model_that_does_not_fit_is_an_error(values: dict[str, object], problem: str, tmp_path: Path) -> None:
    with pytest.raises(RacerError, match=problem):
        Run(config(**values), tmp_path).learn()
    assert not (tmp_path / "child").exists()


def test_a_resumed_run_continues_from_its_own_checkpoint(tmp_path: Path) -> None:
    from racer_viewer.training.run_folder import find_checkpoint

    Run(config(begin_from="champion", net=[128, 128]), tmp_path).learn()
    checkpoint = find_checkpoint(Path("child"), tmp_path)
    longer = parse_run_config({"timesteps": 256}, checkpoint.config)
    assert Run(longer, tmp_path, checkpoint).learn().steps == 256
