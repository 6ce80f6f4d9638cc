"""How well a policy drives: laps, cleanliness and reward, over some episodes on each circuit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from racer_env.engine import REWARD_COMPONENTS, TICKS_PER_SECOND, Config, Simulation, Start, Track
from racer_env.engine.car import ROAD

Policy = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""Actions (N, 3) for observations (N, 14)."""

ELSEWHERE = Start(arc=(0.0, 1.0), offset=(-0.3, 0.3), speed=(0.0, 60.0))
"""Where all episodes but the first start: somewhere on the road, on its way."""
LEAST_TICKS = 3000
"""Of an episode. Existing agents' laps were measured over as many."""
LEAST_LAPS, SLOW_SPEED = 2.5, 100.0
"""For which an episode is long enough even at that speed [units/s], on circuits where the ticks above are not."""


@dataclass(frozen=True)
class Episode:
    """One drive. Times in seconds; a flying lap is one that began at the start line at speed."""

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
        """No touch of a wall and no tick off the road."""
        return not self.wall_ticks and not self.off_track_ticks


@dataclass(frozen=True)
class Evaluation:
    """The episodes on one circuit; the first of them is from the standing start."""

    track: str
    episodes: tuple[Episode, ...]

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
        """Part of the episodes in which a whole lap was driven and the car never stopped."""
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
        """Of the mean reward of an episode."""
        means = np.mean([each.components for each in self.episodes], axis=0)
        return dict(zip((each.name for each in REWARD_COMPONENTS), means.tolist(), strict=True))


def evaluate(
    policy: Policy,
    tracks: Sequence[Track],
    episodes: int = 1,
    seed: int = 0,
    config: Config | None = None,
    enough_laps: int | None = None,
) -> list[Evaluation]:
    """Drive on every track, all episodes of all tracks side by side, for as long as the longest circuit needs.

    enough_laps: end when every car that still drives has so many: for a quick look while training.
    """
    log = _Log(len(tracks) * episodes)
    ticks = max(LEAST_TICKS, *(int(LEAST_LAPS * track.length / SLOW_SPEED * TICKS_PER_SECOND) for track in tracks))
    rules = config or Config()
    config = msgspec.structs.replace(rules, episode=msgspec.structs.replace(rules.episode, max_steps=ticks))
    cars = Simulation(
        [track for track in tracks for _ in range(episodes)], log.count, config, start=ELSEWHERE, seed=seed
    )
    cars.start_from(Start())
    cars.reset(np.arange(log.count) % episodes == 0)
    for _ in range(ticks):
        observations = cars.result.observations
        cars.step(policy(observations))
        log.add(cars)
        if log.over.all() or (enough_laps and (log.over | (log.lap_count >= enough_laps)).all()):
            break
    return [
        Evaluation(
            track.circuit.id if track.circuit else "",
            tuple(log.episode(row, from_line=row % episodes == 0) for row in range(i * episodes, (i + 1) * episodes)),
        )
        for i, track in enumerate(tracks)
    ]


Score = tuple[int, float]
"""Circuits without a clean flying lap, then the sum of laps or of what is missing: less is better."""


def score(evaluations: Sequence[Evaluation]) -> Score:
    """How good a policy is over some circuits: first that it laps them all cleanly, then how fast."""
    failed = [each for each in evaluations if not (each.clean and each.completion == 1.0 and each.best_flying)]
    if not failed:
        return 0, sum(each.best_flying or 0.0 for each in evaluations)
    dirt = sum(each.wall_ticks + each.off_track_ticks for each in failed)
    return len(failed), 0.001 * dirt - sum(each.components["progress"] for each in failed)


class _Log:
    """What the cars have done so far."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.over = np.zeros(count, np.bool_)
        self.lap_count = np.zeros(count, np.int64)
        self._laps: list[list[int]] = [[] for _ in range(count)]
        self._ticks, self._wall, self._off = (np.zeros(count, np.int64) for _ in range(3))
        self._stopped = np.zeros(count, np.bool_)
        self._components = np.zeros((count, len(REWARD_COMPONENTS)))

    def add(self, cars: Simulation) -> None:
        """One tick more of every car that has not ended."""
        going = ~self.over
        result = cars.result
        self._ticks += going
        self._wall += going & cars.cars.wall_contact
        self._off += going & (cars.cars.surface != ROAD)
        self._components += result.components * going[:, None]
        finished = going & (result.finished_lap_ticks > 0)
        for row in np.flatnonzero(finished):
            self._laps[row].append(int(result.finished_lap_ticks[row]))
        self.lap_count += finished
        self._stopped |= going & result.terminated
        self.over |= result.terminated | result.truncated

    def episode(self, row: int, from_line: bool) -> Episode:
        laps = [ticks / TICKS_PER_SECOND for ticks in self._laps[row]]
        standing = laps.pop(0) if from_line and laps else None
        return Episode(
            standing,
            tuple(laps),
            int(self._ticks[row]),
            int(self._wall[row]),
            int(self._off[row]),
            bool(self._stopped[row]),
            float(self._components[row].sum()),
            tuple(self._components[row].tolist()),
        )
