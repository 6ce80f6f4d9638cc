"""Shows all learning cars to those who look at the swarm file.

Does what viewers ask for, between two ticks of the learning cars.

What a run tells while it learns: figures, laps, sectors, its first gate and first lap, and the policies it keeps."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter

from racer_env.engine import CAR, TICKS_PER_SECOND, Simulation
from racer_env.errors import RacerError
from racer_viewer.run_history import SWARM_CAR, Floats, Swarm
from racer_viewer.training.car_feed import CarFeedWriter
from racer_viewer.training.config import RunConfig
from racer_viewer.training.control import DISCARD, LEFT, PACE, PAUSE, RESUME, SAVE, STOP, WEIGHTS, ControlServer
from racer_viewer.training.lap_tracker import Spotter, tell
from racer_viewer.training.metrics import RacerMetricsCallback, find_cars
from racer_viewer.training.policy_log import PolicyLayout, PolicyLog, driving_tensors
from racer_viewer.training.run_lock import Message
from racer_viewer.training.run_log import RunLog
from racer_viewer.training.sb3 import Model

if TYPE_CHECKING:
    from racer_viewer.training.run import Run

MOST_PER_SECOND = 90.0
"""Pictures of the swarm: every tick in real time, and enough for a window at any pace."""
_LOOK_BACK = 2.0 * TICKS_PER_SECOND
"""Ticks over which a car's reward is judged."""
_QUICK, _SLOW = 0.05, 0.001
"""How fast the scale of what is usual widens, and narrows, with every picture."""
_LEAST_SPAN = 1e-6


class UsualRewards:
    """How well cars do, from 0 to 1, among what was usual in the run so far."""

    def __init__(self) -> None:
        self._low = self._high = math.nan

    def judge(self, rewards: Floats) -> Floats:
        """For the recent reward of every car; the tenth and the last tenth of them set the scale."""
        ordered, tenth = np.sort(rewards), len(rewards) // 10
        low, high = float(ordered[tenth]), float(ordered[-1 - tenth])
        if math.isnan(self._low):
            self._low, self._high = low, high
        self._low += (low - self._low) * (_QUICK if low < self._low else _SLOW)
        self._high += (high - self._high) * (_QUICK if high > self._high else _SLOW)
        quality: Floats = (rewards - self._low) * (1.0 / max(self._high - self._low, _LEAST_SPAN))
        np.maximum(quality, 0.0, out=quality)
        np.minimum(quality, 1.0, out=quality)
        return quality


