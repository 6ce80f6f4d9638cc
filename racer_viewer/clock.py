"""The fixed-step clock of every window: simulation ticks and frame pacing."""

from __future__ import annotations

import time
from collections.abc import Callable


class FixedStepClock:
    """Divides elapsed time into steps of a fixed length.

    Time that has passed but is not yet taken as steps is the lag. A caller adds time with `advance` or `update`, takes
    the steps that are due with `take_step`, and draws at `fraction` between the last step and the next one.

    step: length of a step [s].
    max_lag: maximum lag [s]; time beyond it is dropped, for example after the machine was suspended.
    now, sleep: time source and sleep function; tests replace them.
    """

    def __init__(
        self,
        step: float,
        max_lag: float,
        now: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.step, self.max_lag = step, max_lag
        self._now, self._sleep = now, sleep
        self._updated = now()
        self._lag = 0.0

    @property
    def seconds_left(self) -> float:
        """Time until the next step is due, as of the last `advance` or `update` [s]."""
        return max(0.0, self.step - self._lag)

    @property
    def fraction(self) -> float:
        """Share of the current step that has passed, for interpolation; above 1 while steps are due."""
        return self._lag / self.step

    def advance(self, elapsed: float) -> None:
        """Add elapsed time [s]."""
        self._lag = min(self._lag + elapsed, self.max_lag)

    def update(self) -> None:
        """Add the time since the last update, as the time source measures it."""
        now = self._now()
        self.advance(now - self._updated)
        self._updated = now

    def take_step(self) -> bool:
        """Take one step if it is due; return whether it was."""
        if self._lag < self.step:
            return False
        self._lag -= self.step
        return True

    def wait(self) -> None:
        """Sleep until the next step is due, then take it."""
        self.update()
        if self.seconds_left > 0.0:
            self._sleep(self.seconds_left)
            self.update()
        self._lag -= self.step

    @classmethod
    def pacing(cls, rate: float) -> FixedStepClock:
        """Return a clock for `wait` in a drawing loop.

        One late frame is made up for; further delay is dropped.

        rate: maximum number of frames per second.
        """
        return cls(1.0 / rate, 2.0 / rate)
