"""Where Ray runs: a small one on this machine, or a cluster that is there already."""

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
from importlib.util import find_spec
from typing import Any

from racer_env.errors import RacerError
from racer_viewer.runtime import is_packaged

HOW_TO_GET = (
    'this needs Ray, which lives beside the rest: python run.py --with ray …, or pip install "racer-viewer[ray]"'
)
NOT_PACKAGED = "the packaged app has no Ray: get the source, and there python run.py --with ray …"
OBJECT_STORE_BYTES = 256 * 2**20
"""Of a Ray on this machine. What runners send in an iteration is a few megabytes."""
MOST_PER_CORE = 4
"""Runners of a Ray on this machine: each is a process of some 350 MB."""
TASK_PROCESSES_CPUS = 1
"""Beside those of the runners: the learner's."""
QUIET: Mapping[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
ANSWER_SECONDS = 10.0
ROOM_SECONDS, ROOM_LOOK_SECONDS = 60.0, 0.5
"""Until a cluster that has no processors free is given up, and between two looks."""
TRIES = 4
"""To connect. A cluster starts a process for every client, and one start in some forty fails for no reason."""
SECRET = secrets.token_hex(32)
"""Of all Rays that this process starts: Ray reads it once."""
STDERR = 2
"""The number of that file."""


def check_ray() -> None:
    """A clear line where Ray is not installed, before anything else happens."""
    spec = find_spec("ray")
    if spec is None or spec.origin is None:  # a folder of that name is not it
        raise RacerError(NOT_PACKAGED if is_packaged() else HOW_TO_GET)


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
    with _nothing_on_stderr():
        if address is None:
            session = _start(processes)
        else:
            _connect(address)
    if callable(on_sigterm) and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, on_sigterm)  # Ray has put its own there, which ends a run without saving it
    try:
        yield
    finally:
        ray.shutdown()
        if session is not None:
            shutil.rmtree(session, ignore_errors=True)  # logs and sockets, which Ray leaves


def check_room(processes: int) -> None:
    """Ray itself waits for processors for ever, without a word."""
    import ray

    there = int(ray.cluster_resources().get("CPU", 0))
    if there < processes:
        raise RacerError(
            f"{processes} processes need a processor each, and this Ray has {there}: ask for fewer --runners"
        )


def wait_for_room(processes: int) -> None:
    """Until so many processors are free: those of a run that was killed are so after some seconds. In a trial of a
    search, they are set aside already.
    """
    import ray
    from ray.util import get_current_placement_group

    check_room(processes)
    end = time.monotonic() + ROOM_SECONDS
    while get_current_placement_group() is None:
        free = int(ray.available_resources().get("CPU", 0))
        if free >= processes:
            return
        if time.monotonic() > end:
            raise RacerError(
                f"{processes} processes need a processor each, and others use this Ray, {free} are free: "
                "ask for fewer --runners, or try again later"
            )
        time.sleep(ROOM_LOOK_SECONDS)


def _start(processes: int) -> str:
    """A Ray on this machine, and the folder that it leaves."""
    import ray

    cores = os.cpu_count() or 1
    if processes > MOST_PER_CORE * cores:
        most = f"at most {MOST_PER_CORE * cores}, and fewer are faster"
        raise RacerError(f"{processes} runners are too many for the {cores} cores of this machine: {most}")
    try:
        with _for_this_user():
            context = ray.init(
                address="local",
                num_cpus=max(cores, processes + TASK_PROCESSES_CPUS),
                object_store_memory=OBJECT_STORE_BYTES,
                include_dashboard=False,
                **QUIET,
            )
    except Exception as error:  # it raises of all kinds
        raise RacerError(f"no Ray could be started on this machine: {gist(error)}") from None
    return str(context.address_info["session_dir"])


@contextmanager
def _for_this_user() -> Iterator[None]:
    """A Ray that starts meanwhile can be reached from this machine only, as Ray does it by itself on Windows and macOS,
    and outlives a change of its network; and only with a secret that is written nowhere.

    Variables are for its processes. What this one has read of the first of them is a constant.
    """
    from ray._private import ray_constants as constants

    variables, clusters = dict(os.environ), constants.ENABLE_RAY_CLUSTER
    os.environ.update({constants.ENABLE_RAY_CLUSTERS_ENV_VAR: "0", "RAY_AUTH_TOKEN": SECRET})
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

    _check_answers(address)
    for left in reversed(range(TRIES)):
        try:
            ray.init(address=address, **QUIET)
            return
        except ConnectionAbortedError as error:  # said by the cluster itself
            if not left:
                raise _unreachable(address, error) from None
        except Exception as error:
            raise _unreachable(address, error) from None


def _unreachable(address: str, error: Exception) -> RacerError:
    hint = "" if "RAY_AUTH_MODE" in os.environ else " (if that cluster wants a token, set RAY_AUTH_MODE=token)"
    return RacerError(f"no Ray cluster could be reached at {address}: {gist(error)}{hint}")


def _check_answers(address: str) -> None:
    """Ray itself asks for minutes where nobody is."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise RacerError(f"no Ray cluster could be reached at {address}: {error}") from None


def gist(error: Exception) -> str:
    """Errors of other processes bring pages with them; what it was is at their end."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0] if len(lines) == 1 or not lines[0].endswith(":") else f"{lines[0]} {lines[-1].strip()}"


@contextmanager
def _nothing_on_stderr() -> Iterator[None]:
    """Ray's compiled part writes there whatever its level of logging is; what matters comes as an exception."""
    sys.stderr.flush()
    before = os.dup(STDERR)
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), STDERR)
    try:
        yield
    finally:
        os.dup2(before, STDERR)
        os.close(before)


def _be_quiet() -> None:
    """No figures to Ray's makers, no pages of advice between a run's own lines, no Ctrl-C."""
    for name, value in (
        ("RAY_USAGE_STATS_ENABLED", "0"),
        ("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0"),
        ("RAY_AIR_NEW_OUTPUT", "0"),
        ("RAY_BACKEND_LOG_LEVEL", "fatal"),
        ("TUNE_DISABLE_SIGINT_HANDLER", "1"),
    ):
        os.environ.setdefault(name, value)
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    warnings.filterwarnings("ignore", message="You have specified a mini-batch size")  # for a model that learns not
    from ray._private import worker  # which sets levels of its own, and reads the above

    worker.print_to_stdstream = lambda *_, **__: None  # a page for every process that dies; a run has a line for that
    for name in ("ray", "ray.rllib", "ray.tune"):
        logging.getLogger(name).setLevel(logging.ERROR)
