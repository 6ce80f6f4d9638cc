"""The times of a run at any tick of it, without going through all ticks before."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from racer_viewer.replays.trace import Trace

if TYPE_CHECKING:
    from racer_viewer.snapshot import Timing


class Clock(Protocol):
    """What takes the times of a car that is followed from its start."""

    def tick(self, lap: int, lap_ticks: int, checkpoint: int, finished_lap_ticks: int) -> object:
        """The car's columns after a tick."""

    def timing(self) -> Timing:
        """As it is shown then."""


class Timings:
    """What a clock shows at every tick of a trace. All but the time of this lap changes at gates only, so the clock is
    looked at once at each of them."""

    def __init__(self, trace: Trace, clock: Clock) -> None:
        rows = trace.rows
        self._lap_ticks = rows["lap_ticks"]
        self._at = [0, *trace.gate_rows.tolist()]
        self._shown: list[Timing] = []
        columns = (rows[name][self._at].tolist() for name in ("lap", "lap_ticks", "checkpoint", "finished_lap_ticks"))
        for lap, lap_ticks, checkpoint, finished in zip(*columns, strict=True):
            clock.tick(lap, lap_ticks, checkpoint, finished)
            self._shown.append(clock.timing())

    def at(self, tick: int) -> Timing:
        """After this tick."""
        shown = self._shown[bisect_right(self._at, tick) - 1]
        return replace(shown, lap_ticks=int(self._lap_ticks[tick]))
