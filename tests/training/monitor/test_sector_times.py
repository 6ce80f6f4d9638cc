"""Sector times of all cars at once."""

import numpy as np

from racer_env import RacerVectorEnv
from racer_env.engine import ANYWHERE, Start, load_circuit
from racer_viewer.agents import CHAMPION, load_agent, models_folder
from racer_viewer.timing import Stopwatch
from racer_viewer.training.lap_tracker import SectorTracker

TICKS = 1500


def drive(start: Start, max_steps: int) -> tuple[np.ndarray, list[tuple[int, ...]], int]:
    """Return sector rows, the sectors of a stopwatch for each car, and the number of laps that the engine counted."""
    env = RacerVectorEnv(4, config={"episode": {"maxSteps": max_steps}}, start=start)
    agent, track = load_agent(models_folder() / f"{CHAMPION}.zip"), load_circuit("track-01")
    step = env.reset_batch(seed=1)
    times = SectorTracker([track], 4, from_line=start == Start())
    times.start(step.cars.checkpoint, None)
    rows, watched, laps = [], [], 0
    watches = [Stopwatch(len(track.gates)) for _ in range(4)]
    for _ in range(TICKS):
        step = env.batch.step(agent.act(step.observations))
        rows += [lap for _, lap in times.step(step, None)]
        laps += int((step.finished_lap_ticks > 0).sum())
        for row, watch in enumerate(watches):
            if row in step.ended:
                watches[row] = Stopwatch(len(track.gates))
                continue
            car = env.batch.simulation.cars[row]
            lap = watch.tick(car.lap, car.lap_ticks, car.checkpoint, car.finished_lap_ticks)
            if lap is not None:
                watched.append(lap.sectors())
    env.close()
    return np.array(rows), watched, laps


def test_laps_from_the_line_have_the_sectors_of_a_stopwatch() -> None:
    rows, watched, laps = drive(Start(), 10_000)
    whole = rows[~np.isnan(rows).any(axis=1)]
    assert laps == len(whole) == len(watched) > 4
    ticks = sorted(tuple(np.round(row * 60).astype(int).tolist()) for row in whole)
    assert ticks == sorted(watched)


def test_a_sector_counts_only_from_line_to_line() -> None:
    rows, _, _ = drive(ANYWHERE, 300)
    assert np.isnan(rows).any(), "episodes of five seconds are shorter than a lap"
    assert not np.isnan(rows).all(axis=1).any()
    line = drive(Start(), 10_000)[0]
    flying = line[:, 1:].min(axis=0)
    times = rows[:, 1:]
    assert (np.nanmin(times, axis=0) > 0.85 * flying).all(), "no sector is faster than possible"


def test_standing_cars_have_no_sectors() -> None:
    env = RacerVectorEnv(2)
    step = env.reset_batch(seed=1)
    times = SectorTracker([load_circuit("track-01")], 2, from_line=True)
    times.start(step.cars.checkpoint, None)
    for _ in range(200):
        assert len(times.step(env.batch.step(np.zeros((2, 3))), None)) == 0
    env.close()
