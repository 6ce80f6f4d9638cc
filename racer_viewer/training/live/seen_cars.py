"""The cars that learn as a window sees them, and how fast they go."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path

from racer_viewer.curves import Swarm
from racer_viewer.training.live.swarm_file import SwarmReader

SPEED_SECONDS = 3.0
"""Over which the steps per second are measured."""


class SeenCars:
    """Of a folder's learner. steps: of all cars together, when they were last looked at."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.steps = folder, 0
        self._reader: SwarmReader | None = None
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
                self._reader = SwarmReader(self._folder)
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
