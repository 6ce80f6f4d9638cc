"""Who writes a film, by the ending of its name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pygame

from racer_viewer.films.film import check_place
from racer_viewer.films.gif import GifWriter
from racer_viewer.films.mp4 import Mp4Writer
from racer_viewer.films.png import PngWriter


class FilmWriter(Protocol):
    """Takes pictures of `size` and makes a file of them. Its methods raise `FilmError` or OSError.

    moments_per_frame: sixtieths of a second from one picture to the next.
    """

    size: tuple[int, int]
    frames: int

    @property
    def moments_per_frame(self) -> int: ...

    def add(self, picture: pygame.Surface) -> None: ...

    def end(self) -> None:
        """No more pictures will come; what is still to be done may go on in the background until `ended`."""

    @property
    def ended(self) -> bool: ...

    def finish(self) -> Path:
        """Put the film into its place."""

    def cancel(self) -> None:
        """Nothing is left of it, whatever happened before; a film that is in its place stays."""


_WRITERS: dict[str, Callable[[Path, tuple[int, int]], FilmWriter]] = {
    ".mp4": Mp4Writer,
    ".gif": GifWriter,
    ".png": PngWriter,
}


def open_writer(path: Path, size: tuple[int, int]) -> FilmWriter:
    check_place(path)
    return _WRITERS[path.suffix.lower()](path, size)
