"""Compiling the engine before it is needed, with word of how far it is.

The first time on a machine this takes seconds; from then on the machine code comes from disk.
"""

from collections.abc import Callable
from threading import Thread

import numpy as np

from racer_env.engine.simulation import Simulation, bind_start, bind_step
from racer_env.engine.track import build_track

Progress = Callable[[str, float], None]
"""Gets what is being compiled now, and the part of the whole that is done, 0 to 1."""

_STAGES = (("walls", 0.35), ("starts", 0.45), ("ticks", 1.0))
"""What is compiled, and the part of the whole that is done after it."""


def warm_up(progress: Progress | None = None) -> None:
    """Compile everything that a simulation calls, or load it from disk."""
    report = progress or (lambda text, done: None)
    report(f"Compiling the engine: {_STAGES[0][0]}", 0.0)
    angles = np.linspace(0.0, 2.0 * np.pi, 8, endpoint=False)
    ring = build_track(np.column_stack([100.0 * np.cos(angles), 100.0 * np.sin(angles), np.full(8, 10.0)]))
    tables = ring.tables
    report(f"Compiling the engine: {_STAGES[1][0]}", _STAGES[0][1])
    bind_start(tables)
    report(f"Compiling the engine: {_STAGES[2][0]}", _STAGES[1][1])
    bind_step(tables)
    Simulation(ring).step(np.zeros((1, 3)))
    report("The engine is ready", _STAGES[2][1])


def warm_up_in_background(progress: Progress | None = None) -> Thread:
    """Start `warm_up` in a thread of its own; join it before the first tick, or let that tick wait for it."""
    thread = Thread(target=warm_up, args=(progress,), name="racer-warm-up", daemon=True)
    thread.start()
    return thread
