"""Film writers: numbered PNG pictures, GIF with 20 frames per second, and MP4 by ffmpeg.

`open_writer` chooses one by the suffix of the file name.
"""

from __future__ import annotations

import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pygame
from numpy.typing import NDArray
from PIL import GifImagePlugin, Image

from racer_env.errors import in_one_line
from racer_viewer.films.film import SOURCE_FPS, AtomicFile, FilmError, check_film_path
from racer_viewer.paths import temporary_path

MIN_DIGITS = 4
PNG_COMPRESSION = 1
"""Compression level of zlib; higher levels take several times as long and save a tenth."""


class PngWriter:
    """Writes a single picture as `out.png`, several as `out-0001.png` and so on, and moves them into place together.

    Remaining pictures of an older, longer film of the same name are removed.
    """

    frame_step = 1

    def __init__(self, path: Path, size: tuple[int, int]) -> None:
        self.path, self.size = path, size
        self.frames = 0
        self._temporaries = ExitStack()
        self._folder = self._temporaries.enter_context(temporary_path(path.with_suffix("")))
        self._folder.mkdir()

    def add(self, picture: pygame.Surface) -> None:
        self.frames += 1
        pixels = pygame.image.tobytes(picture, "RGB")
        image = Image.frombuffer("RGB", self.size, pixels, "raw", "RGB", 0, 1)
        image.save(self._temporary(self.frames), compress_level=PNG_COMPRESSION)

    def end(self) -> None:
        """Do nothing: every picture is written already."""

    @property
    def ended(self) -> bool:
        return True

    def finish(self) -> Path:
        try:
            if self.frames == 1:
                return self._temporary(1).replace(self.path)
            for number in range(1, self.frames + 1):
                self._temporary(number).replace(self._numbered(number))
            self._remove_older_pictures()
            return self._numbered(1)
        finally:
            self.cancel()

    def cancel(self) -> None:
        self._temporaries.close()

    def _temporary(self, number: int) -> Path:
        return self._folder / f"{number}.png"

    def _numbered(self, number: int) -> Path:
        digits = max(MIN_DIGITS, len(str(self.frames)))
        return self.path.with_name(f"{self.path.stem}-{number:0{digits}}{self.path.suffix}")

    def _remove_older_pictures(self) -> None:
        number = self.frames + 1
        while self._numbered(number).is_file():
            self._numbered(number).unlink()
            number += 1


GIF_FRAME_STEP = 3
GIF_FRAME_MS = GIF_FRAME_STEP * 1000 // SOURCE_FPS
"""Frame duration [ms]; GIF stores hundredths of a second, so 20 frames per second are exact."""
GIF_COLOURS = 96
PALETTE_FRAMES, PALETTE_SAMPLES = 60, 4
"""Frames at the start that the palette is chosen from (three seconds), and how many of them are sampled."""
MAX_PENDING_BYTES = 100_000_000
"""Maximum memory of frames that wait for the palette; large frames wait for a shorter time."""
UNCHANGED = 255
"""Palette index of pixels that do not change."""
MAX_CHANGED_PART = 0.25
"""Part of changed pixels up to which unchanged ones are left transparent; beyond it the whole area is smaller."""
MAX_GIF_WIDTH = 720
"""Maximum width of a GIF recorded from a window [px]; at twice the width, ten seconds take 56 MB instead of 14."""

Pixels = NDArray[np.uint8]


def gif_size(window: tuple[int, int]) -> tuple[int, int]:
    """Return the size of a GIF recorded from a window [px]."""
    scale = min(1.0, MAX_GIF_WIDTH / window[0])
    return round(window[0] * scale), round(window[1] * scale)


