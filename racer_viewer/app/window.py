"""The window and its loop: 60 ticks per second, and as many frames as the frame limit allows.

Also what the window does with dropped files, and with unexpected exceptions of screens.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pygame

from racer_viewer.app.menu import MenuScreen
from racer_viewer.clock import FixedStepClock
from racer_viewer.modes.help import HelpScreen, show_explanations
from racer_viewer.modes.screen import AppContext, MessageScreen, Screen
from racer_viewer.modes.waiting import SHORT_WAIT, BackgroundTask, WaitingScreen, when_ready
from racer_viewer.paths import clean_data_folder
from racer_viewer.runtime import write_crash_report
from racer_viewer.settings import Settings, SettingsFile
from racer_viewer.sound import SoundPlayer, open_sound
from racer_viewer.translation import _, mark
from racer_viewer.ui.adapter import InputAdapter
from racer_viewer.ui.display import (
    MIN_SIZE,
    NoDisplayError,
    WindowPicture,
    new_window_size,
    start_video,
    use_language,
    use_renderer,
)
from racer_viewer.ui.intents import (
    IDLE,
    CloseWindow,
    Command,
    FileDrop,
    Intent,
    MouseMove,
    RightClick,
    RightDrag,
    TextInput,
)
from racer_viewer.ui.item_list import Button
from racer_viewer.ui.paint import draw_notice
from racer_viewer.ui.theme import Theme
from racer_viewer.warmup import EngineWarmup

if TYPE_CHECKING:
    from racer_viewer.modes.film_screen import FilmRecorder

TITLE = "Racer"
CRASH_TITLE = mark("Something went wrong")
DROP_TITLE = mark("Cannot open this file")
SUPPORTED_FILES = mark("Drop a model (.zip or .onnx), a replay (.racer) or a circuit (.json, .csv, .npy or .svg).")
ICON = Path(__file__).parents[1] / "icon.png"
TICK = 1.0 / 60.0
"""Length of a simulation tick [s]."""
MAX_LAG = 0.25
"""Maximum time to catch up on [s]; longer pauses (window dragged, machine suspended) are dropped."""
FRAMES_BETWEEN_CRASHES = 60
"""Frames after a crash in which a second one ends the app."""
MIN_SPARE_TIME = 0.005
"""Minimum time before the next frame for a screen to prepare something [s]."""


class App:
    """The app: one window, its input, its sound and its screens."""

    def __init__(self, data: Path, first: Callable[[AppContext], Screen] = MenuScreen) -> None:
        settings_file = SettingsFile(data)
        settings = settings_file.load()
        self.window = self._open_window(settings)
        self.input = InputAdapter(settings.bindings)
        self.sound: SoundPlayer = open_sound(settings.volume)
        self.context = AppContext(settings_file, settings, data, EngineWarmup(), self.sound)
        self.context.renderer = self.picture.renderer
        self.context.on_settings_change.append(self._apply)
        self._applied = settings
        self._translate(settings)
        self._muted = False
        self.clock = FixedStepClock(TICK, MAX_LAG)
        self._pacer: FixedStepClock | None = None
        self._closed = False
        self._no_crash_before = 0
        self.recorder: FilmRecorder | None = None
        self._film_to: Path | None = None
        self.frames = 0
        self.context.fit(self.surface.get_size())
        self.context.push(first(self.context))
        if settings_file.problem:
            self.context.notify(settings_file.problem)

    def record_to(self, path: Path) -> None:
        """Record the next drive as a film in this file."""
        self._film_to = path

    def run(self) -> None:
        """Run until the last screen is closed."""
        last = time.perf_counter()
        try:
            while self.context.screens:
                now = time.perf_counter()
                self.frame_or_crash(now - last)
                last = now
                if self.frames == 1:
                    self.context.warmup.start(with_learner=True)
                    Thread(target=clean_data_folder, args=(self.context.data,), name="racer-clean", daemon=True).start()
                self._wait_for_next_frame()
        finally:
            self.close()

    def frame(self, elapsed: float) -> None:
        """Handle events, advance by the ticks that are due and draw; `elapsed` is the time since the last frame [s]."""
        self.input.reduction = self.picture.reduction
        for event in pygame.event.get():
            self._handle_event(event)
        self._repeat_direction(elapsed)
        self.clock.advance(elapsed)
        while self.context.screens and self.clock.take_step():
            self._tick()
        if self.context.screens:
            self.draw(self.clock.fraction)
            self.picture.show()
            self.frames += 1

    def frame_or_crash(self, elapsed: float) -> None:
        """Run one frame; on an unexpected exception show a crash report, or raise if it happens again at once."""
        try:
            self.frame(elapsed)
        except Exception as error:
            if self.frames < self._no_crash_before:
                raise
            self._no_crash_before = self.frames + FRAMES_BETWEEN_CRASHES
            show_crash(self.context, error)

    def draw(self, share: float) -> None:
        """Draw the lowest visible screen and the one on top."""
        surface = self.surface
        self.context.fit(surface.get_size())
        screens = self.context.screens
        for screen in dict.fromkeys((screens[self.context.lowest], screens[-1])):
            screen.draw(surface, share if screen is screens[-1] else 1.0)
        if self.context.layer is not None:
            self.context.layer.draw(surface)
        bottom = surface.get_height() - screens[-1].space_below_keys()
        if self.context.notice_ticks:
            draw_notice(surface, self.context.theme, self.context.notice, bottom)
        if self.recorder is not None:
            self.recorder.draw(surface, bottom)

    def close(self) -> None:
        """Close the window: save its size and finish a film that is being recorded."""
        if self._closed:
            return
        self._closed = True
        size = self.window.size
        if size != self.context.settings.window and not self.context.settings.full_screen:
            self.context.change(window=size)
        self.context.quit()
        self.sound.close()
        self.window.destroy()
        if self.recorder is not None:
            self.recorder.close()

    @property
    def surface(self) -> pygame.Surface:
        return self.picture.surface

    def _tick(self) -> None:
        context = self.context
        context.notice_ticks = max(0, context.notice_ticks - 1)
        if context.top is not None:
            below = context.screens[context.lowest]
            if below is not context.top and isinstance(below, MenuScreen):
                below.tick(IDLE)
            self._tick_top(context.top)
        if context.layer is not None:
            context.layer.tick()

    def _tick_top(self, top: Screen) -> None:
        if self._film_to is not None and self.context.warmup.ready:
            self._film_to = self._open_recorder().start_when_possible(top, self.surface.get_size(), self._film_to)
        top.tick(self.input.controls())
        if self.recorder is not None:
            self.recorder.after_tick(top)

    def _open_recorder(self) -> FilmRecorder:
        """Return the recorder, made on first use: importing it loads the engine."""
        if self.recorder is None:
            from racer_viewer.modes.film_screen import FilmRecorder

            self.recorder = FilmRecorder(self.context)
        return self.recorder

    def _handle_event(self, event: pygame.event.Event) -> None:
        """Handle the intents of an event; a screen that they open does not get the remaining ones."""
        top = self.context.top
        intents = self.input.intents([event])
        self.context.gamepad = self.input.gamepad
        for intent in intents:
            if self.context.top is top:
                self._handle(intent)
        if self.context.top is not top:
            self.input.release_all()

    def _repeat_direction(self, elapsed: float) -> None:
        """Give a direction again that is held on a key or a gamepad."""
        direction, top = self.input.repeated(elapsed), self.context.top
        if direction is not None and top is not None and top.repeats(direction):
            self._handle(direction)

    def _handle(self, intent: Intent) -> None:
        context = self.context
        if context.top is None or not context.top.uses_right_button:
            intent = _without_right_button(intent)
        if isinstance(intent, CloseWindow):
            context.ask_to_quit()
        elif context.top is not None and context.top.typing:
            if not isinstance(intent, Command):
                context.top.handle(intent)
        elif intent == Command.FULL_SCREEN:
            context.change(full_screen=not context.settings.full_screen)
        elif intent == Command.SCREENSHOT:
            self._save_screenshot()
        elif intent == Command.RECORD:
            self._open_recorder().toggle(self.surface.get_size())
        elif intent == Command.MUTE:
            self._muted = not self._muted
            self.sound.set_volume(0.0 if self._muted else context.settings.volume)
            context.notify(_("Sound off") if self._muted else _("Sound on"))
        elif isinstance(intent, FileDrop):
            open_dropped(context, intent.path)
        elif context.layer is not None and context.layer.handle(intent):
            pass
        elif context.top is not None and intent == Command.HELP and not isinstance(context.top, HelpScreen):
            context.push(HelpScreen(context))
        elif intent == TextInput("?"):
            show_explanations(context)
        elif context.top is not None:
            context.top.handle(intent)

    def _apply(self, settings: Settings) -> None:
        """Apply the settings that concern the window, the input, the sound and the language."""
        before, self._applied = self._applied, settings
        if settings.language != before.language:
            self._translate(settings)
        self.input.bindings = settings.bindings
        self.picture.resolution = settings.resolution
        if not self._muted:
            self.sound.set_volume(settings.volume)
        if settings.full_screen != before.full_screen:
            if settings.full_screen:
                self.window.set_fullscreen(desktop=True)
            else:
                self.window.set_windowed()

    def _translate(self, settings: Settings) -> None:
        """Show all screens in the language of the settings from now on."""
        use_language(settings.language)
        self.context.theme = Theme(self.context.theme.scale, self.context.theme.palette)  # panels keep drawn texts
        for screen in self.context.screens:
            screen.translate()

    def _open_window(self, settings: Settings) -> pygame.Window:
        """Open a window with its picture as the settings ask for, and start gamepad input."""
        start_video()
        try:
            pygame.joystick.init()
            size, renderer = new_window_size(settings.window), use_renderer(settings.renderer)
            window = pygame.Window(TITLE, size, pygame.WINDOWPOS_CENTERED, resizable=True)
            self.picture = WindowPicture(window, renderer, settings.resolution)
        except pygame.error as error:
            raise NoDisplayError(str(error)) from None
        window.minimum_size = tuple(map(min, size, MIN_SIZE))
        window.set_icon(pygame.image.load(ICON))
        if settings.full_screen:
            window.set_fullscreen(desktop=True)
        return window

    def _wait_for_next_frame(self) -> None:
        """Wait as long as the frame limit demands; use the time to prepare what will be drawn."""
        limit = self.context.settings.frame_limit
        if not limit:
            self._pacer = None
            return
        if self._pacer is None or self._pacer.step != 1.0 / limit:
            self._pacer = FixedStepClock.pacing(limit)
        self._pacer.update()
        while (
            self._pacer.seconds_left > MIN_SPARE_TIME and self.context.top is not None and self.context.top.draw_ahead()
        ):
            self._pacer.update()
        self._pacer.wait()

    def _save_screenshot(self) -> None:
        path = self.context.data / "screenshots" / f"racer-{datetime.now():%Y%m%d-%H%M%S}.png"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            pygame.image.save(self.surface, path)
            self.context.notify(_("Saved as {path}").format(path=path))
        except (OSError, pygame.error) as error:
            from racer_env.errors import os_reason

            self.context.notify(_("Screenshot not saved: {reason}").format(reason=os_reason(error)))


def _without_right_button(intent: Intent) -> Intent:
    """Return the intent for a screen that does not use the right mouse button: a click there goes back."""
    if isinstance(intent, RightClick):
        return Command.BACK
    return MouseMove(intent.x, intent.y) if isinstance(intent, RightDrag) else intent


def show_crash(context: AppContext, error: Exception) -> None:
    """Close all screens, reopen the menu and show a message with the path of the crash report."""
    report = write_crash_report(error, context.data)
    context.layer = None
    while context.screens:
        screen = context.screens.pop()
        with suppress(Exception):  # this screen may have raised the error
            screen.on_close()
    context.push(MenuScreen(context))
    where = (
        _("A crash report was saved to\n{report}").format(report=report)
        if report
        else _("No report could be written: the disk may be full.")
    )
    text = _("This is a bug: {kind}: {error}\n{where}\nEverything you have saved is safe.").format(
        kind=type(error).__name__, error=error, where=where
    )
    buttons = [Button(_("Main menu"), on_press=context.pop), Button(_("Quit"), on_press=context.quit)]
    context.push(MessageScreen(context, _(CRASH_TITLE), text, buttons))


def open_dropped(app: AppContext, path: Path) -> None:
    """Open a dropped file by its kind; show a message if it cannot be opened."""
    openers: dict[str, Callable[[AppContext, Path], None]] = {
        ".zip": _open_model,
        ".onnx": _open_model,
        ".racer": _open_replay,
        ".json": _add_circuit,
        **dict.fromkeys((".csv", ".npy", ".svg"), _import_circuit),
    }
    opener = openers.get(path.suffix.lower())
    if path.is_dir():
        _refuse(app, _("{name} is a folder.").format(name=path.name) + f" {_(SUPPORTED_FILES)}")
    elif not path.is_file():
        _refuse(app, _("{path} does not exist or cannot be read.").format(path=path))
    elif opener is None:
        problem = (
            _("{suffix} files are not supported").format(suffix=path.suffix)
            if path.suffix
            else _("the file name has no extension")
        )
        _refuse(app, f"{path.name}: {problem}. {_(SUPPORTED_FILES)}")
    else:
        when_ready(app, lambda: opener(app, path))


def _refuse(app: AppContext, reason: str) -> None:
    app.push(MessageScreen(app, _(DROP_TITLE), reason))


def _open_model(app: AppContext, path: Path) -> None:
    """Let the screen on top add the model to its race; else watch it on the circuit used last."""
    from racer_viewer.modes.circuits import circuit_of
    from racer_viewer.modes.watch import open_watch

    if app.top is None or not app.top.add_model(path):
        open_watch(app, [path], circuit_of(app))


def _open_replay(app: AppContext, path: Path) -> None:
    from racer_viewer.modes.replay_screen import open_replays

    open_replays(app, [path])


def _import_circuit(app: AppContext, path: Path) -> None:
    from racer_viewer.modes.gallery.actions import import_file

    import_file(app, path)


def _add_circuit(app: AppContext, path: Path) -> None:
    """Choose the circuit; it stays among the circuits until the app is closed."""
    from racer_env.errors import RacerError, in_one_line
    from racer_viewer.modes.circuits import add_circuit

    def choose() -> None:
        try:
            circuit = task.result()
        except (RacerError, OSError) as error:
            _refuse(app, in_one_line(error))
            return
        app.change(circuit=str(path))
        app.notify(_("Circuit {name} added and chosen").format(name=circuit.name))
        if app.top is not None:
            app.top.refresh()

    task = BackgroundTask(lambda: add_circuit(path), "racer-circuit")
    app.push(WaitingScreen(app, _("Preparing the circuit"), lambda: task.done, choose, delay=SHORT_WAIT))
