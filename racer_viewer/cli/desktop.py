"""`racer-viewer desktop`: an entry in the menu of applications, and replays that open with a double click.

Files follow the specifications of freedesktop.org and are in the user's own folder; nothing needs an administrator.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from racer_viewer.cli.options import Subparsers
from racer_viewer.runtime import APP, is_packaged

ICON = Path(__file__).parents[1] / "icon.png"
ICON_SIZES = (48, 64, 128, 256, 512)
"""Sizes of the installed icon [px]; the largest is that of `ICON`."""
REPLAY_TYPE = "application/x-racer-replay"
"""MIME type of replays. Circuits have none of their own: other programs open .json files too."""
DOCUMENT = "docs/desktop.md"
ENTRY = """\
[Desktop Entry]
Type=Application
Version=1.0
Name=Racer
GenericName=Racing game that learns to drive
GenericName[de]=Rennspiel, das fahren lernt
GenericName[fr]=Jeu de course qui apprend à conduire
Comment=Play, watch and train racing agents
Comment[de]=Rennen fahren, Agenten zusehen und sie trainieren
Comment[fr]=Piloter, regarder et entraîner des agents
TryExec={program}
Exec={command}
Icon={app}
Terminal=false
StartupWMClass={app}
Categories=Game;SportsGame;Simulation;
Keywords=racing;car;reinforcement learning;agent;replay;
MimeType={replay_type};
"""
MIME = """\
<?xml version="1.0" encoding="UTF-8"?>
<mime-info xmlns="http://www.freedesktop.org/standards/shared-mime-info">
  <mime-type type="{replay_type}">
    <comment>Racer replay</comment>
    <comment xml:lang="de">Racer-Wiederholung</comment>
    <comment xml:lang="fr">Rediffusion de Racer</comment>
    <sub-class-of type="application/zip"/>
    <icon name="{app}"/>
    <glob pattern="*.racer"/>
  </mime-type>
</mime-info>
"""
CACHES = (
    ("update-desktop-database", "applications"),
    ("update-mime-database", "mime"),
    ("gtk-update-icon-cache", "-q", "-t", "-f", "icons/hicolor"),
)
"""Programs that update what desktops read, with their arguments; the last one is a folder of the user's data."""
CACHE_TIMEOUT = 60.0
"""Time limit of each of these programs [s]."""
ELSEWHERE = {
    "win32": "right-click a .racer file, choose Open with, then the program racer-viewer.exe of the packaged app",
    "darwin": "drag the packaged racer-viewer.app to Applications; it opens .racer files from there",
}
"""Instructions for systems without these specifications."""


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "desktop",
        help="add Racer to the desktop's menu, or remove it",
        description="Add Racer to the desktop's menu of applications on Linux, with its icon, and let .racer files "
        f"open with it. {DOCUMENT} describes Windows and macOS.",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--install", action="store_true", help="add the entry, its icon and the type of .racer files")
    what.add_argument("--uninstall", action="store_true", help="remove what --install added")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Install or remove the files, and print them."""
    if hint := ELSEWHERE.get(sys.platform):
        from racer_env.errors import RacerError

        raise RacerError(f"desktop entries are for Linux; here, {hint} ({DOCUMENT})")
    folder = data_home()
    if options.uninstall:
        removed = [path for path in entry_files(folder, ()) if _removed(path)]
        print(*removed, sep="\n", end="\n" if removed else "")
        print("Racer was removed from the desktop's menu." if removed else "There was nothing to remove.")
    else:
        arguments = ["--data-dir", str(options.data_dir.absolute())] if options.data_dir is not None else []
        files = entry_files(folder, [*launcher(), "%F", *arguments])
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        print(*files, sep="\n")
        print("Racer is in the desktop's menu now, and .racer files open with it.")
    missing = _update_caches(folder)
    if options.install and "update-mime-database" in missing:
        print("For .racer files the desktop needs the package shared-mime-info; install it and run this again.")
    return 0


def data_home() -> Path:
    """Return the folder of the user's desktop entries, icons and MIME types."""
    folder = Path(os.environ.get("XDG_DATA_HOME", ""))
    return folder if folder.is_absolute() else Path.home() / ".local" / "share"


def launcher() -> list[str]:
    """Return the command that opens the app from anywhere, in the way in which it was started now."""
    from racer_viewer.optional import can_install, install_command

    if is_packaged():
        return [sys.executable]
    if can_install():
        return install_command()  # run.py brings packages up to date
    return [sys.executable, "-P", "-m", "racer_viewer"]


def entry_files(folder: Path, command: Sequence[str]) -> dict[Path, bytes]:
    """Return the content of all files by path. folder: the user's data. command: program and arguments of the entry."""
    program = command[0] if command else ""
    entry = ENTRY.format(
        app=APP, replay_type=REPLAY_TYPE, program=_escaped(program), command=" ".join(map(_exec_argument, command))
    )
    texts = {
        folder / "applications" / f"{APP}.desktop": entry,
        folder / "mime" / "packages" / f"{APP}.xml": MIME.format(app=APP, replay_type=REPLAY_TYPE),
    }
    icons = {folder / "icons" / "hicolor" / f"{size}x{size}" / "apps" / f"{APP}.png": size for size in ICON_SIZES}
    return {path: text.encode() for path, text in texts.items()} | {
        path: _icon(size) if command else b"" for path, size in icons.items()
    }


def _exec_argument(argument: str) -> str:
    """Quote an argument of the key Exec; `%F` stands for files and stays as it is."""
    if argument == "%F":
        return argument
    quoted = "".join(f"\\{each}" if each in '"`$\\' else each for each in argument.replace("%", "%%"))
    return _escaped(f'"{quoted}"')


def _escaped(value: str) -> str:
    """Escape a string value of a desktop entry."""
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")


def _icon(size: int) -> bytes:
    from PIL import Image

    if size == ICON_SIZES[-1]:
        return ICON.read_bytes()
    scaled = io.BytesIO()
    with Image.open(ICON) as icon:
        icon.resize((size, size), Image.Resampling.LANCZOS).save(scaled, "PNG", optimize=True)
    return scaled.getvalue()


def _removed(path: Path) -> bool:
    """Remove a file; return whether it was there."""
    with suppress(FileNotFoundError):
        path.unlink()
        return True
    return False


def _update_caches(folder: Path) -> list[str]:
    """Let the desktop read the files again; return the programs for it that are not installed."""
    missing = []
    for program, *arguments, part in CACHES:
        if shutil.which(program) is None:
            missing.append(program)
        elif (folder / part).is_dir():
            with suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(
                    [program, *arguments, folder / part],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    timeout=CACHE_TIMEOUT,
                )
    return missing
