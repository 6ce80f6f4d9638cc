"""What the followed car did in the last seconds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from racer_env.engine import COMPONENTS, TICKS_PER_SECOND, Track
from racer_viewer.snapshot import Snapshot

SECONDS, INPUT_SECONDS = 6, 2
TICKS, INPUT_TICKS = SECONDS * TICKS_PER_SECOND, INPUT_SECONDS * TICKS_PER_SECOND

Floats = NDArray[np.float64]


class History:
    """One row a tick, the newest last; rows from before the first tick are 0.

    rewards: (360, 6) components. values: (360,) the return that the agent expected, NaN where nothing was expected.
    speeds: (360,) [units/s]. asked, done: (120, 3) steer, throttle and brake of the driver and of the car.
    ticks: how many there are, more than the arrays hold after a while.
    """

    def __init__(self) -> None:
        self.rewards = np.zeros((TICKS, len(COMPONENTS)))
        self.values = np.full(TICKS, np.nan)
        self.speeds = np.zeros(TICKS)
        self.asked, self.done = np.zeros((INPUT_TICKS, 3)), np.zeros((INPUT_TICKS, 3))
        self.ticks = 0
        self._track: Track | None = None
        self._focus = self._step = -1

    def tick(self, snapshot: Snapshot) -> None:
        """Take in the next tick; of another car, another track or a new episode it is the first."""
        car = snapshot.car
        step = int(car["step_count"])
        if snapshot.track is not self._track or snapshot.focus != self._focus or step < self._step:
            self._clear()
        self._track, self._focus, self._step = snapshot.track, snapshot.focus, step
        thought = snapshot.thought
        self.ticks += 1
        _push(self.rewards, car["components"])
        _push(self.values, np.nan if thought is None or thought.value is None else thought.value)
        _push(self.speeds, car["speed"])
        _push(self.asked, car["action"])
        _push(self.done, (car["steer"], car["throttle"], car["brake"]))

    def _clear(self) -> None:
        self.ticks = 0
        self.values[:] = np.nan
        for rows in (self.rewards, self.speeds, self.asked, self.done):
            rows[:] = 0.0


def _push(rows: Floats, newest: object) -> None:
    rows[:-1] = rows[1:]
    rows[-1] = newest  # type: ignore[call-overload]
