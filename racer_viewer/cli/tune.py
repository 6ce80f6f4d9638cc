"""`racer-viewer tune`: search for better training settings on Ray."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from racer_env.errors import os_reason
from racer_viewer.cli.options import Subparsers, positive
from racer_viewer.cli.run_options import add_run_options, run_config
from racer_viewer.paths import atomic_write, data_folder, free_path
from racer_viewer.plain_text import make_console
from racer_viewer.runtime import command_hint

if TYPE_CHECKING:
    from racer_viewer.training.config import RunConfig
    from racer_viewer.training.ray.tune import Trials

BEST_FILE, TRIALS_FILE, PLOT_FILE = "best.json", "trials.json", "trials.svg"


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "tune",
        help="search for better training settings, on Ray",
        description="Train with many settings side by side (Ray Tune) and stop slow ones early. Writes a table, a plot "
        "and the best settings, which train --like can use.",
    )
    parser.add_argument(
        "--trials", type=positive(int), default=16, metavar="N", help="settings to try (default: %(default)s)"
    )
    parser.add_argument("--address", metavar="RAY", help="auto: the Ray cluster that this machine is part of")
    parser.add_argument(
        "--runners",
        type=positive(int),
        metavar="N",
        help="train each trial as train --engine ray does, with N processes that drive (default: in one process)",
    )
    add_run_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Search; print and save the results as they arrive."""
    from racer_env.engine import load_circuit
    from racer_env.errors import RacerError
    from racer_viewer.optional import RAY

    RAY.require()
    if (options.address or "").startswith("ray://"):
        raise RacerError("a search must run on a machine of the cluster: start it there, with --address auto")
    from racer_viewer.cli.terminal import stop_on_signals
    from racer_viewer.training.ray.settings import RaySettings
    from racer_viewer.training.ray.tune import NO_LAP, search
    from racer_viewer.warmup import prepare_engine

    config = RaySettings().run_config(run_config(options))
    for name in config.circuits:
        load_circuit(name)  # so that a wrong name is reported at once
    prepare_engine()
    settings = None if options.runners is None else RaySettings(runners=options.runners)
    folder = free_path(data_folder(options.data_dir) / "tune" / f"{config.algo}-{Path(config.tracks[0]).stem}")
    _make(folder)
    print(f"Searching; results are saved in {folder}", flush=True)
    printed: dict[int, int] = {}

    def on_result(trials: Trials) -> None:
        _print_new(trials, printed)
        with suppress(OSError):  # a full disk does not stop the search; it is reported at the end
            _save(folder, trials, config)

    with stop_on_signals(lambda: None) as received:
        trials = search(config, options.trials, settings, options.address, on_result, lambda: bool(received))
    if not any(each.curve for each in trials):
        with suppress(OSError):
            folder.rmdir()
        if received:
            print("Stopped before there was a result")
            return 128 + received[0]
        problem = next((each.problem for each in trials if each.problem), "give them more --timesteps")
        raise RacerError(f"no trial reached an evaluation: {problem}")
    _print_table(trials, config)
    try:
        _save(folder, trials, config)
    except OSError as error:
        raise RacerError(f"the results could not be saved in {folder}: {os_reason(error)}") from None
    print(f"Plot: {folder / PLOT_FILE}")
    if received:
        print("The search was interrupted: some trials ended early")
    if trials[0].best >= NO_LAP:
        print("No trial drove a clean lap: give them more --timesteps, or an easier --track")
    else:
        where = () if options.data_dir is None else ("--data-dir", options.data_dir)
        print(f"Train with the best: {command_hint('train', '--like', folder / BEST_FILE, *where)}")
    return 128 + received[0] if received else 0


def _make(folder: Path) -> None:
    from racer_env.errors import RacerError

    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise RacerError(f"cannot create {folder}: {os_reason(error)}") from None


def _print_new(trials: Trials, printed: dict[int, int]) -> None:
    """Print a line for each new evaluation.

    Parameters:
        printed: number of evaluations printed before, by trial number; updated here
    """
    from racer_viewer.training.ray.tune import NO_LAP

    for each in trials:
        for steps, lap in each.curve[printed.get(each.number, 0) :]:
            text = f"{lap:.2f} s" if lap < NO_LAP else "no clean lap yet"
            print(f"trial {each.number}: {steps:,} steps, {text}", file=sys.stderr, flush=True)
        printed[each.number] = len(each.curve)


def _save(folder: Path, trials: Trials, config: RunConfig) -> None:
    from racer_viewer.training.config import parse_run_config
    from racer_viewer.training.ray.tune import plot_trials

    best = replace(parse_run_config(trials[0].settings, config), name="")
    contents = {
        TRIALS_FILE: json.dumps([asdict(each) for each in trials], indent=2) + "\n",
        PLOT_FILE: plot_trials(trials),
        BEST_FILE: best.to_json(),
    }
    for name, content in contents.items():
        with atomic_write(folder / name) as temporary:
            temporary.write_text(content, encoding="utf-8")


def _print_table(trials: Trials, config: RunConfig) -> None:
    from rich.table import Table

    from racer_viewer.training.ray.tune import NO_LAP

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("trial", "lap", "steps", ""):
        table.add_column(column, justify="right")
    table.add_column("settings", overflow="fold")
    for each in trials:
        lap = f"{each.best:.2f} s" if each.best < NO_LAP else "–"
        end = "failed" if each.problem else "not started" if not each.curve else ""
        end = "ended early" if not end and each.steps < config.timesteps else end
        settings = " ".join(f"{name}={value}" for name, value in each.settings.items()) or "as given"
        table.add_row(str(each.number), lap, f"{each.steps:,}", end, settings)
    make_console().print(table, highlight=False)
