"""All cars that learn, in a file that the learner and the window both have in memory.

Two places take turns: while one is written, the other is whole. A counter, written last, says which.


The cars that learn as a window sees them, and how fast they go."""

from __future__ import annotations

import mmap
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_viewer.paths import atomic_write
from racer_viewer.run_history import SWARM_CAR, Swarm

CAR_FEED_FILE = "swarm.bin"

_MAGIC, _VERSION = b"RSWM", 1
_HEAD = np.dtype([("magic", "S4"), ("version", "<u4"), ("cars", "<u8"), ("counter", "<u8")])
_TRIES = 4


def _place(cars: int) -> np.dtype[np.void]:
    return np.dtype([("number", "<u8"), ("tick", "<u8"), ("steps", "<u8"), ("cars", SWARM_CAR, (cars,))])


def _layout(cars: int) -> np.dtype[np.void]:
    return np.dtype([("head", _HEAD), ("places", _place(cars), (2,))])


class CarFeedWriter:
    """Makes the file anew. It is written in full once: a disk that is full is an error now, and no crash later."""

    def __init__(self, folder: Path, cars: int) -> None:
        layout = _layout(cars)
        blank = np.zeros((), layout)
        blank["head"]["magic"], blank["head"]["version"], blank["head"]["cars"] = _MAGIC, _VERSION, cars
        self._path = folder / CAR_FEED_FILE
        with atomic_write(self._path) as temporary:
            temporary.write_bytes(blank.tobytes())
        with self._path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), layout.itemsize)
        content: NDArray[Any] = np.ndarray((), layout, self._memory)
        self._counter = content["head"]["counter"]
        self._places = [content["places"][number] for number in range(2)]
        self._count = 0

    def write(self, swarm: Swarm, steps: int) -> None:
        self._count += 1
        place = self._places[self._count % 2]
        place["number"], place["tick"], place["steps"] = self._count, swarm.tick, steps
        place["cars"][...] = swarm.cars
        self._counter[...] = self._count

    def close(self) -> None:
        """Its last state stays with those who have it open."""
        del self._counter, self._places
        self._memory.close()
        try:
            self._path.unlink(missing_ok=True)
        except OSError:
            return  # Windows keeps it for a window that looks at it; the next learner replaces it


class CarFeedReader:
    """Looks at the file of a learner, from any thread. ValueError if it is none."""

    def __init__(self, folder: Path) -> None:
        with (folder / CAR_FEED_FILE).open("rb") as file:
            self._memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._lock = threading.Lock()
        self._last: tuple[Swarm, int] | None = None
        try:
            self._content: NDArray[Any] | None = self._open()
        except ValueError:
            self._memory.close()
            raise

    def read(self) -> tuple[Swarm, int] | None:
        """The latest state, and the steps of all cars at it; None before there is one."""
        with self._lock:
            return self._last if self._content is None else self._read(self._content)

    def close(self) -> None:
        """Windows removes no file that is open anywhere. What was seen last stays."""
        with self._lock:
            if self._content is not None:
                self._last = self._read(self._content)
                self._content = None
                self._memory.close()

    def _open(self) -> NDArray[Any]:
        if len(self._memory) < _HEAD.itemsize:
            raise ValueError("too short")
        head = np.frombuffer(self._memory[: _HEAD.itemsize], _HEAD)[0]
        if head["magic"] != _MAGIC or head["version"] != _VERSION:
            raise ValueError("of another version")
        layout = _layout(int(head["cars"]))
        if layout.itemsize != len(self._memory):
            raise ValueError("too short")
        return np.ndarray((), layout, self._memory)

    def _read(self, content: NDArray[Any]) -> tuple[Swarm, int] | None:
        counter, places = content["head"]["counter"], content["places"]
        for _ in range(_TRIES):
            before = int(counter)
            place = places[before % 2].copy()
            if before and int(counter) == before == int(place["number"]):
                return Swarm(int(place["tick"]), place["cars"].copy()), int(place["steps"])
        return None


SPEED_SECONDS = 3.0
"""Over which the steps per second are measured."""


class CarFeedMonitor:
    """Of a folder's learner. steps: of all cars together, when they were last looked at."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.steps = folder, 0
        self._reader: CarFeedReader | None = None
        self._speeds = deque[tuple[float, int]]()

    @property
    def are_seen(self) -> bool:
        """Not those of a bridge, or of Ray's runners."""
        return self._reader is not None

    @property
    def steps_per_second(self) -> float:
        """In the last seconds."""
        speeds = list(self._speeds)
        if len(speeds) < 2 or speeds[-1][0] <= speeds[0][0]:
            return 0.0
        return (speeds[-1][1] - speeds[0][1]) / (speeds[-1][0] - speeds[0][0])

    def swarm(self) -> Swarm | None:
        """All of them as they are now; None while there are none to see."""
        reader = self._reader
        latest = None if reader is None else reader.read()
        return None if latest is None else latest[0]

    def look(self) -> None:
        """How far they are."""
        if self._reader is None:
            try:
                self._reader = CarFeedReader(self._folder)
            except (OSError, ValueError):
                return
        latest = self._reader.read()
        if latest is not None:
            self.steps = latest[1]
            now = time.monotonic()
            self._speeds.append((now, self.steps))
            while now - self._speeds[0][0] > SPEED_SECONDS:
                self._speeds.popleft()

    def close(self) -> None:
        """They are as they were last."""
        if self._reader is not None:
            self._reader.close()
