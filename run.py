"""Set up racer-viewer in .venv beside this file, once, and start it.

python run.py              open the app
python run.py test         run every check; with arguments after it, only pytest with these
python run.py package      build the desktop app, in dist; with --lite the one that cannot train
python run.py docs         check the documents' links and redraw their pictures; with --check only the first
python run.py ARGUMENTS    the same as `racer-viewer ARGUMENTS`
python run.py --with ray … any of these with Ray too, in .venv-ray, from requirements-ray.lock; test is pytest only then

Pythons too old for the project read this file as well, to say so: keep it to what Python 3.6 can parse.
"""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 14)
CTRL_C_GRACE = 30  # seconds for a program to save its work and end by itself

ROOT = Path(__file__).resolve().parent
EXTRAS = ("ray",)
EXTRA = "".join(sys.argv[2:3]) if sys.argv[1:2] == ["--with"] else ""
VENV = ROOT / "-".join(filter(None, (".venv", EXTRA)))
LOCK = "-".join(filter(None, ("requirements", EXTRA))) + ".lock"
PYTHON = VENV / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
PIP_INSTALL = (PYTHON, "-m", "pip", "install", "--no-input", "--disable-pip-version-check")
LOG = VENV / "setup.log"
STAMP = VENV / "installed.sha256"

READING = (
    ("-m", "ruff", "check"),
    ("-m", "ruff", "format", "--check"),
    ("-m", "mypy"),
    ("-c", "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_logo=True))"),
)
"""Checks of the code as it is written, with the types of the usual packages."""
TESTS = ("-m", "pytest", "--numprocesses=auto", "--maxprocesses=4", "--dist=loadfile")

SCRIPTS = {"package": "desktop/build.py", "docs": "tools/docs.py"}


def main(arguments: "list[str]") -> int:
    if not OLDEST_PYTHON <= sys.version_info[:2] <= NEWEST_PYTHON:
        oldest, newest, this = ("{}.{}".format(*v) for v in (OLDEST_PYTHON, NEWEST_PYTHON, sys.version_info))
        give_up(f"this is Python {this}: install one from {oldest} to {newest} and start run.py with it.")
    if arguments[:1] == ["--with"]:
        if EXTRA not in EXTRAS:
            give_up(f"--with what? Known: {', '.join(EXTRAS)}")
        arguments = arguments[2:]
    if "--with" in arguments:
        give_up("--with goes first: python run.py --with ray ...")
    wanted = fingerprint()
    if not (PYTHON.exists() and STAMP.exists() and STAMP.read_bytes() == wanted):
        set_up()
        STAMP.write_bytes(wanted)
    script = SCRIPTS.get(arguments[0]) if arguments else None
    if script is not None:
        return call(PYTHON, ROOT / script, *arguments[1:])
    if arguments[:1] != ["test"]:
        return call(PYTHON, "-P", "-m", "racer_viewer", *arguments, env={**os.environ, "RACER_COMMAND": own_command()})
    if arguments[1:]:
        return call(PYTHON, "-m", "pytest", *arguments[1:], cwd=ROOT)
    checks = (TESTS,) if EXTRA else (*READING, TESTS)
    exit_codes = (call(PYTHON, *check, cwd=ROOT) for check in checks)
    return next(filter(None, exit_codes), 0)


def own_command() -> str:
    """How this file was started, for the hints that the app gives."""
    extra = ("--with", EXTRA) if EXTRA else ()
    return subprocess.list2cmdline([Path(sys.executable).name, sys.argv[0], *extra])


def fingerprint() -> bytes:
    """Of all that decides what is in the venv; the folder does too, as the project is installed by its path."""
    files = [(ROOT / name).read_bytes() for name in (LOCK, "pyproject.toml")]
    return hashlib.sha256(repr((files, sys.version_info[:2], ROOT)).encode()).digest()


def set_up() -> None:
    """Install into the venv, which is made anew unless it is in working order."""
    print("Setting up (first run, or after an update) ...", file=sys.stderr, flush=True)
    with suppress(FileNotFoundError):
        STAMP.unlink()
    reuse = is_in_working_order()
    if not reuse and VENV.exists():
        shutil.rmtree(VENV)
    VENV.mkdir(exist_ok=True)
    with LOG.open("wb") as log:
        logged = {"cwd": ROOT, "stdin": subprocess.DEVNULL, "stdout": log, "stderr": subprocess.STDOUT}
        if not reuse and call(sys.executable, "-m", "venv", VENV, **logged):
            give_up(f"Python could not make {VENV.name} (Debian and Ubuntu: install python3-venv). Details: {LOG}")
        if call(*PIP_INSTALL, "-r", LOCK, **logged):
            give_up(f"pip could not install {LOCK}: check the network and try again. Details: {LOG}")
        if call(*PIP_INSTALL, "--no-deps", "--no-build-isolation", "-e", ".", **logged):
            give_up(f"pip could not install the project: delete {VENV.name} and try again. Details: {LOG}")


def is_in_working_order() -> bool:
    """Whether the venv has a pip that starts, with a Python of this version."""
    with suppress(OSError):
        pip = subprocess.run([PYTHON, "-m", "pip", "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return b"(python %d.%d)" % sys.version_info[:2] in pip.stdout
    return False


def call(*command: Any, **options: Any) -> int:
    """Run a command to its end and return its exit code. Ctrl-C and termination are the command's to handle."""
    process = subprocess.Popen(command, **options)
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    try:
        exit_code = process.wait()
    except KeyboardInterrupt:
        with suppress(subprocess.TimeoutExpired):
            process.wait(CTRL_C_GRACE)
        raise
    finally:
        process.terminate()
    return exit_code if exit_code >= 0 else 128 - exit_code


def give_up(problem: str) -> None:
    print("run.py:", problem, file=sys.stderr)
    raise SystemExit(2)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        give_up(f"{error}. Check that the folder is complete and writable; if it is, delete {VENV.name} and try again.")
