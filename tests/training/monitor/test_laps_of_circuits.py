"""Runs on several circuits log the circuit of each lap."""

from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from racer_env.engine import circuit_name, load_circuit
from racer_viewer.agents import CHAMPION, load_agent, models_folder
from racer_viewer.cli import main
from racer_viewer.training.callbacks import RunLogCallback
from racer_viewer.training.config import RunConfig
from racer_viewer.training.lap_tracker import LapTracker
from racer_viewer.training.run_log import RunLog
from racer_viewer.training.run_log_reader import load_history
from racer_viewer.training.sb3 import make_env
from racer_viewer.training.vec_env import find_cars, simulation_of
from tests.training.monitor.learners import config

CIRCUITS = ("track-03", "track-01")
TICKS = 3000


def log_of_the_champion(config: RunConfig, folder: Path) -> None:
    """Write the run log of cars that the champion drives."""
    env = make_env(config)
    cars, agent = find_cars(env), load_agent(models_folder() / f"{CHAMPION}.zip")
    learner: Any = SimpleNamespace(config=config, steps=0)
    with closing(env), closing(RunLog(folder)) as log:
        callback = RunLogCallback(log)
        callback.learner = learner
        log.event("begin", "Begins", 0, circuits=config.circuits)
        observations = cars.reset()
        laps = LapTracker(config, simulation_of(cars), cars.last_step)
        for _ in range(TICKS):
            observations, _, _, _ = cars.step(agent.act(observations))
            learner.steps += config.num_cars
            callback.on_step(laps.step(cars.last_step))


def test_laps_and_sectors_know_their_circuit(tmp_path: Path) -> None:
    """The champion is about as fast everywhere, so laps with the wrong circuit would stand out."""
    rewards = {"episode": {"maxSteps": 1200}}
    log_of_the_champion(config(tracks=[CIRCUITS[0], *CIRCUITS], num_cars=8, rewards=rewards), tmp_path)
    history = load_history(tmp_path)
    assert history.circuits == CIRCUITS
    bests = history.best_laps()
    assert set(bests) == set(CIRCUITS)
    speeds = {name: load_circuit(name).length / bests[name] for name in CIRCUITS}
    assert min(speeds.values()) > 0.7 * max(speeds.values())
    for name in CIRCUITS:
        laps, sectors = history.laps_on(name), history.sectors_on(name)
        assert laps[:, 1].max() < 1.4 * bests[name], "no lap of a longer circuit"
        assert np.nanmax(sectors[:, 1:].sum(axis=1)) < 1.4 * bests[name]
    assert len(history.laps) == sum(len(history.laps_on(name)) for name in CIRCUITS)
    first = next(event for event in history.events if event.kind == "first lap")
    assert first.text.endswith(tuple(f" on {circuit_name(name)}" for name in CIRCUITS))


def test_laps_of_evaluations_are_logged_if_no_episode_is_a_whole_lap(tmp_path: Path) -> None:
    arguments = ["--track", "track-03", "--from", CHAMPION, "--timesteps", "1024", "--set", "n_steps=16"]
    network = ["--preset", "specialist", "--set", "batch_size=512", "--set", "n_epochs=1"]
    code = main(["train", "--headless", *network, *arguments, "--name", "long", "--data-dir", str(tmp_path)])
    assert code == 0
    history = load_history(tmp_path / "runs" / "long")
    assert 16.0 < history.laps[:, 1].min() < 25.0
    assert [event.text[:10] for event in history.events if event.kind == "first lap"] == ["First lap:"]
