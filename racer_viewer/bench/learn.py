"""`racer-viewer bench learn`: how long it takes from nothing to a first clean lap, and to a pace.

The policy is driven after every rollout, deterministically and from the standing start; the time for that is not
counted as learning.
"""

import json
import math
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.vec_env import VecNormalize

from racer_env.engine import Track, load_circuit
from racer_viewer.agents import load_agent
from racer_viewer.bench.harness import describe_machine
from racer_viewer.training.config import RunConfig
from racer_viewer.training.evaluation import evaluate
from racer_viewer.training.sb3 import LogStdLimitCallback, Model, make_env, make_model, save_checkpoint
from racer_viewer.warmup import prepare_engine

PACE = {"track-01": 7.22, "track-03": 17.82}
"""Flying laps [s] of agents that others have trained."""


@dataclass(frozen=True)
class Moment:
    """When something was reached."""

    steps: int
    seconds: float


@dataclass(frozen=True)
class Learned:
    """How one seed went; None for what it did not reach."""

    seed: int
    first_lap: Moment | None
    pace: Moment | None
    total: Moment


def run(config: RunConfig, seeds: int, pace: float | None, as_json: bool) -> int:
    """Measure and print; the exit code is 1 where a seed misses something."""
    prepare_engine()
    pace = pace or PACE.get(config.tracks[0])
    learned = [learn(replace(config, seed=config.seed + number), pace) for number in range(seeds)]
    if as_json:
        print(
            json.dumps(
                {"machine": describe_machine(), "pace": pace, "seeds": [asdict(each) for each in learned]}, indent=2
            )
        )
    else:
        _print(config, learned, pace)
    return 0 if all(each.first_lap and (each.pace or not pace) for each in learned) else 1


def learn(config: RunConfig, pace: float | None) -> Learned:
    """Learn from nothing with one seed, until there is nothing more to reach or the config's steps are over."""
    with closing(make_env(config)) as env, tempfile.TemporaryDirectory() as folder:
        model = make_model(config, env)
        watch = _Watch(model, env, load_circuit(config.tracks[0]), pace, Path(folder))
        callbacks: list[BaseCallback] = [watch]
        if config.algo == "ppo":
            callbacks.append(LogStdLimitCallback(config))
        model.learn(config.timesteps, CallbackList(callbacks))
        return Learned(config.seed, watch.first_lap, watch.pace, watch.now())


class _Watch(BaseCallback):
    """Drives the policy after every rollout, with the clock stopped."""

    def __init__(self, model: Model, env: VecNormalize, track: Track, pace: float | None, folder: Path) -> None:
        super().__init__()
        self._learner, self._env, self._track, self._wanted, self._folder = model, env, track, pace, folder
        self.first_lap: Moment | None = None
        self.pace: Moment | None = None
        self._looking = 0.0
        self._begin = time.perf_counter()

    def now(self) -> Moment:
        return Moment(self.num_timesteps, time.perf_counter() - self._begin - self._looking)

    def _on_training_start(self) -> None:
        self._begin = time.perf_counter()

    def _on_rollout_start(self) -> None:
        begin = time.perf_counter()
        self._look(self.now())
        self._looking += time.perf_counter() - begin

    def _on_step(self) -> bool:
        return not (self.first_lap and (self.pace or not self._wanted))

    def _look(self, now: Moment) -> None:
        """A first lap counts if it was clean; a pace if no wall was touched all the way, as by those who set it."""
        agent = load_agent(save_checkpoint(self._learner, self._env, self._folder / "look.zip"))
        if self.first_lap is None:
            (drive,) = evaluate(agent.act, [self._track], enough_laps=1)
            self.first_lap = now if drive.laps and drive.clean else None
        if self.pace is None and self._wanted:
            (drive,) = evaluate(agent.act, [self._track])
            self.pace = now if not drive.wall_ticks and (drive.best_flying or math.inf) <= self._wanted else None


def _print(config: RunConfig, learned: Sequence[Learned], pace: float | None) -> None:
    console = Console()
    table = Table(box=None, pad_edge=False, header_style="bold", title=describe_machine(), title_justify="left")
    for column in ("seed", "first clean lap", f"{pace:.2f} s, no wall" if pace else ""):
        table.add_column(column, justify="right")
    for each in learned:
        table.add_row(str(each.seed), _cell(each.first_lap), _cell(each.pace) if pace else "")
    console.print(f"{config.algo} on {config.tracks[0]}, {config.num_cars} cars", highlight=False)
    console.print(table)
    for name, moments in (
        ("first clean lap", [each.first_lap for each in learned]),
        ("pace", [each.pace for each in learned]),
    ):
        seconds = [moment.seconds for moment in moments if moment]
        if seconds:
            console.print(
                f"{name}: {len(seconds)} of {len(learned)} seeds, {min(seconds):.1f} to {max(seconds):.1f} s, "
                f"median {statistics.median(seconds):.1f} s",
                highlight=False,
            )


def _cell(moment: Moment | None) -> str:
    return f"{moment.seconds:.1f} s, {moment.steps:,} steps" if moment else "not reached"
