"""Control of a learner by windows: commands and replies over a local socket, and a pipe from the starting window.

Both sides prove that they know the secret in learner.json, which only the user can read; it is never sent.
"""

from __future__ import annotations

import json
import os
import queue
import secrets
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener, answer_challenge, deliver_challenge
from pathlib import Path
from typing import Any

from racer_viewer.training.car_feed import CAR_FEED_FILE
from racer_viewer.training.run_lock import LearnerAddress, RunLock, read_address

WATCH, DETACH, PAUSE, RESUME, SAVE = "watch", "detach", "pause", "resume", "save"
PACE, WEIGHTS, CIRCUIT, STOP, DISCARD, LEFT = "pace", "weights", "circuit", "stop", "discard", "left"
"""Values of a message's `do`. WATCH registers a connection as a viewer; PACE has `times`; WEIGHTS has `weights`, and
`terms` if they change too. LEFT is queued by the server itself when the last viewer has left and the run continues."""

HOST = "127.0.0.1"
HANDSHAKE_TIMEOUT = 5.0
"""Time for a whole handshake [s]; a suspended learner is tried again later."""
MAX_HANDSHAKES = 8
"""Maximum number of handshakes in progress; a further one replaces the oldest."""
MAX_CONNECTIONS = 64
"""Maximum number of connections after their handshake. Each has a thread."""
ACCEPT_RETRY_INTERVAL = 0.1
"""Time until the next `accept` after one that failed [s], as without free file descriptors."""
MAX_MESSAGE_SIZE = 2**18
"""Maximum size of a message [bytes]; a circuit of 1,000 control points has up to 60 KiB."""
CONNECTION_ERRORS = (OSError, EOFError, AuthenticationError, AssertionError, ValueError)
"""Errors of a connection or handshake; multiprocessing uses assertions to check the other side's messages."""

ABANDONED_POLL_INTERVAL = 1.0
"""Time between two checks for viewers [s]."""
MAX_ABANDONED_POLLS = 120
"""Checks after which an abandoned learner that does not end is killed. A suspended machine does not check."""
CLOSE_TIMEOUT = 1.0
"""Time to connect to our own listener, which ends its wait for connections [s]."""
MAX_WAITING_CONNECTIONS = 64
"""Backlog of the socket; viewers connect to a suspended learner again and again."""
CLIENT_POLL_INTERVAL = 0.03
"""Time that a client waits for a command, or for the learner to listen [s]."""

STANDARD_INPUT = 0
_CONTINUE = b"\n"

Message = dict[str, Any]


def connect(address: LearnerAddress, timeout: float = HANDSHAKE_TIMEOUT) -> Connection:
    """Connect to a learner and complete the handshake. Raises one of CONNECTION_ERRORS."""
    with socket.create_connection((HOST, address.port), timeout) as stream:
        stream.setblocking(True)
        connection = Connection(stream.detach())
    try:
        with _time_limit(connection, timeout):
            answer_challenge(connection, bytes.fromhex(address.key))
            deliver_challenge(connection, bytes.fromhex(address.key))
    except BaseException:
        connection.close()
        raise
    return connection


def accept_handshake(connection: Connection, key: str, timeout: float = HANDSHAKE_TIMEOUT) -> None:
    """Complete the learner's side of the handshake. Raises one of CONNECTION_ERRORS."""
    with _time_limit(connection, timeout):
        deliver_challenge(connection, bytes.fromhex(key))
        answer_challenge(connection, bytes.fromhex(key))


