"""Learners for tests: small run configs, and runs that learn."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from racer_viewer.training.config import RunConfig, parse_run_config
from racer_viewer.training.controlled_run import control_server, learn_with_control
from racer_viewer.training.learner import LearnerFactory
from racer_viewer.training.run import Run
from racer_viewer.training.run_lock import running_learner
from racer_viewer.training.run_monitor import RunMonitor
from tests.processes import TIMEOUT, wait_for

LAPPING: dict[str, Any] = {
    "begin_from": "champion", "net": [128, 128], "num_cars": 16, "n_steps": 64, "batch_size": 1024, "n_epochs": 1,
    "learning_rate": 1e-6, "log_std": -3.0, "final_log_std": -3.0, "timesteps": 50_000_000, "evaluate_every": 0,
    "checkpoint_every": 0, "rewards": {"episode": {"maxSteps": 1000}},
}  # fmt: skip
"""Settings of cars that drive well from the start and learn next to nothing."""
SMALL: dict[str, Any] = {
    **LAPPING, "begin_from": "", "net": [8], "num_cars": 8, "n_steps": 16, "batch_size": 128,
}  # fmt: skip


def config(values: dict[str, Any] = SMALL, **changes: object) -> RunConfig:
    return parse_run_config({**values, **changes})


def wait_until_learning(run: RunMonitor) -> int:
    """Wait until a run learns; return the process id of its learner."""
    wait_for(lambda: run.state != "starting")
    assert run.state == "learning", run.problem
    pid = running_learner(run.folder)
    assert pid is not None
    return pid


def event_kinds(run: RunMonitor) -> list[str]:
    return [event.kind for event in run.history.events]


@contextmanager
def learning_here(config: RunConfig, runs: Path, make_learner: LearnerFactory | None = None) -> Iterator[Run]:
    """Run a learner as at a terminal, but in a thread of this process; stop it at the end."""
    training, started = Run(config, runs, make_learner=make_learner), threading.Event()

    def learn() -> None:
        with control_server(training) as server:
            started.set()
            learn_with_control(training, server)

    thread = threading.Thread(target=learn)
    thread.start()
    try:
        assert started.wait(TIMEOUT)
        yield training
    finally:
        training.stop()
        thread.join()
