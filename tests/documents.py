"""Commands and snippets in documents, to be run as written."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from racer_viewer.app.window import App
from racer_viewer.cli import main

ROOT = Path(__file__).parent.parent
RUN = "python run.py"
BENCHES = {
    f"bench {what}"
    for what in (
        "engine",
        "bridge",
        "train",
        "train --preview",
        "learn",
        "learn --wall",
        "render",
        "render --seconds 6",
        "render --size 1280x720 1920x1080 --camera follow turn --seconds 2",
        "start",
        "games",
        "rewards",
    )
}
SERVERS = {"bridge", "stdio --env-id CartPole-v1", "games --num-games 6"}
TRIED_ELSEWHERE = {"", "--help", "test", "test --slow", "selftest", "selftest --json"} | BENCHES | SERVERS
"""Commands that other tests run: test_fresh_machine.py, tests/cli and the folders of these names."""
OF_RUN_PY = ("docs", "package", "--with")
"""Arguments of run.py that are not verbs of the app; test_docs.py and CI run these."""
WITH_RAY = "--with ray "
PATIENCE = 60.0
"""Time limit until a window shows a drive [s]."""


@dataclass(frozen=True)
class Document:
    """A Markdown file of the repository."""

    name: str

    @cached_property
    def text(self) -> str:
        return (ROOT / self.name).read_text(encoding="utf-8")

    @cached_property
    def blocks(self) -> list[tuple[str, str]]:
        """Fenced code: its language and its content."""
        return re.findall(r"```(\w*)\n(.*?)```", self.text, re.DOTALL)

    def snippets(self, language: str) -> list[str]:
        return [text for known, text in self.blocks if known == language]

    @property
    def commands(self) -> list[str]:
        """Arguments of `python run.py` in code blocks without a language, in document order."""
        return [command for command in self._commands if command.split(" ")[0] not in OF_RUN_PY]

    @property
    def commands_with_ray(self) -> list[str]:
        """Arguments of `python run.py --with ray`."""
        return [each.removeprefix(WITH_RAY) for each in self._commands if each.startswith(WITH_RAY)]

    @property
    def _commands(self) -> list[str]:
        lines = (line for text in self.snippets("") for line in text.splitlines())
        return [line.split("#")[0].removeprefix(RUN).strip() for line in lines if line.startswith(RUN)]


def run_snippet(code: str, name: str) -> None:
    exec(compile(code, name, "exec"), {})


def needs_a_window(command: str) -> bool:
    """Return True if the command opens a window on a machine with a display."""
    at_the_terminal = ("--headless", "--settings", "--record")
    return command.startswith(("play", "watch", "replay", "train")) and not any(
        each in command for each in at_the_terminal
    )


def run_until_somebody_drives(command: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Call a command whose window is closed as soon as there is something to see: the kinds of screens on top then."""
    driven: list[str] = []

    def until_somebody_drives(app: App) -> None:
        app.context.warmup.wait()
        end = time.monotonic() + PATIENCE
        while app.context.top is None or app.context.top.view is None:
            assert time.monotonic() < end, app.context.top
            app.frame(1.0 / 60.0)
        driven.append(type(app.context.top).__name__.removesuffix("Screen").lower())
        app.close()

    monkeypatch.setattr(App, "run", until_somebody_drives)
    assert main(shlex.split(command)) == 0
    return driven


def table_rows(text: str, heading: str) -> list[list[str]]:
    """Return the cells of all table rows below a heading."""
    section = re.split(r"^## ", text.split(f"\n## {heading}\n")[1], flags=re.M)[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|") and "---" not in line]
    return [[cell.strip().replace("−", "-") for cell in row] for row in rows]


def run_all(commands: Iterable[str]) -> None:
    """One after the other, here: later ones use what earlier ones made."""
    for command in commands:
        assert main(shlex.split(command)) == 0, command


def with_steps(command: str, steps: int) -> str:
    """The same for fewer steps of learning: to try a command it need not become good.

    A run that goes on from a clone keeps its number, since cloning has taken more steps.
    """
    if "--resume pupil" in command:
        return command
    return re.sub(r"--timesteps \d+", f"--timesteps {steps}", command)
