"""Replays on screen: one is followed, the others drive as ghosts, and a timeline leads to any tick."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import pygame

from racer_env.engine import CAR, TICKS_PER_SECOND
from racer_viewer.modes.lap_comparison import open_lap_comparison
from racer_viewer.modes.race_view import RaceView
from racer_viewer.modes.screen import AppContext, Screen
from racer_viewer.modes.waiting import WaitingScreen, open_safely, open_when_ready
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
from racer_viewer.timing import Stopwatch, TraceTimings, lap_time
from racer_viewer.translation import _
from racer_viewer.ui.intents import Command, Controls, Intent
from racer_viewer.ui.timeline import PlayState, Timeline, TimelineMark
from racer_viewer.ui.views import Key

if TYPE_CHECKING:
    from racer_viewer.render.overlays.panel import History

SKIP_TICKS = TICKS_PER_SECOND
"""Ticks skipped by Left and Right."""
MAX_BLOCKING_TICKS = 18_000
"""Maximum length of replays that are re-simulated while the window waits, about 0.2 s [ticks]."""
CHUNK_TICKS, CHUNK_TIME = 100, 0.008
"""Re-simulation of longer replays: ticks between two looks at the clock, and time per window tick [s]."""


def open_replays(app: AppContext, paths: Sequence[Path]) -> None:
    """Open replay files, following the first; an error is shown as a message."""
    open_runs(app, lambda: [load_replay(path) for path in paths])


def open_runs(app: AppContext, load: Callable[[], Sequence[Replay]]) -> None:
    """Open the replays that `load` returns, following the first; an error is shown as a message."""
    open_when_ready(app, lambda: _screen_for(app, load()))


def _screen_for(app: AppContext, replays: Sequence[Replay]) -> Screen:
    """Return the replay screen; for long replays, a waiting screen that re-simulates them first."""
    track = common_track(replays)
    total = sum(replay.ticks for replay in replays)
    if total <= MAX_BLOCKING_TICKS:
        return ReplayScreen(app, [trace_replay(replay, track) for replay in replays])
    tracers = [ReplayTracer(replay, track) for replay in replays]
    return WaitingScreen(
        app,
        _("Loading the replay"),
        lambda: _trace_chunk(tracers),
        lambda: open_safely(app, lambda: ReplayScreen(app, [tracer.trace() for tracer in tracers])),
        progress=lambda: sum(tracer.tick for tracer in tracers) / total,
    )


def _trace_chunk(tracers: Sequence[ReplayTracer]) -> bool:
    """Re-simulate for a moment; returns whether all replays are finished."""
    end = perf_counter() + CHUNK_TIME
    for tracer in tracers:
        while tracer.advance(CHUNK_TICKS):
            if perf_counter() > end:
                return False
    return True


class ReplayScreen(Screen):
    """Replays from their own start at tick 0 to the end of the longest, above a timeline.

    followed: index of the followed trace.
    at: tick on screen.
    """

    view: RaceView

    def __init__(self, app: AppContext, traces: Sequence[Trace]) -> None:
        super().__init__(app)
        self._track = common_track([trace.replay for trace in traces])
        self.traces = tuple(traces)
        self.followed, self.at = 0, 0
        self.length = max(trace.ticks for trace in traces)
        self._lap_count = sum(len(trace.laps) for trace in traces)
        self._timings = [
            TraceTimings(
                trace.rows,
                trace.gate_rows,
                Stopwatch(len(trace.track.gates), from_grid=trace.rows["lap_gates"][0] < 0),
                trace.replay.put_back,
            )
            for trace in traces
        ]
        self._comparison = Comparison(traces)
        self._colours = (app.theme.palette.player, *app.theme.palette.cars)
        self._styles = self._car_styles()
        self.timeline = Timeline(self.length, lap_time, self.go_to, self._press_play)
        self.timeline.warning = _warnings(traces)
        self._standing_text = lru_cache(maxsize=1)(self._format_standing)
        self.view = RaceView(self, self._snapshot())
        self.playback = self.view.playback
        self.view.scene.prepare(self._track, app.height - self.timeline.height(app.theme))
        self._mark_timeline()

    def keys(self) -> Sequence[Key]:
        key = self.app.key_label
        return (
            ("Esc", _("back")),
            (key(Command.PAUSE), _("pause / resume")),
            ("Left Right", _("a second")),
            (f"{key(Command.TICK_BACK)} {key(Command.TICK)}", _("a tick")),
            (f"{key(Command.SLOWER)} {key(Command.FASTER)}", _("speed")),
            *([(key(Command.NEXT_CAR), _("follow another"))] if len(self.traces) > 1 else []),
            *([(key(Command.COMPARE), _("compare laps"))] if self._lap_count > 1 else []),
            (key(Command.RESTART), _("restart")),
            *self.view.keys(),
        )

    def space_below_keys(self) -> int:
        return self.timeline.height(self.app.theme)

    def repeats(self, direction: Command) -> bool:
        return direction in (Command.LEFT, Command.RIGHT)

    def handle(self, intent: Intent) -> None:
        match intent:
            case Command.BACK:
                self.app.pop()
            case Command.RESTART:
                self.go_to(0)
            case Command.PAUSE:
                self._press_play()
            case Command.LEFT | Command.RIGHT:
                self.go_to(self.at + (SKIP_TICKS if intent == Command.RIGHT else -SKIP_TICKS))
            case Command.TICK_BACK:
                self.playback.paused = True
                self.go_to(self.at - 1)
            case Command.NEXT_CAR:
                self._follow((self.followed + 1) % len(self.traces))
            case Command.COMPARE:
                self.playback.paused = True
                open_lap_comparison(self.app, self.traces, self.followed)
            case _ if self.timeline.handle(intent) or self.playback.handle(intent):
                pass
            case _:
                self.view.handle(intent)

    def tick(self, controls: Controls) -> None:
        due = 0 if self.timeline.held else min(self.playback.ticks(), self.length - self.at)
        for _tick in range(due):
            self.at += 1
            self.view.show(self._snapshot())
        if self.at < self.length and not self.playback.paused and not self.timeline.held:
            self.app.sound.resume()
            self.app.sound.tick(car_sound(self.view.after.car))
            return
        self.app.sound.pause()
        if not due:
            self.view.before = self.view.after
            self.view.hold()

    def go_to(self, tick: int) -> None:
        """Jump to a tick; everything looks as if it had been played up to there."""
        self.at = min(self.length, max(0, tick))
        self.view.begin_at(self._snapshot(), show_keys=False)
        trace = self.traces[self.followed]
        _fill_history(self.view.history, trace, min(self.at, trace.ticks))

    def draw_ahead(self) -> bool:
        return self.view.draw_ahead()

    def draw(self, surface: pygame.Surface, share: float) -> None:
        theme, timeline = self.app.theme, self.timeline
        width, height = surface.get_size()
        self.view.draw(surface.subsurface((0, 0, width, height - timeline.height(theme))), share, self.keys())
        timeline.position, timeline.speed = self.at, self.playback.name
        timeline.state = PlayState.PAUSED if self.playback.paused else PlayState.PLAYING
        if self.at == self.length:
            timeline.state = PlayState.ENDED
        timeline.note = self._news()
        timeline.draw(surface, theme)

    def _press_play(self) -> None:
        """Pause or resume; at the end, start again."""
        if self.at == self.length:
            self.playback.paused = False
            self.go_to(0)
        else:
            self.playback.paused = not self.playback.paused

    def _follow(self, number: int) -> None:
        self.followed = number
        self._styles = self._car_styles()
        self._mark_timeline()
        self.go_to(self.at)

    def _mark_timeline(self) -> None:
        """Mark the followed run's laps and wall contacts on the timeline."""
        trace, palette = self.traces[self.followed], self.app.theme.palette
        best = trace.best_lap if len(trace.laps) > 1 else None
        laps = [TimelineMark(lap.last, lap.time.text, palette.good if lap is best else None) for lap in trace.laps]
        walls = [TimelineMark(row, colour=palette.bad, small=True) for row in trace.wall_rows.tolist()]
        end = [TimelineMark(trace.ticks, _("end"))] if trace.ticks < self.length else []
        self.timeline.marks = (*laps, *walls, *end)
        self.timeline.caption = _driver_name(trace.replay)
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
            styles=self._styles,
            focus=self.followed,
            observation=trace.observations[tick],
            totals=trace.totals[tick],
            reward_components=trace.replay.config.components,
            timing=self._timings[self.followed].at(tick),
            gaps=self._gaps(),
        )

    def _gaps(self) -> tuple[float, ...]:
        if len(self.traces) < 2:
            return ()
        return tuple(gap / TICKS_PER_SECOND for gap in self._comparison.gaps(self.at, self.followed))

    def _car_styles(self) -> tuple[CarStyle, ...]:
        """Return the cars' appearance; with several cars, names include the best laps."""
        styles = []
        for number, trace in enumerate(self.traces):
            best = f" {lap_time(trace.best_lap.ticks)}" if len(self.traces) > 1 and trace.best_lap else ""
            name = _driver_name(trace.replay) + best
            styles.append(CarStyle(name, self._colours[number], ghost=number != self.followed))
        return tuple(styles)

    def _news(self) -> str:
        """Return the standing after the last lap; before that, circuit and date of the followed run."""
        standing = self._comparison.standing(self.at) if len(self.traces) > 1 else None
        if standing is not None:
            return self._standing_text(standing)
        replay = self.traces[self.followed].replay
        return f"{replay.circuit.name}, {replay.date.astimezone():%Y-%m-%d %H:%M}"

    def _format_standing(self, standing: Standing) -> str:
        first = standing.ticks[0]
        names = [_driver_name(self.traces[run].replay) for run in standing.runs]
        others = [f", {name} +{lap_time(ticks - first)}" for name, ticks in zip(names, standing.ticks, strict=True)][1:]
        return _("After lap {lap}: {driver} {time} s").format(
            lap=standing.lap, driver=names[0], time=lap_time(first)
        ) + "".join(others)


def _driver_name(replay: Replay) -> str:
    return replay.driver or _("Unknown driver")


def _warnings(traces: Sequence[Trace]) -> str:
    """Describe in which replays the re-simulation differs, or may differ, from what was driven."""
    found = [(trace.replay, _warning(trace)) for trace in traces]
    several = len(traces) > 1
    return " · ".join(
        (f"{_driver_name(replay)}: " if several else "") + warning for replay, warning in found if warning
    )


def _warning(trace: Trace) -> str:
    other, wrong = trace.replay.engine_warning, trace.mismatch
    return "; ".join(part for part in (_("This was {other}").format(other=other) if other else "", wrong or "") if part)


def _fill_history(history: History, trace: Trace, tick: int) -> None:
    """Fill the history of the panels with the ticks before this one."""
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
