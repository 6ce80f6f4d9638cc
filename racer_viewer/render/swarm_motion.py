"""Motion of the swarm on screen: interpolation between car states that may be many ticks apart."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from racer_env.engine import DT, TICKS_PER_SECOND
from racer_env.engine.car import MAX_SPEED
from racer_viewer.run_history import SWARM_CAR, Swarm

MAX_GLIDE = 6
"""Longest interpolation between two states [ticks]; otherwise as long as the last state took to arrive."""
MAX_JUMP = 160.0
"""Longest distance that is interpolated [units]; farther cars are moved at once, because their path is unknown."""
SLACK = 1.5
"""Tolerance on the distance possible at top speed [units]."""
AHEAD = 0.2
"""Smallest cosine between a car's heading and its path for which it counts as having driven there."""
TRAIL = 72
"""Maximum number of trail positions."""
MARKS = 320
"""Maximum number of marks; the oldest are replaced."""
MARK_LIFE = 4 * TICKS_PER_SECOND
"""Lifetime of a mark [window ticks]."""
RECENT = 5 * TICKS_PER_SECOND
"""Window over which crashes are counted [window ticks]."""
CRASHED = 5.0
"""Speed at the end of an episode below which it counts as a crash, otherwise as a time-out [units/s]."""

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Stretch:
    """Part of the cars' paths.

    places: (n, N, 2) evenly spaced positions, latest last; n may be 0.
    way: (N,) distances driven [units].
    tracks: (N,) circuit indices.
    """

    places: Floats
    way: Floats
    tracks: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class _Way:
    """Cubic curves from one car state to the next, tangential to the headings at both ends."""

    start: NDArray[np.void]
    goal: NDArray[np.void]
    drove: Bools
    places: tuple[Floats, Floats, Floats, Floats]
    """Start, goal, and tangents at both ends [units per path]; all (N, 2)."""
    length: Floats
    """Path lengths (N,) [units]; 0 for cars that did not drive it."""

    def at(self, shares: Floats) -> Floats:
        """Return positions (n, N, 2) at these shares of the path."""
        t = shares[:, None, None]
        start, goal, leave, arrive = self.places
        s = t * t * (3.0 - 2.0 * t)
        return start + (goal - start) * s + leave * (t * (1.0 - t) ** 2) - arrive * (t * t * (1.0 - t))

    def cars(self, share: float) -> NDArray[np.void]:
        """Return all cars at this share of the path."""
        cars = self.goal.copy()
        cars["x"], cars["y"] = self.at(np.array([share]))[0].T
        turn = (self.goal["heading"] - self.start["heading"] + math.pi) % (2.0 * math.pi) - math.pi
        cars["heading"] -= np.where(self.drove, turn * (1.0 - share), 0.0)
        return cars


