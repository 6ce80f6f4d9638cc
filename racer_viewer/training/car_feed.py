"""Car feed: the state of all learning cars in a memory-mapped file that the learner writes and windows read.

The file has two slots. The learner fills one while the other stays complete, then writes the counter that selects it.
"""

from __future__ import annotations

import mmap
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_viewer.paths import atomic_write, open_regular
from racer_viewer.run_history import SWARM_CAR, Swarm

CAR_FEED_FILE = "swarm.bin"
MAX_CARS = 65_536
"""Maximum number of cars, that of a run; each `read` copies them."""
SPEED_WINDOW = 3.0
"""Time over which the steps per second are measured [s]."""

_MAGIC, _VERSION = b"RSWM", 2
_HEADER = np.dtype([("magic", "S4"), ("version", "<u4"), ("cars", "<u8"), ("counter", "<u8")])
_MAX_READS = 4
"""Maximum number of attempts to read a slot that is not being overwritten."""


def _slot(cars: int) -> np.dtype[np.void]:
    return np.dtype([("number", "<u8"), ("tick", "<u8"), ("steps", "<u8"), ("cars", SWARM_CAR, (cars,))])


def _file_layout(cars: int) -> np.dtype[np.void]:
    return np.dtype([("head", _HEADER), ("places", _slot(cars), (2,))])


class CarFeedWriter:
    """Learner's end of the feed. Creates the file at full size, so a full disk raises OSError here and not later."""

    def __init__(self, folder: Path, cars: int) -> None:
        layout = _file_layout(cars)
        blank = np.zeros((), layout)
        blank["head"]["magic"], blank["head"]["version"], blank["head"]["cars"] = _MAGIC, _VERSION, cars
        self._path = folder / CAR_FEED_FILE
        with atomic_write(self._path) as temporary:
            temporary.write_bytes(blank.tobytes())
        with self._path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), layout.itemsize)
        content: NDArray[Any] = np.ndarray((), layout, self._memory)
        self._counter = content["head"]["counter"]
        self._slots = [content["places"][number] for number in range(2)]
        self._count = 0

    def write(self, swarm: Swarm, steps: int) -> None:
        self._count += 1
        slot = self._slots[self._count % 2]
        slot["number"], slot["tick"], slot["steps"] = self._count, swarm.tick, steps
        slot["cars"][...] = swarm.cars
        self._counter[...] = self._count

    def close(self) -> None:
        """Remove the file; readers that have it open keep its last state."""
        del self._counter, self._slots
        self._memory.close()
        try:
            self._path.unlink(missing_ok=True)
        except OSError:
            return  # Windows keeps a file that a reader has open; the next learner replaces it


class CarFeedReader:
    """Reader of a feed, usable from any thread. Raises ValueError if the file is not a feed."""

    def __init__(self, folder: Path) -> None:
        with open_regular(folder / CAR_FEED_FILE) as file:
            self._memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._lock = threading.Lock()
        self._last: tuple[Swarm, int] | None = None
        try:
            self._content: NDArray[Any] | None = self._open()
        except ValueError:
            self._memory.close()
            raise

    def read(self) -> tuple[Swarm, int] | None:
        """Return the latest state and the total steps of all cars at it; None before the first write."""
        with self._lock:
            return self._last if self._content is None else self._read(self._content)

    def close(self) -> None:
        """Close the file, which Windows needs to remove it; `read` then returns the last state."""
        with self._lock:
            if self._content is not None:
                self._last = self._read(self._content)
                self._content = None
                self._memory.close()

    def _open(self) -> NDArray[Any]:
        if len(self._memory) < _HEADER.itemsize:
            raise ValueError("the car feed is too short")
        header = np.frombuffer(self._memory[: _HEADER.itemsize], _HEADER)[0]
        if header["magic"] != _MAGIC or header["version"] != _VERSION:
            raise ValueError("the car feed has another version")
        if header["cars"] > MAX_CARS:
            raise ValueError("the car feed has too many cars")
        layout = _file_layout(int(header["cars"]))
        if layout.itemsize != len(self._memory):
            raise ValueError("the car feed is too short")
        return np.ndarray((), layout, self._memory)

    def _read(self, content: NDArray[Any]) -> tuple[Swarm, int] | None:
        counter, slots = content["head"]["counter"], content["places"]
        for _ in range(_MAX_READS):
            before = int(counter)
            slot = slots[before % 2].copy()
            if before and int(counter) == before == int(slot["number"]):
                return Swarm(int(slot["tick"]), slot["cars"].copy()), int(slot["steps"])
        return None


class CarFeedMonitor:
    """Cars and learning speed of a run, read from its feed once there is one.

    steps: total steps of all cars at the last `poll`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self.steps = folder, 0
        self._reader: CarFeedReader | None = None
        self._samples = deque[tuple[float, int]]()

    @property
    def available(self) -> bool:
        """False for runs without a feed: on a bridge or on Ray."""
        return self._reader is not None

    @property
    def steps_per_second(self) -> float:
        """Learning speed over the last SPEED_WINDOW."""
        samples = list(self._samples)
        if len(samples) < 2 or samples[-1][0] <= samples[0][0]:
            return 0.0
        return (samples[-1][1] - samples[0][1]) / (samples[-1][0] - samples[0][0])

    def swarm(self) -> Swarm | None:
        """Return all cars as they are now; None without a feed."""
        reader = self._reader
        latest = None if reader is None else reader.read()
        return None if latest is None else latest[0]

    def poll(self) -> None:
        """Update `steps` and the speed; open the feed if it appeared."""
        if self._reader is None:
            try:
                self._reader = CarFeedReader(self._folder)
            except (OSError, ValueError):
                return
        latest = self._reader.read()
        if latest is not None:
            self.steps = latest[1]
            now = time.monotonic()
            self._samples.append((now, self.steps))
            while now - self._samples[0][0] > SPEED_WINDOW:
                self._samples.popleft()

    def close(self) -> None:
        """Close the feed; `swarm` then returns the last state."""
        if self._reader is not None:
            self._reader.close()
