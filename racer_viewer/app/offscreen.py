"""Films without a window: of any driving screen, and of a lap of the champion where there is no display.

The film of a training: from the first crash to the fast lap, as a time lapse with the curves beside it.

`--record`: films of watching, of replays and of trainings, made without a window."""

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
from racer_viewer.agents import CHAMPION, bundled_models
from racer_viewer.films.film import Film, FilmError, FilmProgress, check_place
from racer_viewer.films.maker import FilmLook, FilmMaker
from racer_viewer.films.writers import open_writer
from racer_viewer.modes.circuits import circuit_of
from racer_viewer.modes.drive import Drive
from racer_viewer.modes.race import RaceSetup
from racer_viewer.modes.race_view import DrivingScreen
from racer_viewer.modes.replay_screen import ReplayScreen
from racer_viewer.modes.screen import AppContext, MessageScreen
from racer_viewer.modes.train.screen import TrainScreen
from racer_viewer.modes.watch import WatchScreen, entrants_of, open_watch
from racer_viewer.paths import data_folder
from racer_viewer.replays import Replay, trace_replay
from racer_viewer.settings import SettingsFile
from racer_viewer.sound import SoundStage
from racer_viewer.training.run_lock import running_learner
from racer_viewer.training.run_monitor import RunMonitor
from racer_viewer.ui.intents import IDLE
from racer_viewer.warmup import EngineWarmup, prepare_engine

if TYPE_CHECKING:
    from racer_viewer.modes.link import BridgeAddress

LAP_LOOK = FilmLook(size=(720, 404), shown=("timing", "map", "rays", "reward"))
LONGEST_LAP = 40 * TICKS_PER_SECOND
"""That is filmed [ticks]."""

Progress = Callable[[float], None]
"""Told the part that is done, 0 to 1."""


@dataclass(frozen=True)
class LapFilm:
    """What was filmed; a lap of 0 ticks did not get round."""

    film: Film
    circuit: str
    lap_ticks: int


def offscreen_stage(data: Path) -> AppContext:
    """For screens that nobody sees: with the user's settings, silent, and with an engine that nobody has started."""
    settings_file = SettingsFile(data)
    return AppContext(settings_file, settings_file.load(), data, EngineWarmup(), SoundStage())


def film_screen(
    screen: DrivingScreen,
    path: Path,
    look: FilmLook,
    frames: int | None = None,
    until: Callable[[], bool] = lambda: False,
    progress: Progress = lambda share: None,
) -> Film:
    """The screen as it is now, then a tick for each sixtieth of a second, with nobody at the keys.

    frames: sixtieths of a second, or None if only `until` tells the end, which is asked after each of them.
    """
    with FilmMaker(path, look) as maker:
        maker.add(screen.moment())
        while maker.moments != frames and not until():
            screen.tick(IDLE)
            maker.add(screen.moment())
            if frames is not None:
                progress(maker.moments / frames)
        return maker.finish()


def film_lap(path: Path, circuit: str = "track-01") -> LapFilm:
    """Write the champion's first lap on a circuit as a film."""
    path.parent.mkdir(parents=True, exist_ok=True)
    context = offscreen_stage(path.parent)
    context.warmup.wait()
    open_watch(context, bundled_models()[:1], circuit)
    screen = context.top
    if not isinstance(screen, DrivingScreen):
        raise FilmError(screen.text if isinstance(screen, MessageScreen) else context.warmup.problem)
    try:
        film = film_screen(screen, path, LAP_LOOK, LONGEST_LAP, lambda: _lap_of(screen) > 0)
        return LapFilm(film, circuit, _lap_of(screen))
    finally:
        context.quit()


def _lap_of(screen: DrivingScreen) -> int:
    """The last one that the followed car has ended [ticks], 0 if there is none."""
    timing = screen.after.timing
    return timing.last or 0 if timing else 0


SHOT_SECONDS, LAST_SECONDS = 3.0, 9.0
"""For which each policy is seen, and the last one."""
USUAL_SECONDS = 45.0


