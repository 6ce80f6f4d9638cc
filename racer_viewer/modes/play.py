"""Play: the player drives against the clock, the ghost of the record, and agents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from racer_env.errors import RacerError, in_one_line
from racer_viewer.agents import AgentError, load_agent
from racer_viewer.modes.circuits import MEDAL_NAMES, MEDALS, fixed_circuits
from racer_viewer.modes.controls import SteeringInput
from racer_viewer.modes.drive import Drive
from racer_viewer.modes.ladder import chosen_ghost
from racer_viewer.modes.race import ENDLESS, NO_ACTION, Entrant, PutBack, RaceSetup, Restart, SetGhost, Tick
from racer_viewer.modes.race_view import LiveRace, RaceView
from racer_viewer.modes.results import EventOutcome, ResultsScreen
from racer_viewer.modes.screen import AppContext, MessageScreen, Screen
from racer_viewer.modes.settings_screen import SettingsScreen
from racer_viewer.modes.waiting import open_race
from racer_viewer.render.overlays.race_hud import LIGHTS, RaceHud, Words
from racer_viewer.replays.records import Medal, medal_for
from racer_viewer.timing import LapTime, best_lap, lap_time, signed_time
from racer_viewer.translation import _
from racer_viewer.ui.intents import Command, Controls, Intent
from racer_viewer.ui.item_list import Button
from racer_viewer.ui.theme import TEXT, TEXT_LARGE
from racer_viewer.ui.views import HintCard, Key, ListView

if TYPE_CHECKING:
    import pygame

MAX_OPPONENTS = 7
COUNTDOWN_TICKS, RESUME_TICKS = 180, 90
"""Duration of the countdown 3, 2, 1 before a race and after a pause [ticks]."""
GO_TICKS = 50
"""Time for which GO is shown [ticks]."""
LIGHTS_BOTTOM = 0.44
"""Lower end of the lights at the start and of the seconds below them, as a share of the picture's height."""
USED_TICKS, IDLE_TICKS = 20, 180
"""Time of throttle after which the hint with the driving keys goes, and of standing still after which it returns
[ticks]."""
LAP_TIME_TICKS = 150
"""Time for which a lap time is shown at the top of the picture [ticks]."""


EventRule = Callable[[Tick], EventOutcome]
"""Function that decides an event of the career by the last tick of its race."""


def open_play(
    app: AppContext,
    circuit: str,
    rivals: Sequence[tuple[str, Path]],
    laps: int,
    rule: EventRule | None = None,
    ghost: Medal | None = None,
) -> None:
    """Start a race against models.

    rivals: name and file of each model.
    laps: laps to drive; 0 for no limit.
    rule: decides the event that the race belongs to.
    ghost: medal whose ghost is raced, instead of that of the settings.
    """
    palette = app.theme.palette
    try:
        agents = [load_agent(path) for _name, path in rivals]
    except (AgentError, OSError) as error:
        app.push(MessageScreen(app, _("This opponent cannot drive"), in_one_line(error)))
        return
    entrants = [Entrant(app.settings.name, palette.player)]
    for number, ((name, _path), agent) in enumerate(zip(rivals, agents, strict=True)):
        entrants.append(Entrant(name, palette.cars[number % len(palette.cars)], agent))
    if not app.settings.raced:
        app.change(raced=True)
    shown = chosen_ghost(app, circuit, ghost)
    setup = RaceSetup(circuit, tuple(entrants), shown, ENDLESS, app.bridge, grid=bool(rivals))
    open_race(app, setup, lambda drive: app.push(PlayScreen(app, setup, drive, laps, rule, ghost)))


