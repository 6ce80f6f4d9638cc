"""`racer-viewer train`: train an agent, in a window or at the terminal."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from racer_env.errors import in_one_line
from racer_viewer.cli.options import Subparsers, add_film_options, check_film_options, positive
from racer_viewer.cli.run_options import add_run_options, run_config, settings
from racer_viewer.cli.window import open_window
from racer_viewer.paths import data_folder, run_folder
from racer_viewer.runtime import command_hint

if TYPE_CHECKING:
    from racer_viewer.modes.screen import AppContext
    from racer_viewer.training.run import Run, RunResult


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "train",
        help="train an agent",
        description="Train an agent and watch it learn. A run keeps checkpoints, the best policy so far and "
        "TensorBoard data in a folder.",
    )
    parser.add_argument("--headless", action="store_true", help="train at the terminal, without a window")
    parser.add_argument(
        "--attach", metavar="RUN", help="show a run that is training in the background: its name or folder"
    )
    add_film_options(parser, "45 s")
    parser.add_argument("--tensorboard", action="store_true", help="also open TensorBoard on the run")
    parser.add_argument(
        "--resume", type=Path, metavar="PATH", help="resume a run: its name, its folder or one of its models"
    )
    parser.add_argument("--settings", action="store_true", help="list every setting with its default, and exit")
    parser.add_argument(
        "--bridge",
        metavar="URL",
        help="train on the cars of a bridge server, such as ws://localhost:9876; with --engine ray also of several "
        "servers: URL,URL",
    )
    parser.add_argument(
        "--address",
        metavar="RAY",
        help="with --engine ray: a cluster, auto or ray://HOST:10001 (default: Ray on this machine)",
    )
    parser.add_argument(
        "--runners", type=positive(int), metavar="N", help="with --engine ray: number of runner processes (default: 1)"
    )
    parser.add_argument(
        "--cars-per-runner",
        type=positive(int),
        metavar="M",
        help="with --engine ray (default: --num-cars divided by the number of runners)",
    )
    add_run_options(parser, own_name=True)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Train in a window, at the terminal or for a film, as the options say."""
    if options.settings:
        print("\n".join(each.describe() for each in settings()))
        return 0
    check_film_options(options)
    _check_engine_options(options)
    _check_attach(options)
    if options.record is not None:
        return _film_run(options)
    if options.headless or options.bridge is not None or options.engine == "ray":
        return train_at_terminal(options)
    return _train_in_window(options)


def train_at_terminal(options: argparse.Namespace) -> int:
    """Train in this process and print the progress; windows can attach to the run at any time."""
    from racer_env.errors import RacerError
    from racer_viewer.cli.terminal import stop_on_signals

    training = _make_run(options)
    print(f"Training in {training.folder}", flush=True)
    if options.tensorboard:
        print(f"TensorBoard: tensorboard --logdir {training.folder}", flush=True)
    how_to_resume = f"Resume with: {command_hint('train', '--resume', training.folder, *_ray_arguments(options))}"
    with stop_on_signals(training.stop) as received:
        try:
            outcome = _learn(training)
        except OSError as error:
            rest = (
                f"earlier checkpoints are intact. {how_to_resume}" if _is_saved(training) else "nothing could be saved"
            )
            raise RacerError(f"{in_one_line(error)}: {rest}") from None
        except KeyboardInterrupt:
            print(f"Interrupted. {how_to_resume}" if _is_saved(training) else "Interrupted before anything was saved")
            raise
    if training.discarded:
        from racer_viewer.training.run_folder import remove_run

        remove_run(training.folder)
        print(f"Discarded after {outcome.steps:,} steps, at the request of a window")
        return 0
    print(f"{'Finished' if outcome.finished else 'Stopped'} after {outcome.steps:,} steps: {outcome.model}")
    if outcome.best is not None:
        print(f"Best so far: {outcome.best}")
    if not outcome.finished:
        print(how_to_resume)
    return 0 if not received else 128 + received[0]


def _make_run(options: argparse.Namespace) -> Run:
    """Return the run. Everything that can be refused is checked before the engine is compiled."""
    if options.engine == "ray":
        from racer_viewer.optional import RAY

        RAY.require()
    from racer_viewer.training.run import Run, check_engine, create_learner
    from racer_viewer.training.run_folder import find_checkpoint, folder_of, resumed_config
    from racer_viewer.training.run_lock import check_not_running
    from racer_viewer.warmup import prepare_engine

    runs, checkpoint = data_folder(options.data_dir) / "runs", None
    if options.resume is not None:
        for folder in (folder_of(options.resume), runs / options.resume):
            check_not_running(folder)
        checkpoint = find_checkpoint(options.resume, runs)
    config = (
        run_config(options)
        if checkpoint is None
        else resumed_config(checkpoint.model, options.timesteps, options.engine)
    )
    if options.bridge is not None and options.engine in (None, "auto"):
        config = replace(config, engine="sb3")
    if config.engine != "ray":
        check_engine(config, options.bridge)
    if config.engine != "ray" and config.local_engine == "native":
        from racer_viewer.training.native.learner import preload

        prepare_engine(preload)
    else:
        prepare_engine()
    if config.engine == "ray":
        from racer_viewer.training.ray.learner import ray_run
        from racer_viewer.training.ray.settings import DEFAULT_RUNNERS, RaySettings

        ray = RaySettings(options.address, options.runners or DEFAULT_RUNNERS, options.cars_per_runner)
        cores = os.cpu_count() or 1
        crowded = f" ({ray.runners} runners on {cores} cores: fewer are faster)" if ray.oversubscribes(cores) else ""
        print(f"Starting Ray, which takes some seconds{crowded} ...", file=sys.stderr, flush=True)
        return ray_run(config, runs, ray, checkpoint, options.bridge)
    if options.bridge is None:
        return Run(config, runs, checkpoint)
    return Run(config, runs, checkpoint, partial(create_learner, bridge_url=options.bridge))


