"""Hints at the terminal name the command that started the program."""

import sys
from pathlib import Path

import pytest

from racer_viewer.runtime import command_hint


def test_a_hint_names_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RACER_COMMAND", raising=False)
    assert (
        command_hint("train", "--resume", Path("runs", "mine")) == f"racer-viewer train --resume {Path('runs', 'mine')}"
    )
    assert command_hint() == "racer-viewer"


def test_from_source_a_hint_names_run_py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RACER_COMMAND", "python3 run.py")
    assert command_hint("train", "--resume", "my runs") == 'python3 run.py train --resume "my runs"'


def test_the_packaged_app_names_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RACER_COMMAND", raising=False)
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", "/opt/my apps/racer-viewer")
    assert command_hint("bridge") == '"/opt/my apps/racer-viewer" bridge'
