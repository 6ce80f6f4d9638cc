"""Waiting for the engine, with word of how far it is; Esc goes back."""

from __future__ import annotations

from collections.abc import Callable

import pygame

from racer_viewer.modes.message import MessageScreen
from racer_viewer.modes.screen import Screen, Stage
from racer_viewer.ui.intents import Controls, Do, Intent
from racer_viewer.ui.paint import BAR_WIDTH, footer, progress_bar, shade
from racer_viewer.ui.theme import TEXT, TEXT_LARGE


def when_ready(app: Stage, do: Callable[[], None]) -> None:
    """Do something that needs the engine: at once if that is ready, else as soon as it is."""
    if app.room.ready:
        do()
    else:
        app.push(LoadingScreen(app, do))


def open_when_ready(app: Stage, make: Callable[[], Screen]) -> None:
    """Open a screen that needs the engine."""
    when_ready(app, lambda: open_safely(app, make))


def open_safely(app: Stage, make: Callable[[], Screen]) -> None:
    """Open a screen; what the user can do something about is shown as a message instead."""
    from racer_env.errors import RacerError

    try:
        app.push(make())
    except (RacerError, OSError) as error:
        app.push(MessageScreen(app, "That did not work", str(error)))


class LoadingScreen(Screen):
    see_through = True

    def __init__(self, app: Stage, do: Callable[[], None]) -> None:
        super().__init__(app)
        self._do = do

    def keys(self) -> tuple[tuple[str, str], ...]:
        return (("Esc", "back"),)

    def handle(self, intent: Intent) -> None:
        if intent == Do.BACK:
            self.app.pop()

    def tick(self, controls: Controls) -> None:
        room = self.app.room
        if room.problem:
            self.app.pop()
            self.app.push(MessageScreen(self.app, "The engine does not start", room.problem))
        elif room.ready:
            self.app.pop()
            self._do()

    def draw(self, surface: pygame.Surface, share: float) -> None:
        theme, room = self.app.theme, self.app.room
        surface.blit(shade(surface.get_size(), 200), (0, 0))
        middle = surface.get_height() // 2
        title = theme.text("Starting the engine", TEXT_LARGE)
        surface.blit(title, title.get_rect(center=(surface.get_width() // 2, middle - theme.px(44))))
        progress_bar(surface, theme, (surface.get_width() // 2, middle), theme.px(BAR_WIDTH), room.done)
        text = theme.text("It is compiled once on this machine, and takes some seconds", TEXT, theme.palette.faint)
        surface.blit(text, text.get_rect(center=(surface.get_width() // 2, middle + theme.px(34))))
        footer(surface, theme, self.keys())
