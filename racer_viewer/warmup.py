"""Warm-up of the engine: importing it takes half a second, compiling it the first time about ten.

The app warms it up in a thread behind the menu, commands do so in the foreground with progress at the terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import Thread, Timer

from racer_viewer.plain_text import make_console

EXPLANATION_DELAY = 1.0
"""Delay before a command without a terminal explains why it waits [s]."""


class EngineWarmup:
    """Warm-up of the engine in a thread of its own.

    text: current step.
    done: completed part, 0 to 1.
    problem: why the engine cannot be started; empty if it can.
    """

    def __init__(self) -> None:
        self.text, self.done, self.problem = "Starting the engine", 0.0, ""
        self._thread: Thread | None = None

    @property
    def ready(self) -> bool:
        return self.done >= 1.0

    def start(self) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._warm_up, name="racer-engine-warmup", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Block until the engine is ready or has failed to start."""
        self.start()
        if self._thread is not None:
            self._thread.join()

    def _warm_up(self) -> None:
        try:
            from racer_env.engine import warm_up

            warm_up(self._report)
        except Exception as error:
            from racer_env.errors import in_one_line

            self.problem = f"The engine cannot be started: {in_one_line(error)}"

    def _report(self, text: str, done: float) -> None:
        self.text, self.done = text, done


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
