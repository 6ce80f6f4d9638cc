"""What a film is, and whether one can be written to a place.

How far a film is, for somebody at the terminal.

A file that is written beside its place."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from racer_env.errors import RacerError
from racer_viewer.paths import atomic_write

MOMENTS_PER_SECOND = 60
"""Whatever the machine does."""
ENDINGS = (".mp4", ".gif", ".png")


class FilmError(RacerError):
    """A film cannot be written. Nothing of it is left in its place."""


@dataclass(frozen=True)
class Film:
    """A film that is whole. path: of a row of PNGs the first one. frames: pictures in it."""

    path: Path
    frames: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.path}: {self.frames} frame{'s' if self.frames != 1 else ''}, {self.seconds:.2f} s"


def can_write_mp4() -> bool:
    return find_spec("imageio_ffmpeg") is not None


def check_place(path: Path) -> None:
    """Raise a `FilmError` if it is known beforehand that no film can be written there."""
    if path.suffix.lower() not in ENDINGS:
        raise FilmError(f"{path.name} does not say what kind of film it should be: let it end in .mp4, .gif or .png")
    if path.suffix.lower() == ".mp4" and not can_write_mp4():
        raise FilmError(
            'A film in MP4 needs one more package: pip install "racer-viewer[video]" (GIF and PNG need none)'
        )
    if not path.parent.is_dir():
        raise FilmError(f"There is no folder {path.parent} to write the film {path.name} in")
    if not os.access(path.parent, os.W_OK):
        raise FilmError(f"Nothing can be written in the folder {path.parent}: choose another one for {path.name}")
    if path.is_dir():
        raise FilmError(f"{path} is a folder: choose another name for the film")


def not_written(path: Path, error: OSError) -> FilmError:
    """The film cannot be written, because of this."""
    return FilmError(f"The film {path} could not be written: {error.strerror or error}")


class FilmProgress:
    """A bar where something can move; elsewhere nothing but the line at the end. Both go to stderr.

    known: whether it is known beforehand how long the film will be; else the bar only shows that something goes on.
    """

    def __init__(self, title: str = "Making the film", known: bool = True) -> None:
        self._console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task(title, total=1.0 if known else None)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._bar.stop()

    def __call__(self, share: float) -> None:
        """So much is done, 0 to 1."""
        self._bar.update(self._task, completed=share)

    def tell(self, film: Film) -> None:
        """Where it is."""
        self._console.print(str(film), soft_wrap=True, highlight=False, markup=False)


class _DroppedError(Exception):
    """What was written is not wanted."""


class PlacedFile:
    """Write to `temporary`, then `place` or `drop` it: there never is a part of a file in its place."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writing = atomic_write(path)
        self.temporary = self._writing.__enter__()

    def place(self) -> Path:
        self._writing.__exit__(None, None, None)
        return self.path

    def drop(self) -> None:
        """Has no effect on a file that is in its place already."""
        reason = _DroppedError()
        self._writing.__exit__(_DroppedError, reason, None)
