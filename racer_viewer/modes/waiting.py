"""Waiting without blocking the window: background tasks, and the screen shown until one is finished."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, Thread
from typing import TYPE_CHECKING, Generic, TypeVar

import pygame

from racer_viewer.modes.screen import AppContext, MessageScreen, Screen
from racer_viewer.translation import _
from racer_viewer.ui.intents import Command, Controls, Intent
from racer_viewer.ui.item_list import Button
from racer_viewer.ui.paint import BAR_WIDTH, draw_centred, draw_footer, draw_progress_bar, shade
from racer_viewer.ui.theme import TEXT, TEXT_LARGE
from racer_viewer.ui.views import Key

if TYPE_CHECKING:
    from racer_viewer.modes.drive import Drive
    from racer_viewer.modes.race import RaceSetup

Result = TypeVar("Result")

DOT_INTERVAL = 24
"""Ticks between two dots after the title of a waiting screen."""
SHORT_WAIT = 18
"""Ticks before a short wait is shown; most tasks finish sooner."""


class BackgroundTask(Generic[Result]):
    """A function that runs in its own thread, started at once; `done` is polled once per tick."""

    def __init__(self, work: Callable[[], Result], name: str) -> None:
        """Start the task. name: name of the thread."""
        self._work = work
        self._results: list[Result] = []
        self._error: Exception | None = None
        self._undo: Callable[[Result], None] | None = None
        self._lock = Lock()
        self.done = False
        Thread(target=self._run, name=name, daemon=True).start()

    def result(self) -> Result:
        """Return the result of a finished task, or raise its error."""
        if self._error is not None:
            raise self._error
        return self._results[0]

    def cancel(self, undo: Callable[[Result], None]) -> None:
        """Drop the result without waiting for it; `undo` runs in the background when there is one."""
        with self._lock:
            self._undo = undo
            done = self.done
        if done:
            Thread(target=self._undo_result, name="racer-undo", daemon=True).start()

    def _run(self) -> None:
        try:
            self._results.append(self._work())
        except Exception as error:  # raised again by `result`
            self._error = error
        with self._lock:
            self.done = True
            cancelled = self._undo is not None
        if cancelled:
            self._undo_result()

    def _undo_result(self) -> None:
        for result in self._results:
            assert self._undo is not None
            self._undo(result)


class WaitingScreen(Screen):
    """Title, detail and progress of something that takes a while; Esc cancels.

    poll: called once per tick until it returns True; may do a part of the work.
    finish: called after the screen was closed because `poll` returned True.
    cancel: called if the screen is closed before.
    detail: line below the title, or a function that returns it.
    progress: returns the share that is done, 0 to 1; without it, dots after the title show that time passes.
    delay: ticks before anything is drawn.
    """

    see_through = True

    def __init__(
        self,
        app: AppContext,
        title: str,
        poll: Callable[[], bool],
        finish: Callable[[], None],
        *,
        cancel: Callable[[], None] = lambda: None,
        detail: str | Callable[[], str] = "",
        progress: Callable[[], float] | None = None,
        delay: int = 0,
    ) -> None:
        super().__init__(app)
        self.title, self._detail = title, detail
        self._poll, self._finish, self._cancel, self._progress = poll, finish, cancel, progress
        self._ticks, self._delay, self._finished = 0, delay, False

    @property
    def detail(self) -> str:
        """Line below the title; empty without one."""
        return self._detail if isinstance(self._detail, str) else self._detail()

    @property
    def share(self) -> float:
        """Part that is done, 0 to 1; 0 if unknown."""
        return 0.0 if self._progress is None else self._progress()

    def keys(self) -> tuple[Key, ...]:
        return (("Esc", _("back")),)

    def handle(self, intent: Intent) -> None:
        if intent == Command.BACK:
            self.app.pop()

    def tick(self, controls: Controls) -> None:
        self._ticks += 1
        if self._poll():
            self._finished = True
            self.app.pop()
            self._finish()

    def on_close(self) -> None:
        if not self._finished:
            self._cancel()

    def draw(self, surface: pygame.Surface, share: float) -> None:
        if self._ticks < self._delay:
            return
        theme = self.app.theme
        width, height = surface.get_size()
        surface.blit(shade((width, height), 200), (0, 0))
        dots = "" if self._progress else "." * (self._ticks // DOT_INTERVAL % 4)
        draw_centred(surface, theme, self.title + dots, height // 2 - theme.px(60), TEXT_LARGE)
        if self._progress is not None:
            draw_progress_bar(surface, theme, (width // 2, height // 2), theme.px(BAR_WIDTH), self.share)
        if self.detail:
            detail = theme.truncate(self.detail, width - theme.px(80))
            draw_centred(surface, theme, detail, height // 2 + theme.px(24), TEXT, theme.palette.faint)
        draw_footer(surface, theme, self.keys())


def when_ready(app: AppContext, action: Callable[[], None]) -> None:
    """Run an action that drives: now if the engine is ready, else as soon as it is."""
    _when(app, lambda: app.warmup.ready, action)


def open_when_loaded(app: AppContext, make: Callable[[], Screen]) -> None:
    """Open a screen that builds and draws circuits, for which the engine need not be compiled."""
    _when(app, lambda: app.warmup.loaded, lambda: open_safely(app, make))


def _when(app: AppContext, reached: Callable[[], bool], action: Callable[[], None]) -> None:
    """Run an action when the warm-up has reached a point; show its progress until then."""
    warmup = app.warmup
    if reached():
        action()
        return

    def finish() -> None:
        if warmup.problem:
            app.push(MessageScreen(app, _("The engine cannot start"), warmup.problem))
        else:
            action()

    detail = _("It is compiled once on this computer, which takes a few seconds")
    app.push(
        WaitingScreen(
            app,
            _("Starting the engine"),
            lambda: reached() or bool(warmup.problem),
            finish,
            detail=detail,
            progress=lambda: warmup.done,
        )
    )


def open_when_ready(app: AppContext, make: Callable[[], Screen]) -> None:
    """Open a screen that drives."""
    when_ready(app, lambda: open_safely(app, make))


def open_safely(app: AppContext, make: Callable[[], Screen]) -> None:
    """Open a screen; an error that the user can do something about is shown as a message."""
    from racer_env.errors import RacerError, in_one_line

    try:
        app.push(make())
    except (RacerError, OSError) as error:
        app.push(MessageScreen(app, _("Could not open"), in_one_line(error)))


def open_in_background(
    app: AppContext,
    title: str,
    load: Callable[[], Result],
    make: Callable[[Result], Screen],
    undo: Callable[[Result], None],
) -> None:
    """Load something in the background and open the screen made from it; errors are shown as a message.

    title: shown if it takes a while.
    undo: called with the result if the user does not wait for it.
    """
    task = BackgroundTask(load, "racer-opening")
    app.push(
        WaitingScreen(
            app,
            title,
            lambda: task.done,
            lambda: open_safely(app, lambda: make(task.result())),
            cancel=lambda: task.cancel(undo),
            delay=SHORT_WAIT,
        )
    )


def open_race(app: AppContext, setup: RaceSetup, then: Callable[[Drive], None]) -> None:
    """Open a race: at once, or in the background if its cars are on a bridge or its circuit is a file or a new one.

    Errors are shown as a message.
    """
    when_ready(app, lambda: _open_race(app, setup, then))


def _open_race(app: AppContext, setup: RaceSetup, then: Callable[[Drive], None]) -> None:
    from racer_env.errors import RacerError, in_one_line
    from racer_viewer.modes.drive import open_drive

    if setup.bridge is not None:
        _connect(app, setup, setup.bridge.url, then)
        return

    def finish(opened: Callable[[], Drive]) -> None:
        try:
            drive = opened()
        except (RacerError, OSError) as error:
            app.push(MessageScreen(app, _("Could not open"), in_one_line(error)))
        else:
            then(drive)

    if setup.track is None and not setup.circuit.lower().endswith(".json"):
        finish(lambda: open_drive(setup))
        return

    def open_with_ground() -> Drive:
        from racer_viewer.render.ground import ground_plan

        drive = open_drive(setup)
        ground_plan(drive.first.snapshot.track)
        return drive

    task = BackgroundTask(open_with_ground, "racer-circuit")
    app.push(
        WaitingScreen(
            app,
            _("Preparing the circuit"),
            lambda: task.done,
            lambda: finish(task.result),
            cancel=lambda: task.cancel(lambda drive: drive.close()),
            delay=SHORT_WAIT,
        )
    )


def _connect(app: AppContext, setup: RaceSetup, url: str, then: Callable[[Drive], None]) -> None:
    """Connect to a server; Esc cancels, and a failure can be retried."""
    from racer_env.errors import in_one_line
    from racer_viewer.modes.drive import open_drive

    task = BackgroundTask(lambda: open_drive(setup), "racer-connect")

    def finish() -> None:
        try:
            drive = task.result()
        except Exception as error:  # a server may cause any kind
            _show_refusal(app, in_one_line(error) or type(error).__name__, retry)
        else:
            then(drive)

    def retry() -> None:
        app.pop()
        _connect(app, setup, url, then)

    app.push(
        WaitingScreen(
            app,
            _("Connecting"),
            lambda: task.done,
            finish,
            cancel=lambda: task.cancel(lambda drive: drive.close()),
            detail=url,
        )
    )


def _show_refusal(app: AppContext, problem: str, retry: Callable[[], None]) -> None:
    title = _("No connection") if "cannot connect" in problem else _("The server refused")
    items = [Button(_("Try again"), on_press=retry), Button(_("Back"), on_press=app.pop)]
    app.push(MessageScreen(app, title, problem, items))
