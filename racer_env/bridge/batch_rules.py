"""What the values of N cars can be. Compiled: with arrays it would take many times as long as sending them."""

from __future__ import annotations

import math
from typing import Any

from racer_env.engine.car import MAX_SPEED
from racer_env.engine.compiled import entry

SPEED_LIMIT = MAX_SPEED * (1.0 + 1e-9)
NOTHING = -1
COLUMNS = (
    "observation", "rewards", "components", "finished_lap_ticks",
    "speed", "lap", "checkpoint", "step_count", "stillness",
)  # fmt: skip
_OBSERVATION, _REWARD, _COMPONENTS, _FINISHED, _SPEED, _LAP, _CHECKPOINT, _STEP_COUNT, _STILLNESS = range(len(COLUMNS))

Place = tuple[int, int]
"""The number of a column and of a car."""


@entry
def wrong_value(
    low: Any,
    high: Any,
    observations: Any,
    rewards: Any,
    components: Any,
    finished_lap_ticks: Any,
    speed: Any,
    lap: Any,
    checkpoint: Any,
    step_count: Any,
    stillness: Any,
) -> Place:
    """Where the first value is that is not finite or out of its range, or NOTHING. There are as many cars as speeds."""
    for car in range(len(speed)):
        for i in range(len(low)):
            if not low[i] <= observations[car, i] <= high[i]:
                return _OBSERVATION, car
        if not math.isfinite(rewards[car]):
            return _REWARD, car
        for component in components[car]:
            if not math.isfinite(component):
                return _COMPONENTS, car
        if finished_lap_ticks[car] < 0:
            return _FINISHED, car
        if not 0.0 <= speed[car] <= SPEED_LIMIT:
            return _SPEED, car
        if lap[car] < 0:
            return _LAP, car
        if checkpoint[car] < 0:
            return _CHECKPOINT, car
        if step_count[car] < 0:
            return _STEP_COUNT, car
        if stillness[car] < 0:
            return _STILLNESS, car
    return NOTHING, NOTHING


@entry
def wrong_move(
    last_lap: Any,
    last_checkpoint: Any,
    last_step_count: Any,
    last_stillness: Any,
    lap: Any,
    checkpoint: Any,
    step_count: Any,
    stillness: Any,
) -> Place:
    """Where the first counter is that cannot have moved like that in one tick, or NOTHING."""
    for car in range(len(lap)):
        laps, gates = lap[car] - last_lap[car], checkpoint[car] - last_checkpoint[car]
        if laps != 0 and (laps != 1 or checkpoint[car] != 0):
            return _LAP, car
        if gates != 0 and gates != 1 and checkpoint[car] != 0:
            return _CHECKPOINT, car
        if step_count[car] != last_step_count[car] + 1:
            return _STEP_COUNT, car
        if stillness[car] != 0 and stillness[car] != last_stillness[car] + 1:
            return _STILLNESS, car
    return NOTHING, NOTHING
