"""Opening a race: at once, or, where its cars are on a bridge, as soon as that answers. Esc goes back meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from racer_env.errors import RacerError
from racer_viewer.modes.behind import Behind
from racer_viewer.modes.loading import when_ready
from racer_viewer.modes.message import MessageScreen
from racer_viewer.modes.race import Race, RaceSetup
from racer_viewer.modes.screen import Key, Screen, Stage
from racer_viewer.ui.intents import Controls, Do, Intent
from racer_viewer.ui.items import Button
from racer_viewer.ui.paint import centred, footer, shade
from racer_viewer.ui.theme import TEXT, TEXT_LARGE

if TYPE_CHECKING:
    import pygame

DOT_TICKS = 24


def open_race(app: Stage, setup: RaceSetup, then: Callable[[Race], None]) -> None:
    """Begin a race and go on with it; what the user can do something about is shown as a message instead."""
    when_ready(app, lambda: _open(app, setup, then))


def _open(app: Stage, setup: RaceSetup, then: Callable[[Race], None]) -> None:
    if setup.bridge is not None:
        app.push(ConnectingScreen(app, setup, then))
        return
    try:
        race = setup.open()
    except (RacerError, OSError) as error:
        app.push(MessageScreen(app, "That did not work", str(error)))
    else:
        then(race)


class ConnectingScreen(Screen):
    see_through = True

    def __init__(self, app: Stage, setup: RaceSetup, then: Callable[[Race], None]) -> None:
        super().__init__(app)
        self._setup, self._then, self._ticks, self._taken = setup, then, 0, False
        self._attempt = Behind(setup.open, "racer-connect")

    @property
    def _url(self) -> str:
        return self._setup.bridge.url if self._setup.bridge else ""

    def keys(self) -> tuple[Key, ...]:
        return (("Esc", "back"),)

    def handle(self, intent: Intent) -> None:
        if intent == Do.BACK:
            self.app.pop()

    def tick(self, controls: Controls) -> None:
        self._ticks += 1
        if self._attempt.done:
            self._taken = True
            self.app.pop()
            try:
                race = self._attempt.result()
            except Exception as error:  # of whatever kind: somebody else's server is at the other end
                self._tell(str(error) or type(error).__name__)
            else:
                self._then(race)

    def closed(self) -> None:
        """Nobody waits for it any more; nor for its goodbye to a server that may be silent."""
        if not self._taken:
            self._attempt.give_up(Race.close)

    def draw(self, surface: pygame.Surface, share: float) -> None:
        theme = self.app.theme
        surface.blit(shade(surface.get_size(), 200), (0, 0))
        middle = surface.get_height() // 2
        centred(surface, theme, "Connecting" + "." * (self._ticks // DOT_TICKS % 4), middle - theme.px(44), TEXT_LARGE)
        url = theme.fitting(self._url, surface.get_width() - theme.px(80))
        centred(surface, theme, url, middle + theme.px(12), TEXT, theme.palette.faint)
        footer(surface, theme, self.keys())

    def _tell(self, problem: str) -> None:
        title = "No connection" if "cannot connect" in problem else "The bridge refuses"
        items = [Button("Try again", do=self._again), Button("Back", do=self.app.pop)]
        self.app.push(MessageScreen(self.app, title, problem, items))

    def _again(self) -> None:
        self.app.pop()
        self.app.push(ConnectingScreen(self.app, self._setup, self._then))
