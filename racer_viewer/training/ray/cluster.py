"""Ray sessions: Ray started on this machine, or a connection to an existing cluster."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from racer_env.errors import RacerError, os_reason
from racer_viewer.optional import RAY

OBJECT_STORE_SIZE = 256 * 2**20
"""Size [bytes] of the object store of a local Ray; the rollouts of an iteration are a few megabytes."""
MAX_RUNNERS_PER_CORE = 4
"""Maximum runners per core of a local Ray; each runner is a process of about 350 MB."""
LEARNER_CPUS = 1
"""CPUs of a local Ray that are not used by runners."""
QUIET: Mapping[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
CONNECT_TIMEOUT = 10.0
"""Timeout [s] of the first connection to a cluster."""
CPU_TIMEOUT, CPU_POLL_INTERVAL = 60.0, 0.5
"""Time [s] to wait for free CPUs of a cluster, and time between two checks."""
CONNECT_TRIES = 4
"""Number of connection attempts: about one in forty client processes of a cluster fails to start."""
TOKEN = secrets.token_hex(32)
"""Authentication token of every Ray that this process starts; Ray reads it once."""
STDERR = 2
"""File descriptor of the standard error."""


@contextmanager
def ray_session(address: str | None, processes: int) -> Iterator[None]:
    """Start Ray with a CPU for each process, or connect to a cluster; stop what was started at the end.

    address: cluster, such as "auto" or "ray://HOST:10001"; None starts Ray on this machine.
    """
    RAY.require()
    _silence_ray()
    import ray

    if ray.is_initialized():
        yield
        return
    session, on_sigterm = None, signal.getsignal(signal.SIGTERM)
    with _discard_stderr():
        if address is None:
            session = _start(processes)
        else:
            _connect(address)
    if callable(on_sigterm) and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, on_sigterm)  # Ray's own handler would end a run without saving it
    try:
        yield
    finally:
        ray.shutdown()
        if session is not None:
            shutil.rmtree(session, ignore_errors=True)  # Ray leaves logs and sockets


def check_cpus(processes: int) -> None:
    """Raise RacerError if Ray has too few CPUs; Ray itself would wait forever."""
    import ray

    cpus = int(ray.cluster_resources().get("CPU", 0))
    if cpus < processes:
        raise RacerError(f"{processes} processes need one CPU each, but this Ray has {cpus}: use fewer --runners")


def wait_for_cpus(processes: int) -> None:
    """Wait for free CPUs: a killed run releases its own after some seconds, a trial of a search has reserved them."""
    import ray
    from ray.util import get_current_placement_group

    check_cpus(processes)
    end = time.monotonic() + CPU_TIMEOUT
    while get_current_placement_group() is None:
        free = int(ray.available_resources().get("CPU", 0))
        if free >= processes:
            return
        if time.monotonic() > end:
            raise RacerError(
                f"{processes} processes need one CPU each, but only {free} of this Ray are free: "
                "use fewer --runners, or try again later"
            )
        time.sleep(CPU_POLL_INTERVAL)


def _start(processes: int) -> str:
    """Start Ray on this machine; return its session folder."""
    import ray

    cores = os.cpu_count() or 1
    if processes > MAX_RUNNERS_PER_CORE * cores:
        hint = f"use at most {MAX_RUNNERS_PER_CORE * cores}; fewer are faster"
        raise RacerError(f"{processes} runners are too many for the {cores} cores of this machine: {hint}")
    try:
        with _local_access_only():
            context = ray.init(
                address="local",
                num_cpus=max(cores, processes + LEARNER_CPUS),
                object_store_memory=OBJECT_STORE_SIZE,
                include_dashboard=False,
                **QUIET,
            )
    except Exception as error:  # Ray raises many kinds
        raise RacerError(f"Ray could not be started on this machine: {summary(error)}") from None
    return str(context.address_info["session_dir"])


@contextmanager
def _local_access_only() -> Iterator[None]:
    """Restrict a Ray that starts meanwhile to the loopback address, as on Windows and macOS, and to a token that is
    never written to disk. A change of network does not end such a Ray.

    The environment variables are for Ray's processes. This process has read the first one at import: it is a constant.
    """
    from ray._private import ray_constants as constants

    variables, clusters = dict(os.environ), constants.ENABLE_RAY_CLUSTER
    os.environ.update({constants.ENABLE_RAY_CLUSTERS_ENV_VAR: "0", "RAY_AUTH_TOKEN": TOKEN})
    constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = clusters
        for name in (constants.ENABLE_RAY_CLUSTERS_ENV_VAR, "RAY_AUTH_TOKEN", "RAY_AUTH_MODE"):  # Ray sets the last
            os.environ.pop(name, None)
            if name in variables:
                os.environ[name] = variables[name]


def _connect(address: str) -> None:
    import ray

    _check_address(address)
    for left in reversed(range(CONNECT_TRIES)):
        try:
            ray.init(address=address, **QUIET)
            return
        except ConnectionAbortedError as error:  # raised by the cluster itself
            if not left:
                raise _unreachable(address, error) from None
        except Exception as error:
            raise _unreachable(address, error) from None


def _unreachable(address: str, error: Exception) -> RacerError:
    hint = "" if "RAY_AUTH_MODE" in os.environ else " (if the cluster needs a token, set RAY_AUTH_MODE=token)"
    return RacerError(f"cannot connect to a Ray cluster at {address}: {summary(error)}{hint}")


def _check_address(address: str) -> None:
    """Raise RacerError if nothing listens there; Ray itself would retry for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise RacerError(f"cannot connect to a Ray cluster at {address}: {os_reason(error)}") from None


def summary(error: Exception) -> str:
    """Return an error in one line; errors of other processes contain a traceback that ends with the cause."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0] if len(lines) == 1 or not lines[0].endswith(":") else f"{lines[0]} {lines[-1].strip()}"


@contextmanager
def _discard_stderr() -> Iterator[None]:
    """Discard standard error: Ray's compiled part ignores the log level, and raises what matters."""
    sys.stderr.flush()
    before = os.dup(STDERR)
    with open(os.devnull, "wb") as null:
        os.dup2(null.fileno(), STDERR)
    try:
        yield
    finally:
        os.dup2(before, STDERR)
        os.close(before)


def _silence_ray() -> None:
    """Disable usage statistics, warnings, log output and the Ctrl-C handler of Ray."""
    for name, value in (
        ("RAY_USAGE_STATS_ENABLED", "0"),
        ("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0"),
        ("RAY_AIR_NEW_OUTPUT", "0"),
        ("RAY_BACKEND_LOG_LEVEL", "fatal"),
        ("TUNE_DISABLE_SIGINT_HANDLER", "1"),
    ):
        os.environ.setdefault(name, value)
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    warnings.filterwarnings("ignore", message="You have specified a mini-batch size")  # the SB3 model never learns
    from ray._private import worker  # sets log levels and reads the variables above

    worker.print_to_stdstream = lambda *_, **__: None  # one page per process that dies; the run reports it in one line
    for name in ("ray", "ray.rllib", "ray.tune"):
        logging.getLogger(name).setLevel(logging.ERROR)
