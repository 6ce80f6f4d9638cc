"""Learners for tests: what they learn, and waiting for what they do."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from racer_viewer.training.config import RunConfig, parse_run_config
from racer_viewer.training.controlled_run import control_server, learn_with_control
from racer_viewer.training.learner import LearnerFactory
from racer_viewer.training.run import Run
from racer_viewer.training.run_lock import running_learner
from racer_viewer.training.run_monitor import RunMonitor

LONG = 90.0
"""Seconds that a learner may take to begin, on a machine that does much else."""

LAPPING: dict[str, Any] = {
    "begin_from": "champion", "net": [128, 128], "num_cars": 16, "n_steps": 64, "batch_size": 1024, "n_epochs": 1,
    "learning_rate": 1e-6, "log_std": -3.0, "final_log_std": -3.0, "timesteps": 50_000_000, "evaluate_every": 0,
    "checkpoint_every": 0, "rewards": {"episode": {"maxSteps": 1000}},
}  # fmt: skip
"""Cars that drive from the beginning, and learn next to nothing."""
SMALL: dict[str, Any] = {
    **LAPPING, "begin_from": "", "net": [8], "num_cars": 8, "n_steps": 16, "batch_size": 128,
}  # fmt: skip


def config(values: dict[str, Any] = SMALL, **changes: object) -> RunConfig:
    return parse_run_config({**values, **changes})


def wait_for(condition: Callable[[], object], seconds: float = LONG) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)


def is_gone(pid: int) -> bool:
    """Also if it only waits to be buried by whoever adopted it."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (ProcessLookupError, FileNotFoundError):
        return True


def begin(run: RunMonitor) -> int:
    """Wait until it learns; returns its process."""
    wait_for(lambda: run.state != "starting")
    assert run.state == "learning", run.problem
    pid = running_learner(run.folder)
    assert pid is not None
    return pid


def kinds(run: RunMonitor) -> list[str]:
    return [event.kind for event in run.history.events]


@contextmanager
def learning_here(config: RunConfig, runs: Path, make_learner: LearnerFactory | None = None) -> Iterator[Run]:
    """A run as one at a terminal learns, but in a thread of this process; it is stopped at the end."""
    training, begun = Run(config, runs, make_learner=make_learner), threading.Event()

    def learn() -> None:
        with control_server(training) as server:
            begun.set()
            learn_with_control(training, server)

    thread = threading.Thread(target=learn)
    thread.start()
    try:
        assert begun.wait(LONG)
        yield training
    finally:
        training.stop()
        thread.join()
