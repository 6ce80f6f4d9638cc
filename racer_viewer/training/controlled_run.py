"""Run that viewers can watch and control: it writes the car feed and obeys the commands of the control socket."""

from __future__ import annotations

import math
import queue
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import numpy as np

from racer_env.engine import CAR, TICKS_PER_SECOND, Simulation, Track
from racer_env.engine.circuits import parse_circuit
from racer_env.errors import RacerError, os_reason
from racer_viewer.run_history import SWARM_CAR, Floats, Swarm
from racer_viewer.training.callbacks import ProgressHandler
from racer_viewer.training.car_feed import CarFeedWriter
from racer_viewer.training.control import (
    CIRCUIT,
    DISCARD,
    LEFT,
    PACE,
    PAUSE,
    RESUME,
    SAVE,
    STOP,
    WEIGHTS,
    ControlServer,
    Message,
)
from racer_viewer.training.learner import Callback
from racer_viewer.training.metrics import DrivingStats
from racer_viewer.training.run import Run, RunResult
from racer_viewer.training.run_folder import LEARNER_LOG_FILE, latest_model, remove_run, write_config
from racer_viewer.training.run_log_reader import load_history

MAX_FEED_RATE = 90.0
"""Maximum rate of the car feed [Hz]: every tick in real time, and enough for a window at any pace."""
REWARD_WINDOW = 2.0 * TICKS_PER_SECOND
"""Time constant of a car's mean reward [ticks]."""
WIDEN_RATE, NARROW_RATE = 0.05, 0.001
"""Share by which the reward range follows a value outside of it, and inside of it, per written frame."""
MIN_REWARD_RANGE = 1e-6
NO_TRACK = -1
"""Number in the feed of a track that was exchanged for another one."""
CONTROL_POLL_INTERVAL = 0.1
"""Maximum wait for a command [s] before signals and viewers are checked again."""
MAX_LAG = 0.1
"""Time [s] that a paced run catches up at full speed after an update."""
_COPIED = ("x", "y", "heading", "speed", "lap", "wall_contact")
"""Columns of the simulation that the car feed has too."""
MIN_PACE = 0.01
"""Slowest pace, in multiples of real time."""


@contextmanager
def control_server(run: Run) -> Iterator[ControlServer]:
    """Lock the run's folder and listen for viewers; remove the folder if a new run never started."""
    folder, is_new = run.folder, not run.folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    if is_new:
        write_config(run.config, folder)  # a viewer that sees the lock expects a config
    server = ControlServer(folder)
    try:
        with closing(server):
            write_config(run.config, folder)
            (folder / LEARNER_LOG_FILE).unlink(missing_ok=True)  # output of an earlier learner process
            yield server
    finally:
        if is_new and latest_model(folder) is None and not load_history(folder).last_steps:
            remove_run(folder)


def learn_with_control(run: Run, server: ControlServer, report: ProgressHandler = lambda progress: None) -> RunResult:
    """Learn to the end of the run, and obey the commands of viewers."""
    control = ControlCallback(run, server)
    with closing(CarFeedCallback(run, lambda: server.watched, server.report_problem)) as feed:
        result = run.learn(report, [feed, control], on_problem=server.report_problem)
    control.handle_late_commands()
    return result


class RewardScale:
    """Maps recent rewards of cars to 0 to 1, relative to the range that is usual in the run so far."""

    def __init__(self) -> None:
        self._low = self._high = math.nan

    def apply(self, rewards: Floats) -> Floats:
        """Update the range with the first and last decile of the cars, and return the quality of every car."""
        ordered, tenth = np.sort(rewards), len(rewards) // 10
        low, high = float(ordered[tenth]), float(ordered[-1 - tenth])
        if math.isnan(self._low):
            self._low, self._high = low, high
        self._low += (low - self._low) * (WIDEN_RATE if low < self._low else NARROW_RATE)
        self._high += (high - self._high) * (WIDEN_RATE if high > self._high else NARROW_RATE)
        quality: Floats = (rewards - self._low) * (1.0 / max(self._high - self._low, MIN_REWARD_RANGE))
        np.maximum(quality, 0.0, out=quality)
        np.minimum(quality, 1.0, out=quality)
        return quality


