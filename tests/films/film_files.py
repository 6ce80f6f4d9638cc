"""Reading films back, of any type."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import imageio_ffmpeg
import numpy as np
from PIL import Image

from tests.films.drive import Pixels


@dataclass(frozen=True)
class PlayedFilm:
    """Content of a film as a player shows it; `seconds` is the length stored in the file."""

    first: Pixels
    last: Pixels
    frames: int
    seconds: float


def watch(path: Path) -> PlayedFilm:
    return {".mp4": _watch_mp4, ".gif": _watch_gif, ".png": _watch_png}[path.suffix](path)


def _watch_mp4(path: Path) -> PlayedFilm:
    frames = imageio_ffmpeg.read_frames(path)
    facts = next(frames)
    width, height = facts["size"]
    assert facts["fps"] == 60
    assert facts["pix_fmt"].startswith("yuv420p")
    first = last = next(frames)
    count = 1
    for frame in frames:
        last = frame
        count += 1
    counted, _ = imageio_ffmpeg.count_frames_and_secs(path)
    assert counted == count
    pixels = [np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in (first, last)]
    return PlayedFilm(*pixels, count, facts["duration"])


def _watch_gif(path: Path) -> PlayedFilm:
    with Image.open(path) as film:
        first = np.asarray(film.convert("RGB"))
        milliseconds = []
        for number in range(film.n_frames):
            film.seek(number)
            milliseconds.append(film.info["duration"])
        assert set(milliseconds) == {50}
        return PlayedFilm(first, np.asarray(film.convert("RGB")), len(milliseconds), sum(milliseconds) / 1000)


def _watch_png(path: Path) -> PlayedFilm:
    paths = sorted(path.parent.glob(f"{path.stem}-*.png"))
    digits = max(4, len(str(len(paths))))
    assert [each.name for each in paths] == [f"{path.stem}-{n + 1:0{digits}}.png" for n in range(len(paths))]
    first, last = (np.asarray(Image.open(each).convert("RGB")) for each in (paths[0], paths[-1]))
    return PlayedFilm(first, last, len(paths), len(paths) / 60)


def difference(a: Pixels, b: Pixels) -> float:
    """Return the mean difference of two pictures over all pixels and colours, of 255."""
    return float(np.abs(a.astype(float) - b.astype(float)).mean())


def ffmpegs(folder: Path) -> list[int]:
    """Return ids of the ffmpeg processes that write into a folder; none outside Linux."""
    found = []
    for process in Path("/proc").glob("[0-9]*") if sys.platform == "linux" else ():
        try:
            command = (process / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if int(process.name) != os.getpid() and "ffmpeg" in command and str(folder) in command:
            found.append(int(process.name))
    return found


def nothing_in(folder: Path) -> bool:
    """Return whether a folder has no files, hidden ones included, and no ffmpeg writes into it."""
    return not list(folder.iterdir()) and not ffmpegs(folder)
