"""Something that takes a while, done behind the window.

Waiting for the engine, with word of how far it is; Esc goes back.

Waiting for something to be opened that may take its time; Esc goes back meanwhile.

Opening a race: at once, or, where its cars are on a bridge, as soon as that answers. Esc goes back meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, Thread
from typing import TYPE_CHECKING, Generic, TypeVar

import pygame

from racer_viewer.modes.screen import AppContext, Key, MessageScreen, Screen
from racer_viewer.ui.intents import Command, Controls, Intent
from racer_viewer.ui.item_list import Button
from racer_viewer.ui.paint import BAR_WIDTH, draw_centred, draw_footer, draw_progress_bar, shade
from racer_viewer.ui.theme import TEXT, TEXT_LARGE

if TYPE_CHECKING:
    from racer_viewer.modes.race import Race, RaceSetup

Result = TypeVar("Result")


class BackgroundTask(Generic[Result]):
    """Begins at once, in a thread of its own. Who wants to know what came of it looks once in a tick."""

    def __init__(self, do: Callable[[], Result], name: str) -> None:
        """name: of the thread."""
        self._do = do
        self._results: list[Result] = []
        self._problem: Exception | None = None
        self._undo: Callable[[Result], None] | None = None
        self._lock = Lock()
        self.done = False
        Thread(target=self._run, name=name, daemon=True).start()

    def result(self) -> Result:
        """Once it is done: what came of it. What went wrong is raised."""
        if self._problem is not None:
            raise self._problem
        return self._results[0]

    def give_up(self, undo: Callable[[Result], None]) -> None:
        """Nobody wants it any more: undo what came of it, or will come; nobody waits for that either."""
        with self._lock:
            self._undo = undo
            done = self.done
        if done:
            Thread(target=self._undo_all, name="racer-undo", daemon=True).start()

    def _run(self) -> None:
        try:
            self._results.append(self._do())
        except Exception as error:  # whoever asks for the result gets it
            self._problem = error
        with self._lock:
            self.done = True
            given_up = self._undo is not None
        if given_up:
            self._undo_all()

    def _undo_all(self) -> None:
        for result in self._results:
            assert self._undo is not None
            self._undo(result)


def when_ready(app: AppContext, do: Callable[[], None]) -> None:
    """Do something that needs the engine: at once if that is ready, else as soon as it is."""
    if app.warmup.ready:
        do()
    else:
        app.push(LoadingScreen(app, do))


def open_when_ready(app: AppContext, make: Callable[[], Screen]) -> None:
    """Open a screen that needs the engine."""
    when_ready(app, lambda: open_safely(app, make))


def open_safely(app: AppContext, make: Callable[[], Screen]) -> None:
    """Open a screen; what the user can do something about is shown as a message instead."""
    from racer_env.errors import RacerError

    try:
        app.push(make())
    except (RacerError, OSError) as error:
        app.push(MessageScreen(app, "That did not work", str(error)))


class LoadingScreen(Screen):
    see_through = True

    def __init__(self, app: AppContext, do: Callable[[], None]) -> None:
        super().__init__(app)
        self._do = do

    def keys(self) -> tuple[tuple[str, str], ...]:
        return (("Esc", "back"),)

    def handle(self, intent: Intent) -> None:
        if intent == Command.BACK:
            self.app.pop()

    def tick(self, controls: Controls) -> None:
        room = self.app.warmup
        if room.problem:
            self.app.pop()
            self.app.push(MessageScreen(self.app, "The engine does not start", room.problem))
        elif room.ready:
            self.app.pop()
            self._do()

    def draw(self, surface: pygame.Surface, share: float) -> None:
        theme, room = self.app.theme, self.app.warmup
        surface.blit(shade(surface.get_size(), 200), (0, 0))
        middle = surface.get_height() // 2
        title = theme.text("Starting the engine", TEXT_LARGE)
        surface.blit(title, title.get_rect(center=(surface.get_width() // 2, middle - theme.px(44))))
        draw_progress_bar(surface, theme, (surface.get_width() // 2, middle), theme.px(BAR_WIDTH), room.done)
        text = theme.text("It is compiled once on this machine, and takes some seconds", TEXT, theme.palette.faint)
        surface.blit(text, text.get_rect(center=(surface.get_width() // 2, middle + theme.px(34))))
        draw_footer(surface, theme, self.keys())


DOT_TICKS = 24
PATIENCE = 18
"""Ticks before anything is said: most is opened sooner."""

Opened = TypeVar("Opened")


def open_in_background(
    app: AppContext,
    words: str,
    make: Callable[[], Opened],
    then: Callable[[Opened], Screen],
    undo: Callable[[Opened], None],
) -> None:
    """Make something behind the window, and a screen of it; what goes wrong is shown as a message.

    words: said meanwhile; undo: for something that nobody waits for any more.
    """
    behind = BackgroundTask(make, "racer-opening")
    app.push(OpeningScreen(app, words, behind, lambda: then(behind.result()), lambda: behind.give_up(undo)))


class OpeningScreen(Screen):
    see_through = True

    def __init__(
        self,
        app: AppContext,
        words: str,
        behind: BackgroundTask[Opened],
        screen: Callable[[], Screen],
        give_up: Callable[[], None],
    ) -> None:
        super().__init__(app)
        self._words, self._behind, self._screen, self._give_up = words, behind, screen, give_up
        self._ticks, self._taken = 0, False

    def keys(self) -> tuple[Key, ...]:
        return (("Esc", "back"),)

    def handle(self, intent: Intent) -> None:
        if intent == Command.BACK:
            self.app.pop()

    def tick(self, controls: Controls) -> None:
        self._ticks += 1
        if self._behind.done:
            self._taken = True
            self.app.pop()
            open_safely(self.app, self._screen)

    def on_close(self) -> None:
        if not self._taken:
            self._give_up()

    def draw(self, surface: pygame.Surface, share: float) -> None:
        if self._ticks < PATIENCE:
            return
        theme = self.app.theme
        surface.blit(shade(surface.get_size(), 200), (0, 0))
        dots = "." * (self._ticks // DOT_TICKS % 4)
        draw_centred(surface, theme, self._words + dots, surface.get_height() // 2 - theme.px(44), TEXT_LARGE)
        draw_footer(surface, theme, self.keys())


def open_race(app: AppContext, setup: RaceSetup, then: Callable[[Race], None]) -> None:
    """Begin a race and go on with it; what the user can do something about is shown as a message instead."""
    when_ready(app, lambda: _open(app, setup, then))


def _open(app: AppContext, setup: RaceSetup, then: Callable[[Race], None]) -> None:
    from racer_env.errors import RacerError

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

    def __init__(self, app: AppContext, setup: RaceSetup, then: Callable[[Race], None]) -> None:
        super().__init__(app)
        self._setup, self._then, self._ticks, self._taken = setup, then, 0, False
        self._attempt = BackgroundTask(setup.open, "racer-connect")

    @property
    def _url(self) -> str:
        return self._setup.bridge.url if self._setup.bridge else ""

    def keys(self) -> tuple[Key, ...]:
        return (("Esc", "back"),)

    def handle(self, intent: Intent) -> None:
        if intent == Command.BACK:
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

    def on_close(self) -> None:
        """Nobody waits for it any more; nor for its goodbye to a server that may be silent."""
        if not self._taken:
            self._attempt.give_up(lambda race: race.close())

    def draw(self, surface: pygame.Surface, share: float) -> None:
        theme = self.app.theme
        surface.blit(shade(surface.get_size(), 200), (0, 0))
        middle = surface.get_height() // 2
        draw_centred(
            surface, theme, "Connecting" + "." * (self._ticks // DOT_TICKS % 4), middle - theme.px(44), TEXT_LARGE
        )
        url = theme.truncate(self._url, surface.get_width() - theme.px(80))
        draw_centred(surface, theme, url, middle + theme.px(12), TEXT, theme.palette.faint)
        draw_footer(surface, theme, self.keys())

    def _tell(self, problem: str) -> None:
        title = "No connection" if "cannot connect" in problem else "The bridge refuses"
        items = [Button("Try again", on_press=self._again), Button("Back", on_press=self.app.pop)]
        self.app.push(MessageScreen(self.app, title, problem, items))

    def _again(self) -> None:
        self.app.pop()
        self.app.push(ConnectingScreen(self.app, self._setup, self._then))
