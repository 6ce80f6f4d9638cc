"""The engine is started behind the menu: importing it takes half a second, compiling it the first time some ten.

Telling the user at the terminal that something takes its time."""

from __future__ import annotations

import sys
from threading import Thread, Timer


class EngineWarmup:
    """Starts the engine in a thread of its own, and says how far it is.

    text, done: what is going on, and the part of the whole that is done, 0 to 1.
    problem: why the engine cannot be started, if so.
    """

    def __init__(self) -> None:
        self.text, self.done, self.problem = "Starting the engine", 0.0, ""
        self._thread: Thread | None = None

    @property
    def ready(self) -> bool:
        return self.done >= 1.0

    def start(self) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._warm_up, name="racer-engine-room", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Until it is ready, or cannot be."""
        self.start()
        if self._thread is not None:
            self._thread.join()

    def _warm_up(self) -> None:
        try:
            from racer_env.engine import warm_up

            warm_up(self._note)
        except Exception as error:
            self.problem = f"The engine cannot be started: {error}"

    def _note(self, text: str, done: float) -> None:
        self.text, self.done = text, done


PATIENCE = 1.0
"""Seconds after which waiting is explained, where nothing moves on the screen."""


def prepare_engine() -> None:
    """Compile the engine, or load it from disk, and show how far that is: moving on a terminal, else one line."""
    from rich.console import Console

    from racer_env.engine import warm_up

    console = Console(stderr=True)
    if console.is_terminal:
        with console.status("Starting the engine") as status:
            warm_up(lambda text, done: status.update(f"{text} ({done:.0%}), on the first run only"))
        return
    explain = Timer(PATIENCE, lambda: print("Preparing the engine; the first run compiles it ...", file=sys.stderr))
    explain.start()
    try:
        warm_up()
    finally:
        explain.cancel()
