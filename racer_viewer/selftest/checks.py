"""What the self-test tries: what a user would do, each in a folder of its own, with what was seen told."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from racer_env.engine import TICKS_PER_SECOND, load_circuit, warm_up
from racer_env.env import RacerEnv
from racer_env.errors import RacerError
from racer_viewer.agents import CHAMPION, load_agent
from racer_viewer.app.offscreen import film_lap
from racer_viewer.bench.harness import served
from racer_viewer.films.film import can_write_mp4
from racer_viewer.runtime import can_train, training_install_hint
from racer_viewer.selftest.recorded import TOLERANCE, compare
from racer_viewer.training.config import preset
from racer_viewer.training.evaluation import evaluate
from racer_viewer.training.run_monitor import RunMonitor

CIRCUIT = "track-01"
SLOWEST_LAP = 9.0
"""Of the champion on that circuit, from the line [s]."""
STEPS_OVER_THE_BRIDGE = 60
LEARNED_STEPS = 2048
PATIENCE = 120.0
"""With another process [s]."""


class SelfTestError(RacerError):
    """Something did not come out as it must."""


class LeftOutError(Exception):
    """A check of something that this build does not have."""


def engine(folder: Path) -> str:
    warm_up()
    runs, difference = compare()
    if not difference <= TOLERANCE:
        raise SelfTestError(f"recorded runs come out differently, by {difference:g}")
    return f"{runs} recorded runs come out the same"


def agent_lap(folder: Path) -> str:
    agent = load_agent(CHAMPION)
    [driven] = evaluate(agent.act, [load_circuit(CIRCUIT)], enough_laps=1)
    lap = driven.best_standing
    if lap is None or lap > SLOWEST_LAP:
        raise SelfTestError(f"the champion's lap of {CIRCUIT} took {lap} s, not less than {SLOWEST_LAP:g}")
    return f"the champion laps {CIRCUIT} in {lap:.2f} s"


def picture(folder: Path) -> str:
    env = RacerEnv(render_mode="rgb_array")
    try:
        env.reset(seed=1)
        drawn = env.render()
    finally:
        env.close()
    if not isinstance(drawn, np.ndarray):
        raise SelfTestError("nothing was drawn")
    colours = len(np.unique(drawn.reshape(-1, 3), axis=0))
    if colours < 100:
        raise SelfTestError(f"the picture has only {colours} colours")
    return f"{drawn.shape[1]}×{drawn.shape[0]}, {colours:,} colours"


def recording(folder: Path) -> str:
    filmed = film_lap(folder / ("lap.mp4" if can_write_mp4() else "lap.gif"), CIRCUIT)
    size = filmed.film.path.stat().st_size
    if not filmed.lap_ticks or filmed.film.seconds < filmed.lap_ticks / TICKS_PER_SECOND - 0.1:
        raise SelfTestError(f"the film of a lap of {filmed.lap_ticks} ticks has {filmed.film.seconds:.2f} s")
    return f"{filmed.film.frames} frames, {size / 1024:,.0f} KiB, {filmed.film.path.suffix[1:]}"


def training(folder: Path) -> str:
    if not can_train():
        raise LeftOutError(training_install_hint())
    config = replace(
        preset("ppo"), name="selftest", tracks=(CIRCUIT,), timesteps=LEARNED_STEPS, n_steps=16, batch_size=512
    )
    run = RunMonitor.start(config, folder / "runs")
    try:
        _wait(lambda: run.state in ("finished", "failed", "stopped"), "the learner does not finish")
        if run.state != "finished":
            raise SelfTestError(run.problem or f"learning ended as {run.state}")
        run.policy().act(np.zeros(14, np.float32))
        return f"{run.steps:,} steps in a process of its own, and the policy drives"
    finally:
        run.close()


def bridge(folder: Path) -> str:
    with served("bridge", "--port", "0") as url:
        here, there = RacerEnv(), RacerEnv(url)
        try:
            same = [np.array_equal(here.reset(seed=1)[0], there.reset(seed=1)[0])]
            for _ in range(STEPS_OVER_THE_BRIDGE):
                action = np.array([0.1, 1.0, 0.0], np.float32)
                same.append(np.array_equal(here.step(action)[0], there.step(action)[0]))
        finally:
            here.close()
            there.close()
    if not all(same):
        raise SelfTestError("the same car drives differently over the bridge")
    return f"{STEPS_OVER_THE_BRIDGE} steps over WebSocket, the same as here"


CHECKS: dict[str, Callable[[Path], str]] = {
    "engine": engine,
    "agent": agent_lap,
    "picture": picture,
    "recording": recording,
    "bridge": bridge,
    "training": training,
}
"""By name; each gets an empty folder and returns what it saw, or raises."""


def _wait(condition: Callable[[], bool], problem: str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise SelfTestError(problem)
        time.sleep(0.02)
