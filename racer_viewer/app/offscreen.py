"""Films made without a window: of watching, of replays, of a training run, and of a lap where there is no display."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pygame

from racer_env.engine import TICKS_PER_SECOND
from racer_env.errors import RacerError
from racer_viewer.agents import CHAMPION, Agent, load_agent
from racer_viewer.films.film import Film, FilmError, FilmProgress, check_film_path
from racer_viewer.films.maker import FilmLook, FilmMaker
from racer_viewer.films.writers import open_writer
from racer_viewer.modes.circuits import circuit_of
from racer_viewer.modes.drive import open_drive
from racer_viewer.modes.race import Entrant, RaceSetup
from racer_viewer.modes.race_view import RaceView
from racer_viewer.modes.replay_screen import ReplayScreen
from racer_viewer.modes.screen import AppContext, MessageScreen, Screen
from racer_viewer.modes.train.screen import TrainScreen
from racer_viewer.modes.watch import WatchScreen, entrants_of
from racer_viewer.paths import data_folder
from racer_viewer.replays import Replay, trace_replay
from racer_viewer.settings import SettingsFile
from racer_viewer.sound import SoundPlayer
from racer_viewer.training.run_lock import running_learner
from racer_viewer.training.run_monitor import RunMonitor
from racer_viewer.ui.intents import IDLE
from racer_viewer.warmup import EngineWarmup, prepare_engine

if TYPE_CHECKING:
    from racer_viewer.modes.screen import BridgeAddress

LAP_LOOK = FilmLook(size=(720, 404), shown=("timing", "map", "rays", "reward"))
MAX_LAP_TICKS = 40 * TICKS_PER_SECOND
"""Maximum length of the filmed lap [ticks]."""

Progress = Callable[[float], None]
"""Callback with the share that is done, 0 to 1."""


@dataclass(frozen=True)
class LapFilm:
    """Result of filming a lap; `lap_ticks` is 0 if it was not finished."""

    film: Film
    circuit: str
    lap_ticks: int


def offscreen_context(data: Path) -> AppContext:
    """Return a silent context for screens without a window, with the user's settings; the engine is not started."""
    settings_file = SettingsFile(data)
    settings = settings_file.load()
    if settings_file.problem:
        print(f"racer-viewer: {settings_file.problem}", file=sys.stderr)
    return AppContext(settings_file, settings, data, EngineWarmup(), SoundPlayer())


def film_screen(
    screen: Screen,
    path: Path,
    look: FilmLook,
    frames: int | None = None,
    until: Callable[[], bool] = lambda: False,
    progress: Progress = lambda share: None,
) -> Film:
    """Film a screen that shows a race: its current frame, then one frame after each tick without user input.

    frames: frames to film, 60 for each second; None if only `until` ends the film, which is asked after each frame.
    """
    view = view_of(screen)
    with FilmMaker(path, look) as maker:
        maker.add(view.frame())
        while maker.added != frames and not until():
            screen.tick(IDLE)
            maker.add(view.frame())
            if frames is not None:
                progress(maker.added / frames)
        return maker.finish()


def film_lap(path: Path, circuit: str = "track-01") -> LapFilm:
    """Film the champion's first lap on a circuit."""
    return film_agent(load_agent(CHAMPION), circuit, path)


