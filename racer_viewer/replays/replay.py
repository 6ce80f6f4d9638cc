"""Replay of one car: everything needed to re-simulate a drive, and its recorder."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from racer_env.errors import RacerError

if TYPE_CHECKING:
    from racer_env.engine import Circuit, Config, Start

Floats = NDArray[np.float64]

ENGINE_VERSION = 1
"""Version of the physics; raise it when the engine drives differently, which a test detects."""

MAX_TICKS = 216_000
"""Maximum length of a replay [ticks]: one hour."""
MAX_NAME_LENGTH = 64
"""Maximum length of a driver's name [characters]."""
MAX_CONTROL_POINTS = 1000
MAX_CIRCUIT_LENGTH = 20_000.0
"""Maximum distance along the control points [units]; much longer circuits take minutes and gigabytes to build."""
INITIAL_CAPACITY = 4096
"""Initial capacity of a recorder [ticks]."""


class ReplayError(RacerError):
    """A replay cannot be read, written or re-simulated; the text says why."""


@dataclass(frozen=True, eq=False)
class Replay:
    """Drive of one car from its start, with its result.

    circuit: whole definition, so that it can be re-simulated without the circuit's file.
    seed: seed of the episode, for random starts. If the circuit was random too, only a standing start is reproduced.
    actions: (T, 3) steer, throttle and brake of each tick, exactly as they were stepped.
    driver: name of the driver to show.
    laps: times of the finished laps [ticks] as recorded.
    reward: total reward as recorded.
    engine_version: version of the engine that recorded it.
    put_back: numbers of the ticks (from 1) before which the car was put back on the road.
    """

    circuit: Circuit
    config: Config
    start: Start
    seed: int
    actions: Floats
    driver: str
    date: datetime
    laps: tuple[int, ...]
    reward: float
    engine_version: int = ENGINE_VERSION
    put_back: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "actions", _checked_actions(self.actions))
        object.__setattr__(self, "date", _in_utc(self.date))
        _check_circuit(self.circuit)
        if not 0 <= self.seed < 2**64:
            raise ReplayError(f"the seed of a replay must be a whole number from 0 to 2**64 - 1, not {self.seed}")
        if plain_name(self.driver) != self.driver:
            raise ReplayError(f"a driver's name must have at most {MAX_NAME_LENGTH} characters, all of them printable")
        if any(lap < 1 for lap in self.laps) or sum(self.laps) > self.ticks:
            raise ReplayError("the lap times of a replay do not fit its length")
        if not math.isfinite(self.reward):
            raise ReplayError("the reward of a replay is not a finite number")
        ticks = self.put_back
        if ticks and not (ticks[0] > 0 and ticks[-1] <= self.ticks and all(map(operator.lt, ticks, ticks[1:]))):
            raise ReplayError("the ticks in which the car was put back on the road are not in order")
        if self.engine_version < 0:
            raise ReplayError(f"there is no engine version {self.engine_version}")

    @property
    def ticks(self) -> int:
        """Length of the replay."""
        return len(self.actions)

    @property
    def engine_warning(self) -> str | None:
        """Warning to show if another engine version recorded it; None otherwise."""
        if self.engine_version == ENGINE_VERSION:
            return None
        return (
            f"recorded with engine version {self.engine_version}, and this is version {ENGINE_VERSION}:"
            " it may drive differently here"
        )


@dataclass(frozen=True, eq=False)
class RunRecording:
    """A run recorded up to some tick. It is cheap, since it shares the memory of the recorder."""

    circuit: Circuit
    config: Config
    start: Start
    seed: int
    actions: Floats
    driver: str
    laps: tuple[int, ...]
    reward: float
    put_back: tuple[int, ...] = ()

    def replay(self, date: datetime | None = None) -> Replay:
        """Return a replay of the run; the date is now unless given."""
        return Replay(
            self.circuit,
            self.config,
            self.start,
            self.seed,
            self.actions,
            self.driver,
            date or datetime.now(UTC),
            self.laps,
            float(self.reward),
            put_back=self.put_back,
        )


class ReplayRecorder:
    """Records a drive tick by tick, up to MAX_TICKS; later ticks are ignored."""

    def __init__(self, circuit: Circuit, config: Config, start: Start, seed: int = 0, driver: str = "") -> None:
        self._circuit, self._config, self._start, self._seed = circuit, config, start, int(seed)
        self._driver = plain_name(driver)
        self._actions = np.empty((INITIAL_CAPACITY, 3))
        self._laps: list[int] = []
        self._put_back: list[int] = []
        self._reward = 0.0
        self.ticks = 0

    @property
    def full(self) -> bool:
        return self.ticks >= MAX_TICKS

    def add(self, action: ArrayLike, reward: float, finished_lap_ticks: int = 0) -> None:
        """Record a tick: its action, its reward, and the time of the lap that it finished [ticks], if any."""
        if self.full:
            return
        if self.ticks == len(self._actions):
            self._actions = np.concatenate([self._actions, np.empty_like(self._actions)])
        self._actions[self.ticks] = action
        self.ticks += 1
        self._reward += reward
        if finished_lap_ticks:
            self._laps.append(int(finished_lap_ticks))

    def put_back(self) -> None:
        """Record that the car is put back on the road before the next tick."""
        if not self.full and self.ticks + 1 not in self._put_back:
            self._put_back.append(self.ticks + 1)

    def recording(self) -> RunRecording:
        """Return the run so far; recording more ticks does not change it."""
        actions = self._actions[: self.ticks]
        actions.flags.writeable = False
        return RunRecording(
            self._circuit,
            self._config,
            self._start,
            self._seed,
            actions,
            self._driver,
            tuple(self._laps),
            self._reward,
            tuple(tick for tick in self._put_back if tick <= self.ticks),
        )

    def replay(self, date: datetime | None = None) -> Replay:
        """Return a replay of the run so far; the date is now unless given."""
        return self.recording().replay(date)


def plain_name(name: str) -> str:
    """Return a name in one line, shortened to MAX_NAME_LENGTH."""
    return "".join(letter if letter.isprintable() else "?" for letter in name[:MAX_NAME_LENGTH])


def _checked_actions(actions: ArrayLike) -> Floats:
    """Return a read-only copy of valid actions. Raises ReplayError."""
    checked = np.array(actions, np.float64, order="C")
    if checked.ndim != 2 or checked.shape[1] != 3:
        raise ReplayError(f"actions must be rows of steer, throttle, brake, not of shape {checked.shape}")
    if not 1 <= len(checked) <= MAX_TICKS:
        raise ReplayError(f"a replay must have 1 to {MAX_TICKS} ticks, not {len(checked)}")
    if not np.isfinite(checked).all():
        raise ReplayError("the actions of a replay must be finite numbers")
    checked.flags.writeable = False
    return checked


def _in_utc(date: datetime) -> datetime:
    try:
        return date.astimezone(UTC)
    except (OverflowError, ValueError, OSError):
        raise ReplayError(f"the date of a replay cannot be {date.isoformat()}") from None


def _check_circuit(circuit: Circuit) -> None:
    points = circuit.control_points
    if len(points) > MAX_CONTROL_POINTS:
        raise ReplayError(f"the circuit has {len(points)} control points; the limit is {MAX_CONTROL_POINTS}")
    way = sum(math.dist(here[:2], there[:2]) for here, there in zip(points, points[1:] + points[:1], strict=True))
    if not way <= MAX_CIRCUIT_LENGTH:
        raise ReplayError(f"the circuit is {way:.0f} units long; the limit is {MAX_CIRCUIT_LENGTH:.0f}")
