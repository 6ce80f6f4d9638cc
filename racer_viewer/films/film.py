"""Films: the finished file, checks of its path, and progress at the terminal."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from racer_env.errors import RacerError, os_reason
from racer_viewer.paths import atomic_write
from racer_viewer.plain_text import make_console

SOURCE_FPS = 60
"""Frames per second that a film is made of, however fast the machine is."""
SUFFIXES = (".mp4", ".gif", ".png")


class FilmError(RacerError):
    """A film cannot be written; no part of it is left on disk."""


@dataclass(frozen=True)
class Film:
    """A finished film; for PNG pictures, `path` is the first of them."""

    path: Path
    frames: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.path}: {self.frames} frame{'s' if self.frames != 1 else ''}, {self.seconds:.2f} s"


def can_write_mp4() -> bool:
    return find_spec("imageio_ffmpeg") is not None


def check_film_path(path: Path) -> None:
    """Raise a `FilmError` if no film can be written to this path."""
    if path.suffix.lower() not in SUFFIXES:
        raise FilmError(f"{path.name} has no known film type: use a name that ends in .mp4, .gif or .png")
    if path.suffix.lower() == ".mp4" and not can_write_mp4():
        raise FilmError('MP4 films need one more package: pip install "racer-viewer[video]" (GIF and PNG need none)')
    if not path.parent.is_dir():
        raise FilmError(f"The folder {path.parent} for the film {path.name} does not exist")
    if not os.access(path.parent, os.W_OK):
        raise FilmError(f"The folder {path.parent} is not writable: choose another one for {path.name}")
    if path.is_dir():
        raise FilmError(f"{path} is a folder: choose another name for the film")


def write_error(path: Path, error: OSError) -> FilmError:
    """Return the `FilmError` for a film that could not be written."""
    return FilmError(f"The film {path} could not be written: {os_reason(error)}")


class FilmProgress:
    """Progress of a film on stderr: a bar on a terminal, and a line at the end.

    Parameters:
        known: whether the length is known; if not, the bar only shows activity
    """

    def __init__(self, title: str = "Making the film", known: bool = True) -> None:
        self._console = make_console(stderr=True)
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
        """Show the part that is done, 0 to 1."""
        self._bar.update(self._task, completed=share)

    def print(self, film: Film) -> None:
        """Print the path and the length of the finished film."""
        self._console.print(str(film), soft_wrap=True, highlight=False, markup=False)


class _DiscardedError(Exception):
    """The file is discarded."""


class AtomicFile:
    """A file written over a longer time: write to `temporary`, then `commit` or `discard` it.

    The same as `atomic_write`, for code that is not one block.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writing = atomic_write(path)
        self.temporary = self._writing.__enter__()

    def commit(self) -> Path:
        """Put the file into its place."""
        self._writing.__exit__(None, None, None)
        return self.path

    def discard(self) -> None:
        """Remove the temporary file; has no effect after `commit`."""
        self._writing.__exit__(_DiscardedError, _DiscardedError(), None)
