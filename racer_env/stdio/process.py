"""A helper process that exchanges lines over its pipes, with timeouts, and that always ends with its owner.

Each pipe has a thread of its own, so timeouts work on every system, and neither a helper that reads nothing nor one
that fills its stderr can block the owner.
"""

from __future__ import annotations

import math
import os
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, cast

from racer_env.errors import BridgeError, ContractError, os_reason, short

MAX_REPLY_SIZE = 64 * 1024 * 1024
"""Maximum length of a reply [bytes]."""
MAX_UNREAD_LINES = 2
"""Maximum number of unread lines; each request gets one, so more are an error."""
PIPE_BUFFER_SIZE = 64 * 1024
"""Amount of data read from a pipe at once [bytes]."""
TERMINATE_TIMEOUT, KILL_TIMEOUT = 1.0, 10.0
"""Time between asking a process to end and killing it, and maximum wait after that [s]."""
POLL_INTERVAL = 0.2
"""Time between checks for Ctrl-C and for the end of the process while waiting for a reply [s]."""
LAST_REPLY_TIMEOUT = 1.0
"""Time for reading the last output of a process after its end, if other processes keep its pipes open [s]."""
PIPE_POLL_INTERVAL = 0.25
"""Time between checks whether a pipe that other processes keep open is still needed [s]."""
MAX_STDERR_LINES, MAX_STDERR_LINE_SIZE = 20, 2000
"""Number of stderr lines kept for error messages, and their maximum length [bytes]."""

Replies = SimpleQueue[bytes | Exception]
Requests = SimpleQueue[bytes | None]


class HelperProcess:
    """Child process with its pipes. It is ended when this object is garbage-collected or this process exits."""

    def __init__(
        self,
        command: Sequence[str],
        cwd: str | Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._process = process = _start(command, cwd, environment)
        self.name = short(" ".join([Path(command[0]).name, *command[1:]]))
        stdin, stdout, stderr = cast("tuple[IO[bytes], ...]", (process.stdin, process.stdout, process.stderr))
        self._requests: Requests = SimpleQueue()
        self._replies: Replies = SimpleQueue()
        self._stderr: deque[str] = deque(maxlen=MAX_STDERR_LINES)
        ended = threading.Event()
        self._end = weakref.finalize(self, _end, process, self._requests, ended, os.getpid())
        self._threads = (
            threading.Thread(target=_write_requests, name="helper", args=(stdin, self._requests), daemon=True),
            threading.Thread(target=_read_replies, name="helper", args=(stdout, self._replies, ended), daemon=True),
            threading.Thread(target=_read_stderr, name="helper", args=(stderr, self._stderr, ended), daemon=True),
        )
        for thread in self._threads:
            thread.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_ended(self) -> bool:
        return not self._end.alive

    @property
    def has_reply(self) -> bool:
        """True if a line, or the end of the output, is ready to be read."""
        return not self._replies.empty()

    @property
    def has_extra_lines(self) -> bool:
        """True after the end if there are lines that were not requested; the end itself is one entry."""
        return self._replies.qsize() > 1

    @property
    def last_lines(self) -> tuple[str, ...]:
        """Last lines of its stderr."""
        return tuple(self._stderr)

    def exchange(self, request: bytes, timeout: float) -> bytes:
        """Send a line and return the reply.

        Raise TimeoutError if no reply arrives in time, EOFError if the process ended or closed its stdout, and
        ContractError if it sends lines that were not requested, or a line that is too long.

        timeout: time limit [s].
        """
        if self.has_reply:
            line = self._next_reply(0.0)
            raise ContractError(f"one line expected for each request, got one more: {line[:80]!r}")
        self._requests.put(request + b"\n")
        return self._next_reply(timeout)

    def wait(self, timeout: float) -> bool:
        """Close its stdin and wait for its end; return whether it ended within the timeout [s]."""
        self._requests.put(None)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)
        return self._process.poll() is not None

    def end(self) -> None:
        """End the process and the processes that it started."""
        self._end()
        deadline = time.monotonic() + TERMINATE_TIMEOUT
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def exit_summary(self) -> str:
        """Return the exit status, after `end`, and the last lines of stderr."""
        code = self._process.returncode
        status = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        return status + (self.stderr_summary() or ", nothing on stderr")

    def stderr_summary(self) -> str:
        """Return the last lines of stderr as the end of an error message; empty if there are none."""
        lines = " | ".join(line for line in self._stderr if line)
        return f"; last lines on stderr: {lines}" if lines else ""

    def _next_reply(self, timeout: float) -> bytes:
        now = time.monotonic()
        end, gone_at = now + timeout, math.inf
        while True:
            try:
                reply = self._replies.get(timeout=max(0.0, min(end - now, POLL_INTERVAL)))
            except Empty:
                pass
            else:
                if isinstance(reply, Exception):
                    raise reply
                return reply
            now = time.monotonic()
            if self._process.poll() is not None:
                gone_at = min(gone_at, now)
            if now >= min(end, gone_at + LAST_REPLY_TIMEOUT):
                raise TimeoutError if gone_at == math.inf else EOFError