def film_agent(agent: Agent, circuit: str, path: Path) -> LapFilm:
    """Film an agent's first lap on a circuit, or its first drive if it finishes none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    context = offscreen_context(path.parent)
    context.warmup.wait()
    if context.warmup.problem:
        raise FilmError(context.warmup.problem)
    setup = RaceSetup(circuit, (Entrant(agent.name, context.theme.palette.player, agent),))
    try:
        screen = WatchScreen(context, setup, open_drive(setup, threaded=False))
    except RacerError as error:
        raise FilmError(str(error)) from error
    context.push(screen)
    view = screen.view
    try:
        film = film_screen(screen, path, LAP_LOOK, MAX_LAP_TICKS, lambda: _last_lap(view) > 0)
        return LapFilm(film, circuit, _last_lap(view))
    finally:
        context.quit()


def view_of(screen: Screen) -> RaceView:
    """Return the view of a screen that shows a race."""
    if screen.view is None:
        raise FilmError(f"{type(screen).__name__} shows no car that could be filmed")
    return screen.view


def _last_lap(view: RaceView) -> int:
    """Return the last lap of the followed car [ticks]; 0 without a lap."""
    timing = view.after.timing
    return timing.last or 0 if timing else 0


POLICY_SECONDS, LAST_SECONDS = 3.0, 9.0
"""Time for which each policy is shown, and for which the last one is shown [s]."""
DEFAULT_SECONDS = 45.0
"""Length of the film of a training run [s]."""


def film_training(
    folder: Path,
    path: Path,
    data: Path,
    size: tuple[int, int],
    seconds: float | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> Film:
    """Film a run that has ended: its kept policies drive again, mostly early ones, since most is learned early."""
    context = offscreen_context(data)
    context.warmup.wait()
    context.fit(size)
    if running_learner(folder) is not None:
        raise RacerError(f"{folder.name} is still training: film it after it has ended")
    screen = TrainScreen(context, RunMonitor.attach(folder), patient=True)
    context.push(screen)
    view_of(screen).hide_keys()
    try:
        count = len(screen.run.history.policies)
        if not count:
            raise RacerError(f"{folder} has no kept policies to film")
        return _write_film(screen, path, size, _schedule(count, seconds or DEFAULT_SECONDS), progress)
    finally:
        context.quit()


def _schedule(count: int, seconds: float) -> list[tuple[int, int]]:
    """Return which policies are shown, and for how many ticks."""
    shots = max(1, round((seconds - LAST_SECONDS) / POLICY_SECONDS))
    numbers = np.unique(np.geomspace(1, count, shots + 1).round().astype(int)) - 1
    last = max(POLICY_SECONDS, seconds - POLICY_SECONDS * (len(numbers) - 1))
    lengths = [POLICY_SECONDS] * (len(numbers) - 1) + [last]
    return [(int(number), round(length * TICKS_PER_SECOND)) for number, length in zip(numbers, lengths, strict=True)]


def _write_film(
    screen: TrainScreen,
    path: Path,
    size: tuple[int, int],
    shots: list[tuple[int, int]],
    progress: Callable[[float], None],
) -> Film:
    """Let each scheduled policy drive for its ticks, and write what the screen shows."""
    writer = open_writer(path, size)
    picture, ticks, total = pygame.Surface(writer.size, depth=32), 0, sum(length for _, length in shots)
    try:
        for number, length in shots:
            screen.policy.choose(number)
            screen.showcase.restart()
            for _ in range(length):
                screen.tick(IDLE)
                if ticks % writer.frame_step == 0:
                    screen.draw(picture, 1.0)
                    writer.add(picture)
                ticks += 1
                progress(ticks / total)
        writer.end()
        place = writer.finish()
    except BaseException:
        writer.cancel()
        raise
    return Film(place, writer.frames, writer.frames * writer.frame_step / TICKS_PER_SECOND)


DEFAULT_SIZE = (1280, 720)
FILMED_LAPS = 2
"""Laps in a film without a given length."""


def film_watch(options: argparse.Namespace, bridge: BridgeAddress | None) -> int:
    """Film agents driving; the champion by default."""
    context = _prepare(options)
    models = options.models or [Path(CHAMPION)]
    circuit = options.track or circuit_of(context)
    entrants = entrants_of(models, context.theme.palette, options.stats)
    setup = RaceSetup(circuit, entrants, bridge=bridge, stochastic=options.stochastic)
    screen = WatchScreen(context, setup, open_drive(setup, threaded=False))  # a film waits for every tick
    return _film(options, context, screen, None, lambda: screen.number > 1 or len(screen.live.tick.laps) >= FILMED_LAPS)


def film_replays(options: argparse.Namespace, replays: Sequence[Replay]) -> int:
    """Film replays from their start to the end of the longest."""
    context = _prepare(options)
    screen = ReplayScreen(context, [trace_replay(replay) for replay in replays])
    return _film(options, context, screen, screen.length + 1)


def _prepare(options: argparse.Namespace) -> AppContext:
    check_film_path(options.record)
    prepare_engine()
    context = offscreen_context(data_folder(options.data_dir))
    context.warmup.wait()
    context.fit(size_of(options))
    return context


def _film(
    options: argparse.Namespace,
    context: AppContext,
    screen: Screen,
    frames: int | None,
    until: Callable[[], bool] = lambda: False,
) -> int:
    """Film the given frames or until a condition holds, unless --seconds sets the length."""
    settings = context.settings
    if options.seconds is not None:
        frames, until = max(1, round(options.seconds * TICKS_PER_SECOND)), lambda: False
    look = FilmLook(size_of(options), settings.overlays, settings.units, context.theme.palette, settings.ui_scale)
    context.push(screen)
    try:
        with FilmProgress(known=frames is not None) as progress:
            film = film_screen(
                screen, options.record, look, frames, lambda: until() or _gone(context, screen), progress
            )
    except KeyboardInterrupt:
        print("Stopped: no film was written", file=sys.stderr)
        raise
    else:
        if _gone(context, screen):
            why = context.top.text if isinstance(context.top, MessageScreen) else "the race could not continue"
            raise RacerError(f"{film}; then: {why}")
    finally:
        context.quit()
    progress.print(film)
    return 0


def _gone(context: AppContext, screen: Screen) -> bool:
    """Return whether a message covers the screen, since the connection is lost."""
    return context.top is not screen


def size_of(options: argparse.Namespace) -> tuple[int, int]:
    """Return the size of the film [px]."""
    size: tuple[int, int] = options.size or DEFAULT_SIZE
    return size
