"""The newest policy of a run, driving in real time; beside it an earlier one, or the person."""

from __future__ import annotations

from dataclasses import replace

from racer_env.engine import Config, Track
from racer_viewer.agents import Agent
from racer_viewer.modes.race import Race
from racer_viewer.modes.race_car import Entrant, RaceCar
from racer_viewer.modes.wheel import Action
from racer_viewer.snapshot import Snapshot
from racer_viewer.ui.theme import Palette

NOW, THEN = "newest", "then"
AFTER_ALL_STAND = 60
"""Ticks from the end of an episode to the next: one should see how it ended."""


class Showcase:
    """A race that begins anew when the newest policy has come to a stand, or when somebody joins or leaves.

    Rewards are those of the run; an episode has no other end than standing still.
    """

    def __init__(self, circuit: str, rewards: Config, palette: Palette, player: str) -> None:
        self._circuit, self._palette, self._player = circuit, palette, player
        self._config = {**rewards.to_json(), "episode": {"maxSteps": 10**9, "stillnessTimeoutTicks": 180}}
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
        self._set_agent(self._race.cars[-1 if self.person_drives else 0], newest)
        if first:
            self.restart()

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

    def restart(self) -> None:
        self._stood = 0
        self._race.restart()

    def step(self, action: Action) -> Snapshot:
        """One tick, with the person's action."""
        self._race.step(action if self.person_drives else (0.0, 0.0, 0.0))
        newest = self._race.cars[-1 if self.person_drives else 0]
        self._stood = self._stood + 1 if newest.ending and not self.person_drives else 0
        if self._stood > AFTER_ALL_STAND:
            self.restart()
        return self._race.snapshot()

    def snapshot(self) -> Snapshot:
        return self._race.snapshot()

    def close(self) -> None:
        self._race.close()

    def _reopen(self) -> None:
        self._race.close()
        self._stood = 0
        self._race = self._opened()

    def _opened(self) -> Race:
        palette = self._palette
        newest = Entrant(NOW, palette.player, self._newest)
        if self.person_drives:
            rival = replace(newest, colour=palette.cars[0])
            return Race(self._circuit, [Entrant(self._player, palette.player), rival], config=self._config)
        ghosts = [Entrant(self._earlier[0], palette.cars[0], self._earlier[1], ghost=True)] if self._earlier else []
        return Race(self._circuit, [newest, *ghosts], config=self._config)

    @staticmethod
    def _set_agent(car: RaceCar, agent: Agent) -> None:
        car.entrant = replace(car.entrant, agent=agent)
