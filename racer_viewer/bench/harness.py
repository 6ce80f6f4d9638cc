"""Parts that benchmarks share: goals, ratios, the printed report, and processes to measure against.

`python -m racer_viewer.bench.harness REQUEST_BYTES REPLY_BYTES` is the process behind `echo_process`: it prints its
port and serves one client.
"""

import json
import os
import platform
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from types import FrameType
from typing import Any

from rich.table import Table

from racer_env.errors import BridgeError
from racer_viewer.plain_text import make_console

CONNECT_TIMEOUT = 30.0
"""Time for the client of an echo process to connect [s]."""
SERVER_EXIT_TIMEOUT = 5.0
"""Time for a server to exit after SIGTERM before it is killed [s]."""


@dataclass(frozen=True)
class Goal:
    """A measured value, the limit that it should keep, and whether it does. Its fields are part of the JSON output."""

    value: float
    goal: str
    reached: bool

    @classmethod
    def at_least(cls, value: float, limit: float) -> "Goal":
        return cls(value, f"at least {limit:g}", value >= limit)

    @classmethod
    def at_most(cls, value: float, limit: float) -> "Goal":
        return cls(value, f"at most {limit:g}", value <= limit)

    def __str__(self) -> str:
        return f"({self.goal}: {verdict(self.reached)})"


@dataclass(frozen=True)
class Summary:
    """A report as people read it: a table whose first column is text, and lines below it."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    lines: Sequence[str] = ()

    def print(self) -> None:
        console = make_console()
        table = Table(
            box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold", title=self.title, title_justify="left"
        )
        for number, column in enumerate(self.columns):
            table.add_column(column, justify="right" if number else "left", no_wrap=not number)
        for row in self.rows:
            table.add_row(*row)
        console.print(table)
        for line in self.lines:
            console.print(line, markup=False, highlight=False, soft_wrap=True)


def print_report(report: Any, summary: Summary, as_json: bool) -> None:
    """Print a report, a dataclass, as JSON or as its summary."""
    if as_json:
        print(json.dumps(asdict(report), indent=2))
    else:
        summary.print()


def verdict(reached: bool) -> str:
    return "reached" if reached else "missed"


def median_ratio(rounds: Mapping[str, Sequence[float]], name: str, baseline: str) -> float:
    """Return the median over all rounds of one subject's value divided by that of a baseline in the same round."""
    return statistics.median(a / b for a, b in zip(rounds[name], rounds[baseline], strict=True))


def describe_machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


@contextmanager
def echo_process(request_bytes: int, reply_bytes: int) -> Iterator[socket.socket]:
    """Connect to a process that answers every `request_bytes` with `reply_bytes` over plain TCP.

    Nothing that answers over TCP on this machine can be faster.
    """
    command = [sys.executable, "-P", "-m", __name__, str(request_bytes), str(reply_bytes)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            with socket.create_connection(("127.0.0.1", port), CONNECT_TIMEOUT) as connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connection.settimeout(None)
                yield connection
        finally:
            process.kill()


def receive(connection: socket.socket, count: int) -> bool:
    """Receive `count` bytes; return False if the connection was closed."""
    while count:
        part = len(connection.recv(count))
        if not part:
            return False
        count -= part
    return True


@contextmanager
def server_process(*arguments: str) -> Iterator[str]:
    """Start a server of this program and yield its address, the word with a colon in its first line.

    The server is in a session of its own, so that Ctrl-C ends the measurement first. SIGTERM ends both.
    """
    command = [sys.executable, "-P", "-m", "racer_viewer", *arguments]
    with (
        _exit_on_sigterm(),
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True, encoding="utf-8"
        ) as process,
    ):
        try:
            assert process.stdout is not None
            words = process.stdout.readline().split()
            if not words:
                log.seek(0)
                last_line = (log.read().splitlines() or [f"{arguments[0]} did not start"])[-1]
                raise BridgeError(last_line.removeprefix("racer-viewer: "))
            yield next(word for word in words if ":" in word)
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(SERVER_EXIT_TIMEOUT)
            process.kill()


@contextmanager
def _exit_on_sigterm() -> Iterator[None]:
    """Make SIGTERM end this process as `sys.exit` would, so that child processes are ended. Main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def main() -> None:
    """Serve one client of `echo_process`."""
    request_bytes, reply = int(sys.argv[1]), bytes(int(sys.argv[2]))
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(CONNECT_TIMEOUT)
        print(server.getsockname()[1], flush=True)
        connection, _ = server.accept()
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(None)
        while receive(connection, request_bytes):
            connection.sendall(reply)


if __name__ == "__main__":
    main()
