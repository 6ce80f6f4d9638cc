"""What viewers ask of a learner, over a socket that only this machine can reach."""

from __future__ import annotations

import os
import queue
import secrets
import socket
import threading
from contextlib import suppress
from multiprocessing.connection import Connection, Listener
from pathlib import Path

from racer_viewer.training.live.claim import Claim
from racer_viewer.training.live.greeting import CONNECTION_ERRORS, HOST, Address, Message, receive, send, welcome
from racer_viewer.training.live.leash import Leash

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


class Orders:
    """Claims a folder, listens for viewers and queues what they ask for. `abandoned` says when nobody is left.

    leash: of a learner that a window has started, which ends when that window and all viewers are gone; without it,
    the learner goes on by itself, as one at a terminal does.
    pace: times real time that viewers have set; None is as fast as it can.
    """

    def __init__(self, folder: Path, leash: Leash | None = None) -> None:
        self._claim, self._leash = Claim(folder), leash
        self._listener = Listener((HOST, 0), backlog=MOST_CALLS)
        self.address = Address(os.getpid(), int(self._listener.address[1]), secrets.token_hex(32))
        self.queue: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self.pace: float | None = None
        self._viewers: set[Connection] = set()
        self._was_watched = self._detached = False
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._claim.tell(self.address)
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

    def tell(self, text: str) -> None:
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
