"""`racer-viewer train`: a run from the command line."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from racer_env.engine import load_config
from racer_env.errors import RacerError
from racer_viewer.paths import data_folder
from racer_viewer.runtime import command_hint
from racer_viewer.training.config import RunConfig, load_run_config, parse_run_config, parse_settings
from racer_viewer.warmup import prepare_engine

if TYPE_CHECKING:
    from racer_viewer.training.overseer import Progress as RunProgress
    from racer_viewer.training.run import Outcome, Run

OPTIONS = ("timesteps", "name", "seed", "num_cars", "begin_from", "device")
"""Settings with an option of their own; all others go by --set."""
STDERR = 2
"""The number of that file."""
LINE_SECONDS = 5.0
"""Between two lines of progress where there is no terminal."""


def describe_settings() -> str:
    """Every setting with its default and what it is, for --help."""
    hints = get_type_hints(RunConfig, include_extras=True)
    lines = []
    for each in fields(RunConfig):
        hint = hints[each.name]
        text = get_args(hint)[1] if get_origin(hint) is Annotated else ""
        default = "" if each.name in ("name", "rewards") else f" [{_plain(each.default)}]"
        lines.append(f"  {each.name}{default}: {text}")
    return "\n".join(lines)


def config_of(options: argparse.Namespace) -> RunConfig:
    """The config that the command line asks for: a preset, then an ai-config, then what was given one by one."""
    from racer_viewer.training.config import preset

    like = None if options.like is None else replace(load_run_config(options.like), name="")
    config = like or preset(options.algo, options.preset)
    values: dict[str, Any] = parse_settings(options.set)
    if options.config is not None:
        values["rewards"] = load_config(options.config)
    if options.track:
        values["tracks"] = options.track
    values.update({name: getattr(options, name) for name in OPTIONS if getattr(options, name, None) is not None})
    return parse_run_config(values, config)


def run(options: argparse.Namespace) -> int:
    """Learn, and say how to go on if it ended early. Windows can be attached to it all the while."""
    if options.engine == "ray":
        from racer_viewer.training.ray.cluster import check_ray

        check_ray()
    prepare_engine()
    runs = data_folder(options.data_dir) / "runs"
    training = _run_of(options, runs)
    print(f"Learning in {training.folder}", flush=True)
    if options.tensorboard:
        print(f"Its figures: tensorboard --logdir {training.folder}", flush=True)
    how_to_go_on = f"Go on with: {command_hint('train', '--resume', training.folder, *_on_ray(options))}"
    with signals_stop(training.stop) as received:
        try:
            outcome = _learn(training)
        except OSError as error:
            rest = (
                f"what was saved before is there. {how_to_go_on}" if _is_saved(training) else "nothing could be saved"
            )
            raise RacerError(f"{error.strerror or error}: {rest}") from None
        except KeyboardInterrupt:
            print(f"Given up. {how_to_go_on}" if _is_saved(training) else "Given up before anything was saved")
            raise
    if training.discarded:
        from racer_viewer.training.run_folder import remove_run

        remove_run(training.folder)
        print(f"Discarded after {outcome.steps:,} steps, as a window asked")
        return 0
    print(f"{'Finished' if outcome.finished else 'Stopped'} after {outcome.steps:,} steps: {outcome.model}")
    if outcome.best is not None:
        print(f"Best so far: {outcome.best}")
    if not outcome.finished:
        print(how_to_go_on)
    return 0 if not received else 128 + received[0]


def _run_of(options: argparse.Namespace, runs: Path) -> Run:
    from racer_viewer.training.run_folder import find_checkpoint, folder_of, resumed_config
    from racer_viewer.training.run_lock import check_not_running

    checkpoint = None
    if options.resume is not None:
        for folder in (folder_of(options.resume), runs / options.resume):
            check_not_running(folder)
        checkpoint = find_checkpoint(options.resume, runs)
    config = config_of(options) if checkpoint is None else resumed_config(checkpoint.model, options.timesteps)
    if options.engine == "ray":
        from racer_viewer.training.ray.run import RayRun
        from racer_viewer.training.ray.settings import DEFAULT_RUNNERS, Spread

        spread = Spread(options.address, options.runners or DEFAULT_RUNNERS, options.cars_per_runner)
        cores = os.cpu_count() or 1
        shared = f" ({spread.runners} runners on {cores} cores: fewer are faster)" if spread.crowds(cores) else ""
        print(f"Starting Ray, which takes its time{shared} ...", file=sys.stderr, flush=True)
        return RayRun(config, runs, checkpoint, options.bridge, spread)
    from racer_viewer.training.run import Run

    return Run(config, runs, checkpoint, options.bridge)


def _on_ray(options: argparse.Namespace) -> list[object]:
    """What a run on Ray was asked for, to ask for it again."""
    if options.engine != "ray":
        return []
    given = {"--runners": options.runners, "--address": options.address, "--bridge": options.bridge}
    return ["--engine", "ray", *(part for name, value in given.items() if value is not None for part in (name, value))]


def _is_saved(training: Run) -> bool:
    from racer_viewer.training.run_folder import latest_model

    return training.folder.is_dir() and latest_model(training.folder) is not None


def _learn(training: Run) -> Outcome:
    from racer_viewer.training.attended_run import at_a_terminal, learn_attended

    with at_a_terminal(training) as orders, _Report(training.config.timesteps) as report:
        return learn_attended(training, orders, report)


@contextmanager
def signals_stop(stop: Callable[[], object]) -> Iterator[list[int]]:
    """SIGINT and SIGTERM end what goes on in good order; a second Ctrl-C at once. Those that came are in the list."""
    received: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)
        with suppress(OSError):  # print must not be called within itself
            os.write(STDERR, b"\nStopping; Ctrl-C once more gives up at once\n")
        stop()

    previous = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class _Report:
    """Tells how a run goes on: moving bars on a terminal, else a line now and then."""

    def __init__(self, total: int) -> None:
        console = Console(stderr=True)
        self._bar = _bar(console) if console.is_terminal else None
        self._task = self._bar.add_task("", total=total, figures="") if self._bar else None
        self._last_line = 0.0

    def __enter__(self) -> _Report:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar:
            self._bar.stop()

    def __call__(self, progress: RunProgress) -> None:
        best = f", best {progress.best_lap:.2f} s" if progress.best_lap else ""
        figures = f"{progress.steps_per_second:,.0f} steps/s, {progress.laps} laps{best}"
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=progress.steps, figures=figures)
            if progress.note:
                self._bar.console.print(f"{progress.steps:>12,}  {progress.note}", markup=False, highlight=False)
        elif progress.note or time.monotonic() - self._last_line > LINE_SECONDS:
            self._last_line = time.monotonic()
            left = f"{max(0.0, progress.seconds_left):.0f} s left"
            note = f": {progress.note}" if progress.note else f", {left}"
            print(f"{progress.steps:,} of {progress.total:,} steps, {figures}{note}", file=sys.stderr, flush=True)


def _bar(console: Console) -> Bar:
    columns = (
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.completed:,} steps"),
        TextColumn("{task.fields[figures]}"),
    )
    return Bar(*columns, TimeRemainingColumn(), console=console)


def _plain(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
