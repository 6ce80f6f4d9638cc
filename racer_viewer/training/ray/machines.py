"""Where Ray runs: a small one on this machine, or a cluster that is there already."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from racer_env.errors import RacerError

HOW_TO_GET = (
    'this needs Ray, which lives beside the rest: python run.py --with ray …, or pip install "racer-viewer[ray]"'
)
OBJECT_STORE_BYTES = 256 * 2**20
"""Of a Ray on this machine. What runners send in an iteration is a few megabytes."""
TASK_PROCESSES_CPUS = 1
"""Beside those of the runners: the learner's."""


def check_ray() -> None:
    """A clear line where Ray is not installed, before anything else happens."""
    spec = find_spec("ray")
    if spec is None or spec.origin is None:  # a folder of that name is not it
        raise RacerError(HOW_TO_GET)


@contextmanager
def ray_running(address: str | None, processes: int) -> Iterator[None]:
    """A Ray with room for so many processes; all of it that was started here ends with this.

    address: of a cluster, as "auto" or "ray://HOST:10001"; None starts one on this machine.
    """
    check_ray()
    _be_quiet()
    import ray

    if ray.is_initialized():
        yield
        return
    session, on_sigterm = None, signal.getsignal(signal.SIGTERM)
    try:
        if address is None:
            context = ray.init(
                address="local",
                num_cpus=max(os.cpu_count() or 1, processes + TASK_PROCESSES_CPUS),
                object_store_memory=OBJECT_STORE_BYTES,
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
            session = context.address_info["session_dir"]
        else:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        where = "on this machine" if address is None else f"at {address}"
        raise RacerError(f"no Ray could be reached {where}: {str(error).splitlines()[0]}") from None
    if callable(on_sigterm) and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, on_sigterm)  # Ray has put its own there, which ends a run without saving it
    try:
        yield
    finally:
        ray.shutdown()
        if session is not None:
            shutil.rmtree(session, ignore_errors=True)  # logs and sockets, which Ray leaves


def _be_quiet() -> None:
    """Before the first import: no figures to Ray's makers, and no pages of advice between a run's own lines."""
    for name, value in (
        ("RAY_USAGE_STATS_ENABLED", "0"),
        ("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0"),
        ("RAY_AIR_NEW_OUTPUT", "0"),
        ("RAY_BACKEND_LOG_LEVEL", "fatal"),
    ):
        os.environ.setdefault(name, value)
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    for name in ("ray", "ray.rllib", "ray.tune"):
        logging.getLogger(name).setLevel(logging.ERROR)
