"""The app's window, for `racer-viewer` without a command and for play, watch and replay."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from racer_viewer.paths import data_folder, run_folder

if TYPE_CHECKING:
    from racer_viewer.app.window import App
    from racer_viewer.modes.link import BridgeAddress
    from racer_viewer.modes.screen import AppContext

QUIET = "PYGAME_HIDE_SUPPORT_PROMPT"
NO_DISPLAY = 2
MOST_WATCHED, MOST_RIVALS = 8, 7


def run(options: argparse.Namespace) -> int:
    """The menu; where there is no display, the film of a lap."""
    return _open(options, lambda app: None, otherwise=_film_a_lap)


def play(options: argparse.Namespace) -> int:
    """Straight into a race."""
    check_track(options)
    check_models(options.against, MOST_RIVALS)
    bridge = bridge_of(options)
    if options.record is not None:
        from racer_viewer.films.film import check_place

        check_place(options.record)

    def begin(app: App) -> None:
        if options.record is not None:
            app.record_to(options.record)
        _open_play(app.context, options, bridge)

    return _open(options, begin, hint="watch --record FILE films an agent without one")


def watch(options: argparse.Namespace) -> int:
    """Straight to agents that drive, or to the list of them."""
    check_film_options(options)
    check_track(options)
    check_models(options.models, MOST_WATCHED)
    bridge = bridge_of(options)
    if options.record is not None:
        from racer_viewer.app.offscreen import film_watch

        return film_watch(options, bridge)
    return _open(options, lambda app: _open_watch(app.context, options, bridge))


def replay(options: argparse.Namespace) -> int:
    """Straight to drives that were kept."""
    from racer_viewer.replays import load_replay

    check_film_options(options)
    replays = [load_replay(path) for path in options.files]
    if options.record is not None:
        from racer_viewer.app.offscreen import film_replays

        return film_replays(options, replays)
    return _open(options, lambda app: _open_replays(app.context, options.files))


def train(options: argparse.Namespace) -> int:
    """Straight to a run that learns; where there is no display, at the terminal."""
    from racer_viewer.ui.display import has_display

    if not has_display() and options.attach is None:
        from racer_viewer.training.command import run as run_headless

        print("There is no display here: learning without a window, as with --headless", file=sys.stderr, flush=True)
        return run_headless(options)
    open_it = _begin_training(options) if (options.attach or options.resume) is None else _see_run(options)

    def begin(app: App) -> None:
        from racer_viewer.modes.waiting import when_ready

        when_ready(app.context, lambda: open_it(app.context))

    return _open(options, begin, hint="--headless learns without one")


def _begin_training(options: argparse.Namespace) -> Callable[[AppContext], None]:
    from racer_viewer.training.command import config_of

    config = config_of(options)

    def open_it(context: AppContext) -> None:
        from racer_viewer.modes.train.setup import open_training
        from racer_viewer.modes.train.terminal import tell_terminal

        open_training(context, config, tensorboard=options.tensorboard, opened=tell_terminal)

    return open_it


def _see_run(options: argparse.Namespace) -> Callable[[AppContext], None]:
    """One that learns, or that goes on. What cannot be is told before a window opens."""
    from racer_viewer.training.run_folder import folder_of

    data = data_folder(options.data_dir)
    where = run_folder(options.attach, data) if options.attach else _check_resume(options, data)

    def open_it(context: AppContext) -> None:
        from racer_viewer.modes.train.setup import open_run, resume_run
        from racer_viewer.modes.train.terminal import tell_terminal

        if options.attach:
            open_run(context, where, opened=partial(tell_terminal, own=False))
        else:
            resume_run(context, where, options.timesteps, opened=tell_terminal)
        if options.tensorboard:
            from racer_viewer.modes.train.tensorboard import show_tensorboard

            show_tensorboard(folder_of(where), context.notify)

    return open_it


def _check_resume(options: argparse.Namespace, data: Path) -> Path:
    """The folder of a run that can go on, or the model of it to go on from."""
    from racer_viewer.training.run_folder import folder_of, resumed_config
    from racer_viewer.training.run_lock import check_not_running

    path: Path = options.resume
    where = path if path.is_file() else run_folder(path, data)
    check_not_running(folder_of(where))
    resumed_config(where, options.timesteps)
    return where


def check_track(options: argparse.Namespace) -> None:
    """Before a window opens; on a bridge, only that knows what it has."""
    if options.track is not None and options.bridge is None:
        from racer_env.engine import load_circuit

        load_circuit(options.track)


def check_models(models: Sequence[Path], most: int) -> None:
    """The same for models."""
    if models:
        from racer_env.errors import RacerError
        from racer_viewer.agents import load_agent

        if len(models) > most:
            raise RacerError(f"at most {most} models can drive at once, not {len(models)}")
        for path in models:
            load_agent(path)


def check_film_options(options: argparse.Namespace) -> None:
    """What only a film has is worth nothing without one."""
    if options.record is None and (options.seconds is not None or options.size is not None):
        from racer_env.errors import RacerError

        raise RacerError("--seconds and --size are for a film: add --record FILE")


def bridge_of(options: argparse.Namespace) -> BridgeAddress | None:
    if options.bridge is None:
        return None
    from racer_env.bridge.ws_client import check_url
    from racer_viewer.modes.link import BridgeAddress

    check_url(options.bridge)
    return BridgeAddress(options.bridge, options.token)


def _open(
    options: argparse.Namespace,
    begin: Callable[[App], None],
    otherwise: Callable[[Path], int] | None = None,
    hint: str = "--record FILE films without one",
) -> int:
    """A window from its opening to its end. Imports nothing heavy before the first picture.

    otherwise: what to do where there is no display, with the data folder; if that is None, the hint is given.
    """
    os.environ.setdefault(QUIET, "1")
    from racer_viewer.app.window import App
    from racer_viewer.ui.display import NoDisplayError

    data = data_folder(options.data_dir)
    try:
        app = App(data)
    except NoDisplayError as error:
        if otherwise is not None:
            print(f"There is no display here ({error}): filming a lap instead ...", file=sys.stderr, flush=True)
            return otherwise(data)
        print(f"racer-viewer: there is no display here ({error}); {hint}", file=sys.stderr)
        return NO_DISPLAY
    begin(app)
    app.run()
    return 0


def _open_play(context: AppContext, options: argparse.Namespace, bridge: BridgeAddress | None) -> None:
    from racer_viewer.modes.waiting import when_ready

    def start() -> None:
        from racer_viewer.modes.circuits import circuit_of
        from racer_viewer.modes.models import distinct_names
        from racer_viewer.modes.play import open_play

        laps = context.settings.laps if options.laps is None else options.laps
        rivals = list(zip(distinct_names(options.against), options.against, strict=True))
        open_play(context, options.track or circuit_of(context.settings), rivals, laps)

    context.bridge = bridge
    when_ready(context, start)


def _open_watch(context: AppContext, options: argparse.Namespace, bridge: BridgeAddress | None) -> None:
    from racer_viewer.modes.waiting import open_safely, when_ready

    def start() -> None:
        from racer_viewer.modes.choose import ChooseAgentScreen
        from racer_viewer.modes.circuits import circuit_of
        from racer_viewer.modes.watch import open_watch

        if options.models:
            circuit = options.track or circuit_of(context.settings)
            open_watch(context, options.models, circuit, options.stochastic)
            return
        if options.track is not None:
            context.change(circuit=options.track)
        open_safely(context, lambda: ChooseAgentScreen(context))

    context.bridge = bridge
    when_ready(context, start)


def _open_replays(context: AppContext, files: Sequence[Path]) -> None:
    from racer_viewer.modes.waiting import when_ready

    def start() -> None:
        from racer_viewer.modes.replay_screen import open_replays

        open_replays(context, files)

    when_ready(context, start)


def _film_a_lap(data: Path) -> int:
    from racer_viewer.app.offscreen import film_lap
    from racer_viewer.films.film import FilmProgress
    from racer_viewer.render.overlays import lap_time
    from racer_viewer.warmup import prepare_engine

    prepare_engine()
    with FilmProgress("Filming a lap", known=False):
        lap = film_lap(data / "lap.gif")
    driven = f"a lap of {lap_time(lap.lap_ticks)} s" if lap.lap_ticks else "a drive without a whole lap"
    print(f"{lap.film.path}: the champion on {lap.circuit}, {driven}")
    return 0
