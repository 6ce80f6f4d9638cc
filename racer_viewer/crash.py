"""What is left of a mistake of ours: a file that tells all about it, for whoever mends it."""

from __future__ import annotations

import platform
import sys
import traceback
from datetime import datetime
from pathlib import Path

from racer_viewer import __version__
from racer_viewer.folders import free_path

LOGS = "logs"
"""Folder in the user's data folder."""


def write_report(error: BaseException, data: Path) -> Path | None:
    """Where the report is; None if it could not be written. At a console it is printed too."""
    told = "".join(traceback.format_exception(error))
    print(told, file=sys.stderr, flush=True)
    about = f"racer-viewer {__version__}, Python {platform.python_version()}, {platform.platform()}"
    try:
        folder = data / LOGS
        folder.mkdir(parents=True, exist_ok=True)
        path = free_path(folder / f"crash-{datetime.now():%Y%m%d-%H%M%S}.txt")
        path.write_text(f"{about}\n\n{told}", encoding="utf-8")
    except OSError:
        return None
    return path
