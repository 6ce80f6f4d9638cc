"""`racer-viewer learn [FOLDER]`: the learner process of a run, which a window starts and controls."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from contextlib import closing, suppress
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from racer_viewer.cli.options import Subparsers

if TYPE_CHECKING:
    from racer_viewer.training.control import ControlServer
    from racer_viewer.training.run import Run

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def add_parser(subparsers: Subparsers) -> None:
    """Add the verb without a help text, which hides it: users need not know it."""
    parser = subparsers.add_parser("learn")
    parser.add_argument("folder", type=Path, nargs="?", metavar="FOLDER")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> NoReturn:
    """Train as the config.json of a folder says, and obey its viewers, until the run ends or no viewer is left.

    The folder is that of a run, which starts or resumes from its latest checkpoint, or a checkpoint in it. Without one,
    import everything and then read the folder from standard input.
    """
    from racer_env.errors import RacerError
    from racer_viewer.training.control import ControlServer, ParentWatch
    from racer_viewer.training.run_folder import CONFIG_FILE, folder_of, remove_run

    where: Path = options.folder or _wait_for_folder()
    folder = folder_of(where)
    if not (folder / CONFIG_FILE).is_file():
        raise RacerError(f"{folder} has no {CONFIG_FILE}: it is not a training run")
    stopped = threading.Event()
    for number in _SIGNALS:
        signal.signal(number, lambda number, frame: _on_signal(stopped, frame))
    # First of all: a window waits for the control socket, and importing torch takes seconds.
    with closing(ControlServer(folder, ParentWatch())) as control:
        discarded = _learn(where, control, stopped)
    sys.stdout.flush()
    if discarded:
        _drop_output()
        with suppress(RacerError):
            remove_run(folder)
    os._exit(0)  # everything is written and closed; unloading torch would take another second while a window waits


def _wait_for_folder() -> Path:
    """Prepare for any run, and wait for the line with its folder; end if there is none."""
    import_module("racer_viewer.training.controlled_run")  # needed later
    from racer_viewer.training.control import STANDARD_INPUT
    from racer_viewer.training.native.learner import preload
    from racer_viewer.training.run_folder import LEARNER_LOG_FILE, folder_of

    preload()
    line = b""
    while not line.endswith(b"\n"):  # not more than the line: the rest is for ParentWatch
        if not (byte := os.read(STANDARD_INPUT, 1)):
            os._exit(0)
        line += byte
    where = Path(line[:-1].decode())
    with (folder_of(where) / LEARNER_LOG_FILE).open("wb") as log:
        _redirect_output(log.fileno())
    return where


def _on_signal(stopped: threading.Event, frame: FrameType | None) -> None:
    stopped.set()


def _learn(where: Path, control: ControlServer, stopped: threading.Event) -> bool:
    """Train to the end; return whether the run is to be discarded."""
    training = _prepare(where)
    for number in _SIGNALS:
        signal.signal(number, lambda number, frame: training.stop())
    if stopped.is_set():
        training.stop()
    from racer_viewer.training.controlled_run import learn_with_control

    outcome = learn_with_control(training, control)
    print(f"{'Finished' if outcome.finished else 'Stopped'} after {outcome.steps:,} steps", flush=True)
    return training.discarded


def _prepare(where: Path) -> Run:
    """Return the run, ready to train. Errors in its config are reported before torch is imported."""
    from racer_env.engine import load_circuit, warm_up
    from racer_viewer.training.config import load_run_config
    from racer_viewer.training.run_folder import CONFIG_FILE, folder_of

    for name in load_run_config(folder_of(where) / CONFIG_FILE).circuits:
        load_circuit(name)
    warm_up()
    from racer_viewer.training.run import Run

    return Run.in_folder(where)


def _drop_output() -> None:
    """Close the log, which is in the folder to remove: Windows removes no file that is open."""
    with open(os.devnull, "wb") as nowhere:
        _redirect_output(nowhere.fileno())


def _redirect_output(handle: int) -> None:
    for stream in (1, 2):
        os.dup2(handle, stream)
