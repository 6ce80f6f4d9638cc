"""`racer-viewer selftest`: try every part of the program as a user would, and report what fails."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from racer_viewer import __version__
from racer_viewer.cli.options import Subparsers, add_json_option
from racer_viewer.runtime import is_packaged

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

COLUMNS = ("x", "y", "heading", "vx", "vy", "speed", "yaw_rate", "slip_angle", "lap", "checkpoint", "reward")
"""Car values in the check sums of recorded runs."""
TOLERANCE = 1e-5
"""Maximum difference of a check sum: 500 ticks add up 500 differences of about 1e-11, each weighted by up to 500."""
CIRCUIT = "track-01"
MAX_LAP = 9.0
"""Maximum time of the champion's standing lap on that circuit [s]."""
BRIDGE_STEPS = 60
TRAINING_STEPS = 2048
PROCESS_TIMEOUT = 300.0
"""Time for the learner process to finish, which may have to compile first [s]."""
POLL_INTERVAL = 0.02
"""Time between two looks at the learner process [s]."""

Outcome = Literal["ok", "FAILED"]


class SelfTestError(Exception):
    """A check failed."""


@dataclass(frozen=True)
class CheckResult:
    """Result of one check; `detail` is what the check saw, or what was wrong."""

    name: str
    outcome: Outcome
    detail: str
    seconds: float


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "selftest",
        help="check that everything works on this machine, and list optional packages",
        description="Try the engine, an agent, drawing, a film, a bridge and a short training run, and list which "
        "optional packages are installed. Exits with 1 if a check fails.",
    )
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run all checks; return 1 if one failed."""
    return run_checks(CHECKS, options.json)


def run_checks(checks: Mapping[str, Callable[[Path], str]], as_json: bool) -> int:
    """Run checks and print their results; return 1 if one failed."""
    from racer_viewer.bench.harness import describe_machine
    from racer_viewer.optional import PARTS

    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
    results = []
    for name, check in checks.items():
        result = _run_check(name, check)
        results.append(result)
        if not as_json:
            print(f"{result.name:<10} {result.outcome:<6} {result.seconds:5.1f} s  {result.detail}", flush=True)
    ok = all(result.outcome != "FAILED" for result in results)
    if as_json:
        facts = {"version": __version__, "machine": describe_machine(), "packaged": is_packaged()}
        optional = {name: part.is_installed for name, part in PARTS.items()}
        report = {**facts, "ok": ok, "checks": [asdict(result) for result in results], "optional": optional}
        print(json.dumps(report, indent=2))
    else:
        for part in PARTS.values():
            state = "installed" if part.is_installed else f"not installed: {part.hint}"
            print(f"{part.title:<18} {part.features}: {state}")
    return 0 if ok else 1


def _run_check(name: str, check: Callable[[Path], str]) -> CheckResult:
    begin = time.perf_counter()
    outcome: Outcome
    with tempfile.TemporaryDirectory(prefix="racer-selftest-", ignore_cleanup_errors=True) as folder:
        try:
            outcome, text = "ok", check(Path(folder))
        except Exception as error:  # any error is a result of the check
            from racer_env.errors import in_one_line

            outcome, text = "FAILED", f"{type(error).__name__}: {in_one_line(error)}"
    return CheckResult(name, outcome, text, round(time.perf_counter() - begin, 3))


def check_engine(folder: Path) -> str:
    """Drive recorded runs again and compare their check sums."""
    from racer_env.engine import warm_up

    warm_up()
    count, difference = compare_recorded_runs()
    if not difference <= TOLERANCE:
        raise SelfTestError(f"recorded runs differ by {difference:g}")
    return f"{count} recorded runs match"


def check_agent(folder: Path) -> str:
    """Drive a lap with the bundled champion."""
    from racer_env.engine import circuit_name, load_circuit
    from racer_viewer.agents import CHAMPION, load_agent
    from racer_viewer.training.evaluation import evaluate

    agent = load_agent(CHAMPION)
    [driven] = evaluate(agent.act, [load_circuit(CIRCUIT)], enough_laps=1)
    lap = driven.best_standing
    if lap is None or lap > MAX_LAP:
        raise SelfTestError(f"the champion's lap of {circuit_name(CIRCUIT)} took {lap} s, more than {MAX_LAP:g}")
    return f"the champion laps {circuit_name(CIRCUIT)} in {lap:.2f} s"


def check_picture(folder: Path) -> str:
    """Draw a frame of the environment."""
    import numpy as np

    from racer_env.env import RacerEnv

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


def check_recording(folder: Path) -> str:
    """Film a lap."""
    from racer_env.engine import TICKS_PER_SECOND
    from racer_viewer.app.offscreen import film_lap
    from racer_viewer.films.film import can_write_mp4

    filmed = film_lap(folder / ("lap.mp4" if can_write_mp4() else "lap.gif"), CIRCUIT)
    size = filmed.film.path.stat().st_size
    if not filmed.lap_ticks or filmed.film.seconds < filmed.lap_ticks / TICKS_PER_SECOND - 0.1:
        raise SelfTestError(f"the film of a lap of {filmed.lap_ticks} ticks has {filmed.film.seconds:.2f} s")
    return f"{filmed.film.frames} frames, {size / 1024:,.0f} KiB, {filmed.film.path.suffix[1:]}"


def check_bridge(folder: Path) -> str:
    """Drive the same car locally and over WebSocket, and compare the observations."""
    import numpy as np

    from racer_env.env import RacerEnv
    from racer_viewer.bench.harness import server_process

    with server_process("bridge", "--port", "0") as url:
        local, remote = RacerEnv(), RacerEnv(url)
        try:
            same = [np.array_equal(local.reset(seed=1)[0], remote.reset(seed=1)[0])]
            for _ in range(BRIDGE_STEPS):
                action = np.array([0.1, 1.0, 0.0], np.float32)
                same.append(np.array_equal(local.step(action)[0], remote.step(action)[0]))
        finally:
            local.close()
            remote.close()
    if not all(same):
        raise SelfTestError("the same car drives differently over the bridge")
    return f"{BRIDGE_STEPS} steps over WebSocket, identical to local ones"


def check_training(folder: Path) -> str:
    """Train for a few steps in a learner process and load its policy."""
    import numpy as np

    from racer_viewer.training.config import preset
    from racer_viewer.training.run_monitor import RunMonitor

    config = replace(
        preset("ppo"), name="selftest", tracks=(CIRCUIT,), timesteps=TRAINING_STEPS, n_steps=16, batch_size=512
    )
    run = RunMonitor.start(config, folder / "runs")
    try:
        deadline = time.monotonic() + PROCESS_TIMEOUT
        while run.state not in ("finished", "failed", "stopped"):
            if time.monotonic() > deadline:
                raise SelfTestError("the learner does not finish")
            time.sleep(POLL_INTERVAL)
        if run.state != "finished":
            raise SelfTestError(run.problem or f"training ended as {run.state}")
        run.policy().act(np.zeros(14, np.float32))
        return f"{run.steps:,} steps in a process of its own, and the policy drives"
    finally:
        run.close()


CHECKS: dict[str, Callable[[Path], str]] = {
    "engine": check_engine,
    "agent": check_agent,
    "picture": check_picture,
    "recording": check_recording,
    "bridge": check_bridge,
    "training": check_training,
}
"""Checks by name; each gets an empty folder and returns what it saw, or raises."""


def check_sums(rows: Floats) -> Floats:
    """Return the sum of each column, and its sum weighted by the tick number, so that the order counts too."""
    import numpy as np

    ticks = np.arange(1.0, len(rows) + 1.0)
    return np.concatenate([rows.sum(axis=0), ticks @ rows])


def compare_recorded_runs() -> tuple[int, float]:
    """Drive recorded runs of the simulation that existing models were trained on.

    Returns:
        the number of runs, and the largest difference of a check sum
    """
    import numpy as np

    from racer_env.engine.circuits import assets_folder

    with np.load(assets_folder() / "recorded_runs.npz", allow_pickle=False) as recorded:
        runs = {name.removesuffix("/actions"): recorded[name] for name in recorded.files if name.endswith("/actions")}
        worst = max(
            float(np.abs(check_sums(drive_recorded(name, actions)) - recorded[f"{name}/sums"]).max())
            for name, actions in runs.items()
        )
    return len(runs), worst


def drive_recorded(name: str, actions: Floats) -> Floats:
    """Return the columns after each tick of a run from the start line."""
    import numpy as np

    from racer_env.engine import Simulation, load_circuit

    simulation = Simulation(load_circuit(name.split("/")[0]))
    rows = np.empty((len(actions), len(COLUMNS)))
    for row, action in zip(rows, actions, strict=True):
        simulation.step([action])
        car = simulation.cars[0]
        row[:] = [float(car[column]) for column in COLUMNS]
    return rows
