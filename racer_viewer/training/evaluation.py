"""Evaluation of a policy: lap times, faults and rewards over some episodes on each circuit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from racer_env.engine import CAR, TICKS_PER_SECOND, Component, Config, Simulation, Start, Track
from racer_env.engine.laps import track_limit_faults
from racer_env.engine.rewards import REWARD_COMPONENTS

Policy = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""Function from observations (N, 14) to actions (N, 3)."""

RANDOM_START = Start(arc=(0.0, 1.0), offset=(-0.3, 0.3), speed=(0.0, 60.0))
"""Start of all episodes but the first: anywhere on the road, moving or not."""
MIN_TICKS = 3000
"""Minimum length of an episode [ticks]; published lap times were measured over as many."""
MIN_LAPS, MIN_SPEED = 2.5, 100.0
"""Laps that fit into an episode at this speed [units/s]; on long circuits this exceeds MIN_TICKS."""


@dataclass(frozen=True)
class EvaluatedEpisode:
    """One episode. Times in seconds; a flying lap is one that began at the start line at speed."""

    standing_lap: float | None
    flying_laps: tuple[float, ...]
    ticks: int
    wall_ticks: int
    off_track_ticks: int
    stopped: bool
    reward: float
    components: tuple[float, ...]

    @property
    def laps(self) -> tuple[float, ...]:
        return self.flying_laps if self.standing_lap is None else (self.standing_lap, *self.flying_laps)

    @property
    def clean(self) -> bool:
        """True if the car never touched a wall and never left the road."""
        return not self.wall_ticks and not self.off_track_ticks


@dataclass(frozen=True)
class Evaluation:
    """Episodes on one circuit; the first begins with a standing start."""

    track: str
    episodes: tuple[EvaluatedEpisode, ...]
    reward_components: tuple[Component, ...] = REWARD_COMPONENTS

    @property
    def best_standing(self) -> float | None:
        return min((each.standing_lap for each in self.episodes if each.standing_lap), default=None)

    @property
    def best_flying(self) -> float | None:
        return min((lap for each in self.episodes for lap in each.flying_laps), default=None)

    @property
    def mean_lap(self) -> float | None:
        laps = [lap for each in self.episodes for lap in each.laps]
        return float(np.mean(laps)) if laps else None

    @property
    def laps(self) -> int:
        return sum(len(each.laps) for each in self.episodes)

    @property
    def completion(self) -> float:
        """Share of the episodes with a whole lap in which the car never came to a stop."""
        return float(np.mean([bool(each.laps) and not each.stopped for each in self.episodes]))

    @property
    def clean(self) -> bool:
        return all(each.clean for each in self.episodes)

    @property
    def wall_ticks(self) -> int:
        return sum(each.wall_ticks for each in self.episodes)

    @property
    def off_track_ticks(self) -> int:
        return sum(each.off_track_ticks for each in self.episodes)

    @property
    def reward(self) -> float:
        return float(np.mean([each.reward for each in self.episodes]))

    @property
    def components(self) -> dict[str, float]:
        """Mean sum of each reward component in an episode."""
        means = np.mean([each.components for each in self.episodes], axis=0)
        return dict(zip((each.name for each in self.reward_components), means.tolist(), strict=True))


def evaluate(
    policy: Policy,
    tracks: Sequence[Track],
    episodes: int = 1,
    seed: int = 0,
    config: Config | None = None,
    enough_laps: int | None = None,
) -> list[Evaluation]:
    """Drive all episodes on all tracks in parallel, for the ticks that the longest circuit needs.

    enough_laps: laps of every car after which the evaluation ends early.
    """
    count = len(tracks) * episodes
    ticks = max(MIN_TICKS, *(int(MIN_LAPS * track.length / MIN_SPEED * TICKS_PER_SECOND) for track in tracks))
    rules = config or Config()
    config = msgspec.structs.replace(rules, episode=msgspec.structs.replace(rules.episode, max_steps=ticks))
    cars = Simulation(
        [track for track in tracks for _ in range(episodes)], count, config, start=RANDOM_START, seed=seed
    )
    cars.start_from(Start())
    cars.reset(np.arange(count) % episodes == 0)
    record = _Record(cars)
    for _ in range(ticks):
        observations = cars.result.observations
        cars.step(policy(observations))
        record.add()
        if record.over.all() or (enough_laps and (record.over | (record.lap_count >= enough_laps)).all()):
            break
    return [
        Evaluation(
            track.circuit.id if track.circuit else "",
            tuple(
                record.episode(row, from_line=row % episodes == 0) for row in range(i * episodes, (i + 1) * episodes)
            ),
            rules.components,
        )
        for i, track in enumerate(tracks)
    ]


def observations_of(policy: Policy, tracks: Sequence[Track]) -> NDArray[np.float32]:
    """Return the observations of a drive from the start line of each track, (N, 14)."""
    seen: list[NDArray[np.float32]] = []

    def watched(observations: NDArray[np.float32]) -> NDArray[np.float32]:
        seen.append(observations.copy())
        return policy(observations)

    evaluate(watched, tracks, enough_laps=2)
    return np.concatenate(seen)


Score = tuple[int, float]
"""Number of circuits without a clean flying lap, then the sum of lap times or of missing progress; lower is better."""


def score(evaluations: Sequence[Evaluation]) -> Score:
    """Rank a policy over some circuits: first by clean laps on all of them, then by lap times."""
    failed = [each for each in evaluations if not (each.clean and each.completion == 1.0 and each.best_flying)]
    if not failed:
        return 0, sum(each.best_flying or 0.0 for each in evaluations)
    faults = sum(each.wall_ticks + each.off_track_ticks for each in failed)
    return len(failed), 0.001 * faults - sum(each.components["progress"] for each in failed)


class _Record:
    """Record of all cars."""

    def __init__(self, cars: Simulation) -> None:
        count = cars.num_cars
        self._result, self._cars = cars.result, cars.cars.view(CAR, np.ndarray)
        self.over = np.zeros(count, np.bool_)
        self.lap_count = np.zeros(count, np.int64)
        self._laps: list[list[int]] = [[] for _ in range(count)]
        self._ticks, self._wall, self._off = (np.zeros(count, np.int64) for _ in range(3))
        self._stopped = np.zeros(count, np.bool_)
        self._components = np.zeros(cars.result.components.shape)

    def add(self) -> None:
        """Add a tick of every car whose episode has not ended."""
        going = ~self.over
        result = self._result
        self._ticks += going
        wall, off_road = track_limit_faults(self._cars)
        self._wall += going & wall
        self._off += going & off_road
        self._components += result.components * going[:, None]
        finished = going & (result.finished_lap_ticks > 0)
        if finished.any():
            for row in np.flatnonzero(finished):
                self._laps[row].append(int(result.finished_lap_ticks[row]))
            self.lap_count += finished
        self._stopped |= going & result.terminated
        self.over |= result.terminated | result.truncated

    def episode(self, row: int, from_line: bool) -> EvaluatedEpisode:
        laps = [ticks / TICKS_PER_SECOND for ticks in self._laps[row]]
        standing = laps.pop(0) if from_line and laps else None
        return EvaluatedEpisode(
            standing,
            tuple(laps),
            int(self._ticks[row]),
            int(self._wall[row]),
            int(self._off[row]),
            bool(self._stopped[row]),
            float(self._components[row].sum()),
            tuple(self._components[row].tolist()),
        )
