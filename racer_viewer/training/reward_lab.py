"""Reward lab: scores of a reward on drives that are good or bad on purpose, before anything is trained with it.

The reference drives are simulated once per circuit; then any reward is paid for them, exactly as the simulation would.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from racer_env.engine import TICKS_PER_SECOND, Config, Driver, Simulation, Track
from racer_env.engine.scoring import RecordedDrive, pay, record_drive, total
from racer_env.engine.simulation import Cars
from racer_viewer.agents import AgentError, load_agent
from racer_viewer.training.config import PAID_UNITS

Floats = NDArray[np.float64]

REFERENCE_SECONDS = 30
"""Duration of a reference drive [s]; on long circuits it takes longer, up to a whole lap."""
LAP_SPEED = 35.0
"""Speed that a reference drive has time for a lap at [units/s]."""
SLOW_SPEED = 40.0
"""Speed of the slow lap [units/s]."""
CUT_AHEAD = 90.0
"""Distance ahead at which the corner cutter aims [units]."""
MIN_PROGRESS = 0.25
"""Part of a lap from which the reward per lap means something."""
DRIFT_TICKS = 12
"""Ticks for which the zigzag driver steers to one side."""

PERSON, CHAMPION, CLEAN, SLOW, ZIGZAG, CUTTER, CRASH, CIRCLES, STANDSTILL = (
    "person", "champion", "clean", "slow", "zigzag", "cutter", "crash", "circles", "standstill",
)  # fmt: skip
"""Kinds of drives."""
NAMES = {
    PERSON: "a drive of yours",
    CHAMPION: "the champion's lap",
    CLEAN: "a clean lap",
    SLOW: "a slow lap",
    ZIGZAG: "a zigzag lap",
    CUTTER: "a corner cutter",
    CRASH: "a crash",
    CIRCLES: "driving in circles",
    STANDSTILL: "standing still",
}
"""English names of the kinds."""
QUALITY = {
    CHAMPION: 4, CLEAN: 3, PERSON: 3, ZIGZAG: 2, SLOW: 2, CUTTER: 1, CRASH: 0, CIRCLES: 0, STANDSTILL: 0,
}  # fmt: skip
"""Quality of the drives of each kind; a reward should not pay more for a worse one."""
GOOD = 2
"""Quality of drives that should earn more than any worse one; the order of the others does not matter."""


@dataclass(frozen=True, eq=False)
class LabDrive:
    """A drive that rewards are scored on. name: name of a person's drive; empty for the reference drives."""

    kind: str
    drive: RecordedDrive
    name: str = ""

    @property
    def label(self) -> str:
        """English name."""
        return self.name or NAMES[self.kind]


@dataclass(frozen=True)
class DriveScore:
    """Payment of a reward for a drive.

    episode: reward of an episode with the limits of the config: the drive goes on as it is, or ends by standing still.
    per_second: mean reward per second. per_lap: reward per lap of distance; NaN for drives that get nowhere.
    components: mean reward per second of each component. ended: standing still ends the episode.
    """

    kind: str
    label: str
    episode: float
    per_second: float
    per_lap: float
    components: tuple[float, ...]
    ended: bool


@dataclass(frozen=True)
class LabWarning:
    """A reward that prefers a worse drive to a better one."""

    worse: DriveScore
    better: DriveScore

    def __str__(self) -> str:
        more = "as much as" if self.worse.episode == self.better.episode else "more than"
        return (
            f"{self.worse.label} earns {more} {self.better.label}: "
            f"{self.worse.episode:+.4g} and {self.better.episode:+.4g} per episode"
        )


@dataclass(frozen=True)
class LabReport:
    """Scores of a reward, the best paid drive first, and what is wrong with them."""

    scores: tuple[DriveScore, ...]
    warnings: tuple[LabWarning, ...]


def score_reward(config: Config, drives: Sequence[LabDrive]) -> LabReport:
    """Return what a reward pays for some drives."""
    scores = sorted((_score(config, each) for each in drives), key=lambda score: -score.episode)
    warnings = [
        LabWarning(worse, better)
        for worse in scores
        for better in scores
        if QUALITY[worse.kind] < QUALITY[better.kind] >= GOOD and worse.episode >= better.episode
    ]
    warnings.sort(key=lambda each: (QUALITY[each.worse.kind] - QUALITY[each.better.kind], -each.worse.episode))
    return LabReport(tuple(scores), tuple(warnings))


def main_warnings(report: LabReport) -> list[LabWarning]:
    """Return one warning for each drive that is paid too much: against the best drive that earns less."""
    found: dict[str, LabWarning] = {}
    for each in report.warnings:
        found.setdefault(each.worse.label, each)
    return [*found.values()]


