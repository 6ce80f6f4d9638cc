"""The line from a window to a learner: orders go out, news come in."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

from racer_viewer.training.live import orders
from racer_viewer.training.live.claim import read_address
from racer_viewer.training.live.greeting import CONNECTION_ERRORS, Message, call, receive, send

LOOK_SECONDS = 0.03
"""That it waits for an order, or for the learner to listen."""


class Line:
    """To the learner of a folder. Orders wait until there is a connection; one that is lost is made anew.

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
            send(connection, {"do": orders.WATCH})
        except CONNECTION_ERRORS:
            return
        self._connection = connection

    def send_orders(self, at_once: bool) -> None:
        """Those that wait, and for a while those that come."""
        if self._connection is None:
            time.sleep(LOOK_SECONDS)
            return
        try:
            if not at_once:
                send(self._connection, self._orders.get(timeout=LOOK_SECONDS))
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