class PlayScreen(Screen):
    """A race from the countdown to the last lap.

    steering: converts the player's controls to actions.
    countdown: ticks until the start, or until the race goes on after a pause.
    """

    view: RaceView

    def __init__(
        self,
        app: AppContext,
        setup: RaceSetup,
        drive: Drive,
        laps: int,
        rule: EventRule | None = None,
        ghost: Medal | None = None,
    ) -> None:
        super().__init__(app)
        self._rule, self._ghost = rule, ghost
        self.live = LiveRace(self, setup, drive, lambda last: self._begin(), overlays="play_overlays")
        self.view = self.live.view
        self.steering = SteeringInput()
        self.hud = RaceHud(laps)
        self._laps = laps
        self.countdown = self._ticks_since_go = self._lap_ticks = 0
        self._second = 1
        """Length of a second of the countdown [ticks]."""
        self._lap_words: Words = ()
        """Time of the lap that was finished last, as it is shown."""
        self._throttle_ticks = self._idle_ticks = 0
        """Time of throttle in this run, and of standing still since then [ticks]."""
        self._laps_entered = 0
        """Number of laps of this run that were entered in the records."""
        self._begin()

    def keys(self) -> Sequence[Key]:
        key = self.app.key_label
        return (
            ("Esc", _("pause")),
            (key(Command.RESTART), _("restart")),
            (key(Command.PUT_BACK), _("back on the road")),
            *self.view.keys(),
        )

    def handle(self, intent: Intent) -> None:
        match intent:
            case Command.BACK | Command.PAUSE:
                self.app.push(PauseScreen(self.app, self))
            case Command.RESTART:
                self.restart()
            case Command.PUT_BACK:
                self._put_back()
            case Command.NEXT_CAR:
                self.view.toggle(Command.NAMES.value)
            case _:
                self.view.handle(intent)

    def restart(self) -> None:
        """Start again; clean laps driven so far count for the records, and a new record is the new ghost."""
        self.save_record()
        self.live.drive.send(SetGhost(chosen_ghost(self.app, self.live.setup.circuit, self._ghost)))
        self.live.drive.send(Restart())
        self._begin()

    def next_circuit(self) -> None:
        """Race on the next circuit against the same opponents."""
        known = list(fixed_circuits(self.app.data, self.live.setup.circuit))
        now = self.live.setup.circuit
        circuit = known[(known.index(now) + 1) % len(known) if now in known else 0]
        self.app.change(circuit=circuit)
        self.live.reopen(replace(self.live.setup, circuit=circuit, ghost=chosen_ghost(self.app, circuit, self._ghost)))

    def save_record(self) -> bool:
        """Enter the player's laps in the records; return whether the best one is the new record."""
        tick = self.live.tick
        if len(tick.laps) == self._laps_entered or tick.followed.best is None:
            return False
        self._laps_entered = len(tick.laps)
        replay = tick.followed.replay()
        if replay is None:
            return False
        try:
            entry = self.app.records.enter(replay)
            best = self.app.records.best(replay.circuit)
        except (RacerError, OSError) as error:
            self.app.notify(_("The record was not saved: {reason}").format(reason=in_one_line(error)))
            return False
        return best is not None and best == entry

    def tick(self, controls: Controls) -> None:
        self._lap_ticks = max(0, self._lap_ticks - 1)
        if self.countdown:
            self._count_down()
            self.live.advance(0, NO_ACTION)
            self.view.hold()
            return
        self._ticks_since_go += 1
        action = self.steering.update(controls, float(self.view.after.car["speed"]))
        self._throttle_ticks += int(action[1] > 0.0)
        self._idle_ticks = 0 if action[1] > 0.0 or self.view.after.car["speed"] > 1.0 else self._idle_ticks + 1
        for tick in self.live.advance(1, action):
            if tick.finished is not None:
                self._announce(tick, tick.finished)
                if self._laps and len(tick.laps) >= self._laps:
                    self.finish()

    @property
    def driving_hint(self) -> HintCard | None:
        """Card with the keys that drive, until the player drives and whenever the car stands still; else None."""
        needed = self._throttle_ticks < USED_TICKS or self._idle_ticks > IDLE_TICKS
        if not needed or self.live.tick.followed.held or self.app.layer is not None:
            return None
        label = self.app.input_label
        return HintCard(((label("throttle"), _("to drive")), (label("steer_left", "steer_right"), _("to steer"))))

    def finish(self) -> None:
        """Show the results."""
        tick = self.live.tick
        outcome = self._rule(tick) if self._rule is not None else None
        self.app.push(ResultsScreen(self.app, self.live.setup, tick, self._laps, self, outcome))

    def draw_ahead(self) -> bool:
        return self.view.draw_ahead()

    def draw(self, surface: pygame.Surface, share: float) -> None:
        self.live.draw(surface, share, self.keys())
        if self.app.top is not self:
            return
        theme = self.app.theme
        free = self.view.free_area(surface, upper=True)
        room = 2 * min(surface.get_width() // 2 - free.left, free.right - surface.get_width() // 2)
        held = self.live.tick.followed.held
        self.hud.draw(surface, theme, self.view.after, held, self.live.reserved_height(), room)
        above_car = round(LIGHTS_BOTTOM * surface.get_height())
        if self.countdown:
            seconds = -(-self.countdown // self._second)
            self.hud.draw_lights(surface, theme, LIGHTS + 1 - seconds, str(seconds), above_car)
        elif self._ticks_since_go < GO_TICKS:
            self.hud.draw_lights(surface, theme, 0, _("GO"), above_car)
        elif self._lap_ticks:
            self.hud.draw_words(surface, theme, self._lap_words)
        hint = self.driving_hint
        if hint is not None:
            hint.draw(surface, theme, self.view.free_area(surface))

    def on_show(self) -> None:
        super().on_show()
        if self.live.tick.followed.ticks and not self.countdown:
            self.steering.release()
            self.countdown, self._second = RESUME_TICKS, RESUME_TICKS // 3

    def on_close(self) -> None:
        super().on_close()
        self.save_record()
        self.live.close()

    def _begin(self) -> None:
        self.steering.release()
        self.countdown, self._second = COUNTDOWN_TICKS, COUNTDOWN_TICKS // 3
        self._ticks_since_go = self._lap_ticks = self._laps_entered = 0
        self._throttle_ticks = self._idle_ticks = 0
        self.view.show_keys()

    def _put_back(self) -> None:
        if self.live.setup.bridge is not None:
            self.app.notify(_("A car on a server cannot be put back on the road"))
        elif not self.countdown:
            self.steering.release()
            self.live.drive.send(PutBack())

    def _count_down(self) -> None:
        if self.countdown % self._second == 0:
            self.app.sound.play("beep")
        self.countdown -= 1
        if not self.countdown:
            self.app.sound.play("go")

    def _announce(self, tick: Tick, lap: LapTime) -> None:
        """Show a lap time, compared with the best one so far and with its medal, or that it does not count."""
        palette, circuit, ghost = self.app.theme.palette, tick.snapshot.track.circuit, self.live.setup.ghost
        self._lap_ticks = LAP_TIME_TICKS
        number = (_("Lap {lap}").format(lap=len(tick.laps)), TEXT, palette.faint)
        time = f"{lap_time(lap.ticks)} s"
        if not lap.clean:
            self._lap_words = (
                number,
                (time, TEXT_LARGE, palette.bad),
                (_("does not count"), TEXT, palette.bad),
            )
            self.app.sound.play("lap")
            return
        best = best_lap(tick.laps[:-1])
        before = [each for each in (ghost and ghost.lap_ticks, best and best.ticks) if each]
        ahead = not before or lap.ticks <= min(before)
        words = [number, (time, TEXT_LARGE, palette.good if ahead else palette.text)]
        if before:
            words.append((signed_time(lap.ticks - min(before)), TEXT, palette.good if ahead else palette.bad))
        medal = medal_for(circuit, lap.ticks) if circuit is not None else None
        if medal:
            words += [("", TEXT, MEDALS[medal]), (_(MEDAL_NAMES[medal]), TEXT, MEDALS[medal])]
        self._lap_words = tuple(words)
        self.app.sound.play("record" if ghost is not None and lap.ticks < ghost.lap_ticks else "lap")


class PauseScreen(Screen):
    """Menu over a paused race."""

    def __init__(self, app: AppContext, play: PlayScreen) -> None:
        items = [
            Button(_("Resume"), on_press=app.pop),
            Button(_("Restart"), _("From the start line"), on_press=self._restart),
            Button(_("Finish"), _("Show the results so far; you can save a replay there"), on_press=self._finish),
            Button(_("Settings"), on_press=lambda: app.push(SettingsScreen(app))),
            Button(app.leave_label, _("Without saving a replay"), on_press=app.leave_race),
        ]
        super().__init__(app, ListView(_("Paused"), items, darkness=150))
        self._play = play

    def handle(self, intent: Intent) -> None:
        if intent == Command.RESTART:
            self._restart()
        elif intent == Command.PAUSE:
            self.app.pop()
        else:
            super().handle(intent)

    def _restart(self) -> None:
        self.app.pop()
        self._play.restart()

    def _finish(self) -> None:
        self.app.pop()
        self._play.finish()
