"""Which of the policies that a run has kept drives on screen.

A policy of a run, the newest unless another was chosen, in real time; beside it an earlier one, or the person."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from racer_env.engine import Track, load_circuit
from racer_env.errors import RacerError
from racer_viewer.agents import Agent
from racer_viewer.modes.controls import Action
from racer_viewer.modes.race import Entrant, Race, RaceCar
from racer_viewer.snapshot import Snapshot
from racer_viewer.training.config import PAID_UNITS, RunConfig
from racer_viewer.training.run_monitor import RunMonitor
from racer_viewer.ui.theme import Palette

LIVE = ("starting", "learning", "paused")
"""States of a run that goes on."""


class ShownPolicy:
    """The newest, swapped in at every update; or one that was chosen, by its number among those that were kept."""

    def __init__(self, run: RunMonitor, showcase: Showcase, say: Callable[[str], None]) -> None:
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
        policies, chosen = self._run.history.policies, self._chosen
        return self._run.steps if chosen is None or chosen >= len(policies) else round(float(policies[chosen]))

    def keep_up(self) -> None:
        """Once per tick: the newest drives, and the one that drives is called what it is."""
        self.take_newest()
        learned = self._learned_in_words
        self._showcase.call(f"at {learned}" if learned else NOW)

    def take_newest(self) -> None:
        """The policy of the last update drives on from where the one before it was."""
        count = len(self._run.history.policies)
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
        policies = self._run.history.policies
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


UNHURRIED = {"maxSteps": 10**9, "stillnessTimeoutTicks": 180}
"""An episode has no other end than standing still."""
NOW = "newest"
AFTER_ALL_STAND = 60
"""Ticks from the end of an episode to the next: one should see how it ended."""
STUCK_TICKS = 600
"""Without a gate, after which it begins anew: what an early policy has got into, no later one gets out of."""


class Showcase:
    """A race that begins anew when the newest policy has come to a stand or is stuck, or somebody joins or leaves.

    run: its rewards are paid here too. weights: those that it pays now, by the keys of an ai-config.
    """

    def __init__(
        self, circuit: str, run: RunConfig, weights: Mapping[str, float], palette: Palette, player: str
    ) -> None:
        self._circuit, self._run, self._palette, self._player = circuit, run, palette, player
        self._weights = dict(weights)
        self._name = NOW
        self._newest: Agent | None = None
        self._earlier: tuple[str, Agent] | None = None
        self.person_drives = False
        self._stood = 0
        self._race = self._opened()

    @property
    def track(self) -> Track:
        return self._race.track

    @property
    def race(self) -> Race:
        return self._race

    @property
    def newest(self) -> Agent | None:
        return self._newest

    def swap(self, newest: Agent) -> None:
        """From the next tick on this one drives, from where the one before it is."""
        first, self._newest = self._newest is None, newest
        car = self._driven
        car.entrant = replace(car.entrant, agent=newest)
        if first:
            self.restart()

    def call(self, name: str) -> None:
        """What is written at the car of the policy that drives, from now on."""
        if name != self._name:
            self._name = name
            car = self._driven
            car.entrant = replace(car.entrant, name=name)

    def compare(self, name: str, earlier: Agent | None) -> None:
        """An earlier policy drives beside it, as a ghost; None takes it away."""
        before, self._earlier = self._earlier, None if earlier is None else (name, earlier)
        if self.person_drives or (before is None and earlier is None):
            return
        if before is not None and earlier is not None:
            car = self._race.cars[1]
            car.entrant = replace(car.entrant, name=name, agent=earlier)
            return
        self._reopen()

    def let_drive(self, person: bool) -> None:
        """The person races the newest policy, or no longer."""
        if person != self.person_drives:
            self.person_drives = person
            self._reopen()

    def weigh(self, weights: Mapping[str, float]) -> None:
        """What the run pays from now on; a person who drives goes on as they began."""
        if dict(weights) != self._weights:
            self._weights = dict(weights)
            if not self.person_drives:
                self._reopen()

    def use(self, palette: Palette) -> None:
        """Other colours from now on."""
        if palette is not self._palette:
            self._palette = palette
            for car, entrant in zip(self._race.cars, self._entrants(), strict=True):
                car.entrant = replace(car.entrant, colour=entrant.colour)

    def restart(self) -> None:
        self._stood = 0
        self._race.restart()

    def step(self, action: Action) -> Snapshot:
        """One tick, with the person's action."""
        self._race.step(action if self.person_drives else (0.0, 0.0, 0.0))
        newest = self._driven
        self._stood = self._stood + 1 if newest.ending else 0
        stuck = newest.ticks - (newest.passed[-1] if newest.passed else 0) > STUCK_TICKS
        if not self.person_drives and (stuck or self._stood > AFTER_ALL_STAND):
            self.restart()
        return self._race.snapshot()

    def snapshot(self) -> Snapshot:
        return self._race.snapshot()

    def close(self) -> None:
        self._race.close()

    @property
    def _driven(self) -> RaceCar:
        """The car that the policy drives."""
        return self._race.cars[-1 if self.person_drives else 0]

    def _reopen(self) -> None:
        self._race.close()
        self._stood = 0
        self._race = self._opened()

    def _opened(self) -> Race:
        return Race(self._circuit, self._entrants(), config=self._paid())

    def _entrants(self) -> list[Entrant]:
        """Who drives now, the followed one first."""
        palette = self._palette
        newest = Entrant(self._name, palette.player, self._newest)
        if self.person_drives:
            return [Entrant(self._player, palette.player), replace(newest, colour=palette.cars[0])]
        ghosts = [Entrant(self._earlier[0], palette.cars[0], self._earlier[1], ghost=True)] if self._earlier else []
        return [newest, *ghosts]

    def _paid(self) -> dict[str, Any]:
        """The ai-config by which the run pays on this circuit."""
        weights = {**self._run.rewards.to_json()["weights"], **self._weights}
        if self._run.progress_in_units:
            weights["progress"] *= load_circuit(self._circuit).length / PAID_UNITS
        return {"weights": weights, "episode": UNHURRIED}
