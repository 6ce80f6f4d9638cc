"""Lap times, split at every gate: how far ahead or behind, and how the sectors went."""

from __future__ import annotations

from dataclasses import dataclass

from racer_viewer.snapshot import Sector, Timing

SECTORS = 3

Gates = tuple[int, ...]
"""Ticks since the line by the number of the gate; number 0 is the line at the end, 0 is not taken yet."""


@dataclass(frozen=True)
class LapTime:
    """A finished lap."""

    ticks: int
    gates: Gates

    def sectors(self) -> tuple[int, ...]:
        """Ticks of each third of the gates."""
        ends = _sector_ends(self.gates)
        return tuple(end - before for end, before in zip(ends, (0, *ends), strict=False))


def _sector_ends(gates: Gates) -> tuple[int, ...]:
    """When each sector ended; those that are not over are missing."""
    numbers = [len(gates) * part // SECTORS for part in range(1, SECTORS)]
    ends = [gates[number] for number in numbers] + [gates[0]]
    return tuple(ends[: ends.index(0)] if 0 in ends else ends)


class Stopwatch:
    """Follows one car, tick by tick.

    to_beat: a lap from elsewhere, the record for instance; a faster one of this run takes its place.
    """

    def __init__(self, gate_count: int, to_beat: LapTime | None = None) -> None:
        self.laps: list[LapTime] = []
        self.best = to_beat
        self._gates = [0] * gate_count
        self._checkpoint = 0
        self._lap, self._lap_ticks = 1, 0
        self._delta: int | None = None

    @property
    def best_of_run(self) -> LapTime | None:
        return min(self.laps, key=lambda lap: lap.ticks, default=None)

    def tick(self, lap: int, lap_ticks: int, checkpoint: int, finished_lap_ticks: int) -> LapTime | None:
        """The car's columns after a tick; returns the lap that ended in it."""
        finished = None
        if checkpoint != self._checkpoint:
            self._checkpoint = checkpoint
            self._gates[checkpoint] = finished_lap_ticks if checkpoint == 0 else lap_ticks
            self._delta = self._behind(checkpoint)
        if finished_lap_ticks:
            finished = LapTime(finished_lap_ticks, tuple(self._gates))
            self.laps.append(finished)
            if self.best is None or finished.ticks < self.best.ticks:
                self.best = finished
        if lap != self._lap:
            self._lap, self._gates = lap, [0] * len(self._gates)
        self._lap_ticks = lap_ticks
        return finished

    def timing(self) -> Timing:
        """As it is shown."""
        return Timing(
            lap=self._lap,
            lap_ticks=self._lap_ticks,
            last=self.laps[-1].ticks if self.laps else None,
            best=self.best.ticks if self.best else None,
            delta=self._delta,
            sectors=self._sectors(),
        )

    def _behind(self, gate: int) -> int | None:
        if self.best is None or not self._gates[gate] or not self.best.gates[gate]:
            return None
        return self._gates[gate] - self.best.gates[gate]

    def _sectors(self) -> tuple[Sector, ...]:
        """Of this lap as far as it is; before its first sector is over, of the lap before."""
        now = LapTime(0, tuple(self._gates)).sectors()
        if not now and self.laps:
            now = self.laps[-1].sectors()
        best = self.best.sectors() if self.best else ()
        return tuple(Sector(_at(now, number), _at(best, number)) for number in range(SECTORS))


def _at(values: tuple[int, ...], number: int) -> int | None:
    return values[number] if number < len(values) else None
