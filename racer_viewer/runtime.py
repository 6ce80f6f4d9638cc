"""How the packaged app differs from the one that Python runs: no console, nothing to write to beside itself.

What is left of a mistake of ours: a file that tells all about it, for whoever mends it."""

from __future__ import annotations

import os
import platform
import runpy
import subprocess
import sys
import traceback
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO

from platformdirs import user_cache_path, user_log_path

from racer_viewer import __version__
from racer_viewer.paths import free_path

APP = "racer-viewer"
COMMAND_VARIABLE = "RACER_COMMAND"
"""Says how the program was started, where something else than its own command did that, as run.py does."""
LEARNERS = ("torch", "stable_baselines3")
LOG_KEPT = 1_000_000
"""A larger log is begun anew [bytes]."""


def prepare() -> None:
    """For a process that may have no console, and must not write into its own folder."""
    os.environ.setdefault("NUMBA_CACHE_DIR", str(user_cache_path(APP, appauthor=False) / "engine"))
    if sys.stdout is None or sys.stderr is None:
        log = _open_log()
        sys.stdout, sys.stderr = sys.stdout or log, sys.stderr or log


def run_as_python(arguments: list[str]) -> bool:
    """Do what Python would do with `[-P] -m MODULE …` or `[-P] -c CODE …`; False if it is something else.

    Parts of the app start others by `sys.executable`, which in the packaged one is the app itself.
    """
    rest = arguments[1:] if arguments[:1] == ["-P"] else arguments
    if len(rest) < 2 or rest[0] not in ("-m", "-c"):
        return False
    how, what, *more = rest
    sys.argv = [how, *more]
    if how == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
    return True


def can_train() -> bool:
    """Whether what learning needs is installed, without loading it."""
    return all(find_spec(package) for package in LEARNERS)


def training_install_hint() -> str:
    """What to get where that is missing."""
    if is_packaged():
        return "This is the lite app, to play, watch and replay: to train, get the full one, racer-viewer"
    return 'Training needs more packages: pip install "racer-viewer[train]"'


def program_command() -> list[str]:
    """How this program is started once more."""
    return [sys.executable, "-m", "racer_viewer"]


def command_hint(*arguments: object) -> str:
    """How a user starts this program with these arguments, for hints: as they have started it themselves."""
    usual = subprocess.list2cmdline([sys.executable]) if is_packaged() else APP
    return f"{os.environ.get(COMMAND_VARIABLE) or usual} {subprocess.list2cmdline(map(str, arguments))}".rstrip()


def is_packaged() -> bool:
    return bool(getattr(sys, "frozen", False))


def log_file() -> Path:
    """What would be seen at a console, where there is none."""
    return user_log_path(APP, appauthor=False) / "racer-viewer.log"


def _open_log() -> TextIO:
    path = log_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        large = path.exists() and path.stat().st_size > LOG_KEPT
        return path.open("w" if large else "a", encoding="utf-8", buffering=1)
    except OSError:
        return open(os.devnull, "w", encoding="utf-8")


LOGS = "logs"
"""Folder in the user's data folder."""


def write_crash_report(error: BaseException, data: Path) -> Path | None:
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
