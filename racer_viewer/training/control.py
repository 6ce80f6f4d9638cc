"""How a learner knows that the window which started it still lives, even before that has called it.

The window holds the other end of the learner's standard input. The system lets go of it when the window dies, however
that happens; a byte says before that the learner shall go on by itself. There is no clock in it: a window that sleeps
holds on.


What viewers ask of a learner, over a socket that only this machine can reach.

The line from a window to a learner: orders go out, news come in."""

from __future__ import annotations

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
from contextlib import suppress
from multiprocessing.connection import Connection, Listener
from pathlib import Path

from racer_viewer.training.run_lock import (
    CONNECTION_ERRORS,
    HOST,
    Address,
    Message,
    RunLock,
    call,
    read_address,
    receive,
    send,
    welcome,
)

STANDARD_INPUT = 0
_GO_ON = b"\n"


class ParentWatch:
    """The learner's end. handle: of a pipe to read from."""

    def __init__(self, handle: int = STANDARD_INPUT) -> None:
        self._handle, self._lock = handle, threading.Lock()
        self._end: bytes | None = None
        """What came first: a byte, or none at all if it was cut; None while it is held."""

    @property
    def held(self) -> bool:
        return self._look() is None

    @property
    def cut(self) -> bool:
        """Whether whoever held it is gone without a word."""
        return self._look() == b""

    def _look(self) -> bytes | None:
        with self._lock:
            if self._end is None:
                try:
                    self._end = os.read(self._handle, 1) if _has_news(self._handle) else None
                except OSError:
                    self._end = b""
            return self._end


def release_learner(learner: subprocess.Popen[bytes], to_go_on: bool) -> None:
    """The window's end; once."""
    if learner.stdin is not None and not learner.stdin.closed:
        with suppress(OSError, ValueError):  # it has ended, or another thread was faster
            if to_go_on:
                learner.stdin.write(_GO_ON)
            learner.stdin.close()


def _has_news(handle: int) -> bool:
    """Whether a read would return at once. OSError if nobody holds the other end."""
    if sys.platform == "win32":
        import _winapi
        import msvcrt

        return bool(_winapi.PeekNamedPipe(msvcrt.get_osfhandle(handle), 0)[0])
    return bool(select.select([handle], [], [], 0)[0])


WATCH, DETACH, PAUSE, RESUME, SAVE = "watch", "detach", "pause", "resume", "save"
PACE, WEIGHTS, STOP, DISCARD, LEFT = "pace", "weights", "stop", "discard", "left"
"""What a message's `do` may be. The first makes a viewer of a connection; pace has `times`, weights has `weights`; the
last is from nobody: the last viewer has left, and the run goes on."""

LOOK_SECONDS = 1.0
ENDING_LOOKS = 120
"""How often it is looked whether a learner without a viewer has saved and ended; then it is cut off, since nobody else
could do it. Looks are counted, not time: a machine that sleeps does not look."""
KNOCK_SECONDS = 1.0
MOST_CALLS = 64
"""That wait to be answered: viewers call a learner that sleeps again and again."""


