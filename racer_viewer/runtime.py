"""Process environment: the packaged app (no console, read-only folder), how to start the program, crash reports."""

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
"""Environment variable with the command that a wrapper such as run.py was started by, for hints."""
BLAS_THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""Variables with the number of threads of a matrix product of numpy. All of ours are small: more threads than one only
wait for each other. numpy reads them when it is imported."""
ENVIRONMENT_FILES = ("errors.py", "engine/__init__.py")
"""Files of `racer_env` that another package of that name does not have."""
MAX_LOG_SIZE = 1_000_000
"""Maximum size of the log of an app without a console [bytes]; a larger log is overwritten at the next start."""
REPORT_FOLDER = "logs"
"""Folder of crash reports, in the user's data folder."""


def prepare() -> None:
    """Prepare a process that may have no console and must not write into its own folder."""
    os.environ.setdefault("NUMBA_CACHE_DIR", str(user_cache_path(APP, appauthor=False) / "engine"))
    if sys.stdout is None or sys.stderr is None:
        log = _open_log()
        sys.stdout, sys.stderr = sys.stdout or log, sys.stderr or log


def limit_blas_threads() -> None:
    """Let matrix products of numpy use one thread, in this process and those it starts; before numpy is imported."""
    for name in BLAS_THREAD_VARIABLES:
        os.environ.setdefault(name, "1")


def run_as_python(arguments: list[str]) -> bool:
    """Run `[-P] -m MODULE …` or `[-P] -c CODE …` as Python would; return False for any other arguments.

    Parts of the app start processes by `sys.executable`, which is the app itself when it is packaged.
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


def foreign_environment(import_failed: bool = False) -> str:
    """Return an error message if another package named `racer_env` comes first on the path, else an empty string.

    The package is found but not imported, because the window opens before it is needed. A package at another place
    that has the expected files is accepted, unless an import has failed. The packaged app contains its own.
    """
    try:
        spec = None if is_packaged() else find_spec("racer_env")
    except ValueError:  # a module without a specification was put in its place
        return ""
    if spec is None:
        return ""
    found = Path(next(iter(spec.submodule_search_locations or ()), spec.origin or ""))
    if found.resolve() == Path(__file__).resolve().parents[1] / "racer_env":
        return ""
    if not import_failed and all((found / name).exists() for name in ENVIRONMENT_FILES):
        return ""
    return (
        f"{found} is another package named racer_env and hides the one of racer-viewer: "
        f"start in another folder, or remove {found.parent} from PYTHONPATH"
    )


def program_command() -> list[str]:
    """Return the command that starts this program again."""
    return [sys.executable, "-m", "racer_viewer"]


def command_hint(*arguments: object) -> str:
    """Return the command line for these arguments as the user would type it."""
    usual = subprocess.list2cmdline([sys.executable]) if is_packaged() else APP
    return f"{os.environ.get(COMMAND_VARIABLE) or usual} {subprocess.list2cmdline(map(str, arguments))}".rstrip()


def is_packaged() -> bool:
    return bool(getattr(sys, "frozen", False))


def log_file() -> Path:
    """Return the path of the log that replaces the console of the packaged app."""
    return user_log_path(APP, appauthor=False) / "racer-viewer.log"


def _open_log() -> TextIO:
    path = log_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        large = path.exists() and path.stat().st_size > MAX_LOG_SIZE
        return path.open("w" if large else "a", encoding="utf-8", buffering=1)
    except OSError:
        return open(os.devnull, "w", encoding="utf-8")


def write_crash_report(error: BaseException, data: Path) -> Path | None:
    """Print the traceback and write it to a file; return its path, or None if it could not be written."""
    report = "".join(traceback.format_exception(error))
    print(report, file=sys.stderr, flush=True)
    about = f"racer-viewer {__version__}, Python {platform.python_version()}, {platform.platform()}"
    try:
        folder = data / REPORT_FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        path = free_path(folder / f"crash-{datetime.now():%Y%m%d-%H%M%S}.txt")
        path.write_text(f"{about}\n\n{report}", encoding="utf-8")
    except OSError:
        return None
    return path
