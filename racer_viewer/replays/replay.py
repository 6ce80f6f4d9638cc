"""What is needed to drive one car's run again, and how it is collected while the run is driven."""

from __future__ import annotations

import math
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
"""Names what the engine makes of a circuit, a start and actions. Whoever changes that, raises it: a test notices."""

MOST_TICKS = 216_000
"""Of a replay: an hour."""
LONGEST_NAME = 64
"""Characters of a driver's name."""
MOST_CONTROL_POINTS = 1000
LONGEST_CIRCUIT = 20_000.0
"""Way along the control points [units]: what is far longer takes minutes and gigabytes to build."""
FIRST_ROOM = 4096
"""Ticks that a recorder has room for at first."""


class ReplayError(RacerError):
    """A replay cannot be read, written or driven; the text says why."""


@dataclass(frozen=True, eq=False)
class Replay:
    """One car's run from its start, as the driver drove it, and what came of it.

    circuit: the whole definition, so that it can be driven where nobody has the circuit.
    seed: what the episode was reset with; a start that is drawn needs it. Where the circuit is drawn too, as from
        several, only the standing start is the same again.
    actions: (T, 3) steer, throttle and brake of each tick, exactly as they were stepped.
    driver: who drove, for the screen.
    date: when.
    laps: times of the finished laps [ticks], as the driver saw them.
    reward: sum over the run, as the driver saw it.
    engine_version: of the engine that it was driven with.
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "actions", _checked_actions(self.actions))
        object.__setattr__(self, "date", _in_utc(self.date))
        _check_circuit(self.circuit)
        if not 0 <= self.seed < 2**64:
            raise ReplayError(f"the seed of a replay is a whole number from 0 to 2**64 - 1, not {self.seed}")
        if plain_name(self.driver) != self.driver:
            raise ReplayError(f"a driver's name has at most {LONGEST_NAME} characters, all of them printable")
        if any(lap < 1 for lap in self.laps) or sum(self.laps) > self.ticks:
            raise ReplayError("the lap times of a replay do not fit its length")
        if not math.isfinite(self.reward):
            raise ReplayError("the reward of a replay is not a finite number")
        if self.engine_version < 0:
            raise ReplayError(f"there is no engine version {self.engine_version}")

    @property
    def ticks(self) -> int:
        """How long it is."""
        return len(self.actions)

    @property
    def engine_warning(self) -> str | None:
        """A line for the screen if it was driven with another engine than this one, where it may drive differently."""
        if self.engine_version == ENGINE_VERSION:
            return None
        return (
            f"driven with engine version {self.engine_version}, and this is version {ENGINE_VERSION}:"
            " it may go differently here"
        )


@dataclass(frozen=True, eq=False)
class Recording:
    """A run recorded up to some tick. It is cheap, since it shares the memory of the recorder."""

    circuit: Circuit
    config: Config
    start: Start
    seed: int
    actions: Floats
    driver: str
    laps: tuple[int, ...]
    reward: float

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
        )


class ReplayRecorder:
    """Collects a run tick by tick.

    After an hour it is full: what comes then is not kept, and the replay is of the first hour.
    """

    def __init__(self, circuit: Circuit, config: Config, start: Start, seed: int = 0, driver: str = "") -> None:
        self._circuit, self._config, self._start, self._seed = circuit, config, start, int(seed)
        self._driver = plain_name(driver)
        self._actions = np.empty((FIRST_ROOM, 3))
        self._laps: list[int] = []
        self._reward = 0.0
        self.ticks = 0

    @property
    def full(self) -> bool:
        return self.ticks >= MOST_TICKS

    def add(self, action: ArrayLike, reward: float, finished_lap_ticks: int = 0) -> None:
        """A tick was stepped with this action and gave this reward; a lap that it finished took so many ticks."""
        if self.full:
            return
        if self.ticks == len(self._actions):
            self._actions = np.concatenate([self._actions, np.empty_like(self._actions)])
        self._actions[self.ticks] = action
        self.ticks += 1
        self._reward += reward
        if finished_lap_ticks:
            self._laps.append(int(finished_lap_ticks))

    def recording(self) -> Recording:
        """Return the run so far; recording more ticks does not change it."""
        actions = self._actions[: self.ticks]
        actions.flags.writeable = False
        return Recording(
            self._circuit, self._config, self._start, self._seed, actions, self._driver, tuple(self._laps), self._reward
        )

    def replay(self, date: datetime | None = None) -> Replay:
        """Return a replay of the run so far; the date is now unless given."""
        return self.recording().replay(date)


def plain_name(name: str) -> str:
    """A name that any screen and file can take: in one line, and not too long."""
    return "".join(letter if letter.isprintable() else "?" for letter in name[:LONGEST_NAME])


def _checked_actions(actions: ArrayLike) -> Floats:
    """A copy that nobody writes to."""
    checked = np.array(actions, np.float64, order="C")
    if checked.ndim != 2 or checked.shape[1] != 3:
        raise ReplayError(f"the actions of a replay are rows of steer, throttle, brake, not of shape {checked.shape}")
    if not 1 <= len(checked) <= MOST_TICKS:
        raise ReplayError(f"a replay has 1 to {MOST_TICKS} ticks, not {len(checked)}")
    if not np.isfinite(checked).all():
        raise ReplayError("the actions of a replay are finite numbers; these are not")
    checked.flags.writeable = False
    return checked


def _in_utc(date: datetime) -> datetime:
    try:
        return date.astimezone(UTC)
    except (OverflowError, ValueError, OSError):
        raise ReplayError(f"the date of a replay cannot be {date.isoformat()}") from None


def _check_circuit(circuit: Circuit) -> None:
    points = circuit.control_points
    if len(points) > MOST_CONTROL_POINTS:
        raise ReplayError(f"the circuit has {len(points)} control points; a replay takes up to {MOST_CONTROL_POINTS}")
    way = sum(math.dist(here[:2], there[:2]) for here, there in zip(points, points[1:] + points[:1], strict=True))
    if not way <= LONGEST_CIRCUIT:
        raise ReplayError(f"the circuit is {way:.0f} units long; a replay takes up to {LONGEST_CIRCUIT:.0f}")
