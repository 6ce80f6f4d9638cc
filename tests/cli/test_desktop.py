"""The desktop's entry, and files in place of a command, as desktops start programs."""

import configparser
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pygame
import pytest

from racer_env.engine import Config, Start, circuits
from racer_viewer.app.window import App
from racer_viewer.cli import main
from racer_viewer.modes.replay_screen import ReplayScreen
from racer_viewer.modes.screen import MessageScreen, Screen
from racer_viewer.modes.watch import WatchScreen
from racer_viewer.replays import ReplayRecorder, save_replay

ROOT = Path(__file__).parents[2]
LIMIT = 90.0
"""Time limit of a screen that is waited for [s]."""
MIME = "{http://www.freedesktop.org/standards/shared-mime-info}"
on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="desktop entries are for Linux")


@pytest.fixture
def share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the user's desktop entries, with a name that must be quoted."""
    folder = tmp_path / "my $share"
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))
    return folder


def entry_in(share: Path) -> dict[str, str]:
    """Return the keys of the installed entry."""
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(share / "applications" / "racer-viewer.desktop", encoding="utf-8")
    return dict(parser["Desktop Entry"])


def started_by(command: str, *files: str) -> list[str]:
    """Return the arguments that a desktop starts a program with, for a value of the key Exec."""
    value = command.replace("\\\\", "\\")
    arguments: list[str] = []
    for quoted, plain in re.findall(r'"((?:[^"\\]|\\.)*)"|(\S+)', value):
        if plain == "%F":
            arguments += files
        else:
            arguments.append(re.sub(r"\\(.)", r"\1", quoted or plain).replace("%%", "%"))
    return arguments


@on_linux
def test_the_entry_its_icons_and_the_type_of_replays_are_installed(
    share: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["desktop", "--install"]) == 0
    entry = entry_in(share)
    assert entry["Type"] == "Application"
    assert entry["MimeType"] == "application/x-racer-replay;"
    assert entry["Comment[de]"]
    assert os.access(entry["TryExec"], os.X_OK)
    for icon in share.glob(f"icons/hicolor/*/apps/{entry['Icon']}.png"):
        width, height = pygame.image.load(icon).get_size()
        assert icon.parents[1].name == f"{width}x{height}"
    assert len([*share.glob("icons/hicolor/*/apps/*.png")]) == 5
    [kind] = ElementTree.parse(share / "mime" / "packages" / "racer-viewer.xml").getroot()
    assert f"{kind.attrib['type']};" == entry["MimeType"]
    assert [glob.attrib["pattern"] for glob in kind.iter(f"{MIME}glob")] == ["*.racer"]
    lines = capsys.readouterr().out.splitlines()
    assert str(share / "applications" / "racer-viewer.desktop") in lines
    assert ".racer files open with it" in lines[7]


@on_linux
@pytest.mark.skipif(shutil.which("desktop-file-validate") is None, reason="desktop-file-utils is not installed")
def test_the_entry_is_valid(share: Path) -> None:
    assert main(["desktop", "--install"]) == 0
    entry = share / "applications" / "racer-viewer.desktop"
    checked = subprocess.run(["desktop-file-validate", entry], capture_output=True, text=True)
    assert (checked.returncode, checked.stdout) == (0, "")


@on_linux
def test_uninstall_removes_every_file_and_says_so_once(share: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["desktop", "--install"]) == 0
    assert main(["desktop", "--uninstall"]) == 0
    assert not [path for path in share.rglob("racer-viewer*") if path.is_file()]
    assert "was removed" in capsys.readouterr().out
    assert main(["desktop", "--uninstall"]) == 0
    assert capsys.readouterr().out == "There was nothing to remove.\n"


@on_linux
def test_the_entry_starts_the_app_in_the_way_it_was_started(share: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = "one.racer", "two.racer"
    monkeypatch.delenv("RACER_COMMAND", raising=False)
    data = share / 'da"ta %'
    assert main(["--data-dir", str(data), "desktop", "--install"]) == 0
    module = [sys.executable, "-P", "-m", "racer_viewer", *files]
    assert started_by(entry_in(share)["Exec"], *files) == [*module, "--data-dir", str(data)]
    version = subprocess.run([*module[:4], "--version"], cwd=share, capture_output=True, text=True)
    assert version.stdout.startswith("racer-viewer "), version.stderr

    monkeypatch.setenv("RACER_COMMAND", "python run.py")
    assert main(["desktop", "--install"]) == 0
    python, *arguments = started_by(entry_in(share)["Exec"], *files)
    assert Path(python).is_file()
    assert arguments == [str(ROOT / "run.py"), *files]

    monkeypatch.setattr("sys.frozen", True, raising=False)
    assert main(["desktop", "--install"]) == 0
    assert started_by(entry_in(share)["Exec"], *files) == [sys.executable, *files]


@pytest.mark.parametrize(("platform", "hint"), [("win32", "Open with"), ("darwin", "Applications")])
def test_on_other_systems_one_line_explains_what_to_do(
    platform: str, hint: str, share: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.platform", platform)
    assert main(["desktop", "--install"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert hint in line
    assert "docs/desktop.md" in line
    assert not share.exists()


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Screen]:
    """The screens that are shown when the window of a command is open, until the engine is ready."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("SDL_AUDIODRIVER", "dummy")
    monkeypatch.setenv("RACER_DATA_DIR", str(tmp_path / "data"))
    screens: list[Screen] = []

    def run(app: App) -> None:
        end = time.monotonic() + LIMIT
        app.context.warmup.wait()
        while not isinstance(app.context.top, ReplayScreen | WatchScreen | MessageScreen):
            assert time.monotonic() < end
            app.frame(1.0 / 60.0)
        screens.append(app.context.top)
        app.close()

    monkeypatch.setattr("racer_viewer.app.window.App.run", run)
    return screens


def test_files_in_place_of_a_command_open_in_the_window(tmp_path: Path, opened: list[Screen]) -> None:
    recorder = ReplayRecorder(circuits()[0], Config(), Start(), 0, "me")
    for _ in range(30):
        recorder.add([0.0, 1.0, 0.0], 0.0)
    drives = [tmp_path / "a drive.racer", tmp_path / "other.racer"]
    for drive in drives:
        save_replay(recorder.replay(), drive)
    other = tmp_path / "notes.txt"
    other.write_text("nothing to open")
    assert main([*map(str, drives), "--data-dir", str(tmp_path)]) == 0
    assert main([str(ROOT / "models" / "champion.zip")]) == 0
    assert main([str(other)]) == 0
    replay, watch, message = opened
    assert isinstance(replay, ReplayScreen)
    assert isinstance(watch, WatchScreen)
    assert isinstance(message, MessageScreen)
    assert "notes.txt" in message.text


def test_a_file_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nowhere/drive.racer"]) == 2
    assert capsys.readouterr().err == "racer-viewer: there is no file nowhere/drive.racer\n"
