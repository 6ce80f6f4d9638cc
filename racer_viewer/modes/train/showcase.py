"""Showcase of a training run: a policy of the run drives in real time, next to an earlier one or to the user."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from racer_env.engine import Config, Track, load_circuit
from racer_env.errors import RacerError, in_one_line
from racer_viewer.agents import Agent
from racer_viewer.modes.controls import Action
from racer_viewer.modes.drive import Drive, open_drive
from racer_viewer.modes.race import NO_ACTION, Entrant, RaceSetup, Restart, SetEntrant, Tick
from racer_viewer.snapshot import Snapshot
from racer_viewer.training.config import PAID_UNITS, RunConfig
from racer_viewer.training.run_monitor import RunMonitor
from racer_viewer.translation import _, mark
from racer_viewer.ui.theme import Palette

LIVE = ("starting", "learning", "paused")
"""States of a run that has not ended."""


class ShownPolicy:
    """Selects which policy drives: the newest, swapped in at every update, or a kept one chosen by its index.

    While the run learns, a chosen policy drives as a ghost next to the newest; afterwards it drives alone.
    """

    def __init__(self, run: RunMonitor, showcase: Showcase, notify: Callable[[str], None]) -> None:
        self._run, self._showcase, self._notify = run, showcase, notify
        self._newest, self._swapped = -1, time.monotonic()
        self._chosen: int | None = None

    @property
    def driver(self) -> str:
        """Description of the policy that drives."""
        trained = self._trained_text
        return _("the policy after {steps} steps").format(steps=trained) if trained else _("the newest policy")

    @property
    def beside(self) -> str:
        """Description of the policy that drives as a ghost; empty without one."""
        alone = self._chosen is None or self.steps == self._trained_steps or self._showcase.player_drives
        return "" if alone else _("the one at {steps}").format(steps=steps_in_words(self.steps))

    @property
    def is_newest(self) -> bool:
        return self._chosen is None

    @property
    def age(self) -> float | None:
        """Time since the newest policy was swapped in [s]; None without a policy, or when the run has ended."""
        return time.monotonic() - self._swapped if self._newest >= 0 and self._run.state in LIVE else None

    @property
    def steps(self) -> int:
        """Environment steps at the point of the training that is shown: of the chosen policy, else now."""
        policies, chosen = self._run.history.policies, self._chosen
        return self._run.steps if chosen is None or chosen >= len(policies) else round(float(policies[chosen]))

    def tick(self) -> None:
        """Swap in the newest policy and update its name; called once per tick."""
        self.take_newest()
        trained = self._trained_text
        self._showcase.rename(_("at {steps}").format(steps=trained) if trained else _(NEWEST))

    def take_newest(self) -> None:
        """Let the policy of the last update drive on from where the one before it is."""
        count = len(self._run.history.policies)
        if self._chosen is not None and self._chosen >= count:  # a resumed run drops its last policies
            self._chosen = None
            self._showcase.compare("", None)
        if count - 1 == self._newest or not count:
            return
        self._newest, self._swapped = count - 1, time.monotonic()
        if self._chosen is None or self._run.state in LIVE:
            self._guarded(lambda: self._showcase.swap(self._run.policy(count - 1)))

    def move_to(self, showcase: Showcase) -> None:
        """Use the same policy in another showcase."""
        self._showcase, self._newest = showcase, -1
        chosen = self._chosen
        self.take_newest()
        if chosen is not None:
            self.choose(chosen)

    def choose_neighbour(self, by: int) -> None:
        """Choose the policy kept so many updates later."""
        now = self._newest if self._chosen is None else self._chosen
        self.choose(now + by)

    def choose_at(self, steps: float) -> None:
        """Choose the policy kept nearest to this number of steps."""
        policies = self._run.history.policies
        if len(policies):
            self.choose(int(np.abs(policies - steps).argmin()))

    def choose(self, number: int) -> None:
        """Choose a kept policy by its index."""
        self.take_newest()
        if self._newest >= 0:
            number = min(self._newest, max(0, number))
            self._chosen = None if number == self._newest else number
            self._guarded(lambda: self._show(number))

    def _show(self, number: int) -> None:
        if self._run.state not in LIVE:
            self._showcase.compare("", None)
            self._showcase.swap(self._run.policy(number))
        elif self._chosen is None:
            self._showcase.compare("", None)
        else:
            self._showcase.compare(_("at {steps}").format(steps=steps_in_words(self.steps)), self._run.policy(number))

    @property
    def _trained_steps(self) -> int | None:
        """Steps for which the driving policy was trained."""
        agent = self._showcase.newest
        return None if agent is None else agent.info.timesteps

    @property
    def _trained_text(self) -> str:
        """Formatted steps; empty while the run learns, since the newest policy drives then."""
        steps = self._trained_steps
        return "" if steps is None or self._run.state in LIVE else steps_in_words(steps)

    def _guarded(self, action: Callable[[], None]) -> None:
        """Run an action; if a policy cannot be read, say so and go on with the one before."""
        try:
            action()
        except (RacerError, OSError) as error:
            self._notify(in_one_line(error))


def steps_in_words(steps: int) -> str:
    """Format a number of steps as 240, 24k or 1.50M."""
    if steps < 1000:
        return str(steps)
    return f"{steps / 1e6:.2f}M" if steps >= 1_000_000 else f"{steps / 1000:.0f}k"


EPISODE_LIMITS = {"maxSteps": 10**9, "stillnessTimeoutTicks": 180}
"""Episode section of the ai-config; an episode ends only when its car stands still."""
NEWEST = mark("newest")
RESTART_DELAY = 60
"""Ticks from the end of an episode to the next one, to show how it ended."""
STUCK_TICKS = 600
"""Ticks without a gate after which the race restarts; a later policy would not get free either."""


class Showcase:
    """A race that restarts when the driving policy stands still or is stuck, or when the drivers change.

    run: configuration of the run, whose rewards count here too.
    rewards: current rewards.
    player: name of the user.

    setup: definition of the race.
    tick: latest tick of the race.
    """

    def __init__(self, circuit: str, run: RunConfig, rewards: Config, palette: Palette, player: str) -> None:
        self._circuit, self._run, self._palette, self._player = circuit, run, palette, player
        self._rewards = rewards
        self._name = NEWEST
        self._newest: Agent | None = None
        self._earlier: tuple[str, Agent] | None = None
        self.player_drives = False
        self._ended_ticks = 0
        self._sent = self.entrants
        """Drivers as the race has them, when all commands have been carried out."""
        self.setup = self._race_setup()
        self._drive: Drive = open_drive(self.setup)
        self.tick: Tick = self._drive.first

    @property
    def track(self) -> Track:
        return self.tick.snapshot.track

    @property
    def newest(self) -> Agent | None:
        """The policy that drives."""
        return self._newest

    def swap(self, newest: Agent) -> None:
        """Let another policy drive on from where the one before it is."""
        first, self._newest = self._newest is None, newest
        self._update_entrants()
        if first:
            self.restart()

    def rename(self, name: str) -> None:
        """Change the name shown at the car of the policy."""
        self._name = name
        self._update_entrants()

    def compare(self, name: str, earlier: Agent | None) -> None:
        """Let an earlier policy drive as a ghost; None removes it."""
        self._earlier = None if earlier is None else (name, earlier)
        self._update_entrants()

    def let_player_drive(self, on: bool) -> None:
        """Let the user race against the newest policy, or leave the race."""
        if on != self.player_drives:
            self.player_drives = on
            self._reopen()

    def set_rewards(self, rewards: Config) -> None:
        """Use other rewards; a race of the user continues with those it began with."""
        if rewards != self._rewards:
            self._rewards = rewards
            if not self.player_drives:
                self._reopen()

    def set_palette(self, palette: Palette) -> None:
        if palette is not self._palette:
            self._palette = palette
            self._update_entrants()

    def restart(self) -> None:
        self._ended_ticks = 0
        self._drive.send(Restart())

    def step(self, action: Action) -> Snapshot:
        """Advance by one tick; `action` is the user's."""
        self._advance(1, action if self.player_drives else NO_ACTION)
        policy_car = self.tick.episodes[-1 if self.player_drives else 0]
        self._ended_ticks = self._ended_ticks + 1 if policy_car.ending else 0
        stuck = policy_car.ticks - policy_car.gate_tick > STUCK_TICKS
        if not self.player_drives and (stuck or self._ended_ticks > RESTART_DELAY):
            self.restart()
            self._advance(0, NO_ACTION)
        return self.tick.snapshot

    def close(self) -> None:
        self._drive.close()

    @property
    def entrants(self) -> tuple[Entrant, ...]:
        """Drivers of the cars, the followed one first."""
        palette = self._palette
        if self.player_drives:
            policy = Entrant(self._name, palette.cars[0], self._newest)
            return (Entrant(self._player, palette.player), policy)
        policy = Entrant(self._name, palette.player, self._newest)
        if self._earlier is None:
            return (policy,)
        return (policy, Entrant(self._earlier[0], palette.cars[0], self._earlier[1], ghost=True))

    def _advance(self, ticks: int, action: Action) -> None:
        for tick in self._drive.advance(ticks, action, math.inf):
            self.tick = tick

    def _update_entrants(self) -> None:
        """Pass changed drivers on to the race; with more or fewer of them, start another one."""
        before, now = self._sent, self.entrants
        if len(before) != len(now):
            self._reopen()
            return
        for number, (old, new) in enumerate(zip(before, now, strict=True)):
            if old != new:
                self._drive.send(SetEntrant(number, new))
        self._sent = now

    def _reopen(self) -> None:
        self._drive.close()
        self._ended_ticks = 0
        self._sent = self.entrants
        self.setup = self._race_setup()
        self._drive = open_drive(self.setup)
        self.tick = self._drive.first

    def _race_setup(self) -> RaceSetup:
        return RaceSetup(self._circuit, self.entrants, config=self._config(), stops=False)

    def _config(self) -> dict[str, Any]:
        """Return the ai-config with the rewards of the run on this circuit."""
        rewards = self._rewards.to_json()
        if self._run.progress_in_units:
            rewards["weights"]["progress"] *= load_circuit(self._circuit).length / PAID_UNITS
        return {**rewards, "episode": EPISODE_LIMITS}
