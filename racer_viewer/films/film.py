"""What a film is, and whether one can be written to a place."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from racer_env.errors import RacerError

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
