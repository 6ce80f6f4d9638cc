"""Optional packages: which features need them, whether they are installed, and their installation by run.py."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import invalidate_caches
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

from racer_env.box2d import FIRST_UNSUPPORTED_PYTHON
from racer_env.errors import RacerError
from racer_viewer.runtime import COMMAND_VARIABLE, is_packaged
from racer_viewer.translation import mark

RUN_PY = Path(__file__).resolve().parents[1] / "run.py"
PROGRESS = re.compile(r"  \S+ (\d+)/(\d+): (.*)")
"""Line that run.py prints for each package: its number, the number of packages, and what is done."""
INSTALLED_VARIABLE = "RACER_INSTALLED"
"""Environment variable with the part that was installed to run a command again; it is not installed twice."""


@dataclass(frozen=True)
class OptionalPart:
    """Packages that some features need.

    name: extra of the project, and part of run.py. title: name of its main package. modules: modules that it adds.
    features: what needs it, as the subject of a sentence.
    megabytes: approximate size of the download [MB]. own_venv: True if run.py installs it in a venv of its own.
    note: a sentence about the download; empty without one. features and note are marked for translation.
    """

    name: str
    title: str
    modules: tuple[str, ...]
    features: str
    megabytes: int
    own_venv: bool = False
    note: str = ""

    @property
    def is_installed(self) -> bool:
        """True if all modules are found and no installation was interrupted; nothing is imported."""
        stamp = Path(sys.prefix, f"{self.name}.installed")  # run.py writes it; it is empty during an installation
        interrupted = stamp.is_file() and not stamp.stat().st_size
        return not interrupted and all(_is_found(module) for module in self.modules)

    @property
    def hint(self) -> str:
        """Instruction to install the part."""
        if is_packaged():
            return "the packaged app does not include them: get the source and use python run.py"
        pip = f'pip install "racer-viewer[{self.name}]"'
        if not RUN_PY.is_file():
            return pip
        command = os.environ.get(COMMAND_VARIABLE, "python run.py")
        return f"use {command} --with {self.name} …, or {pip}"

    def require(self) -> None:
        """Raise MissingPartError unless the part is installed."""
        if not self.is_installed:
            raise MissingPartError(self)


SB3 = OptionalPart(
    "sb3",
    "stable-baselines3",
    ("torch", "stable_baselines3", "tensorboard"),
    mark("SAC, --engine sb3 and TensorBoard"),
    225,
    note=mark("It is several gigabytes if pip finds only torch's build for graphics cards.")
    if sys.platform == "linux"
    else "",
)
GAMES = OptionalPart("games", "Box2D", ("Box2D",), mark("CarRacing-v3 and other games with Box2D"), 4)
RAY = OptionalPart("ray", "Ray", ("ray",), mark("--engine ray and tune"), 400, own_venv=True)
VIDEO = OptionalPart("video", "ffmpeg", ("imageio_ffmpeg",), mark("MP4 videos"), 30)
PARTS = {part.name: part for part in (SB3, GAMES, RAY, VIDEO)}
"""Optional parts by name."""


BOX2D_GAMES = ("CarRacing-", "LunarLander-", "BipedalWalker-")
"""Starts of the ids of Gymnasium's environments that need Box2D."""


class MissingPartError(RacerError):
    """A feature needs packages that are not installed."""

    def __init__(self, part: OptionalPart) -> None:
        self.part = part
        super().__init__(f"{part.features} need packages that are not installed: {part.hint}")


def can_install() -> bool:
    """Return whether this program was started by run.py, which can install parts."""
    return COMMAND_VARIABLE in os.environ and RUN_PY.is_file() and not is_packaged()


def require_for_environment(env_id: str) -> None:
    """Raise MissingPartError if an environment needs Box2D, which can be installed from here."""
    if env_id.startswith(BOX2D_GAMES) and can_install() and sys.version_info < FIRST_UNSUPPORTED_PYTHON:
        GAMES.require()


def install_command(*arguments: str) -> list[str]:
    """Return the command that runs run.py with these arguments."""
    return [getattr(sys, "_base_executable", sys.executable), str(RUN_PY), *arguments]


def install_and_run_again(part: OptionalPart, arguments: Sequence[str], ask: bool) -> int | None:
    """Install a part and run this command line again, in this process's place; return its exit code.

    Return None if the part cannot be installed from here, or the user does not want it. A question is asked only on a
    terminal.
    """
    if not can_install() or os.environ.get(INSTALLED_VARIABLE) == part.name:
        return None
    terminal = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
    if ask and terminal and not _confirmed(part):
        return None
    command = install_command("--with", part.name, *arguments)
    environment = {**os.environ, INSTALLED_VARIABLE: part.name}
    if sys.platform != "win32":
        os.execve(command[0], command, environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the other process, which may have work to save
    return subprocess.call(command, env=environment)


class Installation:
    """A process of run.py that installs a part.

    done: whether it has ended. share: part of the packages that was downloaded, 0 to 1. text: what it does now.
    """

    def __init__(self, part: OptionalPart) -> None:
        self.done, self.share, self.text = False, 0.0, ""
        self._problem = ""
        self._process = subprocess.Popen(
            install_command("install", part.name),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        )
        Thread(target=self._follow, name="racer-install", daemon=True).start()

    def finish(self) -> None:
        """Make the installed packages importable; raise RacerError if the installation has failed."""
        if self._process.returncode:
            raise RacerError(self._problem or f"the installation ended with exit code {self._process.returncode}")
        invalidate_caches()

    def cancel(self) -> None:
        """End the process; the next installation of the part completes it."""
        self._process.terminate()

    def _follow(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if progress := PROGRESS.match(line):
                self.share, self.text = int(progress[1]) / max(1, int(progress[2])), progress[3]
            else:
                self._problem = line.strip().removeprefix("run.py: ")
        self._process.wait()
        self.done = True


def _confirmed(part: OptionalPart) -> bool:
    question = f"{part.features} need more packages, about {part.megabytes} MB to download."
    print(*filter(None, (question, part.note)), "Install them now? [Y/n] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("", "y", "yes")


def _is_found(module: str) -> bool:
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):  # something else hides it
        return False
    return spec is not None and spec.origin is not None  # a folder of that name is not the package
