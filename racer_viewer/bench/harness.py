"""What a benchmark ran on.

A process that answers over plain TCP with messages of given sizes: no bridge on this machine can be faster.

`python -m racer_viewer.bench.harness REQUEST_BYTES REPLY_BYTES` says its port and serves one client until that is gone.


A server of this program, started for a benchmark and ended with it."""

import os
import platform
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from racer_env.errors import BridgeError


def describe_machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


PATIENCE = 30.0
"""Seconds in which the client must come, or an answer."""


@contextmanager
def echo_process(request_bytes: int, reply_bytes: int) -> Iterator[socket.socket]:
    """A connection to a process that answers each so many bytes with so many."""
    command = [sys.executable, "-P", "-m", __name__, str(request_bytes), str(reply_bytes)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connection.settimeout(None)
                yield connection
        finally:
            process.kill()


def receive(connection: socket.socket, count: int) -> bool:
    """Receive so many bytes; False if the other side is gone."""
    while count:
        part = len(connection.recv(count))
        if not part:
            return False
        count -= part
    return True


def main() -> None:
    request_bytes, reply = int(sys.argv[1]), bytes(int(sys.argv[2]))
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE)
        print(server.getsockname()[1], flush=True)
        connection, _ = server.accept()
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(None)
        while receive(connection, request_bytes):
            connection.sendall(reply)


if __name__ == "__main__":
    main()


SERVER_PATIENCE = 5.0
"""Seconds that a server has to end."""


@contextmanager
def served(*arguments: str) -> Iterator[str]:
    """Where a server is that is started with these arguments, as its first line says; it runs as long as it is needed.

    It is in a session of its own, so that Ctrl-C ends the measurement first. A SIGTERM ends it too.
    """
    command = [sys.executable, "-P", "-m", "racer_viewer", *arguments]
    with (
        _terminated_properly(),
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
            yield words[2]
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(SERVER_PATIENCE)
            process.kill()


@contextmanager
def _terminated_properly() -> Iterator[None]:
    """SIGTERM ends this process as `sys.exit` would, so that what was started is ended.

    Only the main thread can see to that.
    """
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
