"""Warm-up of the engine: importing it takes half a second, compiling it the first time a few seconds.

The app warms it up in a thread behind the menu, commands do so in the foreground with progress at the terminal.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread, Timer

from racer_viewer.plain_text import make_console

EXPLANATION_DELAY = 1.0
"""Delay before a command without a terminal explains why it waits [s]."""
_COMPILE_LEARNER = """\
import os
if hasattr(os, "nice"):
    os.nice(10)
from racer_viewer.training.native.learner import preload
preload()
"""
"""Program that compiles the native learner, with low priority: a race may have begun."""


class EngineWarmup:
    """Warm-up of the engine in a thread of its own.

    text: current step.
    done: completed part, 0 to 1.
    loaded: True when the engine is imported: circuits can be built and drawn, while it is still compiled.
    problem: why the engine cannot be started; empty if it can.
    """

    def __init__(self) -> None:
        self.text, self.done, self.loaded, self.problem = "Starting the engine", 0.0, False, ""
        self._thread: Thread | None = None
        self._finished = Event()

    @property
    def ready(self) -> bool:
        return self.done >= 1.0

    def start(self, with_learner: bool = False) -> None:
        """Start the thread. with_learner: compile the learner after the engine if the engine had to be compiled."""
        if self._thread is None:
            self._thread = Thread(target=self._run, args=(with_learner,), name="racer-engine-warmup", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Block until the engine is ready or has failed to start."""
        self.start()
        self._finished.wait()

    def _run(self, with_learner: bool) -> None:
        compiled = True
        try:
            from racer_env.engine.warm_up import is_ready, warm_up

            self.loaded, compiled = True, is_ready()
            warm_up(self._report)
        except Exception as error:
            from racer_env.errors import in_one_line

            self.problem = f"The engine cannot be started: {in_one_line(error)}"
        self._finished.set()
        if with_learner and not compiled and not self.problem and is_ready():
            _compile_learner()

    def _report(self, text: str, done: float) -> None:
        self.text, self.done = text, done


def _compile_learner() -> None:
    """Compile the learner in a process of its own, so that the first training run starts at once."""
    with suppress(OSError):
        subprocess.run(
            [sys.executable, "-P", "-c", _COMPILE_LEARNER],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )


def prepare_engine(load_more: Callable[[], None] = lambda: None) -> None:
    """Compile the engine or load it from its cache, with progress on stderr. load_more: compiles what follows it."""
    from racer_env.engine import warm_up

    console = make_console(stderr=True)
    if console.is_terminal:
        with console.status("Starting the engine") as status:
            warm_up(lambda text, done: status.update(f"{text} ({done:.0%}), on the first run only"))
            status.update("Loading more machine code, which is compiled on the first run only")
            load_more()
        return
    text = "Preparing the engine; the first run compiles it ..."
    explanation = Timer(EXPLANATION_DELAY, lambda: print(text, file=sys.stderr))
    explanation.start()
    try:
        warm_up()
        load_more()
    finally:
        explanation.cancel()