class CarFeedCallback(Callback):
    """Writes the cars of this process to the car feed while viewers watch.

    There is no feed if the cars are elsewhere, or if its file cannot be created.
    """

    def __init__(self, run: Run, is_watched: Callable[[], bool], on_problem: Callable[[str], None]) -> None:
        self._run, self._is_watched, self._on_problem = run, is_watched, on_problem
        self._scale = RewardScale()
        tracks = run.config.tracks
        self._first_with_circuit = np.array([tracks.index(name) for name in tracks])
        """Index in the config of the first track with the same circuit, by index in the config."""
        self._writer: CarFeedWriter | None = None
        self._written = 0.0

    def on_training_start(self) -> None:
        simulation = self.learner.simulation
        if simulation is None:
            return
        count = len(simulation.cars)
        try:
            self._writer = CarFeedWriter(self._run.folder, count)
        except OSError as error:
            self._on_problem(f"the cars cannot be shown: {os_reason(error)}; the run continues")
            return
        self._rewards, self._episodes = np.zeros(count), np.zeros(count, np.int64)
        self._rows, state = np.zeros(count, SWARM_CAR), simulation.cars.view(CAR, np.ndarray)
        self._columns = [(self._rows[name], state[name]) for name in _COPIED]
        """Pairs of a feed column and the simulation column it is copied from."""
        self._tracks = state["track"]
        self._number_tracks(simulation)
        self._write()

    def on_circuit_change(self, number: int, track: Track) -> None:
        if self.learner.simulation is not None:
            self._number_tracks(self.learner.simulation)

    def _number_tracks(self, simulation: Simulation) -> None:
        """Set the number of each track in the feed; cars on a circuit that was exchanged are on none of the run's."""
        numbers = simulation.track_numbers
        self._track_numbers = np.where(numbers >= 0, self._first_with_circuit[numbers], NO_TRACK)

    def on_step(self, stats: DrivingStats) -> bool:
        if self._writer is None:
            return True
        if stats.car_rewards is not None and stats.car_episodes is not None:
            ticks = stats.steps // len(self._rewards)
            share = 1.0 - math.exp(-ticks / REWARD_WINDOW)
            self._rewards += (stats.car_rewards / ticks - self._rewards) * share
            ended = stats.car_episodes > 0
            self._episodes += stats.car_episodes
            self._rewards[ended] = self._rewards.mean()
        if self._is_watched() and time.monotonic() - self._written >= 1.0 / MAX_FEED_RATE:
            self._write()
        return True

    def close(self) -> None:
        """Remove the feed's file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _write(self) -> None:
        assert self._writer is not None
        self._written = time.monotonic()
        for feed, simulation in self._columns:
            feed[...] = simulation
        rows, steps = self._rows, self.learner.steps
        rows["track"] = self._track_numbers[self._tracks]
        rows["quality"], rows["episode"] = self._scale.apply(self._rewards), self._episodes
        self._writer.write(Swarm(steps // len(rows), rows), steps)


class ControlCallback(Callback):
    """Executes the commands of viewers between two ticks; a paused or paced run waits here."""

    def __init__(self, run: Run, server: ControlServer) -> None:
        self._run, self._server = run, server
        self._paused = False
        self._ticks_per_second = math.inf
        self._next_tick, self._paced_steps = 0.0, 0
        self._handlers: dict[str, Callable[[Message], None]] = {
            PAUSE: self._pause,
            RESUME: self._resume,
            SAVE: lambda message: self._run.save_now(),
            PACE: lambda message: self._set_pace(message["times"]),
            CIRCUIT: lambda message: self._run.set_circuit(parse_circuit(message["circuit"]), int(message["number"])),
            WEIGHTS: lambda message: self._run.change_rewards(message["weights"], message.get("terms")),
            STOP: lambda message: self._run.stop(),
            DISCARD: lambda message: self._run.discard(),
            LEFT: self._continue_unwatched,
        }

    def handle_late_commands(self) -> None:
        """Handle the commands that arrived after the last tick; only discarding the run is still possible."""
        while not self._server.queue.empty():
            if self._server.queue.get().get("do") == DISCARD:
                self._run.discard()

    def on_step(self, stats: DrivingStats) -> bool:
        while not self._server.queue.empty():
            self._handle(self._server.queue.get())
        self._stop_if_abandoned()
        self.learner.watched = self._server.watched
        if self._ticks_per_second < math.inf:
            self._keep_pace()
        while self._paused and not self._run.stopped:
            self._wait(CONTROL_POLL_INTERVAL)
        return True

    def _keep_pace(self) -> None:
        """Wait until the next tick is due; a learner may drive many ticks between two calls."""
        steps = self.learner.steps
        ticks = (steps - self._paced_steps) / self._run.config.num_cars
        self._paced_steps = steps
        self._next_tick = max(self._next_tick + ticks / self._ticks_per_second, time.monotonic() - MAX_LAG)
        while not self._run.stopped and not self._paused and (left := self._next_tick - time.monotonic()) > 0.0:
            if self._ticks_per_second == math.inf:
                return
            self._wait(min(left, CONTROL_POLL_INTERVAL))

    def _wait(self, timeout: float) -> None:
        """Wait for a command and handle it."""
        try:
            self._handle(self._server.queue.get(timeout=timeout))
        except queue.Empty:
            self._stop_if_abandoned()

    def _stop_if_abandoned(self) -> None:
        if self._server.abandoned:
            self._run.stop()

    def _handle(self, message: Message) -> None:
        """Execute one command; write a failure to the run log and continue."""
        try:
            self._handlers[message["do"]](message)
        except (RacerError, KeyError, TypeError, ValueError, OverflowError) as error:
            self._run.log.event("problem", f"a command failed: {error}", self.learner.steps)

    def _pause(self, message: Message) -> None:
        if not self._paused:
            self._paused = True
            self._run.log.pause(self.learner.steps)

    def _resume(self, message: Message) -> None:
        if self._paused:
            self._paused = False
            self._run.log.resume(self.learner.steps)

    def _set_pace(self, times: Any) -> None:
        """Set the pace in multiples of real time; None is full speed."""
        pace = math.inf if times is None else float(times)
        if math.isnan(pace):
            raise ValueError("the pace is not a number")
        self._ticks_per_second = max(pace, MIN_PACE) * TICKS_PER_SECOND
        self.learner.ticks_per_second = self._ticks_per_second
        self._next_tick, self._paced_steps = time.monotonic(), self.learner.steps
        self._server.note_pace(None if times is None else self._ticks_per_second / TICKS_PER_SECOND)

    def _continue_unwatched(self, message: Message) -> None:
        """Continue at full speed after the last viewer has left."""
        self._set_pace(None)
        self._resume(message)
