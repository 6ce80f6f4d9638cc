"""Play: a person drives, against the clock, the ghost of the record, and agents.

Pause: nothing moves, and the drive is still seen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from racer_env.engine import load_circuit
from racer_env.errors import CircuitError, RacerError
from racer_viewer.agents import AgentError, load_agent
from racer_viewer.modes.controls import SteeringInput
from racer_viewer.modes.race import ENDLESS, Entrant, Race, RaceSetup
from racer_viewer.modes.race_view import RaceScreen
from racer_viewer.modes.results import ResultsScreen
from racer_viewer.modes.screen import AppContext, Key, ListScreen, MessageScreen
from racer_viewer.modes.settings_screen import SettingsScreen
from racer_viewer.modes.waiting import open_race
from racer_viewer.render.overlays import lap_time
from racer_viewer.replays import Trace, trace_replay
from racer_viewer.replays.records import medal_for
from racer_viewer.ui.intents import Command, Controls, Intent
from racer_viewer.ui.item_list import Button
from racer_viewer.ui.paint import draw_centred
from racer_viewer.ui.theme import TEXT_HUGE, TEXT_LARGE

if TYPE_CHECKING:
    import pygame

MOST_OPPONENTS = 7
COUNTDOWN_TICKS = 180
"""3, 2, 1, each a second."""
GO_TICKS = 50
FLASH_TICKS = 150
"""How long a lap time stays in the middle."""


def open_play(app: AppContext, circuit: str, rivals: Sequence[tuple[str, Path]], laps: int) -> None:
    """Drive so many laps on a circuit, against models by the names that they shall have; 0 for an open end."""
    palette = app.theme.palette
    try:
        agents = [load_agent(path) for _, path in rivals]
    except (AgentError, OSError) as error:
        app.push(MessageScreen(app, "This opponent cannot drive", str(error)))
        return
    entrants = [Entrant(app.settings.name, palette.player)]
    for number, ((name, _), agent) in enumerate(zip(rivals, agents, strict=True)):
        entrants.append(Entrant(name, palette.cars[number % len(palette.cars)], agent))
    ghost = _ghost(app, circuit) if app.settings.ghost else None
    setup = RaceSetup(circuit, tuple(entrants), ghost, ENDLESS, app.bridge)
    open_race(app, setup, lambda race: app.push(PlayScreen(app, setup, race, laps)))


def _ghost(app: AppContext, circuit: str) -> Trace | None:
    """The record on a circuit, driven again. What cannot be read is no reason not to drive."""
    try:
        known = load_circuit(circuit).circuit
        best = app.records.best(known) if known else None
        return trace_replay(app.records.replay_of(best)) if best else None
    except CircuitError:
        return None  # whoever has the cars may know it
    except (RacerError, OSError) as error:
        app.notify(f"No ghost: {error}")
        return None


class PlayScreen(RaceScreen):
    """From the countdown to the last lap."""

    def __init__(self, app: AppContext, setup: RaceSetup, race: Race, laps: int) -> None:
        super().__init__(app, setup, race)
        self._laps = laps
        self._wheel = SteeringInput()
        self._countdown = COUNTDOWN_TICKS
        self._since_go = 0
        self._flash, self._flash_ticks, self._flash_good = "", 0, True

    def keys(self) -> Sequence[Key]:
        return (("Esc", "pause"), (self.app.key_label(Command.RESTART), "restart"), *super().keys()[1:])

    def handle(self, intent: Intent) -> None:
        if intent == Command.BACK:
            self.app.push(PauseScreen(self.app, self))
        elif intent == Command.RESTART:
            self.restart()
        else:
            super().handle(intent)

    def restart(self) -> None:
        """From the line again; what was driven so far is gone."""
        self.drive.order(lambda race: race.restart())
        self._begin()

    def take(self, setup: RaceSetup, race: Race) -> None:
        super().take(setup, race)
        self._begin()

    def _begin(self) -> None:
        self._wheel.let_go()
        self._countdown, self._since_go, self._flash_ticks = COUNTDOWN_TICKS, 0, 0
        self.show_keys()

    def tick(self, controls: Controls) -> None:
        self._flash_ticks = max(0, self._flash_ticks - 1)
        if self._countdown:
            self._count_down()
            self.advance(0, (0.0, 0.0, 0.0))
            return
        self._since_go += 1
        for tick in self.advance(1, self._wheel.turn(controls, float(self.after.car["speed"]))):
            if tick.finished is not None:
                self._announce(tick.finished.ticks)
                if self._laps and len(self.race.laps) >= self._laps:
                    self.finish()

    def finish(self) -> None:
        """Show the results; from there it goes on to another race or back to where this one began."""
        self.app.push(ResultsScreen(self.app, self))

    def draw(self, surface: pygame.Surface, share: float) -> None:
        super().draw(surface, share)
        if self.app.top is not self:
            return
        theme = self.app.theme
        middle = surface.get_height() // 3
        if self._countdown:
            seconds = -(-self._countdown // 60)
            draw_centred(
                surface, theme, str(seconds), middle - theme.px(TEXT_HUGE) // 2, 2 * TEXT_HUGE, theme.palette.accent
            )
        elif self._since_go < GO_TICKS:
            draw_centred(surface, theme, "GO", middle - theme.px(TEXT_HUGE) // 2, 2 * TEXT_HUGE, theme.palette.good)
        elif self._flash_ticks:
            colour = theme.palette.good if self._flash_good else theme.palette.text
            draw_centred(surface, theme, self._flash, theme.px(24), TEXT_LARGE, colour)

    def _count_down(self) -> None:
        if self._countdown % 60 == 0:
            self.app.sound.play("beep")
        self._countdown -= 1
        if not self._countdown:
            self.app.sound.play("go")

    def _announce(self, ticks: int) -> None:
        """A lap's time in the middle of the screen, with its medal if it earned one."""
        laps = self.race.laps
        best_before = min((lap.ticks for lap in laps[:-1]), default=None)
        self._flash_good = best_before is None or ticks < best_before
        circuit = self.race.track.circuit
        medal = medal_for(circuit, ticks) if circuit is not None else None
        self._flash = f"{lap_time(ticks)} s" + (f"   {medal}" if medal else "")
        self._flash_ticks = FLASH_TICKS
        ghost = self.race.ghost
        record = ghost.best_lap.ticks if ghost is not None and ghost.best_lap is not None else None
        self.app.sound.play("record" if record is not None and ticks < record else "lap")


class PauseScreen(ListScreen):
    title = "Paused"
    darkness = 150

    def __init__(self, app: AppContext, play: PlayScreen) -> None:
        super().__init__(
            app,
            [
                Button("Go on", on_press=app.pop),
                Button("Restart", "From the line again", on_press=self._restart),
                Button("Finish", "Results so far, and a replay if you want one", on_press=self._finish),
                Button("Settings", on_press=lambda: app.push(SettingsScreen(app))),
                Button(app.leave_label, "What was driven is not kept", on_press=app.leave_race),
            ],
        )
        self._play = play

    def handle(self, intent: Intent) -> None:
        if intent == Command.RESTART:
            self._restart()
        else:
            super().handle(intent)

    def _restart(self) -> None:
        self.app.pop()
        self._play.restart()

    def _finish(self) -> None:
        self.app.pop()
        self._play.finish()
