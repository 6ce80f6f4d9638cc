"""What a run tells while it learns: figures, laps, sectors, its first gate and first lap, and the policies it keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter

from racer_env.engine import CAR, Simulation, load_circuit
from racer_viewer.training.config import RunConfig
from racer_viewer.training.learner import Model
from racer_viewer.training.live.policies import Layout, PolicyKeeper, driving_tensors
from racer_viewer.training.live.sectors import SectorTimes
from racer_viewer.training.live.story import Story
from racer_viewer.training.metrics import RacerMetricsCallback, Tick, find_cars


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


class Narrator(BaseCallback):
    """Tells the story of a run, tick by tick.

    metrics: must be called before this.
    """

    def __init__(self, config: RunConfig, story: Story, metrics: RacerMetricsCallback, keeper: PolicyKeeper) -> None:
        super().__init__()
        self._config, self._story, self._metrics, self._keeper = config, story, metrics, keeper
        self._numbers = np.array([config.circuits.index(name) for name in config.tracks])
        """By the number of a track that of its circuit: some may be there twice."""
        self._updates = self._kept = -1
        """Of the policy that was seen last, and of the one that was kept last."""

    def _on_training_start(self) -> None:
        cars = find_cars(self.training_env)
        assert cars is not None, "a run learns on an SB3VecEnv"
        self._cars = cars
        simulation: Simulation | None = getattr(cars.cars.batch, "simulation", None)
        self._tracks = None if simulation is None else simulation.cars.view(CAR, np.ndarray)["track"]
        self._circuits = self._circuits_now()
        self._sectors = self._follow_sectors(simulation)
        self._checkpoints = cars.last_step.cars.checkpoint.copy()
        if self._sectors is not None:
            self._sectors.start(cars.last_step.cars.checkpoint, self._tracks)

    def _circuits_now(self) -> NDArray[np.int64] | None:
        """Number of each car's circuit; a bridge does not say which, where there are several."""
        if self._tracks is not None:
            return self._numbers.take(self._tracks)
        return np.zeros(self.training_env.num_envs, np.int64) if len(self._config.circuits) == 1 else None

    def _follow_sectors(self, simulation: Simulation | None) -> SectorTimes | None:
        """A bridge does not say which car is on which circuit: there it works for one only."""
        if simulation is None and len(self._config.tracks) > 1:
            return None
        tracks = simulation.tracks if simulation else [load_circuit(self._config.tracks[0])]
        return SectorTimes(tracks, self.training_env.num_envs, self._config.starts == "line")

    def _on_step(self) -> bool:
        step, tick, steps = self._cars.last_step, self._metrics.tick, self.num_timesteps
        if "first gate" not in self._story.known:
            self._look_for_gate()
        if tick.laps:
            self._tell_laps(tick)
        if self._sectors is not None and (laps := self._sectors.tick(step, self._tracks)):
            rows, times = zip(*laps, strict=True)
            self._story.sectors(times, steps, self._circuits_of(rows))
        if len(tick.ended) and self._tracks is not None:
            self._circuits = self._circuits_now()  # cars that begin anew may do so elsewhere
        self._story.tick()
        return True

    def _tell_laps(self, tick: Tick) -> None:
        circuits = self._circuits_of(tick.lappers)
        self._story.laps(tick.laps, self.num_timesteps, circuits)
        if "first lap" not in self._story.known:
            names = self._config.circuits
            where = f" on {names[circuits[0]]}" if circuits is not None and len(names) > 1 else ""
            self._story.event("first lap", f"First lap: {tick.laps[0]:.2f} s{where}", self.num_timesteps)

    def _circuits_of(self, rows: Sequence[int] | NDArray[np.int64]) -> list[int] | None:
        circuits = self._circuits
        return None if circuits is None else [int(circuits[row]) for row in rows]

    def _look_for_gate(self) -> None:
        now, ended = self._cars.last_step.cars.checkpoint, self._metrics.tick.ended
        took_one = now != self._checkpoints
        took_one[ended] = False
        self._checkpoints[...] = now
        if took_one.any():
            self._story.event("first gate", "First gate", self.num_timesteps)

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
