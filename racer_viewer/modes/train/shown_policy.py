"""Which of the policies that a run has kept drives on screen."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from racer_env.errors import RacerError
from racer_viewer.modes.train.showcase import NOW, Showcase
from racer_viewer.training.live import WatchedRun

LIVE = ("starting", "learning", "paused")
"""States of a run that goes on."""


class ShownPolicy:
    """The newest, swapped in at every update; or one that was chosen, by its number among those that were kept."""

    def __init__(self, run: WatchedRun, showcase: Showcase, say: Callable[[str], None]) -> None:
        self._run, self._showcase, self._say = run, showcase, say
        self._newest, self._swapped = -1, time.monotonic()
        self._chosen: int | None = None

    @property
    def driver(self) -> str:
        """Which one drives, in words."""
        learned = self._learned_in_words
        return f"the policy after {learned} steps" if learned else "the newest policy"

    @property
    def beside(self) -> str:
        """Which one drives beside it as a ghost, in words; empty for none."""
        alone = self._chosen is None or self.steps == self._learned or self._showcase.person_drives
        return "" if alone else f"the one at {steps_in_words(self.steps)}"

    @property
    def is_newest(self) -> bool:
        return self._chosen is None

    @property
    def age(self) -> float | None:
        """Of the newest [s]; None while there is none, or when all is over."""
        return time.monotonic() - self._swapped if self._newest >= 0 and self._run.state in LIVE else None

    @property
    def steps(self) -> int:
        """Moment of the training that is shown: of the chosen policy, else now."""
        policies, chosen = self._run.curves.policies, self._chosen
        return self._run.steps if chosen is None or chosen >= len(policies) else round(float(policies[chosen]))

    def keep_up(self) -> None:
        """Once per tick: the newest drives, and the one that drives is called what it is."""
        self.take_newest()
        learned = self._learned_in_words
        self._showcase.call(f"at {learned}" if learned else NOW)

    def take_newest(self) -> None:
        """The policy of the last update drives on from where the one before it was."""
        count = len(self._run.curves.policies)
        if self._chosen is not None and self._chosen >= count:  # a run that goes on begins before its last policies
            self._chosen = None
            self._showcase.compare("", None)
        if count - 1 == self._newest or not count:
            return
        self._newest, self._swapped = count - 1, time.monotonic()
        if self._chosen is None or self._run.state in LIVE:
            self._guarded(lambda: self._showcase.swap(self._run.policy(count - 1)))

    def move_to(self, showcase: Showcase) -> None:
        """The same policy on another circuit."""
        self._showcase, self._newest = showcase, -1
        chosen = self._chosen
        self.take_newest()
        if chosen is not None:
            self.choose(chosen)

    def choose_neighbour(self, by: int) -> None:
        now = self._newest if self._chosen is None else self._chosen
        self.choose(now + by)

    def choose_at(self, steps: float) -> None:
        """The one that was kept nearest to this moment."""
        policies = self._run.curves.policies
        if len(policies):
            self.choose(int(np.abs(policies - steps).argmin()))

    def choose(self, number: int) -> None:
        """While it learns, an earlier policy drives as a ghost beside the newest; afterwards it drives itself."""
        self.take_newest()
        if self._newest >= 0:
            number = min(self._newest, max(0, number))
            self._chosen = None if number == self._newest else number
            self._guarded(lambda: self._drive(number))

    def _drive(self, number: int) -> None:
        if self._run.state not in LIVE:
            self._showcase.compare("", None)
            self._showcase.swap(self._run.policy(number))
        elif self._chosen is None:
            self._showcase.compare("", None)
        else:
            self._showcase.compare(f"at {steps_in_words(self.steps)}", self._run.policy(number))

    @property
    def _learned(self) -> int | None:
        """Steps that the one at the wheel has learned for."""
        agent = self._showcase.newest
        return None if agent is None else agent.info.timesteps

    @property
    def _learned_in_words(self) -> str:
        """Empty while it learns: the one at the wheel is the newest then, and soon another."""
        return "" if self._learned is None or self._run.state in LIVE else steps_in_words(self._learned)

    def _guarded(self, do: Callable[[], None]) -> None:
        """What cannot be read is told, and something else goes on driving."""
        try:
            do()
        except (RacerError, OSError) as error:
            self._say(str(error))


def steps_in_words(steps: int) -> str:
    return f"{steps / 1e6:.2f}M" if steps >= 1_000_000 else f"{steps / 1000:.0f}k"
