"""`racer-viewer` without a command: the app's window, or a film where there is no display."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from racer_viewer.folders import data_folder

QUIET = "PYGAME_HIDE_SUPPORT_PROMPT"


def run(options: argparse.Namespace) -> int:
    """Open the window and stay until it is closed. Imports nothing heavy before the first picture."""
    os.environ.setdefault(QUIET, "1")
    from racer_viewer.app import App
    from racer_viewer.ui.display import NoDisplayError

    data = data_folder(options.data_dir)
    try:
        App(data).run()
    except NoDisplayError as error:
        print(f"There is no display here ({error}): filming a lap instead ...", file=sys.stderr, flush=True)
        return _film(data / "lap.gif")
    return 0


def _film(path: Path) -> int:
    from racer_viewer.offscreen import film_lap
    from racer_viewer.progress import prepare_engine

    prepare_engine()
    film = film_lap(path)
    lap = f"a lap of {film.lap_ticks / 60:.2f} s" if film.lap_ticks else "a drive without a whole lap"
    print(f"{film.path}: the champion on {film.circuit}, {lap}")
    return 0
