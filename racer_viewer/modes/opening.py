"""Waiting for something to be opened that may take its time; Esc goes back meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from racer_viewer.modes.behind import Behind
from racer_viewer.modes.loading import open_safely
from racer_viewer.modes.screen import Key, Screen, Stage
from racer_viewer.ui.intents import Controls, Do, Intent
from racer_viewer.ui.paint import centred, footer, shade
from racer_viewer.ui.theme import TEXT_LARGE

if TYPE_CHECKING:
    import pygame

DOT_TICKS = 24
PATIENCE = 18
"""Ticks before anything is said: most is opened sooner."""

Opened = TypeVar("Opened")


def open_behind(
    app: Stage,
    words: str,
    make: Callable[[], Opened],
    then: Callable[[Opened], Screen],
    undo: Callable[[Opened], None],
) -> None:
    """Make something behind the window, and a screen of it; what goes wrong is shown as a message.

    words: said meanwhile; undo: for something that nobody waits for any more.
    """
    behind = Behind(make, "racer-opening")
    app.push(OpeningScreen(app, words, behind, lambda: then(behind.result()), lambda: behind.give_up(undo)))


class OpeningScreen(Screen):
    see_through = True

    def __init__(
        self,
        app: Stage,
        words: str,
        behind: Behind[Opened],
        screen: Callable[[], Screen],
        give_up: Callable[[], None],
    ) -> None:
        super().__init__(app)
        self._words, self._behind, self._screen, self._give_up = words, behind, screen, give_up
        self._ticks, self._taken = 0, False

    def keys(self) -> tuple[Key, ...]:
        return (("Esc", "back"),)

    def handle(self, intent: Intent) -> None:
        if intent == Do.BACK:
            self.app.pop()

    def tick(self, controls: Controls) -> None:
        self._ticks += 1
        if self._behind.done:
            self._taken = True
            self.app.pop()
            open_safely(self.app, self._screen)

    def closed(self) -> None:
        if not self._taken:
            self._give_up()

    def draw(self, surface: pygame.Surface, share: float) -> None:
        if self._ticks < PATIENCE:
            return
        theme = self.app.theme
        surface.blit(shade(surface.get_size(), 200), (0, 0))
        dots = "." * (self._ticks // DOT_TICKS % 4)
        centred(surface, theme, self._words + dots, surface.get_height() // 2 - theme.px(44), TEXT_LARGE)
        footer(surface, theme, self.keys())
