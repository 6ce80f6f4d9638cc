"""What a run tells while it learns: figures, laps, sectors, its first gate and first lap, and the policies it keeps."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter

from racer_viewer.training.config import RunConfig
from racer_viewer.training.learner import Model
from racer_viewer.training.live.policies import Layout, PolicyKeeper, driving_tensors
from racer_viewer.training.live.sights import Spotter, tell
from racer_viewer.training.live.story import Story
from racer_viewer.training.metrics import RacerMetricsCallback, find_cars


class StoryFigures(KVWriter):
    """Writes every figure of the logger into the story."""

    def __init__(self, story: Story) -> None:
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

    def __init__(self, config: RunConfig, story: Story, metrics: RacerMetricsCallback, keeper: PolicyKeeper) -> None:
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


def layout_of(config: RunConfig, model: Model) -> Layout:
    """How the policies of a model are kept."""
    env = model.get_vec_normalize_env()
    assert env is not None, "a run normalises"
    tensors = driving_tensors(model.policy.state_dict())
    shapes: Mapping[str, tuple[int, ...]] = {name: tensor.shape for name, tensor in tensors.items()}
    return Layout(config.algo, config.activation, float(env.clip_obs), float(env.epsilon), shapes)


def _normalisation(model: Any) -> tuple[Any, Any]:
    running = model.get_vec_normalize_env().obs_rms
    return running.mean, running.var
