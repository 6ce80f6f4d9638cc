"""Test drives: the user drives the circuit that is being edited, at once, and returns with the same key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from racer_env.engine import Start, Track
from racer_viewer.modes.controls import SteeringInput
from racer_viewer.modes.drive import Drive
from racer_viewer.modes.race import ENDLESS, Entrant, PutBack, RaceSetup, Restart, SetStart
from racer_viewer.modes.race_view import LiveRace, RaceView
from racer_viewer.modes.screen import AppContext, Screen
from racer_viewer.modes.waiting import open_race
from racer_viewer.render.overlays.race_hud import RaceHud, Words
from racer_viewer.timing import LapTime, lap_time
from racer_viewer.translation import _
from racer_viewer.ui.intents import Command, Controls, Intent, KeyPress
from racer_viewer.ui.theme import TEXT, TEXT_LARGE
from racer_viewer.ui.views import HintCard, Key

if TYPE_CHECKING:
    import pygame

LAP_TIME_TICKS = 180
"""Time for which a lap time is shown [ticks]."""
USED_TICKS = 20
"""Time of throttle after which the hint with the driving keys goes [ticks]."""


def open_test_drive(app: AppContext, track: Track, arc: float = 0.0) -> None:
    """Drive a circuit that need not be saved. arc: place of the standing start [units]."""
    setup = RaceSetup("", (Entrant(app.settings.name, app.theme.palette.player),), config=ENDLESS, track=track)
    open_race(app, setup, lambda drive: app.push(TestDriveScreen(app, setup, drive, arc / track.length % 1.0)))


class TestDriveScreen(Screen):
    """A car of the user on the circuit, without countdown, records or results.

    laps: finished laps, the last one at the end.
    """

    __test__ = False
    view: RaceView

    def __init__(self, app: AppContext, setup: RaceSetup, drive: Drive, place: float) -> None:
        """place: standing start as a share of the lap."""
        super().__init__(app)
        self.live = LiveRace(self, setup, drive, lambda last: None, overlays="play_overlays")
        self.view = self.live.view
        self.laps: list[LapTime] = []
        self._steering, self._hud = SteeringInput(), RaceHud(0)
        self._words: Words = ()
        self._lap_ticks = self._throttle_ticks = 0
        drive.send(SetStart(Start(arc=(place, place))))
        drive.send(Restart())

    def keys(self) -> Sequence[Key]:
        key = self.app.key_label
        return (
            ("T or Esc", _("back to the editor")),
            (key(Command.RESTART), _("restart")),
            (key(Command.PUT_BACK), _("back on the road")),
            *self.view.keys(),
        )

    def handle(self, intent: Intent) -> None:
        match intent:
            case Command.BACK | KeyPress("t"):
                self.app.pop()
            case Command.WHEEL:
                pass  # the same key
            case Command.RESTART:
                self._steering.release()
                self.live.drive.send(Restart())
            case Command.PUT_BACK:
                self._steering.release()
                self.live.drive.send(PutBack())
            case _:
                self.view.handle(intent)

    def tick(self, controls: Controls) -> None:
        self._lap_ticks = max(0, self._lap_ticks - 1)
        action = self._steering.update(controls, float(self.view.after.car["speed"]))
        self._throttle_ticks += int(action[1] > 0.0)
        for tick in self.live.advance(1, action):
            if tick.finished is not None:
                self._announce(tick.finished)

    def draw_ahead(self) -> bool:
        return self.view.draw_ahead()

    def draw(self, surface: pygame.Surface, share: float) -> None:
        self.live.draw(surface, share, self.keys())
        if self.app.top is not self:
            return
        theme = self.app.theme
        free = self.view.free_area(surface, upper=True)
        room = 2 * min(surface.get_width() // 2 - free.left, free.right - surface.get_width() // 2)
        self._hud.draw(surface, theme, self.view.after, self.live.tick.followed.held, 0, room)
        if self._lap_ticks:
            self._hud.draw_words(surface, theme, self._words)
        if self._throttle_ticks < USED_TICKS:
            label = self.app.input_label
            keys = ((label("throttle"), _("to drive")), (label("steer_left", "steer_right"), _("to steer")))
            HintCard(keys).draw(surface, theme, self.view.free_area(surface))

    def on_close(self) -> None:
        super().on_close()
        self.live.close()

    def _announce(self, lap: LapTime) -> None:
        palette = self.app.theme.palette
        self.laps.append(lap)
        self._lap_ticks = LAP_TIME_TICKS
        state = (_("clean"), TEXT, palette.good) if lap.clean else (_("does not count"), TEXT, palette.bad)
        self._words = (f"{lap_time(lap.ticks)} s", TEXT_LARGE, palette.text), state
        self.app.sound.play("lap")
