"""A server of this program, started for a benchmark and ended with it."""

import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from racer_env.errors import BridgeError

PATIENCE = 5.0
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
                process.wait(PATIENCE)
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
