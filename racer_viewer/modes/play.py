"""Play: the player drives against the clock, the ghost of the record, and agents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from racer_env.engine import load_circuit
from racer_env.errors import CircuitError, RacerError
from racer_viewer.agents import AgentError, load_agent
from racer_viewer.modes.controls import SteeringInput
from racer_viewer.modes.drive import Drive
from racer_viewer.modes.race import ENDLESS, NO_ACTION, Entrant, RaceSetup, Restart, Tick
from racer_viewer.modes.race_view import LiveRace, RaceView
from racer_viewer.modes.results import ResultsScreen
from racer_viewer.modes.screen import AppContext, MessageScreen, Screen
from racer_viewer.modes.settings_screen import SettingsScreen
from racer_viewer.modes.waiting import open_race
from racer_viewer.replays import Trace, trace_replay
from racer_viewer.replays.records import medal_for
from racer_viewer.timing import LapTime, best_lap, lap_time
from racer_viewer.ui.intents import Command, Controls, Intent
from racer_viewer.ui.item_list import Button
from racer_viewer.ui.paint import draw_centred
from racer_viewer.ui.theme import TEXT_HUGE, TEXT_LARGE
from racer_viewer.ui.views import Key, ListView

if TYPE_CHECKING:
    import pygame

MAX_OPPONENTS = 7
COUNTDOWN_TICKS = 180
"""Duration of the countdown 3, 2, 1 [ticks]."""
GO_TICKS = 50
"""Time for which GO is shown [ticks]."""
LAP_TIME_TICKS = 150
"""Time for which a lap time is shown at the top of the picture [ticks]."""


def open_play(app: AppContext, circuit: str, rivals: Sequence[tuple[str, Path]], laps: int) -> None:
    """Start a race against models.

    rivals: name and file of each model.
    laps: laps to drive; 0 for no limit.
    """
    palette = app.theme.palette
    try:
        agents = [load_agent(path) for _, path in rivals]
    except (AgentError, OSError) as error:
        app.push(MessageScreen(app, "This opponent cannot drive", str(error)))
        return
    entrants = [Entrant(app.settings.name, palette.player)]
    for number, ((name, _), agent) in enumerate(zip(rivals, agents, strict=True)):
        entrants.append(Entrant(name, palette.cars[number % len(palette.cars)], agent))
    ghost = _record_ghost(app, circuit) if app.settings.ghost else None
    setup = RaceSetup(circuit, tuple(entrants), ghost, ENDLESS, app.bridge)
    open_race(app, setup, lambda drive: app.push(PlayScreen(app, setup, drive, laps)))


def _record_ghost(app: AppContext, circuit: str) -> Trace | None:
    """Re-simulate the record on a circuit; None if there is none or it cannot be read."""
    try:
        known = load_circuit(circuit).circuit
        best = app.records.best(known) if known else None
        return trace_replay(app.records.replay_of(best)) if best else None
    except CircuitError:
        return None  # the server may know the circuit
    except (RacerError, OSError) as error:
        app.notify(f"No ghost: {error}")
        return None


class PlayScreen(Screen):
    """A race from the countdown to the last lap.

    steering: converts the player's controls to actions.
    countdown: ticks until the start.
    """

    view: RaceView

    def __init__(self, app: AppContext, setup: RaceSetup, drive: Drive, laps: int) -> None:
        super().__init__(app)
        self.live = LiveRace(self, setup, drive, lambda last: self._begin())
        self.view = self.live.view
        self.steering = SteeringInput()
        self._laps = laps
        self.countdown = self._ticks_since_go = self._lap_ticks = 0
        self._lap_text, self._lap_is_best = "", True
        self._begin()

    def keys(self) -> Sequence[Key]:
        return (("Esc", "pause"), (self.app.key_label(Command.RESTART), "restart"), *self.view.keys())

    def handle(self, intent: Intent) -> None:
        if intent == Command.BACK:
            self.app.push(PauseScreen(self.app, self))
        elif intent == Command.RESTART:
            self.restart()
        else:
            self.view.handle(intent)

    def restart(self) -> None:
        """Start again from the start line; what was driven so far is discarded."""
        self.live.drive.send(Restart())
        self._begin()

    def tick(self, controls: Controls) -> None:
        self._lap_ticks = max(0, self._lap_ticks - 1)
        if self.countdown:
            self._count_down()
            self.live.advance(0, NO_ACTION)
            return
        self._ticks_since_go += 1
        for tick in self.live.advance(1, self.steering.update(controls, float(self.view.after.car["speed"]))):
            if tick.finished is not None:
                self._announce(tick, tick.finished)
                if self._laps and len(tick.laps) >= self._laps:
                    self.finish()

    def finish(self) -> None:
        """Show the results."""
        self.app.push(ResultsScreen(self.app, self.live.setup, self.live.tick, self.restart))

    def draw_ahead(self) -> bool:
        return self.view.draw_ahead()

    def draw(self, surface: pygame.Surface, share: float) -> None:
        self.live.draw(surface, share, self.keys())
        if self.app.top is not self:
            return
        theme = self.app.theme
        middle = surface.get_height() // 3 - theme.px(TEXT_HUGE) // 2
        if self.countdown:
            seconds = -(-self.countdown // 60)
            draw_centred(surface, theme, str(seconds), middle, 2 * TEXT_HUGE, theme.palette.accent)
        elif self._ticks_since_go < GO_TICKS:
            draw_centred(surface, theme, "GO", middle, 2 * TEXT_HUGE, theme.palette.good)
        elif self._lap_ticks:
            colour = theme.palette.good if self._lap_is_best else theme.palette.text
            draw_centred(surface, theme, self._lap_text, theme.px(24), TEXT_LARGE, colour)

    def on_close(self) -> None:
        super().on_close()
        self.live.close()

    def _begin(self) -> None:
        self.steering.release()
        self.countdown, self._ticks_since_go, self._lap_ticks = COUNTDOWN_TICKS, 0, 0
        self.view.show_keys()

    def _count_down(self) -> None:
        if self.countdown % 60 == 0:
            self.app.sound.play("beep")
        self.countdown -= 1
        if not self.countdown:
            self.app.sound.play("go")

    def _announce(self, tick: Tick, lap: LapTime) -> None:
        """Show a lap time, with its medal if it earned one, and play a sound."""
        best_before = best_lap(tick.laps[:-1])
        self._lap_is_best = best_before is None or lap.ticks < best_before.ticks
        circuit = tick.snapshot.track.circuit
        medal = medal_for(circuit, lap.ticks) if circuit is not None else None
        self._lap_text = f"{lap_time(lap.ticks)} s" + (f"   {medal}" if medal else "")
        self._lap_ticks = LAP_TIME_TICKS
        record = self.live.setup.ghost.best_lap if self.live.setup.ghost else None
        self.app.sound.play("record" if record is not None and lap.ticks < record.ticks else "lap")


class PauseScreen(Screen):
    """Menu over a paused race."""

    def __init__(self, app: AppContext, play: PlayScreen) -> None:
        items = [
            Button("Resume", on_press=app.pop),
            Button("Restart", "From the start line", on_press=self._restart),
            Button("Finish", "Show the results so far; you can save a replay there", on_press=self._finish),
            Button("Settings", on_press=lambda: app.push(SettingsScreen(app))),
            Button(app.leave_label, "Without saving a replay", on_press=app.leave_race),
        ]
        super().__init__(app, ListView("Paused", items, darkness=150))
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