class GifWriter:
    """Writes frames as they arrive, with one palette for all, which makes the file much smaller."""

    frame_step = GIF_FRAME_STEP

    def __init__(self, path: Path, size: tuple[int, int]) -> None:
        self.size = size
        self.frames = 0
        self._pending: list[Image.Image] = []
        self._palette_frames = min(PALETTE_FRAMES, max(PALETTE_SAMPLES, MAX_PENDING_BYTES // (3 * size[0] * size[1])))
        self._palette: Image.Image | None = None
        self._last: Pixels | None = None
        self._file = AtomicFile(path)
        try:
            self._out = self._file.temporary.open("wb")
        except OSError:
            self._file.discard()
            raise

    def add(self, picture: pygame.Surface) -> None:
        self.frames += 1
        image = Image.frombytes("RGB", self.size, pygame.image.tobytes(picture, "RGB"))
        if self._palette is not None:
            self._write(image)
            return
        self._pending.append(image)
        if len(self._pending) == self._palette_frames:
            self._choose_palette()

    def end(self) -> None:
        if self._out.closed:
            return
        if self._palette is None:
            self._choose_palette()
        self._out.write(b";")
        self._out.close()

    @property
    def ended(self) -> bool:
        return self._out.closed

    def finish(self) -> Path:
        self.end()
        return self._file.commit()

    def cancel(self) -> None:
        self._pending.clear()
        with suppress(OSError):
            self._out.close()
        self._file.discard()

    def _choose_palette(self) -> None:
        """Choose the palette and write all pending frames."""
        pending, self._pending = self._pending, []
        self._palette = _choose_palette(pending[:: max(1, len(pending) // PALETTE_SAMPLES)])
        self._out.write(_header(self.size, self._palette.getpalette() or []))
        for image in pending:
            self._write(image)

    def _write(self, image: Image.Image) -> None:
        """Write the part of a frame that has changed."""
        pixels = np.asarray(image.quantize(palette=self._palette, dither=Image.Dither.NONE))
        (left, top), changed = _changed_part(self._last, pixels)
        self._last = pixels
        part = Image.fromarray(changed, "P")
        for data in GifImagePlugin.getdata(
            part, (left, top), duration=GIF_FRAME_MS, transparency=UNCHANGED, disposal=1
        ):
            self._out.write(data)


def _choose_palette(images: Sequence[Image.Image]) -> Image.Image:
    """Return an image with a palette for these. Colours are weighted by the root of their pixel counts, so that the
    grass does not take the colours of the cars."""
    pixels = np.concatenate([np.asarray(image).reshape(-1, 3) for image in images]).astype(np.uint32) >> 2
    kinds, counts = np.unique(pixels[:, 0] << 12 | pixels[:, 1] << 6 | pixels[:, 2], return_counts=True)
    weighted = np.repeat(kinds, np.ceil(np.sqrt(counts)).astype(np.intp))
    colours = np.stack([weighted >> 12, weighted >> 6 & 63, weighted & 63], axis=1) * 4 + 2
    return Image.fromarray(colours[np.newaxis].astype(np.uint8)).quantize(GIF_COLOURS)


def _changed_part(last: Pixels | None, pixels: Pixels) -> tuple[tuple[int, int], Pixels]:
    """Return position and pixels of the changed area; at least one pixel, which carries the frame's duration."""
    if last is None:
        return (0, 0), pixels
    differs = pixels != last
    rows, columns = np.flatnonzero(differs.any(axis=1)), np.flatnonzero(differs.any(axis=0))
    if not len(rows):
        return (0, 0), np.full((1, 1), UNCHANGED, np.uint8)
    top, bottom, left, right = rows[0], rows[-1] + 1, columns[0], columns[-1] + 1
    part = np.where(differs, pixels, UNCHANGED) if differs.mean() < MAX_CHANGED_PART else pixels
    return (int(left), int(top)), np.ascontiguousarray(part[top:bottom, left:right], np.uint8)


def _header(size: tuple[int, int], palette: list[int]) -> bytes:
    """Return the GIF header: size, palette and endless repetition."""
    table = bytes(palette[: 3 * UNCHANGED]).ljust(768, b"\0")
    screen = struct.pack("<HHBBB", *size, 0b1111_0111, 0, 0)
    return b"GIF89a" + screen + table + b"!\xff\x0bNETSCAPE2.0\x03\x01\0\0\0"


MP4_QUALITY = "17"
"""Constant rate factor of x264; thin lines and small letters stay sharp."""
MP4_PRESET = "veryfast"
CONVERSION = "scale=out_color_matrix=bt709:out_range=tv:flags=accurate_rnd+full_chroma_int,format=yuv420p"
"""Filter that converts to the colour space of HD video."""
MP4_COLOURS = ("-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709", "-color_range", "tv")
RED, GREEN, BLUE = 0xFF0000, 0xFF00, 0xFF
"""Colour masks of a surface whose bytes are in ffmpeg's bgr0 format."""
NO_SPACE = "No space left on device"


class Mp4Writer:
    """Writes H.264 with 60 frames per second. An odd last column or row is cut off, as the size must be even."""

    frame_step = 1

    def __init__(self, path: Path, size: tuple[int, int]) -> None:
        self.size = size[0] // 2 * 2, size[1] // 2 * 2
        self.frames = 0
        self._picture = pygame.Surface(self.size, depth=32, masks=(RED, GREEN, BLUE, 0))
        self._file = AtomicFile(path)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            self._ffmpeg = _start(self._file.temporary, self.size, self._errors)
        except BaseException:
            self._errors.close()
            self._file.discard()
            raise
        assert self._ffmpeg.stdin is not None
        self._input = self._ffmpeg.stdin

    def add(self, picture: pygame.Surface) -> None:
        self._picture.blit(picture, (0, 0))
        try:
            self._input.write(self._picture.get_buffer().raw)
        except OSError:
            raise self._failed() from None
        self.frames += 1

    def end(self) -> None:
        try:
            self._input.close()
        except OSError:
            raise self._failed() from None

    @property
    def ended(self) -> bool:
        return self._ffmpeg.poll() is not None

    def finish(self) -> Path:
        self.end()
        if self._ffmpeg.wait() != 0:
            raise self._failed()
        self._errors.close()
        return self._file.commit()

    def cancel(self) -> None:
        if not self.ended:
            self._ffmpeg.kill()
            self._ffmpeg.wait()
        with suppress(OSError):
            self._input.close()
        self._errors.close()
        self._file.discard()

    def _failed(self) -> FilmError:
        """Return an error with the reason that ffmpeg printed, after it has ended."""
        self._ffmpeg.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        if any(NO_SPACE in line for line in lines):
            return FilmError(f"The film {self._file.path} could not be written: there is no space left on the disk")
        reason = lines[-1] if lines else f"it ended with code {self._ffmpeg.returncode}"
        return FilmError(f"The film {self._file.path} could not be written, ffmpeg failed: {reason}")


def _start(path: Path, size: tuple[int, int], errors: Any) -> subprocess.Popen[bytes]:
    """Start ffmpeg so that Ctrl-C at the terminal does not reach it: this process decides whether to keep the film."""
    from imageio_ffmpeg import get_ffmpeg_exe  # type: ignore[import-untyped]

    pictures = ("-f", "rawvideo", "-pixel_format", "bgr0", "-video_size", f"{size[0]}x{size[1]}")
    rate = ("-framerate", str(SOURCE_FPS), "-i", "pipe:0")
    film = ("-an", "-vf", CONVERSION, "-c:v", "libx264", "-preset", MP4_PRESET, "-crf", MP4_QUALITY, *MP4_COLOURS)
    place = ("-movflags", "+faststart", "-f", "mp4", str(path))
    try:
        command = [get_ffmpeg_exe(), "-v", "error", "-y", *pictures, *rate, *film, *place]
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=sys.platform != "win32",
            creationflags=_new_group_without_window(),
        )
    except (OSError, RuntimeError) as error:
        raise FilmError(
            f"ffmpeg cannot be started: {in_one_line(error)}. Use a .gif or .png file, which needs no ffmpeg"
        ) from None


def _new_group_without_window() -> int:
    if sys.platform == "win32":
        return subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
    return 0


class FilmWriter(Protocol):
    """Writes pictures of `size` to a file. Its methods raise `FilmError` or OSError.

    Attributes:
        frames: number of pictures written
        frame_step: source frames from one picture of the film to the next
    """

    size: tuple[int, int]
    frames: int

    @property
    def frame_step(self) -> int: ...

    def add(self, picture: pygame.Surface) -> None: ...

    def end(self) -> None:
        """Complete the file after the last picture; this may go on in the background until `ended`."""

    @property
    def ended(self) -> bool: ...

    def finish(self) -> Path:
        """Wait until the file is complete and move it into place; return its path."""

    def cancel(self) -> None:
        """Remove everything that was written; has no effect after `finish`."""


_WRITERS: dict[str, Callable[[Path, tuple[int, int]], FilmWriter]] = {
    ".mp4": Mp4Writer,
    ".gif": GifWriter,
    ".png": PngWriter,
}


def open_writer(path: Path, size: tuple[int, int]) -> FilmWriter:
    """Return the writer for the suffix of a path."""
    check_film_path(path)
    return _WRITERS[path.suffix.lower()](path, size)
