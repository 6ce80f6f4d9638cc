"""Telling the user at the terminal that something takes its time."""

import sys
from threading import Timer

from rich.console import Console

from racer_env.engine import warm_up

PATIENCE = 1.0
"""Seconds after which waiting is explained, where nothing moves on the screen."""


def prepare_engine() -> None:
    """Compile the engine, or load it from disk, and show how far that is: moving on a terminal, else one line."""
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