class SwarmMotion:
    """Displayed state of the cars, their trails, and the positions where episodes ended."""

    def __init__(self) -> None:
        self.spacing = 0.8
        """Spacing of trail positions behind the fastest car [units]."""
        self.reset()

    def reset(self) -> None:
        """Clear everything."""
        self.cars = np.zeros(0, SWARM_CAR)
        self.trail = np.zeros((0, 0, 2), np.float32)
        """Trail positions (up to TRAIL, N, 2), latest last."""
        self.trail_lengths = np.zeros(0, np.intp)
        """Number of latest trail positions that belong to each car's current path, (N,)."""
        self.marks = np.zeros((0, 5))
        """Episode ends: x, y, circuit index, window tick, 1 for a crash; newest last."""
        self._crashes: deque[tuple[int, NDArray[np.intp]]] = deque()
        self._swarm: Swarm | None = None
        self._way: _Way | None = None
        self._now = self._arrived = 0
        self._share, self._step = 1.0, 1.0

    @property
    def run_tick(self) -> int:
        """Training tick of the newest swarm."""
        return self._swarm.tick if self._swarm else 0

    def tick(self, swarm: Swarm | None) -> list[Stretch]:
        """Advance by one window tick with the newest swarm; the same object again means no news."""
        self._now += 1
        driven = []
        if swarm is not None and not self._known(swarm):
            if self._swarm is None or len(swarm.cars) != len(self.cars) or swarm.tick < self._swarm.tick:
                self._begin(swarm)
            else:
                driven.append(self._drive(1.0))
                driven.append(self._take(swarm, swarm.tick - self._swarm.tick))
            self._swarm, self._arrived = swarm, self._now
        driven.append(self._drive(min(1.0, self._share + self._step)))
        return [stretch for stretch in driven if len(stretch.places)]

    def crashes(self, number: int) -> int:
        """Return the number of crashes on a circuit in the last `RECENT` ticks."""
        while self._crashes and self._now - self._crashes[0][0] >= RECENT:
            self._crashes.popleft()
        return sum(int(counts[number]) for _, counts in self._crashes if number < len(counts))

    def at_walls(self, number: int) -> int:
        """Return the number of cars on a circuit that touch a wall now."""
        return int(((self.cars["track"] == number) & (self.cars["wall_contact"] != 0)).sum())

    def mark_ages(self) -> Floats:
        """Return the ages of the marks, 0 to 1, by time and by how soon each is replaced."""
        by_time = (self._now - self.marks[:, 3]) / MARK_LIFE
        return np.maximum(by_time, 1.0 - (np.arange(len(self.marks)) + 1.0 + MARKS - len(self.marks)) / MARKS)

    def _known(self, swarm: Swarm) -> bool:
        last = self._swarm
        return last is not None and swarm.tick == last.tick and len(swarm.cars) == len(last.cars)

    def _begin(self, swarm: Swarm) -> None:
        now = self._now
        self.reset()
        self._now = now
        self.cars = swarm.cars.copy()
        self.trail = np.zeros((0, len(self.cars), 2), np.float32)
        self.trail_lengths = np.zeros(len(self.cars), np.intp)
        self._way = _way(self.cars, self.cars, np.zeros(len(self.cars), np.bool_))

    def _take(self, swarm: Swarm, ticks: int) -> Stretch:
        """Start moving towards a new state; for cars that are moved at once only the last tick is known."""
        start, goal = self.cars, swarm.cars.copy()
        self._end_episodes(start, goal)
        self._way = way = _way(start, goal, _plausible_paths(start, goal, ticks))
        self.trail_lengths[~way.drove] = 0
        self._share, self._step = 0.0, 1.0 / min(MAX_GLIDE, max(1, self._now - self._arrived))
        return Stretch(way.places[1][None], np.where(way.drove, 0.0, goal["speed"] * DT), goal["track"])

    def _end_episodes(self, start: NDArray[np.void], goal: NDArray[np.void]) -> None:
        ended = np.flatnonzero(start["episode"] != goal["episode"])
        if len(ended):
            last = start[ended]
            crashed = last["speed"] < CRASHED
            now = np.full(len(ended), self._now)
            self.marks = np.concatenate(
                [self.marks, np.column_stack([last["x"], last["y"], last["track"], now, crashed])]
            )
            if crashed.any():
                self._crashes.append((self._now, np.bincount(np.maximum(0, last["track"][crashed]))))
        self.marks = self.marks[self._now - self.marks[:, 3] < MARK_LIFE][-MARKS:]

    def _drive(self, share: float) -> Stretch:
        """Advance to a share of the path."""
        way, gone = self._way, share - self._share
        if way is None or gone <= 0.0:
            return _NOTHING
        count = min(TRAIL, math.ceil(float(way.length.max(initial=0.0)) * gone / self.spacing))
        places = way.at(self._share + gone * np.arange(1, count + 1) / max(1, count))
        self.cars, self._share = way.cars(share), share
        self.trail = np.concatenate([self.trail[-TRAIL:], places.astype(np.float32)])[-TRAIL:]
        self.trail_lengths = np.minimum(len(self.trail), self.trail_lengths + count)
        return Stretch(places, way.length * gone, way.goal["track"])


_NOTHING = Stretch(np.zeros((0, 0, 2)), np.zeros(0), np.zeros(0, np.int32))


def _plausible_paths(start: NDArray[np.void], goal: NDArray[np.void], ticks: int) -> Bools:
    """Return a mask of the cars that plausibly drove from start to goal in so many ticks."""
    far = np.hypot(goal["x"] - start["x"], goal["y"] - start["y"])
    same = (start["episode"] == goal["episode"]) & (start["track"] == goal["track"])
    return np.asarray(same & (far <= min(MAX_JUMP, MAX_SPEED * DT * ticks + SLACK)))


def _way(start: NDArray[np.void], goal: NDArray[np.void], drove: Bools) -> _Way:
    here, there = (np.stack([cars["x"], cars["y"]], axis=1).astype(np.float64) for cars in (start, goal))
    here = np.where(drove[:, None], here, there)
    line = there - here
    length = np.nan_to_num(np.hypot(*line.T))
    ahead = line / np.maximum(length, 1e-9)[:, None]
    leave, arrive = (np.stack([np.cos(cars["heading"]), np.sin(cars["heading"])], axis=1) for cars in (start, goal))
    followed = ((leave * ahead).sum(axis=1) > AHEAD) & ((arrive * ahead).sum(axis=1) > AHEAD)
    leave, arrive = (np.where(followed[:, None], course * length[:, None], line) for course in (leave, arrive))
    return _Way(start, goal, drove, (here, there, leave, arrive), length)
