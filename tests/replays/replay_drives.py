"""Replays on a small ring with laps of a few seconds."""

import math
from datetime import UTC, datetime
from functools import cache

from racer_env.engine import Circuit, Config, Driver, Simulation, Start
from racer_viewer.replays import Replay, ReplayRecorder
from racer_viewer.replays.trace import track_of

RING_POINTS = 12
RING = Circuit(
    "Ring",
    tuple(
        (round(80 * math.cos(math.tau * i / RING_POINTS), 1), round(80 * math.sin(math.tau * i / RING_POINTS), 1), 12.0)
        for i in range(RING_POINTS)
    ),
    gates=10,
    id="ring",
)
DATE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


STANDING = Start()


@cache
def ring_run(ticks: int = 700, throttle: float = 1.0, driver: str = "Anna", start: Start = STANDING) -> Replay:
    """Drive round the ring with the engine's driver; less throttle makes slower laps."""
    track = track_of(RING)
    simulation, pilot = Simulation(track, start=start), Driver(track)
    recorder = ReplayRecorder(RING, Config(), start, driver=driver)
    for _ in range(ticks):
        action = pilot.act(simulation.cars)[0] * (1.0, throttle, 1.0)
        result = simulation.step(action[None])
        recorder.add(action, float(result.rewards[0]), int(result.finished_lap_ticks[0]))
    return recorder.replay(DATE)


def weaving_run(ticks: int) -> Replay:
    """Drive round the ring, off the road in the first lap only."""
    track = track_of(RING)
    simulation, pilot = Simulation(track), Driver(track)
    recorder = ReplayRecorder(RING, Config(), STANDING, driver="Anna")
    for tick in range(ticks):
        action = pilot.act(simulation.cars)[0]
        if 120 <= tick < 135:
            action = action * (0.0, 1.0, 0.0) - (1.0, 0.0, 0.0)
        result = simulation.step(action[None])
        recorder.add(action, float(result.rewards[0]), int(result.finished_lap_ticks[0]))
    return recorder.replay(DATE)