def film_training(
    folder: Path,
    path: Path,
    data: Path,
    size: tuple[int, int],
    seconds: float | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> Film:
    """Of a run that has ended: its kept policies drive again, most of them early ones, as most is learned then."""
    context = offscreen_stage(data)
    context.warmup.wait()
    context.fit(size)
    if running_learner(folder) is not None:
        raise RacerError(f"{folder.name} is still learning: its film can be made when it has ended")
    screen = TrainScreen(context, RunMonitor.attach(folder), patient=True)
    context.push(screen)
    screen.hide_keys()
    try:
        count = len(screen.run.history.policies)
        if not count:
            raise RacerError(f"{folder} has no policies that could drive again: it was trained before they were kept")
        return _filmed(screen, path, size, _shots(count, seconds or USUAL_SECONDS), progress)
    finally:
        context.quit()


def _shots(count: int, seconds: float) -> list[tuple[int, int]]:
    """Which policies are seen, and for how many ticks."""
    shots = max(1, round((seconds - LAST_SECONDS) / SHOT_SECONDS))
    numbers = np.unique(np.geomspace(1, count, shots + 1).round().astype(int)) - 1
    last = max(SHOT_SECONDS, seconds - SHOT_SECONDS * (len(numbers) - 1))
    lengths = [SHOT_SECONDS] * (len(numbers) - 1) + [last]
    return [(int(number), round(length * TICKS_PER_SECOND)) for number, length in zip(numbers, lengths, strict=True)]


def _filmed(
    screen: TrainScreen,
    path: Path,
    size: tuple[int, int],
    shots: list[tuple[int, int]],
    progress: Callable[[float], None],
) -> Film:
    writer = open_writer(path, size)
    picture, ticks, total = pygame.Surface(writer.size, depth=32), 0, sum(length for _, length in shots)
    try:
        for number, length in shots:
            screen.policy.choose(number)
            screen.showcase.restart()
            for _ in range(length):
                screen.tick(IDLE)
                if ticks % writer.moments_per_frame == 0:
                    screen.draw(picture, 1.0)
                    writer.add(picture)
                ticks += 1
                progress(ticks / total)
        writer.end()
        place = writer.finish()
    except BaseException:
        writer.cancel()
        raise
    return Film(place, writer.frames, writer.frames * writer.moments_per_frame / TICKS_PER_SECOND)


DEFAULT_SIZE = (1280, 720)
FILMED_LAPS = 2
"""By a film that is not told how long it shall be."""


def film_watch(options: argparse.Namespace, bridge: BridgeAddress | None) -> int:
    """A film of agents that drive; the champion, if nobody is named."""
    context = _prepare(options)
    models = options.models or [Path(CHAMPION)]
    circuit = options.track or circuit_of(context.settings)
    setup = RaceSetup(circuit, entrants_of(models, context.theme.palette), bridge=bridge)
    race = setup.open()
    screen = WatchScreen(context, setup, race, Drive(race))  # over a bridge too: a film waits for every tick
    if options.stochastic:
        screen.draw_actions(True)
    return _film(
        options, context, screen, None, lambda: screen.number > 1 or len(race.cars[0].stopwatch.laps) >= FILMED_LAPS
    )


def film_replays(options: argparse.Namespace, replays: Sequence[Replay]) -> int:
    """A film of drives that were kept, from their start to the end of the longest."""
    context = _prepare(options)
    screen = ReplayScreen(context, [trace_replay(replay) for replay in replays])
    return _film(options, context, screen, screen.length + 1)


def _prepare(options: argparse.Namespace) -> AppContext:
    check_place(options.record)
    prepare_engine()
    context = offscreen_stage(data_folder(options.data_dir))
    context.warmup.wait()
    context.fit(size_of(options))
    return context


def _film(
    options: argparse.Namespace,
    context: AppContext,
    screen: DrivingScreen,
    frames: int | None,
    until: Callable[[], bool] = lambda: False,
) -> int:
    """So many frames, or until something has happened, unless the user says how long."""
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
        print("Stopped: nothing is left of the film", file=sys.stderr)
        raise
    else:
        if _gone(context, screen):
            why = context.top.text if isinstance(context.top, MessageScreen) else "it could not go on"
            raise RacerError(f"{film}; then: {why}")
    finally:
        context.quit()
    progress.tell(film)
    return 0


def _gone(context: AppContext, screen: DrivingScreen) -> bool:
    """Whether something came in between: the bridge is lost."""
    return context.top is not screen


def size_of(options: argparse.Namespace) -> tuple[int, int]:
    """Of the film [px]."""
    size: tuple[int, int] = options.size or DEFAULT_SIZE
    return size
