"""A run on several circuits knows on which of them each lap was driven."""

from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.logger import Logger

from racer_env.engine import load_circuit
from racer_viewer.agents import CHAMPION, load_agent, models_folder
from racer_viewer.cli import main
from racer_viewer.training.callbacks import Narrator
from racer_viewer.training.config import RunConfig
from racer_viewer.training.metrics import RacerMetricsCallback, find_cars
from racer_viewer.training.policy_log import PolicyLayout, PolicyLog
from racer_viewer.training.run_log import RunLog
from racer_viewer.training.run_log_reader import load_history
from racer_viewer.training.sb3 import make_env
from tests.training.live.learners import config

CIRCUITS = ("track-03", "track-01")
TICKS = 3000


class NoModel:
    """As much of a model as callbacks need."""

    def __init__(self, env: Any) -> None:
        self.logger, self.num_timesteps, self._env = Logger(None, []), 0, env

    def get_env(self) -> Any:
        return self._env


def tell_of_the_champion(config: RunConfig, folder: Path) -> None:
    """The story of cars that drive well, as a run would tell it."""
    env = make_env(config)
    cars, agent = find_cars(env), load_agent(models_folder() / f"{CHAMPION}.zip")
    assert cars is not None
    story, metrics, model = RunLog(folder), RacerMetricsCallback(), NoModel(env)
    narrator = Narrator(config, story, metrics, PolicyLog(folder, story, PolicyLayout("ppo", "tanh", 10.0, 1e-8, {})))
    story.event("begin", "Begins", 0, circuits=config.circuits)
    observations = cars.reset()
    for callback in (metrics, narrator):
        callback.init_callback(model)  # type: ignore[arg-type]
        callback.on_training_start({}, {})
    for _ in range(TICKS):
        observations, _, _, _ = cars.step(agent.act(observations))
        model.num_timesteps += config.num_cars
        for callback in (metrics, narrator):
            callback.on_step()
    story.close()
    env.close()


def test_laps_and_sectors_know_their_circuit(tmp_path: Path) -> None:
    """Cars that drive well are about as fast everywhere: what is mixed up would not be."""
    rewards = {"episode": {"maxSteps": 1200}}
    tell_of_the_champion(config(tracks=[CIRCUITS[0], *CIRCUITS], num_cars=8, rewards=rewards), tmp_path)
    curves = load_history(tmp_path)
    assert curves.circuits == CIRCUITS
    bests = curves.best_laps()
    assert set(bests) == set(CIRCUITS)
    speeds = {name: load_circuit(name).length / bests[name] for name in CIRCUITS}
    assert min(speeds.values()) > 0.7 * max(speeds.values())
    for name in CIRCUITS:
        laps, sectors = curves.laps_on(name), curves.sectors_on(name)
        assert laps[:, 1].max() < 1.4 * bests[name], "no lap of a longer circuit"
        assert np.nanmax(sectors[:, 1:].sum(axis=1)) < 1.4 * bests[name]
    assert len(curves.laps) == sum(len(curves.laps_on(name)) for name in CIRCUITS)
    first = next(event for event in curves.events if event.kind == "first lap")
    assert first.text.endswith(tuple(f" on {name}" for name in CIRCUITS))


def test_laps_of_evaluations_are_told_where_no_episode_is_a_whole_lap(tmp_path: Path) -> None:
    arguments = ["--track", "track-03", "--from", CHAMPION, "--timesteps", "1024", "--set", "n_steps=16"]
    network = ["--preset", "specialist", "--set", "batch_size=512", "--set", "n_epochs=1"]
    code = main(["train", "--headless", *network, *arguments, "--name", "long", "--data-dir", str(tmp_path)])
    assert code == 0
    curves = load_history(tmp_path / "runs" / "long")
    assert 16.0 < curves.laps[:, 1].min() < 25.0
    assert [event.text[:10] for event in curves.events if event.kind == "first lap"] == ["First lap:"]
