"""Does what viewers ask for, between two ticks of the learning cars."""

from __future__ import annotations

import math
import queue
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stable_baselines3.common.callbacks import BaseCallback

from racer_env.engine import TICKS_PER_SECOND
from racer_env.errors import RacerError
from racer_viewer.training.live.greeting import Message
from racer_viewer.training.live.orders import DISCARD, LEFT, PACE, PAUSE, RESUME, SAVE, STOP, WEIGHTS, Orders

if TYPE_CHECKING:
    from racer_viewer.training.run import Run

WAIT_SECONDS = 0.1
"""At most until it is seen whether somebody still looks, or a signal came."""
MOST_BEHIND = 0.1
"""Seconds that a paced run catches up after an update, at full speed."""
SLOWEST = 0.01
"""Times real time."""


class Conductor(BaseCallback):
    """Pauses, paces, changes weights, saves and ends a run. May wait within a tick."""

    def __init__(self, run: Run, orders: Orders) -> None:
        super().__init__()
        self._run, self._orders = run, orders
        self._paused = False
        self._ticks_per_second = math.inf
        self._next_tick, self._paced_steps = 0.0, 0
        self._answers: dict[str, Callable[[Message], None]] = {
            PAUSE: self._pause,
            RESUME: self._resume,
            SAVE: lambda message: self._run.save_now(),
            PACE: lambda message: self._set_pace(message["times"]),
            WEIGHTS: self._set_weights,
            STOP: lambda message: self._run.stop(),
            DISCARD: lambda message: self._run.discard(),
            LEFT: self._go_on_unseen,
        }

    def hear_the_rest(self) -> None:
        """What was asked for after the last tick: of all that, only to discard the run can still be done."""
        while not self._orders.queue.empty():
            if self._orders.queue.get().get("do") == DISCARD:
                self._run.discard()

    def _on_step(self) -> bool:
        while not self._orders.queue.empty():
            self._answer(self._orders.queue.get())
        self._end_if_abandoned()
        if self._ticks_per_second < math.inf:
            self._keep_pace()
        while self._paused and not self._run.stopped:
            self._wait(WAIT_SECONDS)
        return True

    def _keep_pace(self) -> None:
        """Wait until the next tick is due. With Ray, many are driven between two calls."""
        ticks = (self.num_timesteps - self._paced_steps) / self._run.config.num_cars
        self._paced_steps = self.num_timesteps
        self._next_tick = max(self._next_tick + ticks / self._ticks_per_second, time.monotonic() - MOST_BEHIND)
        while not self._run.stopped and not self._paused and (left := self._next_tick - time.monotonic()) > 0.0:
            if self._ticks_per_second == math.inf:
                return
            self._wait(min(left, WAIT_SECONDS))

    def _wait(self, seconds: float) -> None:
        """For an order, but not longer than this."""
        try:
            self._answer(self._orders.queue.get(timeout=seconds))
        except queue.Empty:
            self._end_if_abandoned()

    def _end_if_abandoned(self) -> None:
        if self._orders.abandoned:
            self._run.stop()

    def _answer(self, message: Message) -> None:
        """One order. What cannot be done is told in the story, and the run goes on."""
        try:
            self._answers[message["do"]](message)
        except (RacerError, KeyError, TypeError, ValueError) as error:
            self._run.story.event("problem", f"could not do what was asked: {error}", self.num_timesteps)

    def _pause(self, message: Message) -> None:
        if not self._paused:
            self._paused = True
            self._run.story.pause(self.num_timesteps)

    def _resume(self, message: Message) -> None:
        if self._paused:
            self._paused = False
            self._run.story.resume(self.num_timesteps)

    def _set_pace(self, times: Any) -> None:
        self._ticks_per_second = math.inf if times is None else max(float(times), SLOWEST) * TICKS_PER_SECOND
        self._next_tick, self._paced_steps = time.monotonic(), self.num_timesteps
        self._orders.note_pace(None if times is None else self._ticks_per_second / TICKS_PER_SECOND)

    def _go_on_unseen(self, message: Message) -> None:
        """Nobody waits for a picture any more: at full speed."""
        self._set_pace(None)
        self._resume(message)

    def _set_weights(self, message: Message) -> None:
        self._run.change_weights(message["weights"], self.num_timesteps)
