"""Standings at the end of a race: places and gaps of all cars."""

from __future__ import annotations

from dataclasses import dataclass

from racer_env.engine import TICKS_PER_SECOND
from racer_viewer.modes.race import Tick
from racer_viewer.snapshot import CarStyle
from racer_viewer.timing import LapTime, signed
from racer_viewer.translation import _, ngettext


@dataclass(frozen=True)
class RaceResult:
    """Result of one car.

    behind: time behind the winner [s]; for a car that is still driving, its gap when the race ended.
    laps_behind: whole laps behind the winner.
    best: fastest clean lap, or the fastest of all if none is clean.
    """

    place: int
    style: CarStyle
    is_player: bool
    behind: float
    laps_behind: int
    best: LapTime | None

    @property
    def gap(self) -> str:
        """Distance to the winner as it is shown."""
        if self.place == 1:
            return _("winner")
        if self.laps_behind:
            return ngettext("+{laps} lap", "+{laps} laps", self.laps_behind).format(laps=self.laps_behind)
        return f"{signed(self.behind)} s"


def race_results(last: Tick, laps: int) -> tuple[RaceResult, ...]:
    """Return the results in their order at the end of a race of so many laps; 0 for no limit.

    Cars that had finished before the player count with their time at the line, all others with their gap.
    """
    snapshot, length = last.snapshot, last.snapshot.track.length
    now = last.followed.ticks
    gaps = snapshot.gaps or (0.0,)
    times = [
        state.lap_ends[laps - 1] if laps and len(state.lap_ends) >= laps else now + gap * TICKS_PER_SECOND
        for state, gap in zip(last.episodes, gaps, strict=True)
    ]
    order = sorted(range(len(times)), key=lambda number: (times[number], -last.episodes[number].distance))
    winner = order[0]
    farthest = min(last.episodes[winner].distance, laps * length) if laps else last.episodes[winner].distance
    return tuple(
        RaceResult(
            place,
            snapshot.styles[number],
            number == snapshot.focus,
            (times[number] - times[winner]) / TICKS_PER_SECOND,
            max(0, int((farthest - last.episodes[number].distance) / length)),
            last.episodes[number].shown_lap,
        )
        for place, number in enumerate(order, 1)
    )