class SwarmCallback(BaseCallback):
    """Writes the swarm after a tick, while somebody looks, but not more often than anyone can see.

    metrics: must be called before this.
    """

    def __init__(
        self,
        writer: CarFeedWriter,
        track_names: tuple[str, ...],
        metrics: RacerMetricsCallback,
        watched: Callable[[], bool],
    ) -> None:
        super().__init__()
        self._writer, self._metrics, self._usual, self._watched = writer, metrics, UsualRewards(), watched
        self._numbers = np.array([track_names.index(name) for name in track_names])
        """A circuit that is there twice counts as its first."""
        self._written = 0.0

    def _on_training_start(self) -> None:
        cars, count = find_cars(self.training_env), self.training_env.num_envs
        simulation = getattr(cars.cars.batch, "simulation", None) if cars else None
        assert isinstance(simulation, Simulation), "the swarm is shown of cars in this process"
        self._rewards, self._episodes = np.zeros(count), np.zeros(count, np.int32)
        self._rows, state = np.zeros(count, SWARM_CAR), simulation.cars.view(CAR, np.ndarray)
        self._pairs = [(self._rows[name], state[name]) for name in ("x", "y", "heading", "speed", "lap")]
        """Where to, and where from."""
        self._tracks = state["track"]
        self._show()

    def _on_step(self) -> bool:
        tick = self._metrics.tick
        self._rewards += (tick.rewards - self._rewards) / _LOOK_BACK
        if len(tick.ended):
            self._episodes[tick.ended] += 1
            self._rewards[tick.ended] = self._rewards.mean()
        if self._watched() and time.monotonic() - self._written >= 1.0 / MOST_PER_SECOND:
            self._show()
        return True

    def _show(self) -> None:
        self._written = time.monotonic()
        for there, here in self._pairs:
            there[...] = here
        rows = self._rows
        rows["track"] = self._numbers[self._tracks]
        rows["quality"], rows["episode"] = self._usual.judge(self._rewards), self._episodes
        self._writer.write(Swarm(self.num_timesteps // len(rows), rows), self.num_timesteps)


WAIT_SECONDS = 0.1
"""At most until it is seen whether somebody still looks, or a signal came."""
MOST_BEHIND = 0.1
"""Seconds that a paced run catches up after an update, at full speed."""
SLOWEST = 0.01
"""Times real time."""


class Conductor(BaseCallback):
    """Pauses, paces, changes weights, saves and ends a run. May wait within a tick."""

    def __init__(self, run: Run, orders: ControlServer) -> None:
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


class StoryFigures(KVWriter):
    """Writes every figure of the logger into the story."""

    def __init__(self, story: RunLog) -> None:
        self._story = story

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        figures = {key: float(value) for key, value in key_values.items() if isinstance(value, float | int | np.number)}
        self._story.update(figures, step)

    def close(self) -> None:
        """The story has more to tell."""


class SturdyFigures(KVWriter):
    """Another writer of figures, which a full disk makes silent instead of ending the run."""

    def __init__(self, writer: KVWriter, on_problem: Callable[[str], None]) -> None:
        self._writer, self._on_problem, self._failed = writer, on_problem, False

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        self._try(lambda: self._writer.write(key_values, key_excluded, step))

    def close(self) -> None:
        self._try(self._writer.close)

    def _try(self, do: Callable[[], None]) -> None:
        try:
            do()
        except OSError as error:
            if not self._failed:
                self._on_problem(f"could not write figures: {error.strerror or error}; the run goes on")
            self._failed = True


@contextmanager
def full_disk_in_threads() -> Iterator[None]:
    """TensorBoard writes in a thread of its own; what ends that is told when the next figures are to be written."""
    usual = threading.excepthook

    def on_error(error: threading.ExceptHookArgs) -> None:
        if not isinstance(error.exc_value, OSError):
            usual(error)

    threading.excepthook = on_error
    try:
        yield
    finally:
        threading.excepthook = usual


class Narrator(BaseCallback):
    """Tells the story of a run, tick by tick.

    metrics: must be called before this.
    """

    def __init__(self, config: RunConfig, story: RunLog, metrics: RacerMetricsCallback, keeper: PolicyLog) -> None:
        super().__init__()
        self._config, self._story, self._metrics, self._keeper = config, story, metrics, keeper
        self._updates = self._kept = -1
        """Of the policy that was seen last, and of the one that was kept last."""

    def _on_training_start(self) -> None:
        cars = find_cars(self.training_env)
        assert cars is not None, "a run learns on an SB3VecEnv"
        self._spotter = Spotter(self._config, cars)
        self._spotter.start()

    def _on_step(self) -> bool:
        tell(self._spotter.tick(self._metrics.tick), self._story, self._config.circuits, self.num_timesteps)
        self._story.tick()
        return True

    def _on_rollout_start(self) -> None:
        updates = self.model._n_updates
        if updates != self._updates:
            self._updates = updates
            if self._keeper.offer(self._record, self.num_timesteps):
                self._kept = updates

    def _on_training_end(self) -> None:
        if self.model._n_updates != self._kept:
            self._keeper.keep(self._record(), self.num_timesteps)

    def _record(self) -> bytes:
        return self._keeper.layout.encode(driving_tensors(self.model.policy.state_dict()), *_normalisation(self.model))


def layout_of(config: RunConfig, model: Model) -> PolicyLayout:
    """How the policies of a model are kept."""
    env = model.get_vec_normalize_env()
    assert env is not None, "a run normalises"
    tensors = driving_tensors(model.policy.state_dict())
    shapes: Mapping[str, tuple[int, ...]] = {name: tensor.shape for name, tensor in tensors.items()}
    return PolicyLayout(config.algo, config.activation, float(env.clip_obs), float(env.epsilon), shapes)


def _normalisation(model: Any) -> tuple[Any, Any]:
    running = model.get_vec_normalize_env().obs_rms
    return running.mean, running.var