class ControlServer:
    """Claims a folder, listens for viewers and queues what they ask for. `abandoned` says when nobody is left.

    leash: of a learner that a window has started, which ends when that window and all viewers are gone; without it,
    the learner goes on by itself, as one at a terminal does.
    pace: times real time that viewers have set; None is as fast as it can.
    """

    def __init__(self, folder: Path, leash: ParentWatch | None = None) -> None:
        self._claim, self._leash = RunLock(folder), leash
        self._listener = Listener((HOST, 0), backlog=MOST_CALLS)
        self.address = Address(os.getpid(), int(self._listener.address[1]), secrets.token_hex(32))
        self.queue: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self.pace: float | None = None
        self._viewers: set[Connection] = set()
        self._was_watched = self._detached = False
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._claim.publish(self.address)
        for work in (self._accept, self._cut_off):
            threading.Thread(target=work, name=f"racer-orders{work.__name__}", daemon=True).start()

    @property
    def watched(self) -> bool:
        return bool(self._viewers)

    @property
    def abandoned(self) -> bool:
        """Whether nobody looks, and nobody said to go on without."""
        if self._leash is None or self._leash.held or self._viewers:
            return False
        return not self._detached if self._was_watched else self._leash.cut

    def report_problem(self, text: str) -> None:
        """A problem, to every viewer."""
        self._send_all({"problem": text})

    def note_pace(self, times: float | None) -> None:
        """Let every viewer know, those who come later too."""
        self.pace = times
        self._send_all({"pace": times})

    def close(self) -> None:
        if self._closed.is_set():
            return
        self._closed.set()
        with suppress(OSError):  # a wait for connections lasts until the next one
            socket.create_connection((HOST, self.address.port), KNOCK_SECONDS).close()
        self._listener.close()
        self._claim.release()

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
                return
            if self._closed.is_set():
                connection.close()
                return
            threading.Thread(target=self._serve, args=(connection,), name="racer-viewer-of-run", daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        """One connection to its end."""
        try:
            welcome(connection, self.address.key)
            while True:
                self._take(connection, receive(connection))
        except CONNECTION_ERRORS:
            self._lose(connection)
        finally:
            connection.close()

    def _take(self, connection: Connection, message: Message) -> None:
        if message.get("do") == WATCH:
            with self._lock:
                self._viewers.add(connection)
                self._was_watched, self._detached = True, False
                send(connection, {"pace": self.pace})
        elif message.get("do") == DETACH:
            self._detached = True
        else:
            self.queue.put(message)

    def _lose(self, connection: Connection) -> None:
        with self._lock:
            if connection not in self._viewers:
                return
            self._viewers.remove(connection)
        if not self._viewers and not self.abandoned and not (self._leash and self._leash.held):
            self.queue.put({"do": LEFT})

    def _cut_off(self) -> None:
        """Ends the process the hard way if it hangs with nobody to see it."""
        looks = 0
        while not self._closed.wait(LOOK_SECONDS):
            looks = looks + 1 if self.abandoned else 0
            if looks > ENDING_LOOKS:
                os._exit(3)


CLIENT_LOOK_SECONDS = 0.03
"""That it waits for an order, or for the learner to listen."""


class ControlClient:
    """To the learner of a folder. ControlServer wait until there is a connection; one that is lost is made anew.

    All but `order`, `idle` and `open` is for one thread.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._connection: Connection | None = None
        self._orders: queue.SimpleQueue[Message] = queue.SimpleQueue()

    @property
    def open(self) -> bool:
        return self._connection is not None

    @property
    def idle(self) -> bool:
        """Whether no order waits to be sent."""
        return self._orders.empty()

    def order(self, what: str, **more: object) -> None:
        """Have something done; returns at once."""
        self._orders.put({"do": what, **more})

    def connect(self) -> None:
        """If the learner listens by now. One that does not answer is just beginning, or ending, or asleep."""
        address = None if self._connection is not None else read_address(self._folder)
        if address is None:
            return
        try:
            connection = call(address)
            send(connection, {"do": WATCH})
        except CONNECTION_ERRORS:
            return
        self._connection = connection

    def send_orders(self, at_once: bool) -> None:
        """Those that wait, and for a while those that come."""
        if self._connection is None:
            time.sleep(CLIENT_LOOK_SECONDS)
            return
        try:
            if not at_once:
                send(self._connection, self._orders.get(timeout=CLIENT_LOOK_SECONDS))
            while not self._orders.empty():
                send(self._connection, self._orders.get())
        except queue.Empty:
            return
        except CONNECTION_ERRORS:
            self.close()

    def news(self) -> Iterator[Message]:
        """What the learner says."""
        try:
            while self._connection is not None and self._connection.poll():
                yield receive(self._connection)
        except CONNECTION_ERRORS:
            self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
