"""A replay, driven again."""

from __future__ import annotations

from collections.abc import Sequence

from racer_viewer.modes.driving import DrivingScreen
from racer_viewer.modes.screen import Key, Stage
from racer_viewer.modes.stopwatch import Stopwatch
from racer_viewer.replays import Trace
from racer_viewer.snapshot import Look, Snapshot
from racer_viewer.sound import car_sound
from racer_viewer.ui.intents import Controls, Do, Intent

SKIPPED_TICKS = 60


class ReplayScreen(DrivingScreen):
    """From its start to its end, then it stands; left and right go a second back or on."""

    def __init__(self, app: Stage, trace: Trace) -> None:
        self._trace, self._tick = trace, 0
        self._look = Look(trace.replay.driver, app.theme.palette.player)
        self._stopwatch = Stopwatch(len(trace.track.gates))
        super().__init__(app, self._snapshot())
        if trace.replay.other_engine:
            app.say(f"This was {trace.replay.other_engine}")
        elif trace.disagreement:
            app.say(trace.disagreement)

    def keys(self) -> Sequence[Key]:
        return (
            ("Esc", "back"),
            ("Left Right", "a second"),
            (self.app.key_of(Do.RESTART), "again"),
            *super().keys()[1:],
        )

    def handle(self, intent: Intent) -> None:
        if intent == Do.BACK:
            self.app.pop()
        elif intent == Do.RESTART:
            self._go_to(0)
        elif intent in (Do.LEFT, Do.RIGHT):
            self._go_to(self._tick + (SKIPPED_TICKS if intent == Do.RIGHT else -SKIPPED_TICKS))
        else:
            super().handle(intent)

    def tick(self, controls: Controls) -> None:
        if self._tick < self._trace.ticks:
            self._tick += 1
            self._note()
            self.show(self._snapshot())
            self.app.speaker.tick(car_sound(self._trace.rows[self._tick]))
        else:
            self.before = self.after
            self.app.speaker.pause()

    def _go_to(self, tick: int) -> None:
        goal = min(self._trace.ticks, max(0, tick))
        self._stopwatch = Stopwatch(len(self._trace.track.gates))
        for self._tick in range(goal + 1):
            self._note()
        self._tick = goal
        self.app.speaker.resume()
        self.begin_at(self._snapshot())

    def _note(self) -> None:
        row = self._trace.rows[self._tick]
        self._stopwatch.tick(*(int(row[name]) for name in ("lap", "lap_ticks", "checkpoint", "finished_lap_ticks")))

    def _snapshot(self) -> Snapshot:
        trace, tick = self._trace, self._tick
        return Snapshot(
            track=trace.track,
            cars=trace.rows[tick : tick + 1].copy(),
            looks=(self._look,),
            observation=trace.observations[tick],
            totals=trace.totals[tick],
            timing=self._stopwatch.timing(),
        )
