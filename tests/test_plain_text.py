"""Names and messages of strangers cannot control a terminal or disguise themselves on a screen."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from racer_viewer.agents import models_folder
from racer_viewer.plain_text import is_utf8, plain_line, plain_text
from racer_viewer.ui.theme import Theme

TITLE = "\x1b]0;owned\x07"
"""Sequence that sets the title of a terminal."""
HOSTILE = f"Evil{TITLE}\x1b[31m\x9b2J\u202egnp.exe\u2066\r\x08"
FORBIDDEN = "\x1b\x07\x9b\u202e\u2066\r\x08"


def run(*arguments: str | bytes | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "racer_viewer", *arguments]
    environment = {**os.environ, **variables}
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False, env=environment)


def write_circuit(path: Path, name: str) -> Path:
    angles = np.linspace(0.0, 2.0 * np.pi, 12, endpoint=False)
    points = [[300.0 * np.cos(angle), 200.0 * np.sin(angle), 20.0] for angle in angles]
    path.write_text(json.dumps({"name": name, "control_points": points}))
    return path


def test_ordinary_text_stays_as_it_is() -> None:
    text = "Spa – Grüße 東京 🏎\n\tsecond line"
    assert plain_text(text) == text
    assert plain_line(text) == "Spa – Grüße 東京 🏎  second line"


def test_control_characters_and_direction_overrides_are_removed() -> None:
    assert plain_text(HOSTILE) == "Evil]0;owned2Jgnp.exe"
    assert plain_line("a\nb\udcff\u2028c") == "a b\ufffdc"
    assert len(plain_line("x" * 10**6)) <= 2000


def test_a_name_that_is_not_utf8_is_recognised() -> None:
    assert is_utf8("Grüße")
    assert not is_utf8(os.fsdecode(b"run-\xff"))


def test_a_hostile_circuit_name_reaches_no_terminal(tmp_path: Path) -> None:
    path = write_circuit(tmp_path / "evil.json", HOSTILE + "[/bold][link=x]")
    result = run("tracks", path, FORCE_COLOR="1", COLUMNS="200")
    assert result.returncode == 0, result.stderr
    assert "Evil]0;owned2Jgnp.exe[/bold][link=x]" in re.sub(r"\x1b\[\d+m", "", result.stdout)
    assert "\x1b[1m" in result.stdout  # the command's own colours stay
    assert not set(FORBIDDEN[1:]) & set(result.stdout)
    assert TITLE not in result.stdout


def test_a_hostile_file_name_in_a_table_is_shown_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "[bold]x.zip"
    shutil.copy(models_folder() / "champion.zip", path)
    result = run("evaluate", path, "--track", "track-01")
    assert result.returncode == 0, result.stderr
    assert "[bold]x" in result.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="such names do not exist there")
def test_an_error_that_quotes_a_file_is_one_line_without_controls(tmp_path: Path) -> None:
    path = tmp_path / f"a{HOSTILE}\nracer-viewer: all is well.zip"
    path.write_bytes(b"no model")
    result = run("evaluate", path)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert not set(FORBIDDEN) & set(result.stderr)


@pytest.mark.skipif(sys.platform != "linux", reason="file names of other systems are Unicode")
@pytest.mark.parametrize("option", ["--name", "--from", "--resume", "--data-dir", "--like", "--track", "--config"])
def test_a_path_that_is_not_utf8_is_refused_before_a_run_starts(option: str, tmp_path: Path) -> None:
    named = os.fsencode(tmp_path) + b"/run-\xff"
    result = run("train", "--headless", option, named, RACER_DATA_DIR=str(tmp_path / "data"))
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "not valid UTF-8: rename" in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_screen_draws_no_control_characters() -> None:
    theme = Theme()
    assert theme.width(f"Spa{HOSTILE}") == theme.width("SpaEvil]0;owned2Jgnp.exe")
    drawn, plain = theme.text("Spa\x07\u202e\udcff"), theme.text("Spa\ufffd")
    assert drawn.get_size() == plain.get_size()
    assert drawn.get_buffer().raw == plain.get_buffer().raw


def test_a_very_long_name_costs_a_screen_little() -> None:
    theme, name, start = Theme(), "x" * 10**6, time.process_time()
    cut = theme.truncate(name, 300)
    assert theme.width(cut) <= 300
    assert len(cut) > 10
    assert all(theme.width(line) <= 300 for line in theme.wrapped(name, 300))
    assert theme.text(name).get_width() < 2**16
    assert time.process_time() - start < 1.0
