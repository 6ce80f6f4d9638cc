"""A process to talk to, line by line, that nobody has to wait for for ever and that is gone when it is done with.

Each pipe has a thread of its own: that way a time-out works on every system, and neither a helper that reads nothing
nor one that fills its stderr can block the other side.
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

from racer_env.bridge.validation import short
from racer_env.errors import BridgeError, ContractError

LARGEST_REPLY = 64 * 1024 * 1024
"""Bytes of a line."""
MOST_UNREAD = 2
"""Lines: each request gets one, so that more are a flood."""
PIPE_BUFFER = 64 * 1024
"""Bytes."""
END_PATIENCE, KILL_PATIENCE = 1.0, 10.0
"""Seconds from asking a process to end to killing it, and from there to giving it up."""
INTERRUPT_INTERVAL = 0.2
"""Seconds between looks for Ctrl-C, where the system does not wake a thread that waits, and for the process."""
LAST_REPLY_PATIENCE = 1.0
"""Seconds from the end of a process until what it wrote must have been read, though others keep its pipes open."""
END_INTERVAL = 0.25
"""Seconds between looks at whether a pipe that others keep open is still wanted."""
LAST_LINES, LONGEST_LINE = 20, 2000
"""Of stderr, kept to be told; the length in bytes."""

Replies = SimpleQueue[bytes | Exception]
Requests = SimpleQueue[bytes | None]


class Helper:
    """A child process with its pipes. When it is no longer referred to, or this process ends, it is ended too."""

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
        self._stderr: deque[str] = deque(maxlen=LAST_LINES)
        over = threading.Event()
        self._end = weakref.finalize(self, _end, process, self._requests, over, os.getpid())
        self._threads = (
            threading.Thread(target=_write, name="helper", args=(stdin, self._requests), daemon=True),
            threading.Thread(target=_read, name="helper", args=(stdout, self._replies, over), daemon=True),
            threading.Thread(target=_remember, name="helper", args=(stderr, self._stderr, over), daemon=True),
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
    def last_lines(self) -> tuple[str, ...]:
        """Of its stderr."""
        return tuple(self._stderr)

    def exchange(self, request: bytes, timeout: float) -> bytes:
        """Send a line and return the line that comes back.

        timeout: seconds until a TimeoutError. An EOFError if the process ended or closed its stdout, a ContractError if
        it writes lines that nobody asked for, or one that does not end.
        """
        if not self._replies.empty():
            line = self._next(0.0)
            raise ContractError(f"a line expected for each request, got one more: {line[:80]!r}")
        self._requests.put(request + b"\n")
        return self._next(timeout)

    def wait(self, timeout: float) -> bool:
        """Close its stdin and wait for its end; whether it came within so many seconds."""
        self._requests.put(None)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)
        return self._process.poll() is not None

    def end(self) -> None:
        """Whatever it does, it is gone afterwards, with the processes that it started."""
        self._end()
        deadline = time.monotonic() + END_PATIENCE
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    @property
    def has_flooded(self) -> bool:
        """Whether lines lie there that nobody asked for. At its end there is nothing but word of that."""
        return self._replies.qsize() > 1

    def obituary(self) -> str:
        """How it ended, after `end`, and what it said last."""
        code = self._process.returncode
        how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        return how + (self.last_words() or ", without a word")

    def last_words(self) -> str:
        """The last lines of its stderr, to end a message with; nothing if there are none."""
        words = " | ".join(line for line in self._stderr if line)
        return f"; its last words: {words}" if words else ""

    def _next(self, timeout: float) -> bytes:
        now = time.monotonic()
        end, gone_at = now + timeout, math.inf
        while True:
            try:
                reply = self._replies.get(timeout=max(0.0, min(end - now, INTERRUPT_INTERVAL)))
            except Empty:
                pass
            else:
                if isinstance(reply, Exception):
                    raise reply
                return reply
            now = time.monotonic()
            if self._process.poll() is not None:
                gone_at = min(gone_at, now)
            if now >= min(end, gone_at + LAST_REPLY_PATIENCE):
                raise TimeoutError if gone_at == math.inf else EOFError


def _start(
    command: Sequence[str], cwd: str | Path | None, environment: Mapping[str, str] | None
) -> subprocess.Popen[bytes]:
    """In a session of its own: Ctrl-C is for us, and what it starts can be ended together with it."""
    if isinstance(command, str) or not command:
        raise BridgeError(f"a command is a list of words, as ['python', 'helper.py'], not {command!r}")
    try:
        return subprocess.Popen(
            list(command),
            bufsize=PIPE_BUFFER,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=None if environment is None else dict(environment),
            start_new_session=True,
            creationflags=_detached_on_windows(),
        )
    except (OSError, ValueError, TypeError) as error:
        raise BridgeError(f"cannot start {command[0]}: {error}") from None


def _write(stdin: IO[bytes], requests: Requests) -> None:
    with suppress(OSError), stdin:
        while (request := requests.get()) is not None:
            stdin.write(request)
            stdin.flush()


def _read(stdout: IO[bytes], replies: Replies, over: threading.Event) -> None:
    with stdout:
        for line in _lines(stdout, LARGEST_REPLY, over):
            if not line.endswith(b"\n"):
                if len(line) < LARGEST_REPLY:  # it ended in the midst of it
                    break
                replies.put(ContractError(f"a line of at most {LARGEST_REPLY} bytes expected, got more without an end"))
                return
            replies.put(line)
            if replies.qsize() >= MOST_UNREAD:
                replies.put(ContractError("a line expected for each request, got a flood of them"))
                return
        replies.put(EOFError())


def _remember(stderr: IO[bytes], lines: deque[str], over: threading.Event) -> None:
    with stderr:
        for line in _lines(stderr, LONGEST_LINE, over):
            lines.append(line.decode(errors="backslashreplace").rstrip())


def _lines(pipe: IO[bytes], longest: int, over: threading.Event) -> Iterator[bytes]:
    """What comes, up to each line end; a longer line, and what is left at the end, comes without one."""
    rest = bytearray()
    for piece in _pieces(pipe.fileno(), over):
        searched = len(rest)
        rest += piece
        while (end := rest.find(b"\n", searched) + 1) or len(rest) >= longest:
            end = min(end or longest, longest)
            yield bytes(rest[:end])
            del rest[:end]
            searched = 0
    if rest:
        yield bytes(rest)


def _pieces(pipe: int, over: threading.Event) -> Iterator[bytes]:
    """What comes, as it comes, to the end; or until it is over and nothing comes from whoever keeps the pipe open."""
    ready = None
    if sys.platform != "win32":  # which cannot wait for a pipe with a limit
        ready = select.poll()
        ready.register(pipe, select.POLLIN)
    with suppress(OSError):
        while True:
            if ready is None or ready.poll(END_INTERVAL * 1000.0):
                if not (piece := os.read(pipe, PIPE_BUFFER)):
                    return
                yield piece
            elif over.is_set():
                return


def _end(process: subprocess.Popen[bytes], requests: Requests, over: threading.Event, owner: int) -> None:
    """Ask, then kill; only in the process that started it, and not in a copy of that."""
    if os.getpid() != owner:
        return
    requests.put(None)
    try:
        if process.poll() is None:
            _terminate(process)
            process.wait(END_PATIENCE)
    except subprocess.TimeoutExpired:
        pass
    finally:
        _kill(process)
        with suppress(subprocess.TimeoutExpired):
            process.wait(KILL_PATIENCE)
        over.set()


def _detached_on_windows() -> int:
    if sys.platform == "win32":
        return subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
    return 0


def _terminate(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        return  # there is no asking: it sees the end of its input, and is killed
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGTERM)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """The whole group: the process may be gone already and its children not."""
    if sys.platform == "win32":
        if process.poll() is None:
            with suppress(OSError):
                subprocess.run(["taskkill", "/F", "/T", "/PID", str(process.pid)], capture_output=True, check=False)
            process.kill()
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
