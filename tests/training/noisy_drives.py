"""Drives of the built-in driver with an unsteady hand, as a stand-in for a person."""

from functools import cache

import numpy as np

from racer_env.engine import Config, Driver, Simulation, Start, circuits, load_circuit
from racer_viewer.replays import Replay, ReplayRecorder, trace_replay

MEMORY = 0.9
"""Part of the noise that is left after a tick."""
MAX_TICKS = 3000


@cache
def noisy_drive(seed: int, laps: int = 3, noise: float = 0.15, track_id: str = "track-01") -> Replay:
    """Return the first drive of these many laps, all of them clean, from a standing start."""
    rng = np.random.default_rng(seed)
    while True:
        replay = _drive(track_id, laps, noise, rng)
        trace = trace_replay(replay)
        if len(trace.laps) == laps and all(lap.clean for lap in trace.laps):
            return replay


def _drive(track_id: str, laps: int, noise: float, rng: np.random.Generator) -> Replay:
    track = load_circuit(track_id)
    simulation, driver = Simulation(track), Driver(track)
    circuit = next(each for each in circuits() if each.id == track_id)
    recorder = ReplayRecorder(circuit, Config(), Start(), driver="Anna")
    shaking, finished = np.zeros(3), 0
    while finished < laps and recorder.ticks < MAX_TICKS:
        shaking = MEMORY * shaking + noise * np.sqrt(1.0 - MEMORY**2) * rng.standard_normal(3)
        action = np.clip(driver.act(simulation.cars)[0] + shaking, (-1.0, 0.0, 0.0), 1.0)
        result = simulation.step(action[None])
        lap = int(result.finished_lap_ticks[0])
        finished += lap > 0
        recorder.add(action, float(result.rewards[0]), lap)
    return recorder.replay()
