"""Pause: nothing moves, and the drive is still seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from racer_viewer.modes.lists import ListScreen
from racer_viewer.modes.screen import Stage
from racer_viewer.modes.settings_screen import SettingsScreen
from racer_viewer.ui.intents import Do, Intent
from racer_viewer.ui.items import Button

if TYPE_CHECKING:
    from racer_viewer.modes.play import PlayScreen


class PauseScreen(ListScreen):
    title = "Paused"
    darkness = 150

    def __init__(self, app: Stage, play: PlayScreen) -> None:
        super().__init__(
            app,
            [
                Button("Go on", do=app.pop),
                Button("Restart", "From the line again", do=self._restart),
                Button("Finish", "Results so far, and a replay if you want one", do=self._finish),
                Button("Settings", do=lambda: app.push(SettingsScreen(app))),
                Button(app.way_out, "What was driven is not kept", do=app.leave_race),
            ],
        )
        self._play = play

    def handle(self, intent: Intent) -> None:
        if intent == Do.RESTART:
            self._restart()
        else:
            super().handle(intent)

    def _restart(self) -> None:
        self.app.pop()
        self._play.restart()

    def _finish(self) -> None:
        self.app.pop()
        self._play.finish()
