"""Scores of recorded drives: a drive is simulated once, and then any reward can be paid for it.

`record_drive` keeps the quantities of every tick, and what the components of the table would pay with a weight of 1.
`pay` returns the components of a config for such a drive: exactly those that the simulation would have paid, because
the same compiled code evaluates the terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from racer_env.engine.car import DT
from racer_env.engine.centreline import Floats
from racer_env.engine.compiled import Compiled, bind, entry
from racer_env.engine.config import Config, EpisodeLimits, Weights
from racer_env.engine.quantities import BEFORE, EVERYTHING, QUANTITIES, QUANTITY_INDEX, SPEED, STILL_TIME
from racer_env.engine.rewards import COMPONENT_COUNT, REWARD_COMPONENTS, STILLNESS
from racer_env.engine.simulation import Simulation
from racer_env.engine.starts import Start
from racer_env.engine.terms import program_of, run_program
from racer_env.engine.tick import BAD_ACTION, CAR, step_cars_with_terms
from racer_env.engine.track import Track
from racer_env.errors import ActionError

_NO_LIMIT = 2**31
"""Maximum number of ticks of a recorded drive."""


@dataclass(frozen=True, eq=False)
class RecordedDrive:
    """A recorded drive, one row per tick.

    quantities: (T, Q) in the order of `QUANTITIES`.
    amounts: (T, 6) what the components of the table pay with a weight of 1.
    put_back: rows whose car was put back on the road before the tick.
    """

    quantities: Floats
    amounts: Floats
    put_back: NDArray[np.int64]

    @property
    def ticks(self) -> int:
        return len(self.quantities)

    def column(self, name: str) -> Floats:
        """Return a quantity of all ticks."""
        return self.quantities[:, QUANTITY_INDEX[name]]

    def part(self, first: int, last: int) -> RecordedDrive:
        """Return the ticks from `first` up to but not including `last`."""
        put_back = self.put_back[(self.put_back >= first) & (self.put_back < last)] - first
        return RecordedDrive(self.quantities[first:last], self.amounts[first:last], put_back)


def record_drive(
    track: Track,
    actions: ArrayLike,
    start: Start | None = None,
    seed: int = 0,
    put_back: Sequence[int] = (),
) -> RecordedDrive:
    """Simulate one car with these (T, 3) actions, and return what every tick measures.

    put_back: numbers of the ticks, from 1, before which the car was put back on the road.
    """
    steps = np.ascontiguousarray(actions, np.float64)
    simulation = Simulation(track, 1, _UNIT_WEIGHTS, start=start, seed=seed)
    cars, observations = simulation.cars.view(CAR, np.ndarray), simulation.result.observations
    rules = _UNIT_WEIGHTS.table()
    rules["measures"] = EVERYTHING
    quantities, amounts = np.zeros((len(steps), len(QUANTITIES))), np.zeros((len(steps), COMPONENT_COUNT))
    arguments = (simulation.tables, rules, cars, observations, np.zeros(1, np.int64), np.zeros((1, BEFORE)))
    record = bind(record_ticks, *arguments, steps, quantities, amounts)
    backs = sorted({tick - 1 for tick in put_back if 1 <= tick <= len(steps)})
    for first, last in zip([0, *backs], [*backs, len(steps)], strict=True):
        if first in backs:
            simulation.put_back(0)
        if not record(*arguments, steps[first:last], quantities[first:last], amounts[first:last]):
            raise ActionError("the actions of a drive must be finite numbers")
    return RecordedDrive(quantities, amounts, np.array(backs, np.int64))


def pay(drive: RecordedDrive, config: Config) -> Floats:
    """Return the reward components (T, C) of a drive, in the order of `Config.components`."""
    weights = config.weights
    components = np.zeros((drive.ticks, len(config.components)))
    table = np.array([getattr(weights, each.weight) for each in REWARD_COMPONENTS])
    np.multiply(drive.amounts, table, out=components[:, :COMPONENT_COUNT])
    still = drive.quantities[:, SPEED] < weights.stillness_speed_threshold
    components[:, STILLNESS] = np.where(still, table[STILLNESS], 0.0)
    if config.formulas:
        rules = config.table()
        used = np.array(sorted(program_of(config.formulas).quantities), np.int64)
        arguments = rules, drive.quantities, used, drive.put_back, components
        bind(pay_ticks, *arguments)(*arguments)
    return components


def total(components: Floats) -> Floats:
    """Return the reward of each tick: the sum of its components, in the order in which the simulation adds them."""
    return np.asarray(np.add.accumulate(components, axis=1)[:, -1])


@entry
def record_ticks(
    track: Compiled,
    rules: Compiled,
    cars: Compiled,
    observations: Compiled,
    members: Compiled,
    before: Compiled,
    actions: Compiled,
    quantities: Compiled,
    amounts: Compiled,
) -> bool:
    """RecordedDrive with these actions and record every tick; return False if one is not finite."""
    for tick in range(len(actions)):
        for number in range(3):
            cars[0].action[number] = actions[tick, number]
        if step_cars_with_terms(track, rules, cars, observations, members, before) == BAD_ACTION:
            return False
        for number in range(quantities.shape[1]):
            quantities[tick, number] = rules[0].values[number]
        for number in range(COMPONENT_COUNT):
            amounts[tick, number] = cars[0].components[number]
    return True


@entry
def pay_ticks(rules: Compiled, quantities: Compiled, used: Compiled, put_back: Compiled, components: Compiled) -> None:
    """Set the components of the terms of every tick.

    used: indices of the quantities that the terms need. `still_time` depends on the config, so it is counted here.
    """
    reward, still, backs = rules[0], 0, 0
    for tick in range(len(quantities)):
        for number in used:
            reward.values[number] = quantities[tick, number]
        if backs < len(put_back) and tick == put_back[backs]:
            still, backs = 0, backs + 1
        still = still + 1 if quantities[tick, SPEED] < reward.stillness_speed_threshold else 0
        reward.values[STILL_TIME] = still * DT
        run_program(reward, components[tick])


_UNIT_WEIGHTS = Config(
    weights=Weights(**{each.weight: 1.0 for each in REWARD_COMPONENTS}),
    episode=EpisodeLimits(max_steps=_NO_LIMIT, stillness_timeout_ticks=_NO_LIMIT),
)
"""Config that pays each component with a weight of 1."""