def _score(config: Config, each: LabDrive) -> DriveScore:
    episode, threshold = config.episode, config.weights.stillness_speed_threshold
    ticks = min(each.drive.ticks, max(1, episode.max_steps))
    stop = _end_of_standing(each.drive.column("speed")[:ticks] < threshold, episode.stillness_timeout_ticks)
    ended = stop is not None
    drive = each.drive.part(0, ticks if stop is None else stop)
    components = pay(drive, config)
    rewards = total(components)
    mean = float(rewards.mean())
    earned = float(rewards.sum()) if ended else mean * max(1, episode.max_steps)
    driven = float(drive.column("progress").sum())
    return DriveScore(
        each.kind,
        each.label,
        earned,
        mean * TICKS_PER_SECOND,
        float(rewards.sum()) / driven if driven > MIN_PROGRESS else math.nan,
        tuple((components.mean(axis=0) * TICKS_PER_SECOND).tolist()),
        ended,
    )


def _end_of_standing(still: NDArray[np.bool_], timeout: int) -> int | None:
    """Return the number of ticks until standing still ends the episode; None if it never does."""
    moving = np.concatenate([[-1], np.flatnonzero(~still), [len(still)]])
    gaps = np.diff(moving) - 1
    long_enough = np.flatnonzero(gaps >= max(1, timeout))
    return int(moving[long_enough[0]]) + 1 + max(1, timeout) if len(long_enough) else None


def paid_on(config: Config, track: Track, progress_in_units: bool) -> Config:
    """Return the config as a run with `progress_in_units` pays it on a track."""
    if not progress_in_units:
        return config
    weights = config.weights
    scaled = msgspec.structs.replace(weights, progress=weights.progress * track.length / PAID_UNITS)
    return msgspec.structs.replace(config, weights=scaled)


@lru_cache(maxsize=4)
def reference_drives(track: Track) -> tuple[LabDrive, ...]:
    """Return the reference drives on a track, the best first; simulating them takes a second."""
    ticks = round(max(REFERENCE_SECONDS, track.length / LAP_SPEED) * TICKS_PER_SECOND)
    found = {kind: _drive(track, kind, ticks) for kind in (CLEAN, SLOW, ZIGZAG, CUTTER, CRASH, CIRCLES, STANDSTILL)}
    champion = _champion(track, ticks)
    first = () if champion is None else (LabDrive(CHAMPION, record_drive(track, champion)),)
    return (*first, *(LabDrive(kind, record_drive(track, actions)) for kind, actions in found.items()))


def _champion(track: Track, ticks: int) -> Floats | None:
    """Return the actions of the champion; None if it cannot be loaded."""
    try:
        agent = load_agent("champion")
    except AgentError:
        return None
    simulation, actions = Simulation(track), np.zeros((ticks, 3))
    for tick in range(ticks):
        actions[tick] = agent.act(simulation.result.observations[0])
        simulation.step(actions[tick : tick + 1])
    return actions


def _drive(track: Track, kind: str, ticks: int) -> Floats:
    """Return the actions of one of the other reference drives."""
    driver, simulation, actions = Driver(track), Simulation(track), np.zeros((ticks, 3))
    for tick in range(ticks):
        actions[tick] = _action(kind, tick, driver, track, simulation.cars)
        simulation.step(actions[tick : tick + 1])
    return actions


def _action(kind: str, tick: int, driver: Driver, track: Track, cars: Cars) -> Floats:
    if kind == STANDSTILL:
        return np.array([0.0, 0.0, 1.0])
    if kind == CRASH:
        return np.array([0.0, 1.0, 0.0])
    if kind == CIRCLES:
        return np.array([1.0, 0.6, 0.0])
    action: Floats = driver.act(cars)[0]
    if kind == SLOW and float(cars.speed[0]) > SLOW_SPEED:
        action[1], action[2] = 0.0, 0.1
    elif kind == ZIGZAG:
        action[0] = np.clip(action[0] + (0.35 if tick // DRIFT_TICKS % 2 else -0.35), -1.0, 1.0)
    elif kind == CUTTER:
        action[0] = _aim(track, cars)
        action[1], action[2] = 1.0, 0.0
    return action


def _aim(track: Track, cars: Cars) -> float:
    """Return the steering towards a point of the centreline far ahead."""
    x, y = track.centreline.points(cars.arc + CUT_AHEAD)[0]
    angle = math.atan2(y - cars.y[0], x - cars.x[0]) - float(cars.heading[0])
    return float(np.clip(-2.5 * math.remainder(angle, math.tau), -1.0, 1.0))
