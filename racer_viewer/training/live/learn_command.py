"""`racer-viewer learn FOLDER`: the process that learns, for a window that watches it."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from contextlib import ExitStack, closing
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from racer_env.errors import RacerError
from racer_viewer.training.config import load_run_config
from racer_viewer.training.live.greeting import check_nobody_learns
from racer_viewer.training.live.orders import Orders
from racer_viewer.training.saved import CONFIG_FILE

if TYPE_CHECKING:
    from stable_baselines3.common.callbacks import BaseCallback

    from racer_viewer.training.run import Run

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run(folder: Path) -> NoReturn:
    """Learn as the folder's config.json says, and do what viewers ask for, until it is done or nobody looks."""
    if not (folder / CONFIG_FILE).is_file():
        raise RacerError(f"{folder} has no {CONFIG_FILE}: there is no run to learn")
    check_nobody_learns(folder)
    stopped = threading.Event()
    for number in _SIGNALS:
        signal.signal(number, lambda number, frame: _on_signal(stopped, frame))
    with closing(Orders(folder)) as orders:  # first of all: a window waits for it, and torch takes seconds to import
        discarded = _learn(folder, orders, stopped)
    if discarded:
        shutil.rmtree(folder, ignore_errors=True)  # the window removes what Windows leaves
    sys.stdout.flush()
    os._exit(0)  # all is written and closed; to take torch apart would be a second in which a window waits


def _on_signal(stopped: threading.Event, frame: FrameType | None) -> None:
    stopped.set()


def _learn(folder: Path, orders: Orders, stopped: threading.Event) -> bool:
    """Whether the run is to be discarded."""
    training = _prepare(folder)
    for number in _SIGNALS:
        signal.signal(number, lambda number, frame: training.stop())
    if stopped.is_set():
        training.stop()
    with ExitStack() as open_things:
        companions = _companions(training, orders, open_things)
        outcome = training.learn(companions=companions, on_problem=orders.tell)
    print(f"{'Finished' if outcome.finished else 'Stopped'} after {outcome.steps:,} steps", flush=True)
    return training.discarded


def _prepare(folder: Path) -> Run:
    """The run, ready to go. What its config gets wrong is told before torch is imported."""
    from racer_env.engine import load_circuit, warm_up

    for name in dict.fromkeys(load_run_config(folder / CONFIG_FILE).tracks):
        load_circuit(name)
    warm_up()
    try:
        from racer_viewer.training.run import Run
    except ModuleNotFoundError as error:
        raise RacerError(
            f"learning needs {error.name}, which is not installed: pip install 'racer-viewer[train]'"
        ) from None
    return Run.in_folder(folder)


def _companions(training: Run, orders: Orders, open_things: ExitStack) -> list[BaseCallback]:
    from racer_viewer.training.live.conductor import Conductor
    from racer_viewer.training.live.swarm_callback import SwarmCallback
    from racer_viewer.training.live.swarm_file import SwarmWriter

    companions: list[BaseCallback] = [Conductor(training, orders)]
    try:
        writer = open_things.enter_context(closing(SwarmWriter(training.folder, training.config.num_cars)))
    except OSError as error:
        orders.tell(f"the cars cannot be shown: {error.strerror or error}; the run goes on")
    else:
        companions.insert(0, SwarmCallback(writer, training.config.tracks, training.metrics))
    return companions
