"""Install racer-viewer in .venv beside this file on the first run, and start it.

python run.py              open the app
python run.py test         run all checks; with further arguments, run pytest with them
python run.py package      build the desktop app in dist; --lite builds one without training
python run.py docs         check the links of the documents and redraw their pictures; --check only checks
python run.py ARGUMENTS    the same as `racer-viewer ARGUMENTS`
python run.py --with ray … any of these with Ray, in .venv-ray from requirements-ray.lock; test runs only pytest then
python run.py --with peers …  the same with rl_zoo3, sb3-contrib and minari, from requirements-peers.lock

Python versions that are too old must be able to parse this file and print an error: use the syntax of Python 3.6.
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
CTRL_C_GRACE = 30  # s; time for a program to save its work and exit after Ctrl-C

ROOT = Path(__file__).resolve().parent
EXTRAS = ("peers", "ray")
EXTRA = "".join(sys.argv[2:3]) if sys.argv[1:2] == ["--with"] else ""
VENV = ROOT / "-".join(filter(None, (".venv", EXTRA)))
LOCK = "-".join(filter(None, ("requirements", EXTRA))) + ".lock"
PYTHON = VENV / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
PIP_INSTALL = (PYTHON, "-m", "pip", "install", "--no-input", "--disable-pip-version-check")
LOG = VENV / "setup.log"
STAMP = VENV / "installed.sha256"

STATIC_CHECKS = (
    ("-m", "ruff", "check"),
    ("-m", "ruff", "format", "--check"),
    ("-m", "mypy"),
    ("-c", "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_logo=True))"),
)
"""Static checks; they need the packages of the usual venv."""
TESTS = ("-m", "pytest", "--numprocesses=auto", "--maxprocesses=4", "--dist=loadfile")

SCRIPTS = {"package": "desktop/build.py", "docs": "tools/docs.py"}


def main(arguments: "list[str]") -> int:
    if not OLDEST_PYTHON <= sys.version_info[:2] <= NEWEST_PYTHON:
        oldest, newest, this = ("{}.{}".format(*v) for v in (OLDEST_PYTHON, NEWEST_PYTHON, sys.version_info))
        give_up(f"this is Python {this}: install Python {oldest} to {newest} and start run.py with it.")
    if arguments[:1] == ["--with"]:
        if EXTRA not in EXTRAS:
            give_up(f"--with needs one of: {', '.join(EXTRAS)}")
        arguments = arguments[2:]
    if "--with" in arguments:
        give_up("--with must come first: python run.py --with ray ...")
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
    checks = (TESTS,) if EXTRA else (*STATIC_CHECKS, TESTS)
    exit_codes = (call(PYTHON, *check, cwd=ROOT) for check in checks)
    return next(filter(None, exit_codes), 0)


def own_command() -> str:
    """Return the command that started this file, for hints of the app."""
    extra = ("--with", EXTRA) if EXTRA else ()
    return subprocess.list2cmdline([Path(sys.executable).name, sys.argv[0], *extra])


def fingerprint() -> bytes:
    """Return a hash of everything that decides the content of the venv; the project is installed by its path."""
    files = [(ROOT / name).read_bytes() for name in (LOCK, "pyproject.toml")]
    return hashlib.sha256(repr((files, sys.version_info[:2], ROOT)).encode()).digest()


def set_up() -> None:
    """Install into the venv, which is created again unless it works."""
    print("Setting up (first run, or after an update) ...", file=sys.stderr, flush=True)
    with suppress(FileNotFoundError):
        STAMP.unlink()
    reuse = venv_works()
    if not reuse and VENV.exists():
        shutil.rmtree(VENV)
    VENV.mkdir(exist_ok=True)
    with LOG.open("wb") as log:
        logged = {"cwd": ROOT, "stdin": subprocess.DEVNULL, "stdout": log, "stderr": subprocess.STDOUT}
        if not reuse and call(sys.executable, "-m", "venv", VENV, **logged):
            give_up(f"Python could not create {VENV.name} (Debian and Ubuntu: install python3-venv). Details: {LOG}")
        if call(*PIP_INSTALL, "-r", LOCK, **logged):
            give_up(f"pip could not install {LOCK}: check the network and try again. Details: {LOG}")
        if call(*PIP_INSTALL, "--no-deps", "--no-build-isolation", "-e", ".", **logged):
            give_up(f"pip could not install the project: delete {VENV.name} and try again. Details: {LOG}")


def venv_works() -> bool:
    """Return whether the venv has a working pip and this version of Python."""
    with suppress(OSError):
        pip = subprocess.run([PYTHON, "-m", "pip", "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return b"(python %d.%d)" % sys.version_info[:2] in pip.stdout
    return False


def call(*command: Any, **options: Any) -> int:
    """Run a command and return its exit code. The command itself handles Ctrl-C and SIGTERM."""
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
