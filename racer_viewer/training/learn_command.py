"""`racer-viewer learn FOLDER`: the process that learns, for a window that watches it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import closing, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from racer_env.errors import RacerError
from racer_viewer.training.config import load_run_config
from racer_viewer.training.control import ControlServer, ParentWatch
from racer_viewer.training.run_folder import CONFIG_FILE, folder_of, remove_run

if TYPE_CHECKING:
    from racer_viewer.training.run import Run

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run(where: Path) -> NoReturn:
    """Learn as a folder's config.json says, and do what viewers ask for, until it is done or nobody looks.

    where: the folder, to go on from its latest checkpoint or begin, or the checkpoint in it to go on from.
    """
    folder = folder_of(where)
    if not (folder / CONFIG_FILE).is_file():
        raise RacerError(f"{folder} has no {CONFIG_FILE}: there is no run to learn")
    stopped = threading.Event()
    for number in _SIGNALS:
        signal.signal(number, lambda number, frame: _on_signal(stopped, frame))
    # First of all: a window waits for it, and torch takes seconds to import.
    with closing(ControlServer(folder, ParentWatch())) as orders:
        discarded = _learn(where, orders, stopped)
    sys.stdout.flush()
    if discarded:
        _drop_output()
        with suppress(RacerError):
            remove_run(folder)
    os._exit(0)  # all is written and closed; to take torch apart would be a second in which a window waits


def _on_signal(stopped: threading.Event, frame: FrameType | None) -> None:
    stopped.set()


def _learn(where: Path, orders: ControlServer, stopped: threading.Event) -> bool:
    """Whether the run is to be discarded."""
    training = _prepare(where)
    for number in _SIGNALS:
        signal.signal(number, lambda number, frame: training.stop())
    if stopped.is_set():
        training.stop()
    from racer_viewer.training.attended_run import learn_attended

    outcome = learn_attended(training, orders)
    print(f"{'Finished' if outcome.finished else 'Stopped'} after {outcome.steps:,} steps", flush=True)
    return training.discarded


def _prepare(where: Path) -> Run:
    """The run, ready to go. What its config gets wrong is told before torch is imported."""
    from racer_env.engine import load_circuit, warm_up

    for name in load_run_config(folder_of(where) / CONFIG_FILE).circuits:
        load_circuit(name)
    warm_up()
    try:
        from racer_viewer.training.run import Run
    except ModuleNotFoundError as error:
        raise RacerError(
            f"learning needs {error.name}, which is not installed: pip install 'racer-viewer[train]'"
        ) from None
    return Run.in_folder(where)


def _drop_output() -> None:
    """The log is in the folder that goes, and Windows removes no file that is open."""
    with open(os.devnull, "wb") as nowhere:
        for stream in (1, 2):
            os.dup2(nowhere.fileno(), stream)
