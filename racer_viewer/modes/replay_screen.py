"""Replays, driven again: one is followed, others drive beside it as ghosts, and a timeline leads to any tick."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import pygame

from racer_env.engine import CAR, TICKS_PER_SECOND
from racer_viewer.modes.race_view import DrivingScreen
from racer_viewer.modes.screen import AppContext, Key, Screen
from racer_viewer.modes.waiting import open_safely, open_when_ready
from racer_viewer.render.overlays import lap_time
from racer_viewer.replays import (
    Comparison,
    Replay,
    ReplayTracer,
    Standing,
    Trace,
    common_track,
    load_replay,
    trace_replay,
)
from racer_viewer.snapshot import CarStyle, Snapshot
from racer_viewer.sound import car_sound
from racer_viewer.timing import Stopwatch, TraceTimings
from racer_viewer.ui.intents import Command, Controls, Intent
from racer_viewer.ui.paint import BAR_WIDTH, draw_footer, draw_progress_bar, shade
from racer_viewer.ui.theme import TEXT_LARGE
from racer_viewer.ui.timeline import PlayState, Timeline, TimelineMark

if TYPE_CHECKING:
    from racer_env.engine import Track
    from racer_viewer.render.overlays.panel import History

SKIPPED_TICKS = TICKS_PER_SECOND
"""By left and right."""
DRIVEN_AT_ONCE = 18_000
"""Replays of no more ticks are driven again while the window waits, some 0.2 s."""
PIECE_TICKS, PIECE_TIME = 100, 0.008
"""Of longer ones, what is driven between two looks at the clock [ticks], and in a tick of the window [s]."""


def open_replays(app: AppContext, paths: Sequence[Path]) -> None:
    """Open replay files, the first to be followed and the others beside it; what is wrong with one is shown."""
    open_runs(app, lambda: [load_replay(path) for path in paths])


def open_runs(app: AppContext, load: Callable[[], Sequence[Replay]]) -> None:
    """The same for replays from anywhere."""
    open_when_ready(app, lambda: _screen_of(app, load()))


def _screen_of(app: AppContext, replays: Sequence[Replay]) -> Screen:
    """At once if they are short, else after a while with word of how far it is."""
    track = common_track(replays)
    if sum(replay.ticks for replay in replays) > DRIVEN_AT_ONCE:
        return TracingScreen(app, replays, track)
    return ReplayScreen(app, [trace_replay(replay, track) for replay in replays])


class ReplayScreen(DrivingScreen):
    """All from their own start at tick 0 until the longest is over; then it stands.

    The picture is above the timeline, which always lies in the same place.
    """

    def __init__(self, app: AppContext, traces: Sequence[Trace]) -> None:
        self._track = common_track([trace.replay for trace in traces])
        self.traces = tuple(traces)
        self.followed, self.at = 0, 0
        """Number of the trace that is followed, and the tick that is shown."""
        self.length = max(trace.ticks for trace in traces)
        self._times = [TraceTimings(trace.rows, trace.gate_rows, Stopwatch(len(trace.track.gates))) for trace in traces]
        self._comparison = Comparison(traces)
        self._colours = (app.theme.palette.player, *app.theme.palette.cars)
        self._shown_looks = self._looks()
        self.timeline = Timeline(self.length, lap_time, self.go_to, self._press)
        self.timeline.warning = _warnings(traces)
        self._standing_words = lru_cache(maxsize=1)(self._words_of)
        super().__init__(app, self._snapshot())
        self._scene.prepare(self._track, app.height - self.timeline.height(app.theme))
        self._mark()

    def keys(self) -> Sequence[Key]:
        key = self.app.key_label
        return (
            ("Esc", "back"),
            (key(Command.PAUSE), "stop, go on"),
            ("Left Right", "a second"),
            (f"{key(Command.TICK_BACK)} {key(Command.TICK)}", "a tick"),
            (f"{key(Command.SLOWER)} {key(Command.FASTER)}", "speed"),
            *([(key(Command.NEXT_CAR), "follow another")] if len(self.traces) > 1 else []),
            (key(Command.RESTART), "again"),
            *super().keys()[1:],
        )

    def handle(self, intent: Intent) -> None:
        match intent:
            case Command.BACK:
                self.app.pop()
            case Command.RESTART:
                self.go_to(0)
            case Command.PAUSE:
                self._press()
            case Command.LEFT | Command.RIGHT:
                self.go_to(self.at + (SKIPPED_TICKS if intent == Command.RIGHT else -SKIPPED_TICKS))
            case Command.TICK_BACK:
                self.pace.stopped = True
                self.go_to(self.at - 1)
            case Command.NEXT_CAR:
                self._follow((self.followed + 1) % len(self.traces))
            case _ if self.timeline.handle(intent) or self.pace.handle(intent):
                pass
            case _:
                super().handle(intent)

    def tick(self, controls: Controls) -> None:
        due = 0 if self.timeline.held else min(self.pace.ticks(), self.length - self.at)
        for _ in range(due):
            self.at += 1
            self.show(self._snapshot())
        if self.at < self.length and not self.pace.stopped and not self.timeline.held:
            self.app.sound.resume()
            self.app.sound.tick(car_sound(self.after.car))
            return
        self.app.sound.pause()
        if not due:
            self.before = self.after
            self._scene.camera.tick(self.after)

    def go_to(self, tick: int) -> None:
        """To any tick, at once: all that is shown is as if it had been played up to there."""
        self.at = min(self.length, max(0, tick))
        keys_ticks = self._keys_ticks
        self.begin_at(self._snapshot())
        self._keys_ticks = keys_ticks
        trace = self.traces[self.followed]
        _recall(self._overlays.history, trace, min(self.at, trace.ticks))

    def draw(self, surface: pygame.Surface, share: float) -> None:
        theme, timeline = self.app.theme, self.timeline
        width, height = surface.get_size()
        super().draw(surface.subsurface((0, 0, width, height - timeline.height(theme))), share)
        timeline.position, timeline.speed = self.at, self.pace.name
        timeline.state = PlayState.PAUSED if self.pace.stopped else PlayState.PLAYING
        if self.at == self.length:
            timeline.state = PlayState.ENDED
        timeline.note = self._news()
        timeline.draw(surface, theme)

    def _press(self) -> None:
        """Stop or go on; at the end, from the beginning."""
        if self.at == self.length:
            self.pace.stopped = False
            self.go_to(0)
        else:
            self.pace.stopped = not self.pace.stopped

    def _follow(self, number: int) -> None:
        self.followed = number
        self._shown_looks = self._looks()
        self._mark()
        self.go_to(self.at)

    def _mark(self) -> None:
        """The timeline for the followed one: where its laps ended and where it hit a wall."""
        trace, palette = self.traces[self.followed], self.app.theme.palette
        best = trace.best_lap if len(trace.laps) > 1 else None
        laps = [
            TimelineMark(lap.last, lap_time(lap.ticks), palette.good if lap is best else None) for lap in trace.laps
        ]
        walls = [TimelineMark(row, colour=palette.bad, small=True) for row in trace.wall_rows.tolist()]
        end = [TimelineMark(trace.ticks, "end")] if trace.ticks < self.length else []
        self.timeline.marks = (*laps, *walls, *end)
        self.timeline.caption = _name(trace.replay)
        self.timeline.caption_colour = self._colours[self.followed]

    def _snapshot(self) -> Snapshot:
        trace, ticks = self.traces[self.followed], [min(self.at, trace.ticks) for trace in self.traces]
        cars = np.empty(len(ticks), CAR)
        for number, tick in enumerate(ticks):
            cars[number] = self.traces[number].rows[tick]
        tick = ticks[self.followed]
        return Snapshot(
            track=self._track,
            cars=cars,
            styles=self._shown_looks,
            focus=self.followed,
            observation=trace.observations[tick],
            totals=trace.totals[tick],
            timing=self._times[self.followed].at(tick),
            gaps=self._gaps(),
        )

    def _gaps(self) -> tuple[float, ...]:
        if len(self.traces) < 2:
            return ()
        return tuple(gap / TICKS_PER_SECOND for gap in self._comparison.gaps(self.at, self.followed))

    def _looks(self) -> tuple[CarStyle, ...]:
        """With their best laps, if there are several: they may be of the same driver."""
        looks = []
        for number, trace in enumerate(self.traces):
            best = f" {lap_time(trace.best_lap.ticks)}" if len(self.traces) > 1 and trace.best_lap else ""
            looks.append(CarStyle(_name(trace.replay) + best, self._colours[number], ghost=number != self.followed))
        return tuple(looks)

    def _news(self) -> str:
        """Who was ahead when the last lap ended; before that, where and when the followed one drove."""
        standing = self._comparison.standing(self.at) if len(self.traces) > 1 else None
        if standing is not None:
            return self._standing_words(standing)
        replay = self.traces[self.followed].replay
        return f"{replay.circuit.name}, {replay.date.astimezone():%Y-%m-%d %H:%M}"

    def _words_of(self, standing: Standing) -> str:
        first = standing.ticks[0]
        names = [_name(self.traces[run].replay) for run in standing.runs]
        behind = [f", {name} +{lap_time(ticks - first)}" for name, ticks in zip(names, standing.ticks, strict=True)][1:]
        return f"After lap {standing.lap}: {names[0]} {lap_time(first)} s" + "".join(behind)


class TracingScreen(Screen):
    """Long replays are being driven again, with word of how far it is; Esc goes back."""

    see_through = True

    def __init__(self, app: AppContext, replays: Sequence[Replay], track: Track) -> None:
        super().__init__(app)
        self._tracings = [ReplayTracer(replay, track) for replay in replays]

    def keys(self) -> Sequence[Key]:
        return (("Esc", "back"),)

    def handle(self, intent: Intent) -> None:
        if intent == Command.BACK:
            self.app.pop()

    def tick(self, controls: Controls) -> None:
        end = perf_counter() + PIECE_TIME
        for tracing in self._tracings:
            while tracing.advance(PIECE_TICKS):
                if perf_counter() > end:
                    return
        self.app.pop()
        open_safely(self.app, lambda: ReplayScreen(self.app, [tracing.trace() for tracing in self._tracings]))

    def draw(self, surface: pygame.Surface, share: float) -> None:
        theme = self.app.theme
        surface.blit(shade(surface.get_size(), 200), (0, 0))
        middle = surface.get_rect().center
        title = theme.text("Driving it again", TEXT_LARGE)
        surface.blit(title, title.get_rect(center=(middle[0], middle[1] - theme.px(44))))
        done = sum(tracing.tick for tracing in self._tracings)
        share = done / sum(tracing.replay.ticks for tracing in self._tracings)
        draw_progress_bar(surface, theme, middle, theme.px(BAR_WIDTH), share)
        draw_footer(surface, theme, self.keys())


def _name(replay: Replay) -> str:
    return replay.driver or "Nobody"


def _warnings(traces: Sequence[Trace]) -> str:
    """Where this is not, or may not be, what was driven."""
    found = [(trace.replay, _warning(trace)) for trace in traces]
    several = len(traces) > 1
    return " · ".join((f"{_name(replay)}: " if several else "") + warning for replay, warning in found if warning)


def _warning(trace: Trace) -> str:
    other, wrong = trace.replay.engine_warning, trace.mismatch
    return "; ".join(part for part in (f"This was {other}" if other else "", wrong or "") if part)


def _recall(history: History, trace: Trace, tick: int) -> None:
    """Have the panels remember what the car did until this tick, which it was shown without driving there."""
    history.ticks = tick + 1
    for kept, columns in (
        (history.rewards, ("components",)),
        (history.speeds, ("speed",)),
        (history.asked, ("action",)),
        (history.done, ("steer", "throttle", "brake")),
    ):
        rows = trace.rows[max(0, tick + 1 - len(kept)) : tick + 1]
        kept[: len(kept) - len(rows)] = 0.0
        kept[len(kept) - len(rows) :] = (
            rows[columns[0]] if len(columns) == 1 else np.stack([rows[c] for c in columns], 1)
        )
