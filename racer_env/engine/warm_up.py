"""Compilation of the engine before it is needed, with progress reports.

The first time on a machine this takes seconds; afterwards the machine code is loaded from disk. Separate processes
compile in parallel: that is faster, and a window can keep drawing meanwhile.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from threading import Thread

import numpy as np

from racer_env.engine.compiled import can_cache, is_cached
from racer_env.engine.simulation import Simulation, bind_observe, bind_start, bind_step, bind_term_step, step_arguments
from racer_env.engine.tick import step_cars
from racer_env.engine.track import Track, build_track

Progress = Callable[[str, float], None]
"""Callback that gets the current activity and the completed fraction, 0 to 1."""


def warm_up(progress: Progress | None = None) -> None:
    """Compile all functions that a simulation calls, or load them from disk."""
    report = progress or (lambda text, done: None)
    report("Compiling the engine", 0.0)
    if can_cache(step_cars) and not is_ready():
        _compile_in_processes(report)
    for name, compile_stage in STAGES.items():
        compile_stage()
        report(f"Compiling the engine: {name} are ready", {"walls": 0.95, "ticks": 0.98}[name])
    Simulation(_ring()).step(np.zeros((1, 3)))
    report("The engine is ready", 1.0)


def warm_up_terms() -> None:
    """Compile what only configs with reward terms call, or load it from disk."""
    bind_term_step(_ring().brute_force_tables())


def is_ready() -> bool:
    """Return whether the machine code is on disk, so that nothing needs to be compiled."""
    return is_cached(step_cars, *step_arguments(_ring().brute_force_tables()))


def warm_up_in_background(progress: Progress | None = None) -> Thread:
    """Start `warm_up` in a thread. Join it before the first tick, or let that tick wait for it."""
    thread = Thread(target=warm_up, args=(progress,), name="racer-warm-up", daemon=True)
    thread.start()
    return thread


@cache
def _ring() -> Track:
    """Return a small track to compile with; the tables of all tracks have the same types."""
    angles = np.linspace(0.0, 2.0 * np.pi, 8, endpoint=False)
    return build_track(np.column_stack([100.0 * np.cos(angles), 100.0 * np.sin(angles), np.full(8, 10.0)]))


def _compile_walls() -> None:
    assert _ring().tables
    bind_observe(_ring().brute_force_tables())


def _compile_ticks() -> None:
    tables = _ring().brute_force_tables()
    bind_step(tables)
    bind_start(tables)


STAGES: dict[str, Callable[[], None]] = {"walls": _compile_walls, "ticks": _compile_ticks}
"""Compilation stages, fastest first. Functions with common parts are in the same stage: it compiles these once."""
_CHILD = """\
import gc
gc.disable()  # a tenth of the time, and the process ends soon
from racer_env.engine.warm_up import STAGES
STAGES[{name!r}]()
"""
"""Program that compiles a stage."""


def _compile_in_processes(report: Progress) -> None:
    """Compile each stage in a process that caches the machine code on disk; stages that fail are compiled here."""
    if not sys.executable:
        return
    report("Compiling the engine", 0.05)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    processes = []
    try:
        for name in STAGES:
            processes.append(
                subprocess.Popen(
                    [sys.executable, "-c", _CHILD.format(name=name)],
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
                )
            )
        for process, name, done in zip(processes, STAGES, (0.5, 0.9), strict=True):
            process.wait()
            report(f"Compiling the engine: {name} are compiled", done)
    except OSError:
        return
    finally:
        for process in processes:
            process.kill()
            process.wait()
