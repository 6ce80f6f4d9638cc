"""`--record`: films of watching, of replays and of trainings, made without a window."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from racer_env.engine import TICKS_PER_SECOND
from racer_env.errors import RacerError
from racer_viewer.agents import CHAMPION
from racer_viewer.films.film import check_place
from racer_viewer.films.maker import FilmLook
from racer_viewer.films.progress import FilmProgress
from racer_viewer.folders import data_folder, run_folder
from racer_viewer.modes.drive import Drive
from racer_viewer.modes.driving import DrivingScreen
from racer_viewer.modes.known_circuits import circuit_of
from racer_viewer.modes.message import MessageScreen
from racer_viewer.modes.race import RaceSetup
from racer_viewer.modes.replay_screen import ReplayScreen
from racer_viewer.modes.screen import Stage
from racer_viewer.modes.watch import WatchScreen, entrants_of
from racer_viewer.offscreen import film_screen, offscreen_stage
from racer_viewer.progress import prepare_engine
from racer_viewer.replays import Replay, trace_replay

if TYPE_CHECKING:
    from racer_viewer.modes.link import BridgeAddress

DEFAULT_SIZE = (1280, 720)
FILMED_LAPS = 2
"""By a film that is not told how long it shall be."""


def film_watch(options: argparse.Namespace, bridge: BridgeAddress | None) -> int:
    """A film of agents that drive; the champion, if nobody is named."""
    stage = _prepare(options)
    models = options.models or [Path(CHAMPION)]
    circuit = options.track or circuit_of(stage.settings)
    setup = RaceSetup(circuit, entrants_of(models, stage.theme.palette), bridge=bridge)
    race = setup.open()
    screen = WatchScreen(stage, setup, race, Drive(race))  # over a bridge too: a film waits for every tick
    if options.stochastic:
        screen.draw_actions(True)
    return _film(
        options, stage, screen, None, lambda: screen.number > 1 or len(race.cars[0].stopwatch.laps) >= FILMED_LAPS
    )


def film_replays(options: argparse.Namespace, replays: Sequence[Replay]) -> int:
    """A film of drives that were kept, from their start to the end of the longest."""
    stage = _prepare(options)
    screen = ReplayScreen(stage, [trace_replay(replay) for replay in replays])
    return _film(options, stage, screen, screen.length + 1)


def film_run(options: argparse.Namespace) -> int:
    """Learn at the terminal, then film how it learned; with --attach, only the film of a run that has learned."""
    from racer_viewer.training.command import config_of, run
    from racer_viewer.training.saved import find_checkpoint, free_name
    from racer_viewer.training_film import film_training

    check_place(options.record)
    data = data_folder(options.data_dir)
    if options.attach is None:
        if options.resume is not None:
            options.name = str(find_checkpoint(options.resume, data / "runs").model.parent)
        else:
            config = config_of(options)
            options.name = config.name or free_name(config, data / "runs")
        code = run(options)
        if code:
            return code
    folder = run_folder(options.attach or options.name, data)
    with FilmProgress("Filming how it learned") as progress:
        film = film_training(folder, options.record, data, size_of(options), options.seconds, progress)
    progress.tell(film)
    return 0


def _prepare(options: argparse.Namespace) -> Stage:
    check_place(options.record)
    prepare_engine()
    stage = offscreen_stage(data_folder(options.data_dir))
    stage.room.wait()
    stage.fit(size_of(options))
    return stage


def _film(
    options: argparse.Namespace,
    stage: Stage,
    screen: DrivingScreen,
    frames: int | None,
    until: Callable[[], bool] = lambda: False,
) -> int:
    """So many frames, or until something has happened, unless the user says how long."""
    settings = stage.settings
    if options.seconds is not None:
        frames, until = max(1, round(options.seconds * TICKS_PER_SECOND)), lambda: False
    look = FilmLook(size_of(options), settings.overlays, settings.units, stage.theme.palette, settings.ui_scale)
    stage.push(screen)
    try:
        with FilmProgress(known=frames is not None) as progress:
            film = film_screen(screen, options.record, look, frames, lambda: until() or _gone(stage, screen), progress)
    except KeyboardInterrupt:
        print("Stopped: nothing is left of the film", file=sys.stderr)
        raise
    else:
        if _gone(stage, screen):
            why = stage.top.text if isinstance(stage.top, MessageScreen) else "it could not go on"
            raise RacerError(f"{film}; then: {why}")
    finally:
        stage.quit()
    progress.tell(film)
    return 0


def _gone(stage: Stage, screen: DrivingScreen) -> bool:
    """Whether something came in between: the bridge is lost."""
    return stage.top is not screen


def size_of(options: argparse.Namespace) -> tuple[int, int]:
    """Of the film [px]."""
    size: tuple[int, int] = options.size or DEFAULT_SIZE
    return size
