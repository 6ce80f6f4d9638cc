"""What viewers ask of a learner, over a socket that only this machine can reach."""

from __future__ import annotations

import os
import queue
import secrets
import threading
import time
from multiprocessing.connection import Connection, Listener
from pathlib import Path

from racer_viewer.training.live.files import LEARNER_FILE
from racer_viewer.training.live.greeting import CONNECTION_ERRORS, HOST, Address, Message, receive, send, welcome

WATCH, DETACH, PAUSE, RESUME, SAVE = "watch", "detach", "pause", "resume", "save"
PACE, WEIGHTS, STOP, DISCARD = "pace", "weights", "stop", "discard"
"""What a message's `do` may be. The first makes a viewer of a connection; pace has `times`, weights has `weights`."""

FIRST_VIEWER_SECONDS = 15.0
"""After which a learner that nobody looks at ends."""
ENDING_SECONDS = 120.0
"""That a learner without a viewer may take to save and end; then it is cut off, since nobody else could do it."""


class Orders:
    """Listens for viewers and queues what they ask for. `abandoned` says when the last of them is gone.

    detached: the last viewer left and asked to go on without one.
    """

    def __init__(self, folder: Path, patience: float = FIRST_VIEWER_SECONDS) -> None:
        self._folder, self._listener = folder, Listener((HOST, 0))
        self.address = Address(os.getpid(), int(self._listener.address[1]), secrets.token_hex(32))
        self.queue: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self.detached = self._closed = False
        self._viewers: set[Connection] = set()
        self._lock = threading.Lock()
        self._lonely_at: float | None = time.monotonic() + patience
        """When a learner without a viewer is to end; None with one."""
        self.address.write(folder)
        for work in (self._accept, self._cut_off):
            threading.Thread(target=work, name=f"racer-orders{work.__name__}", daemon=True).start()

    @property
    def abandoned(self) -> bool:
        """Whether nobody looks, and nobody said to go on without."""
        lonely_at = self._lonely_at
        return not self.detached and lonely_at is not None and time.monotonic() >= lonely_at

    def tell(self, text: str) -> None:
        """A problem, to every viewer."""
        with self._lock:
            viewers = list(self._viewers)
        for viewer in viewers:
            try:
                send(viewer, {"problem": text})
            except CONNECTION_ERRORS:
                continue

    def close(self) -> None:
        self._closed = True
        self._listener.close()
        (self._folder / LEARNER_FILE).unlink(missing_ok=True)

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except OSError:
                return
            if self._closed:  # a wait for connections lasts until the next one, even so
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
                self._lonely_at, self.detached = None, False
        elif message.get("do") == DETACH:
            self.detached = True
        else:
            self.queue.put(message)

    def _lose(self, connection: Connection) -> None:
        with self._lock:
            if connection in self._viewers:
                self._viewers.remove(connection)
                if not self._viewers:
                    self._lonely_at = time.monotonic()

    def _cut_off(self) -> None:
        """Ends the process the hard way if it hangs with nobody to see it."""
        since: float | None = None
        while not self._closed:
            since = (since or time.monotonic()) if self.abandoned else None
            if since is not None and time.monotonic() - since > ENDING_SECONDS:
                os._exit(3)
            time.sleep(1.0)
