"""When a game ticks: at an even rate, however long other things take."""

from __future__ import annotations

from collections import deque

from racer_env.bridge.latency import Latencies
from racer_env.games.moments import ClockReport

CATCH_UP = 0.1
"""A game that is late by at most so much ticks faster until it is on time; of a longer pause, ticks are skipped [s]."""
WINDOW = 5.0
"""Over which the rate is counted [s]."""


class TickClock:
    """The due times of one game's ticks, and how well they were kept. Times are in seconds of a steady clock."""

    def __init__(self, hz: float, now: float) -> None:
        self.hz = hz
        self.period = 1.0 / hz
        self.due = now + self.period
        self.ticks = self.skipped = 0
        self._late = Latencies()
        self._marks: deque[tuple[float, int, int]] = deque([(now, 0, 0)])
        """At earlier reports: the time, the ticks until then and the ticks that were due until then."""

    def begin_tick(self, now: float) -> None:
        """The tick that was due begins now."""
        self._late.add(max(0, round((now - self.due) * 1e9)))
        self.ticks += 1
        self.due += self.period
        if now - self.due > CATCH_UP:
            missed = int((now - self.due) / self.period)
            self.skipped += missed
            self.due += missed * self.period

    def report(self, game_id: int, now: float) -> ClockReport:
        """How it went; to be asked about once a second, since the rate is counted from one report to later ones."""
        milliseconds = (self._late.percentile(50), self._late.percentile(99), self._late.percentile(100))
        return ClockReport(
            game_id, self.hz, self._rate(now), self.ticks, self.skipped, *(value / 1e6 for value in milliseconds)
        )

    def _rate(self, now: float) -> float:
        """Of the ticks that were due in the last seconds, as many as there were: exact, however few those are."""
        while len(self._marks) > 1 and now - self._marks[0][0] > WINDOW:
            self._marks.popleft()
        _, ticks, due = self._marks[0]
        overdue = max(0, int((now - self.due) / self.period))
        all_due = self.ticks + self.skipped + overdue
        self._marks.append((now, self.ticks, all_due))
        return self.hz * min(1.0, (self.ticks - ticks) / (all_due - due)) if all_due > due else self.hz
