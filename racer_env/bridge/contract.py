"""The contract: what comes over a boundary is checked here, once, and is trusted behind it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from racer_env.bridge.interface import (
    COMPONENT_KEYS,
    OBSERVATION_HIGH,
    OBSERVATION_LOW,
    RESET_KEYS,
    STEP_KEYS,
    BatchStep,
    Bools,
    CarColumns,
    Info,
    Step,
)
from racer_env.engine.car import MAX_SPEED
from racer_env.errors import ContractError

_NUMBERS = frozenset((float, int))
SPEED_LIMIT = MAX_SPEED * (1.0 + 1e-9)


class Contract:
    """What every observation, reward and end flag of an environment must be. Values come as JSON gives them."""

    def __init__(self, low: ArrayLike, high: ArrayLike, dtype: DTypeLike = np.float32) -> None:
        self._dtype = np.dtype(dtype)
        self._low, self._high = np.asarray(low, self._dtype), np.asarray(high, self._dtype)
        self._shape = self._low.shape

    def observation(self, value: Any) -> NDArray[Any]:
        """The observation as an array, if it has the shape, is finite and within bounds."""
        try:
            array = np.array(value, np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ContractError(f"observation: numbers of shape {self._shape} expected, got {short(value)}") from None
        if array.shape != self._shape:
            raise ContractError(f"observation: shape {self._shape} expected, got {array.shape}")
        if array.ndim == 1 and not _NUMBERS.issuperset(map(type, value)):
            raise ContractError(f"observation: numbers expected, got {short(value)}")
        with np.errstate(over="ignore"):
            array = array.astype(self._dtype)
        self.within_bounds(array)
        return array

    def within_bounds(self, array: NDArray[Any]) -> None:
        """Raise unless all of an array, or of each of its rows, is finite and within bounds."""
        wrong = ~((array >= self._low) & (array <= self._high) & np.isfinite(array))
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            place = at[len(at) - len(self._shape) :]
            low, high = self._low[place], self._high[place]
            raise ContractError(f"observation{list(at)}: {low:g} to {high:g} expected, got {array[at]}")

    @staticmethod
    def reward(value: Any) -> float:
        return number("reward", value)

    @staticmethod
    def flag(name: str, value: Any) -> bool:
        if type(value) is not bool:
            raise ContractError(f"{name}: true or false expected, got {short(value)}")
        return value


class RacerContract(Contract):
    """The contract of a racer bridge, over the course of an episode: counters only move as they can."""

    def __init__(self) -> None:
        super().__init__(OBSERVATION_LOW, OBSERVATION_HIGH)
        self._last: Info = {}

    def reset_result(self, reply: Mapping[str, Any]) -> tuple[NDArray[np.float32], Info]:
        """Observation and info of a reset."""
        observation, info = self.observation(field(reply, "observation")), _info(reply, RESET_KEYS)
        speed = number("info.speed", info["speed"])
        _speed_in_range("info.speed", speed)
        for key in ("tick", "lap", "checkpoint", "stepCount"):
            _counter(f"info.{key}", info[key])
        if info["stepCount"] != 0:
            raise ContractError(f"info.stepCount: 0 expected after a reset, got {info['stepCount']}")
        self._last = {**info, "stillnessCounter": 0}
        return observation, info

    def step_result(self, reply: Mapping[str, Any]) -> Step:
        """Everything that a step gave."""
        observation, info = self.observation(field(reply, "observation")), _info(reply, STEP_KEYS)
        for key in COMPONENT_KEYS:
            number(f"info.{key}", info[key])
        _speed_in_range("info.rawSpeed", number("info.rawSpeed", info["rawSpeed"]))
        self.flag("info.wallContact", info["wallContact"])
        self._counters(info)
        step = Step(
            observation,
            self.reward(field(reply, "reward")),
            self.flag("terminated", field(reply, "terminated")),
            self.flag("truncated", field(reply, "truncated")),
            info,
        )
        self._last = info
        return step

    def _counters(self, info: Info) -> None:
        last = self._last
        for key in ("tick", "stepCount"):
            if _counter(f"info.{key}", info[key]) != last[key] + 1:
                raise ContractError(f"info.{key}: {last[key] + 1} expected, got {info[key]}")
        lap, checkpoint = _counter("info.lap", info["lap"]), _counter("info.checkpoint", info["checkpoint"])
        if lap - last["lap"] not in (0, 1):
            raise ContractError(f"info.lap: {last['lap']} or {last['lap'] + 1} expected, got {lap}")
        if checkpoint not in (last["checkpoint"], last["checkpoint"] + 1, 0):
            raise ContractError(f"info.checkpoint: it went from {last['checkpoint']} to {checkpoint}")
        if lap != last["lap"] and checkpoint != 0:
            raise ContractError(f"info.checkpoint: 0 expected with a new lap, got {checkpoint}")
        still = _counter("info.stillnessCounter", info["stillnessCounter"])
        if still not in (0, last["stillnessCounter"] + 1):
            raise ContractError(f"info.stillnessCounter: it went from {last['stillnessCounter']} to {still}")


class BatchContract(Contract):
    """The contract of N cars at once."""

    def __init__(self) -> None:
        super().__init__(OBSERVATION_LOW, OBSERVATION_HIGH)
        self._last: CarColumns | None = None

    def reset_result(self, step: BatchStep, mask: Bools | None) -> BatchStep:
        self._values(step)
        fresh = step.cars.step_count if mask is None else step.cars.step_count[mask]
        if fresh.any():
            raise ContractError(f"step_count: 0 expected after a reset, got {fresh.max()}")
        self._last = step.cars
        return step

    def step_result(self, step: BatchStep) -> BatchStep:
        """The step, if every value of it is as it can be after the step before."""
        if self._last is None:
            raise ContractError("a batch step without a reset before it")
        self._values(step)
        over = step.terminated | step.truncated
        if not np.array_equal(np.flatnonzero(over), step.ended):
            raise ContractError("ended: it must list exactly the cars that are terminated or truncated")
        if len(step.ended):
            self.within_bounds(step.final_observations)
            _car_values(step.final_cars, "final ")
            _moved(self._last.rows(step.ended), step.final_cars)
            if step.cars.step_count[step.ended].any():
                raise ContractError("step_count: 0 expected where a car has started anew")
            going = np.flatnonzero(~over)
            _moved(self._last.rows(going), step.cars.rows(going))
        else:
            _moved(self._last, step.cars)
        self._last = step.cars
        return step

    def _values(self, step: BatchStep) -> None:
        self.within_bounds(step.observations)
        for name in ("rewards", "components"):
            if not np.isfinite(getattr(step, name)).all():
                raise ContractError(f"{name}: finite numbers expected")
        if step.finished_lap_ticks.min() < 0:
            raise ContractError("finished_lap_ticks: 0 or more expected")
        _car_values(step.cars, "")


def _car_values(cars: CarColumns, which: str) -> None:
    if not ((cars.speed >= 0.0) & (cars.speed <= SPEED_LIMIT)).all():
        raise ContractError(f"{which}speed: 0 to {MAX_SPEED:g} expected")
    for name in ("lap", "checkpoint", "step_count", "stillness"):
        if getattr(cars, name).min() < 0:
            raise ContractError(f"{which}{name}: 0 or more expected")


def _moved(last: CarColumns, now: CarColumns) -> None:
    """Raise unless every counter of these cars moved as it can in one tick."""
    laps = now.lap - last.lap
    gates = now.checkpoint - last.checkpoint
    _all("step_count", now.step_count == last.step_count + 1)
    _all("lap", (laps == 0) | ((laps == 1) & (now.checkpoint == 0)))
    _all("checkpoint", (gates == 0) | (gates == 1) | (now.checkpoint == 0))
    _all("stillness", (now.stillness == 0) | (now.stillness == last.stillness + 1))


def _all(name: str, right: Bools) -> None:
    if not right.all():
        raise ContractError(f"{name}: car {int(np.flatnonzero(~right)[0])} cannot have moved like that in one tick")


def field(reply: Mapping[str, Any], name: str) -> Any:
    """A field that must be there."""
    try:
        return reply[name]
    except KeyError:
        raise ContractError(f"{name}: missing") from None


def number(name: str, value: Any) -> float:
    """A finite number, and no boolean."""
    if type(value) not in _NUMBERS or not math.isfinite(value):
        raise ContractError(f"{name}: a finite number expected, got {short(value)}")
    return float(value)


def short(value: Any) -> str:
    """For messages: what it is, in a line."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _info(reply: Mapping[str, Any], keys: tuple[str, ...]) -> Info:
    info = field(reply, "info")
    if type(info) is not dict:
        raise ContractError(f"info: an object expected, got {short(info)}")
    if info.keys() != set(keys):
        for key in keys:
            field(info, key)
        raise ContractError(f"info: unknown key {next(key for key in info if key not in keys)!r}")
    return info


def _counter(name: str, value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ContractError(f"{name}: a whole number from 0 expected, got {short(value)}")
    return value


def _speed_in_range(name: str, speed: float) -> None:
    if not 0.0 <= speed <= SPEED_LIMIT:
        raise ContractError(f"{name}: 0 to {MAX_SPEED:g} expected, got {speed}")