@contextmanager
def _time_limit(connection: Connection, seconds: float) -> Iterator[None]:
    """Shut a connection down after this time, however slowly its bytes arrive; reads then raise EOFError or OSError."""
    timer = threading.Timer(seconds, _shut_down, (connection,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def _shut_down(connection: Connection) -> None:
    """End all reads and writes of an open connection, also those in other threads."""
    stream = socket.socket(fileno=connection.fileno())
    try:
        with suppress(OSError):
            stream.shutdown(socket.SHUT_RDWR)
    finally:
        stream.detach()


def send(connection: Connection, message: Message) -> None:
    connection.send_bytes(json.dumps(message).encode())


def receive(connection: Connection) -> Message:
    """Wait for the next message. Raises ValueError if it is not a JSON object."""
    try:
        content = json.loads(connection.recv_bytes(MAX_MESSAGE_SIZE))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(content, dict):
        raise ValueError("not an object")
    return content


class ParentWatch:
    """Learner's end of the pipe from the window that started it.

    The system closes the pipe when the window dies, even before the window has connected to the control socket. A byte
    before that means: continue without the window. There is no timeout, so a suspended window keeps its learner.

    handle: file descriptor to read from.
    """

    def __init__(self, handle: int = STANDARD_INPUT) -> None:
        self._handle, self._lock = handle, threading.Lock()
        self._received: bytes | None = None
        """First byte of the pipe, empty if it was closed before; None while the window holds it."""

    @property
    def connected(self) -> bool:
        """True while the window lives and has not released the learner."""
        return self._poll() is None

    @property
    def orphaned(self) -> bool:
        """True if the window died without releasing the learner."""
        return self._poll() == b""

    def _poll(self) -> bytes | None:
        with self._lock:
            if self._received is None:
                try:
                    self._received = os.read(self._handle, 1) if _is_readable(self._handle) else None
                except OSError:
                    self._received = b""
            return self._received


def release_learner(learner: subprocess.Popen[bytes], keep_running: bool) -> None:
    """Close the window's end of the pipe to its learner. Further calls have no effect."""
    if learner.stdin is not None and not learner.stdin.closed:
        with suppress(OSError, ValueError):  # the learner has ended, or another thread closed the pipe
            if keep_running:
                learner.stdin.write(_CONTINUE)
            learner.stdin.close()


def _is_readable(handle: int) -> bool:
    """Return True if a read would return at once. Raises OSError if the other end is closed."""
    if sys.platform == "win32":
        import _winapi
        import msvcrt

        return bool(_winapi.PeekNamedPipe(msvcrt.get_osfhandle(handle), 0)[0])
    return bool(select.select([handle], [], [], 0)[0])


class ControlServer:
    """Learner's side: locks the run folder, accepts viewers and queues their commands.

    parent: watch on the window that started the learner. The learner is `abandoned` when that window and all viewers
        are gone; without a parent, as at a terminal, it never is.
    queue: commands of the viewers, for the learner to execute.
    pace: speed set by viewers, in multiples of real time; None is full speed.
    handshake_timeout: time for the handshake of a connection [s].
    """

    def __init__(
        self, folder: Path, parent: ParentWatch | None = None, handshake_timeout: float = HANDSHAKE_TIMEOUT
    ) -> None:
        self._run_lock, self._parent = RunLock(folder), parent
        self._handshake_timeout = handshake_timeout
        with suppress(OSError):
            (folder / CAR_FEED_FILE).unlink(missing_ok=True)  # left by a killed learner
        self._listener = Listener((HOST, 0), backlog=MAX_WAITING_CONNECTIONS)
        self.address = LearnerAddress(os.getpid(), int(self._listener.address[1]), secrets.token_hex(32))
        self.queue: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self.pace: float | None = None
        self._viewers: set[Connection] = set()
        self._handshakes: dict[Connection, None] = {}
        """Connections in their handshake, the oldest first."""
        self._connections: set[Connection] = set()
        """Connections after their handshake."""
        self._was_watched = self._detached = False
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._run_lock.publish(self.address)
        for work in (self._accept, self._kill_if_abandoned):
            threading.Thread(target=work, name=f"racer-control{work.__name__}", daemon=True).start()

    @property
    def watched(self) -> bool:
        """True while a viewer is connected."""
        return bool(self._viewers)

    @property
    def abandoned(self) -> bool:
        """True if the parent and all viewers are gone, and none of them asked the run to continue."""
        if self._parent is None or self._parent.connected or self._viewers:
            return False
        return not self._detached if self._was_watched else self._parent.orphaned

    def report_problem(self, text: str) -> None:
        """Send a problem to all viewers."""
        self._send_all({"problem": text})

    def note_pace(self, times: float | None) -> None:
        """Send the pace to all viewers, now and when they connect."""
        self.pace = times
        self._send_all({"pace": times})

    def close(self) -> None:
        if self._closed.is_set():
            return
        self._closed.set()
        with suppress(OSError):  # the listener waits until the next connection
            socket.create_connection((HOST, self.address.port), CLOSE_TIMEOUT).close()
        self._listener.close()
        self._run_lock.release()

    def _send_all(self, message: Message) -> None:
        with self._lock:
            for viewer in self._viewers:
                with suppress(*CONNECTION_ERRORS):
                    send(viewer, message)

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except OSError:
                if self._closed.wait(ACCEPT_RETRY_INTERVAL):
                    return
                continue
            if self._closed.is_set():
                connection.close()
                return
            with self._lock:
                if len(self._handshakes) >= MAX_HANDSHAKES:
                    oldest = next(iter(self._handshakes))
                    del self._handshakes[oldest]
                    _shut_down(oldest)
                self._handshakes[connection] = None
            threading.Thread(target=self._serve, args=(connection,), name="racer-control-viewer", daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        """Serve one connection until it closes."""
        try:
            accept_handshake(connection, self.address.key, self._handshake_timeout)
            self._admit(connection)
            while True:
                self._handle(connection, receive(connection))
        except CONNECTION_ERRORS:
            self._remove_viewer(connection)
        finally:
            with self._lock:
                self._handshakes.pop(connection, None)
                self._connections.discard(connection)
                connection.close()

    def _admit(self, connection: Connection) -> None:
        """Count a connection after its handshake; raise ConnectionError if there are too many."""
        with self._lock:
            self._handshakes.pop(connection, None)
            if len(self._connections) >= MAX_CONNECTIONS:
                raise ConnectionError("too many connections")
            self._connections.add(connection)

    def _handle(self, connection: Connection, message: Message) -> None:
        if message.get("do") == WATCH:
            with self._lock:
                self._viewers.add(connection)
                self._was_watched, self._detached = True, False
                send(connection, {"pace": self.pace})
        elif message.get("do") == DETACH:
            self._detached = True
        else:
            self.queue.put(message)

    def _remove_viewer(self, connection: Connection) -> None:
        with self._lock:
            if connection not in self._viewers:
                return
            self._viewers.remove(connection)
        if not self._viewers and not self.abandoned and not (self._parent and self._parent.connected):
            self.queue.put({"do": LEFT})

    def _kill_if_abandoned(self) -> None:
        """Kill this process if it does not end by itself after it was abandoned."""
        polls = 0
        while not self._closed.wait(ABANDONED_POLL_INTERVAL):
            polls = polls + 1 if self.abandoned else 0
            if polls > MAX_ABANDONED_POLLS:
                os._exit(3)


class ControlClient:
    """Window's side: sends commands to the learner of a folder, and reconnects if the connection is lost.

    Only `send_command`, `idle` and `connected` may be used from other threads.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._connection: Connection | None = None
        self._commands: queue.SimpleQueue[Message] = queue.SimpleQueue()

    @property
    def connected(self) -> bool:
        return self._connection is not None

    @property
    def idle(self) -> bool:
        """True if no command waits to be sent."""
        return self._commands.empty()

    def send_command(self, command: str, **more: object) -> None:
        """Queue a command; return at once."""
        self._commands.put({"do": command, **more})

    def connect(self) -> None:
        """Connect if the learner listens. One that does not answer is starting, ending or suspended."""
        address = None if self._connection is not None else read_address(self._folder)
        if address is None:
            return
        try:
            connection = connect(address)
            send(connection, {"do": WATCH})
        except CONNECTION_ERRORS:
            return
        self._connection = connection

    def flush(self, wait: bool) -> None:
        """Send the queued commands. wait: first wait up to CLIENT_POLL_INTERVAL for a command."""
        if self._connection is None:
            time.sleep(CLIENT_POLL_INTERVAL)
            return
        try:
            if wait:
                send(self._connection, self._commands.get(timeout=CLIENT_POLL_INTERVAL))
            while not self._commands.empty():
                send(self._connection, self._commands.get())
        except queue.Empty:
            return
        except CONNECTION_ERRORS:
            self.close()

    def messages(self) -> Iterator[Message]:
        """Yield the messages received from the learner."""
        try:
            while self._connection is not None and self._connection.poll():
                yield receive(self._connection)
        except CONNECTION_ERRORS:
            self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
