"""`racer-viewer tune`: the search from the command line, its table, its picture and the config it found."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from racer_env.engine import load_circuit
from racer_env.errors import RacerError
from racer_viewer.paths import atomic_write, data_folder, free_path
from racer_viewer.runtime import command_hint
from racer_viewer.training.command import config_of, signals_stop
from racer_viewer.training.config import RunConfig, parse_run_config
from racer_viewer.training.ray.cluster import check_ray
from racer_viewer.training.ray.settings import Spread
from racer_viewer.training.ray.tune import NO_LAP, Trials, plot_trials, search
from racer_viewer.warmup import prepare_engine

BEST_FILE, TRIALS_FILE, PLOT_FILE = "best.json", "trials.json", "trials.svg"


def run(options: argparse.Namespace) -> int:
    """Search, show and keep what was found, as it is found."""
    check_ray()
    if (options.address or "").startswith("ray://"):
        raise RacerError("a search runs on a machine of the cluster: start it there, with --address auto")
    prepare_engine()
    config = Spread().of_all(config_of(options))
    for name in config.circuits:
        load_circuit(name)  # what cannot be driven is told at once
    spread = None if options.runners is None else Spread(runners=options.runners)
    folder = free_path(data_folder(options.data_dir) / "tune" / f"{config.algo}-{Path(config.tracks[0]).stem}")
    _make(folder)
    print(f"Searching; what is found is kept in {folder}", flush=True)
    told: dict[int, int] = {}

    def on_result(trials: Trials) -> None:
        _tell(trials, told)
        with suppress(OSError):  # a full disk is no reason to stop; it is told at the end
            _keep(folder, trials, config)

    with signals_stop(lambda: None) as received:
        trials = search(config, options.trials, spread, options.address, on_result, lambda: bool(received))
    if not any(each.curve for each in trials):
        with suppress(OSError):
            folder.rmdir()
        if received:
            print("Stopped before anything was found")
            return 128 + received[0]
        problem = next((each.problem for each in trials if each.problem), "give them more --timesteps")
        raise RacerError(f"no trial came to an evaluation: {problem}")
    _print(trials, config)
    try:
        _keep(folder, trials, config)
    except OSError as error:
        raise RacerError(f"what was found could not be kept in {folder}: {error.strerror or error}") from None
    print(f"The picture: {folder / PLOT_FILE}")
    if received:
        print("The search was interrupted: ended early may mean that, too")
    if trials[0].best >= NO_LAP:
        print("No trial drove a clean lap: give them more --timesteps, or an easier --track")
    else:
        where = () if options.data_dir is None else ("--data-dir", options.data_dir)
        print(f"Train with the best: {command_hint('train', '--like', folder / BEST_FILE, *where)}")
    return 128 + received[0] if received else 0


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise RacerError(f"{folder} cannot be made: {error.strerror or error}") from None


def _tell(trials: Trials, told: dict[int, int]) -> None:
    """What is new since it was told the last time, a line each. told: evaluations of each trial, by its number."""
    for each in trials:
        for steps, lap in each.curve[told.get(each.number, 0) :]:
            text = f"{lap:.2f} s" if lap < NO_LAP else "no clean lap yet"
            print(f"trial {each.number}: {steps:,} steps, {text}", file=sys.stderr, flush=True)
        told[each.number] = len(each.curve)


def _keep(folder: Path, trials: Trials, config: RunConfig) -> None:
    best = replace(parse_run_config(trials[0].settings, config), name="")
    contents = {
        TRIALS_FILE: json.dumps([asdict(each) for each in trials], indent=2) + "\n",
        PLOT_FILE: plot_trials(trials),
        BEST_FILE: best.to_json(),
    }
    for name, content in contents.items():
        with atomic_write(folder / name) as temporary:
            temporary.write_text(content, encoding="utf-8")


def _print(trials: Trials, config: RunConfig) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("trial", "lap", "steps", ""):
        table.add_column(column, justify="right")
    table.add_column("settings", overflow="fold")
    for each in trials:
        lap = f"{each.best:.2f} s" if each.best < NO_LAP else "–"
        end = "failed" if each.problem else "not begun" if not each.curve else ""
        end = "ended early" if not end and each.steps < config.timesteps else end
        settings = " ".join(f"{name}={value}" for name, value in each.settings.items()) or "as given"
        table.add_row(str(each.number), lap, f"{each.steps:,}", end, settings)
    Console().print(table, highlight=False)
