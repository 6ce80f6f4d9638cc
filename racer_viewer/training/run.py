"""A training run: from a config to a folder with checkpoints, the best so far, and figures of the whole way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.logger import Logger, make_output_format
from stable_baselines3.common.vec_env import VecNormalize

from racer_env.engine import Simulation, load_circuit, parse_config
from racer_env.errors import RacerError
from racer_viewer.training.callbacks import Narrator, StoryFigures, SturdyFigures, full_disk_in_threads, layout_of
from racer_viewer.training.config import RunConfig, load_run_config
from racer_viewer.training.metrics import RacerMetricsCallback, find_cars
from racer_viewer.training.overseer import Overseer, Report
from racer_viewer.training.policy_log import PolicyLog
from racer_viewer.training.run_folder import (
    CONFIG_FILE,
    Checkpoint,
    check_name_is_free,
    check_steps_left,
    find_checkpoint,
    folder_of,
    free_name,
    latest_model,
    write_config,
)
from racer_viewer.training.run_log import RunLog
from racer_viewer.training.run_log_reader import FINISHED, STOPPED
from racer_viewer.training.sb3 import Model, QuieterNoise, begin_from, make_env, make_model, restore, save_checkpoint

KEPT_EVERY = {"ppo": 1, "sac": 8}
"""Of so many updates one policy is kept; SAC updates many times a second."""


@dataclass(frozen=True)
class Outcome:
    """What a run came to. model: None if it was to be discarded."""

    folder: Path
    model: Path | None
    best: Path | None
    steps: int
    finished: bool


class Run:
    """One run. `learn` does it all; `stop` and `discard` end it early, from a signal handler or another thread.

    metrics: what it records of the driving; story: what it tells, from the beginning of `learn` on.
    """

    story: RunLog

    def __init__(
        self, config: RunConfig, runs: Path, checkpoint: Checkpoint | None = None, bridge_url: str | None = None
    ) -> None:
        if checkpoint is None and config.name:
            check_name_is_free(config.name, runs)
        self.config = config if config.name else replace(config, name=free_name(config, runs))
        self.folder = checkpoint.model.parent if checkpoint else runs / self.config.name
        self.tracks = [load_circuit(name) for name in self.config.circuits]
        """Each once; what cannot be driven is told before anything is written."""
        self.metrics = RacerMetricsCallback()
        self._checkpoint = checkpoint
        self._bridge_url = bridge_url
        self._stopped = self._discarded = False
        self._watch: Overseer | None = None

    @classmethod
    def in_folder(cls, where: Path) -> Run:
        """The run that a folder's config.json tells of: from its latest checkpoint, or else from its beginning.

        where: the folder, or the checkpoint in it to go on from.
        """
        folder = folder_of(where)
        config = load_run_config(folder / CONFIG_FILE)
        if where != folder or latest_model(folder) is not None:
            checkpoint = find_checkpoint(where, folder.parent)
            return cls(replace(config, name=config.name or folder.name), folder.parent, checkpoint)
        run = cls(replace(config, name=""), folder.parent)
        run.config, run.folder = replace(config, name=config.name or folder.name), folder
        return run

    @property
    def on_bridge(self) -> bool:
        """Whether its cars are elsewhere, and can be neither shown nor paid otherwise."""
        return self._bridge_url is not None

    def stop(self) -> None:
        self._stopped = True

    def discard(self) -> None:
        """Stop, and save nothing."""
        self._stopped = self._discarded = True

    @property
    def stopped(self) -> bool:
        return self._stopped

    @property
    def discarded(self) -> bool:
        return self._discarded

    def learn(
        self,
        report: Report = lambda progress: None,
        companions: Sequence[BaseCallback] = (),
        on_problem: Callable[[str], None] = lambda text: None,
    ) -> Outcome:
        """Learn until the config's number of steps, or until `stop`.

        companions: are called at every tick, after what is recorded of it.
        on_problem: hears what cannot even be written down.
        """
        env = make_env(self.config, self._bridge_url)
        try:
            with full_disk_in_threads():
                return self._learn(env, report, companions, on_problem)
        finally:
            env.close()

    def save_now(self) -> None:
        """A checkpoint. Only from within `learn`."""
        assert self._watch is not None
        self._watch.save_checkpoint()

    def change_weights(self, weights: Mapping[str, float], steps: int) -> None:
        """Pay other rewards from the next tick on, by the keys of an ai-config. Only from within `learn`."""
        assert self._watch is not None
        before = self.config.rewards.to_json()
        rewards = parse_config({**before, "weights": {**before["weights"], **weights}})
        if rewards == self.config.rewards:
            return
        cars = find_cars(self._watch.training_env)
        simulation = getattr(cars.cars.batch, "simulation", None) if cars else None
        if not isinstance(simulation, Simulation):
            raise RacerError("the rewards of cars on a bridge cannot be changed while they learn")
        simulation.configure(rewards)
        self.config = replace(self.config, rewards=rewards)
        after = rewards.to_json()
        changed = [
            f"{key} from {old:g} to {after['weights'][key]:g}"
            for key, old in before["weights"].items()
            if old != after["weights"][key]
        ]
        self.story.event("weights", ", ".join(changed), steps, rewards=after)
        try:
            write_config(self.config, self.folder)
        except OSError as error:
            self.story.event("problem", f"could not write {CONFIG_FILE}: {error.strerror or error}", steps)

    def _learn(
        self,
        env: VecNormalize,
        report: Report,
        companions: Sequence[BaseCallback],
        on_problem: Callable[[str], None],
    ) -> Outcome:
        model = make_model(self.config, env)
        done = self._begin(model, env)
        write_config(self.config, self.folder)
        self.story = RunLog(self.folder, done, on_problem)
        with closing(self.story):
            self._tell_begin(done)
            keeper = PolicyLog(self.folder, self.story, layout_of(self.config, model), KEPT_EVERY[self.config.algo])
            with closing(keeper):
                self._run_model(model, env, report, companions, keeper)
            return self._end(model, env)

    def _begin(self, model: Model, env: VecNormalize) -> int:
        """What it begins with, and the steps that were learned before."""
        if self._checkpoint is None:
            if self.config.begin_from:
                begin_from(self.config.begin_from, model, env)
            return 0
        check_steps_left(self._checkpoint, self.config)
        restore(self._checkpoint, model, env)
        return self._checkpoint.steps

    def _run_model(
        self,
        model: Model,
        env: VecNormalize,
        report: Report,
        companions: Sequence[BaseCallback],
        keeper: PolicyLog,
    ) -> None:
        done = model.num_timesteps
        model.set_logger(self._logger(model, f"_{done}" if done else ""))
        self._watch = Overseer(self, model, env, report)
        callbacks: list[BaseCallback] = [self.metrics]
        if self.config.algo == "ppo":
            callbacks.append(QuieterNoise(self.config))
        callbacks += [Narrator(self.config, self.story, self.metrics, keeper), *companions, self._watch]
        try:
            steps = self.config.timesteps - done
            model.learn(steps, CallbackList(callbacks), log_interval=1, reset_num_timesteps=not done)
        finally:
            model.logger.close()

    def _end(self, model: Model, env: VecNormalize) -> Outcome:
        """Save what was learned, and tell."""
        assert self._watch is not None
        steps, finished = model.num_timesteps, not self._stopped
        path = None
        if not self._discarded:
            stem = self.config.name if finished else f"{self.config.name}_{steps}_steps"
            path = save_checkpoint(model, env, self.folder / f"{stem}.zip")
            self.story.event("checkpoint", f"Saved {path.name}", steps)
        word = "Finished" if finished else "Stopped"
        self.story.event("end", f"{word} after {steps:,} steps", steps, outcome=FINISHED if finished else STOPPED)
        return Outcome(self.folder, path, self._watch.best, steps, finished)

    def _tell_begin(self, done: int) -> None:
        config = self.config
        where = config.tracks[0] if len(self.tracks) == 1 else f"{len(self.tracks)} circuits"
        text = f"Begins: {config.algo.upper()} on {where}, {config.num_cars} cars"
        text = text if not done else f"Goes on from {done:,} steps"
        self.story.event("begin", text, done, circuits=config.circuits)

    def _logger(self, model: Model, suffix: str) -> Logger:
        """Figures as progress.csv and for TensorBoard, and in the story; a run that goes on has files of its own."""
        folder = str(self.folder)

        def on_problem(text: str) -> None:
            self.story.event("problem", text, model.num_timesteps)

        files = [SturdyFigures(make_output_format(kind, folder, suffix), on_problem) for kind in ("csv", "tensorboard")]
        return Logger(folder, [*files, StoryFigures(self.story)])
