"""Reading of many mutated inputs in a process with limits of time and memory."""

import multiprocessing
import random
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from racer_env.errors import RacerError
from tests.fuzz.mutations import Mutate, mutate_any

MAX_SECONDS, MAX_MIB = 2.0, 300.0
"""Limits of processor time [s] and added memory [MiB] for one input."""
MAX_MESSAGE = 5000
"""Maximum length of an error message [characters], which is one line."""
HANG_SECONDS = 60
"""Time after which an input counts as one that never ends [s]."""
ADDRESS_SPACE = 2 * 2**30
"""Memory that the process may ask for above what it has [bytes], so that a large request is refused at once."""


@dataclass(frozen=True)
class Format:
    """A kind of file or message.

    make: returns valid inputs; takes an empty folder to work in.
    mutate: changes a valid input.
    read: reads an input; takes an empty folder to work in.
    allowed: exceptions that the reader documents, beside the project's own.
    share: number of inputs, as a part of that of other formats.
    """

    name: str
    make: Callable[[Path], Sequence[bytes]]
    mutate: Mutate
    read: Callable[[bytes, Path], Any]
    allowed: tuple[type[Exception], ...] = ()
    share: float = 1.0


@dataclass(frozen=True)
class Failure:
    """An input that was neither read nor refused as promised."""

    number: int
    problem: str


def mutation(kind: Format, seeds: Sequence[bytes], seed: int, number: int) -> bytes:
    """Return one mutated input; the same arguments always give the same one."""
    return mutate_any(seeds, kind.mutate, random.Random(f"{kind.name}/{seed}/{number}"))


def find_failure(kind: Format, seeds: Sequence[bytes], seed: int, numbers: range, folder: Path) -> Failure | None:
    """Read mutated inputs until one fails."""
    if sys.platform != "linux":
        return next((failure for number in numbers if (failure := _try(kind, seeds, seed, number, folder))), None)
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    process = fork.Process(target=_run, args=(kind, seeds, seed, numbers, folder, sender))
    process.start()
    sender.close()
    number, failure = numbers.start, None
    try:
        while True:
            number, failure = receiver.recv()
            if failure is not None:
                break
    except EOFError:
        process.join()
        if process.exitcode:
            failure = Failure(number, f"the process ended with code {process.exitcode}: killed, crashed or never ended")
    process.join()
    return failure


def _run(kind: Format, seeds: Sequence[bytes], seed: int, numbers: range, folder: Path, sender: Connection) -> None:
    import resource

    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + ADDRESS_SPACE, resource.RLIM_INFINITY))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    for number in numbers:
        sender.send((number, None))
        signal.alarm(HANG_SECONDS)
        failure = _try(kind, seeds, seed, number, folder)
        used = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**10
        if failure is None and used > MAX_MIB:
            failure = Failure(number, f"took {used:.0f} MiB")
        if failure is not None:
            sender.send((number, failure))
            return
    signal.alarm(0)


def _try(kind: Format, seeds: Sequence[bytes], seed: int, number: int, folder: Path) -> Failure | None:
    data = mutation(kind, seeds, seed, number)
    place = folder / str(number)
    place.mkdir(exist_ok=True)
    started = time.process_time()
    try:
        with np.errstate(all="ignore"):
            kind.read(data, place)
    except (RacerError, *kind.allowed) as error:
        if len(str(error)) > MAX_MESSAGE or "\n" in str(error):
            return Failure(number, f"the message has {len(str(error))} letters, or several lines: {str(error)[:500]!r}")
    except BaseException:
        return Failure(number, traceback.format_exc(limit=-6))
    seconds = time.process_time() - started
    for path in place.iterdir():
        path.unlink()
    place.rmdir()
    return Failure(number, f"took {seconds:.1f} s") if seconds > MAX_SECONDS else None