def _learn(training: Run) -> RunResult:
    from racer_viewer.cli.terminal import ProgressReport
    from racer_viewer.training.controlled_run import control_server, learn_with_control

    with control_server(training) as server, ProgressReport(training.config.timesteps) as report:
        return learn_with_control(training, server, report)


def _ray_arguments(options: argparse.Namespace) -> list[object]:
    """Return the options of a run on Ray that resume it in the same way."""
    if options.engine != "ray":
        return []
    given = {"--runners": options.runners, "--address": options.address, "--bridge": options.bridge}
    return ["--engine", "ray", *(part for name, value in given.items() if value is not None for part in (name, value))]


def _is_saved(training: Run) -> bool:
    from racer_viewer.training.run_folder import latest_model

    return training.folder.is_dir() and latest_model(training.folder) is not None


def _train_in_window(options: argparse.Namespace) -> int:
    """Open the window with a run; without a display, train at the terminal."""
    from racer_viewer.ui.display import has_display

    if not has_display() and options.attach is None:
        print("There is no display here: training without a window, as with --headless", file=sys.stderr, flush=True)
        return train_at_terminal(options)
    show = _new_run(options) if options.attach is None and options.resume is None else _existing_run(options)
    return open_window(options, lambda app: show(app.context), hint="--headless trains without one")


def _new_run(options: argparse.Namespace) -> Callable[[AppContext], None]:
    """Return what opens the screen of a new run; its config is checked before a window opens."""
    from racer_viewer.training.run import check_engine

    config = run_config(options)
    check_engine(config)

    def show(context: AppContext) -> None:
        from racer_viewer.cli.terminal import print_run
        from racer_viewer.modes.train.setup import open_training

        open_training(context, config, tensorboard=options.tensorboard, opened=print_run)

    return show


def _existing_run(options: argparse.Namespace) -> Callable[[AppContext], None]:
    """Return what opens the screen of a run to attach to or to resume, which is checked before a window opens."""
    from racer_viewer.training.run_folder import folder_of

    data = data_folder(options.data_dir)
    where = run_folder(options.attach, data) if options.attach else _check_resume(options, data)

    def show(context: AppContext) -> None:
        from racer_viewer.cli.terminal import print_run
        from racer_viewer.modes.train.setup import open_run, resume_run

        if options.attach:
            open_run(context, where, opened=partial(print_run, own=False))
        else:
            resume_run(context, where, options.timesteps, options.engine, opened=print_run)
        if options.tensorboard:
            from racer_viewer.modes.train.tensorboard import show_tensorboard

            show_tensorboard(folder_of(where), context.notify)

    return show


def _check_resume(options: argparse.Namespace, data: Path) -> Path:
    """Return the folder or the model of `--resume`; raise a `RacerError` if that run cannot be resumed."""
    from racer_viewer.training.run import check_engine
    from racer_viewer.training.run_folder import folder_of, resumed_config
    from racer_viewer.training.run_lock import check_not_running

    path: Path = options.resume
    where = path if path.is_file() else run_folder(path, data)
    check_not_running(folder_of(where))
    check_engine(resumed_config(where, options.timesteps, options.engine))
    return where


def _film_run(options: argparse.Namespace) -> int:
    """Train at the terminal, then film how the agent learned; with --attach, film a run that has ended."""
    from racer_viewer.app.offscreen import film_training, size_of
    from racer_viewer.films.film import FilmProgress, check_film_path
    from racer_viewer.training.run_folder import find_checkpoint, free_name

    check_film_path(options.record)
    data = data_folder(options.data_dir)
    if options.attach is None:
        if options.resume is not None:
            options.name = str(find_checkpoint(options.resume, data / "runs").model.parent)
        else:
            config = run_config(options)
            options.name = config.name or free_name(config, data / "runs")
        code = train_at_terminal(options)
        if code:
            return code
    folder = run_folder(options.attach or options.name, data)
    with FilmProgress("Filming the training run") as progress:
        film = film_training(folder, options.record, data, size_of(options), options.seconds, progress)
    progress.print(film)
    return 0


def _check_engine_options(options: argparse.Namespace) -> None:
    from racer_env.errors import RacerError

    if options.engine is None and options.set:
        from racer_viewer.training.config import parse_settings

        options.engine = parse_settings(options.set).get("engine")
    of_ray = {"--address": options.address, "--runners": options.runners, "--cars-per-runner": options.cars_per_runner}
    given = [name for name, value in of_ray.items() if value is not None]
    if given and options.engine != "ray":
        raise RacerError(f"{given[0]} needs --engine ray")
    if options.engine == "ray" and (options.record is not None or options.attach is not None):
        raise RacerError("--engine ray trains at the terminal: leave out --record and --attach, or --engine ray")


def _check_attach(options: argparse.Namespace) -> None:
    others = {"--headless": options.headless, "--resume": options.resume, "--name": options.name}
    given = [name for name, value in others.items() if value]
    if options.attach is not None and given:
        from racer_env.errors import RacerError

        raise RacerError(f"--attach only shows a run that exists: leave out {' and '.join(given)}")
