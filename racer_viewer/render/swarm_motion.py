"""How the swarm moves on screen: from one state of the cars to the next, which may be many ticks later."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from racer_env.engine import DT, TICKS_PER_SECOND
from racer_env.engine.car import MAX_SPEED
from racer_viewer.run_history import SWARM_CAR, Swarm

LONGEST_GLIDE = 6
"""Cars take as long from one state to the next as the last one took to come, but no longer than this [ticks]."""
LONGEST_WAY = 160.0
"""From farther away a car is put where it is: nobody knows which way it took [units]."""
SLACK = 1.5
"""What a car may seem to drive more than its top speed gives [units]."""
AHEAD = 0.2
"""A car is taken to have followed its heading if the cosine of the angle to the way that it went is above this."""
TRAIL = 72
"""Places of a trail, the latest last."""
MARKS = 320
"""Never more than so many; the oldest make room."""
MARK_LIFE = 4 * TICKS_PER_SECOND
"""[ticks of the window]"""
RECENT = 5 * TICKS_PER_SECOND
"""Over which crashes are counted [ticks of the window]."""
CRASHED = 5.0
"""A car that was slower than this when its episode ended got stuck; of any other the time was up [units/s]."""

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Stretch:
    """What the cars drove, or a part of it.

    places: (n, N, 2) along their ways, evenly, the latest last; n may be 0.
    way: (N,) that each drove [units].
    tracks: (N,) numbers of the circuits that they were on.
    """

    places: Floats
    way: Floats
    tracks: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class _Way:
    """From one state of the cars to the next: a cubic curve that leaves and arrives as the cars were heading."""

    start: NDArray[np.void]
    goal: NDArray[np.void]
    drove: Bools
    places: tuple[Floats, Floats, Floats, Floats]
    """Of start and goal, and how fast the curve leaves and arrives [units per way]; all (N, 2)."""
    length: Floats
    """(N,) [units], 0 for those who did not drive it."""

    def at(self, shares: Floats) -> Floats:
        """(n, N, 2) after each of these shares of the way."""
        t = shares[:, None, None]
        start, goal, leave, arrive = self.places
        s = t * t * (3.0 - 2.0 * t)
        return start + (goal - start) * s + leave * (t * (1.0 - t) ** 2) - arrive * (t * t * (1.0 - t))

    def cars(self, share: float) -> NDArray[np.void]:
        """All cars after this share of the way."""
        cars = self.goal.copy()
        cars["x"], cars["y"] = self.at(np.array([share]))[0].T
        turn = (self.goal["heading"] - self.start["heading"] + math.pi) % (2.0 * math.pi) - math.pi
        cars["heading"] -= np.where(self.drove, turn * (1.0 - share), 0.0)
        return cars


class SwarmMotion:
    """The cars as they are shown now, their trails, and where episodes ended."""

    def __init__(self) -> None:
        self.spacing = 0.8
        """Of the places of a trail behind the fastest car [units]."""
        self.reset()

    def reset(self) -> None:
        """As if nobody had driven yet."""
        self.cars = np.zeros(0, SWARM_CAR)
        self.trail = np.zeros((0, 0, 2), np.float32)
        """(up to TRAIL, N, 2), the latest last."""
        self.trail_lengths = np.zeros(0, np.intp)
        """(N,) how many of the last places are of the way that the car is on."""
        self.marks = np.zeros((0, 5))
        """Where episodes ended: x, y, number of the circuit, tick of the window, 1 if by a crash; the newest last."""
        self._crashes: deque[tuple[int, NDArray[np.intp]]] = deque()
        self._swarm: Swarm | None = None
        self._way: _Way | None = None
        self._now = self._arrived = 0
        self._share, self._step = 1.0, 1.0

    @property
    def run_tick(self) -> int:
        """Of the newest swarm."""
        return self._swarm.tick if self._swarm else 0

    def tick(self, swarm: Swarm | None) -> list[Stretch]:
        """Once per tick of the window, with the newest swarm; the same again means nothing new."""
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
        """Episodes that ended by a crash on a circuit in the last `RECENT` ticks."""
        while self._crashes and self._now - self._crashes[0][0] >= RECENT:
            self._crashes.popleft()
        return sum(int(counts[number]) for _, counts in self._crashes if number < len(counts))

    def mark_ages(self) -> Floats:
        """Of the marks, 0 to 1: by time, and by how soon each makes room for newer ones."""
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
        """Set out for a new state. Of those who are put there at once, only the last tick is known."""
        start, goal = self.cars, swarm.cars.copy()
        self._end_episodes(start, goal)
        self._way = way = _way(start, goal, _drove(start, goal, ticks))
        self.trail_lengths[~way.drove] = 0
        self._share, self._step = 0.0, 1.0 / min(LONGEST_GLIDE, max(1, self._now - self._arrived))
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
        """Go on to a share of the way."""
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


def _drove(start: NDArray[np.void], goal: NDArray[np.void], ticks: int) -> Bools:
    """Who went from the one place to the other in so many ticks, and by a way that one can guess."""
    far = np.hypot(goal["x"] - start["x"], goal["y"] - start["y"])
    same = (start["episode"] == goal["episode"]) & (start["track"] == goal["track"])
    return np.asarray(same & (far <= min(LONGEST_WAY, MAX_SPEED * DT * ticks + SLACK)))


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