def _start(
    command: Sequence[str], cwd: str | Path | None, environment: Mapping[str, str] | None
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own: Ctrl-C does not reach it, and its children can be ended with it."""
    if isinstance(command, str) or not command:
        raise BridgeError(f"a command is a list, such as ['python', 'helper.py'], not {command!r}")
    try:
        return subprocess.Popen(
            list(command),
            bufsize=PIPE_BUFFER_SIZE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=None if environment is None else dict(environment),
            start_new_session=True,
            creationflags=_detached_on_windows(),
        )
    except (OSError, ValueError, TypeError) as error:
        raise BridgeError(f"cannot start {command[0]}: {os_reason(error)}") from None


def _write_requests(stdin: IO[bytes], requests: Requests) -> None:
    with suppress(OSError), stdin:
        while (request := requests.get()) is not None:
            stdin.write(request)
            stdin.flush()


def _read_replies(stdout: IO[bytes], replies: Replies, ended: threading.Event) -> None:
    with stdout:
        for line in _lines(stdout, MAX_REPLY_SIZE, ended):
            if not line.endswith(b"\n"):
                if len(line) < MAX_REPLY_SIZE:  # the process ended within the line
                    break
                replies.put(ContractError(f"a line of at most {MAX_REPLY_SIZE} bytes expected, got a longer one"))
                return
            replies.put(line)
            if replies.qsize() >= MAX_UNREAD_LINES:
                replies.put(ContractError("one line expected for each request, got more"))
                return
        replies.put(EOFError())


def _read_stderr(stderr: IO[bytes], lines: deque[str], ended: threading.Event) -> None:
    with stderr:
        for line in _lines(stderr, MAX_STDERR_LINE_SIZE, ended):
            lines.append(line.decode(errors="backslashreplace").rstrip())


def _lines(pipe: IO[bytes], max_size: int, ended: threading.Event) -> Iterator[bytes]:
    """Yield lines with their line ends; lines that are too long, and the last one, may come without."""
    rest = bytearray()
    for chunk in _chunks(pipe.fileno(), ended):
        searched = len(rest)
        rest += chunk
        while (end := rest.find(b"\n", searched) + 1) or len(rest) >= max_size:
            end = min(end or max_size, max_size)
            yield bytes(rest[:end])
            del rest[:end]
            searched = 0
    if rest:
        yield bytes(rest)


def _chunks(pipe: int, ended: threading.Event) -> Iterator[bytes]:
    """Yield data until the end of the pipe, or until `ended` is set and another process keeps the pipe open."""
    ready = None
    if sys.platform != "win32":  # Windows cannot wait for a pipe with a timeout
        ready = select.poll()
        ready.register(pipe, select.POLLIN)
    with suppress(OSError):
        while True:
            if ready is None or ready.poll(PIPE_POLL_INTERVAL * 1000.0):
                if not (chunk := os.read(pipe, PIPE_BUFFER_SIZE)):
                    return
                yield chunk
            elif ended.is_set():
                return


def _end(process: subprocess.Popen[bytes], requests: Requests, ended: threading.Event, owner: int) -> None:
    """Terminate, then kill; does nothing in a fork of the owner."""
    if os.getpid() != owner:
        return
    requests.put(None)
    try:
        if process.poll() is None:
            _terminate(process)
            process.wait(TERMINATE_TIMEOUT)
    except subprocess.TimeoutExpired:
        pass
    finally:
        _kill(process)
        with suppress(subprocess.TimeoutExpired):
            process.wait(KILL_TIMEOUT)
        ended.set()


def _detached_on_windows() -> int:
    if sys.platform == "win32":
        return subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
    return 0


def _terminate(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        return  # no such signal: the process sees the end of its input and is killed
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGTERM)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the whole process group; children may still run after the process has ended."""
    if sys.platform == "win32":
        if process.poll() is None:
            with suppress(OSError):
                subprocess.run(["taskkill", "/F", "/T", "/PID", str(process.pid)], capture_output=True, check=False)
            process.kill()
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
