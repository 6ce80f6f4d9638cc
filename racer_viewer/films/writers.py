"""PNGs: every picture to the last bit, numbered.

GIF: twenty pictures a second, which it can say exactly, written as they come.

MP4 by an ffmpeg of our own, which is fed one picture after the other and never outlives the film.

Who writes a film, by the ending of its name."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pygame
from numpy.typing import NDArray
from PIL import GifImagePlugin, Image

from racer_viewer.films.film import MOMENTS_PER_SECOND, FilmError, PlacedFile, check_place

LEAST_DIGITS = 4
COMPRESSION = 1
"""Of zlib: more takes several times as long, and saves a tenth."""


class PngWriter:
    """`out.png` if it is a single picture, else `out-0001.png` and so on. They come to their places when all are there.

    A longer film that was there under the same name goes with what is written over it.
    """

    moments_per_frame = 1

    def __init__(self, path: Path, size: tuple[int, int]) -> None:
        self.path, self.size = path, size
        self.frames = 0
        self._folder = Path(tempfile.mkdtemp(prefix=f".{path.stem}-", dir=path.parent))

    def add(self, picture: pygame.Surface) -> None:
        self.frames += 1
        pixels = pygame.image.tobytes(picture, "RGB")
        image = Image.frombuffer("RGB", self.size, pixels, "raw", "RGB", 0, 1)
        image.save(self._waiting(self.frames), compress_level=COMPRESSION)

    def end(self) -> None:
        """Nothing is left to do."""

    @property
    def ended(self) -> bool:
        return True

    def finish(self) -> Path:
        try:
            if self.frames == 1:
                return self._waiting(1).replace(self.path)
            for number in range(1, self.frames + 1):
                self._waiting(number).replace(self._place(number))
            self._remove_rest_of_older_film()
            return self._place(1)
        finally:
            self.cancel()

    def cancel(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _waiting(self, number: int) -> Path:
        return self._folder / f"{number}.png"

    def _place(self, number: int) -> Path:
        digits = max(LEAST_DIGITS, len(str(self.frames)))
        return self.path.with_name(f"{self.path.stem}-{number:0{digits}}{self.path.suffix}")

    def _remove_rest_of_older_film(self) -> None:
        number = self.frames + 1
        while self._place(number).is_file():
            self._place(number).unlink()
            number += 1


MOMENTS_PER_FRAME = 3
FRAME_MILLISECONDS = MOMENTS_PER_FRAME * 1000 // MOMENTS_PER_SECOND
GIF_COLOURS = 96
LOOKED_AT, SAMPLES = 60, 4
"""Pictures at the beginning that the colours are chosen from, three seconds, and how many of them are looked at."""
MOST_WAITING = 100_000_000
"""Bytes of pictures that may wait for the colours: large ones are looked at for a shorter time."""
UNCHANGED = 255
"""The colour of pixels that stay as they were."""
FEW_CHANGED = 0.25
"""Of all pixels: if there are more, as where the camera moves, it takes less room to write all of them."""

WIDEST = 720
"""That what was seen in a window is made [px]: so ten seconds take some 14 MB, and twice as wide four times that."""

Pixels = NDArray[np.uint8]


def fitting_size(window: tuple[int, int]) -> tuple[int, int]:
    """Of a GIF of what was seen in a window."""
    shrunk = min(1.0, WIDEST / window[0])
    return round(window[0] * shrunk), round(window[1] * shrunk)


class GifWriter:
    """All pictures have the same colours, which makes a film much smaller than each in its own."""

    moments_per_frame = MOMENTS_PER_FRAME

    def __init__(self, path: Path, size: tuple[int, int]) -> None:
        self.size = size
        self.frames = 0
        self._waiting: list[Image.Image] = []
        self._looked_at = min(LOOKED_AT, max(SAMPLES, MOST_WAITING // (3 * size[0] * size[1])))
        self._colours: Image.Image | None = None
        self._last: Pixels | None = None
        self._file = PlacedFile(path)
        try:
            self._out = self._file.temporary.open("wb")
        except OSError:
            self._file.drop()
            raise

    def add(self, picture: pygame.Surface) -> None:
        self.frames += 1
        image = Image.frombytes("RGB", self.size, pygame.image.tobytes(picture, "RGB"))
        if self._colours is not None:
            self._write(image)
            return
        self._waiting.append(image)
        if len(self._waiting) == self._looked_at:
            self._choose_colours()

    def end(self) -> None:
        if self._out.closed:
            return
        if self._colours is None:
            self._choose_colours()
        self._out.write(b";")
        self._out.close()

    @property
    def ended(self) -> bool:
        return self._out.closed

    def finish(self) -> Path:
        self.end()
        return self._file.place()

    def cancel(self) -> None:
        self._waiting.clear()
        with suppress(OSError):
            self._out.close()
        self._file.drop()

    def _choose_colours(self) -> None:
        """And write all that waited for them."""
        waiting, self._waiting = self._waiting, []
        self._colours = _fitting_colours(waiting[:: max(1, len(waiting) // SAMPLES)])
        self._out.write(_header(self.size, self._colours.getpalette() or []))
        for image in waiting:
            self._write(image)

    def _write(self, image: Image.Image) -> None:
        """Only the part that has changed."""
        pixels = np.asarray(image.quantize(palette=self._colours, dither=Image.Dither.NONE))
        (left, top), changed = _changed_part(self._last, pixels)
        self._last = pixels
        part = Image.fromarray(changed, "P")
        for data in GifImagePlugin.getdata(
            part, (left, top), duration=FRAME_MILLISECONDS, transparency=UNCHANGED, disposal=1
        ):
            self._out.write(data)


def _fitting_colours(images: Sequence[Image.Image]) -> Image.Image:
    """A picture whose palette fits these. Colours count by the root of their pixels: a car is not lost in the grass."""
    pixels = np.concatenate([np.asarray(image).reshape(-1, 3) for image in images]).astype(np.uint32) >> 2
    kinds, counts = np.unique(pixels[:, 0] << 12 | pixels[:, 1] << 6 | pixels[:, 2], return_counts=True)
    drawn = np.repeat(kinds, np.ceil(np.sqrt(counts)).astype(np.intp))
    colours = np.stack([drawn >> 12, drawn >> 6 & 63, drawn & 63], axis=1) * 4 + 2
    return Image.fromarray(colours[np.newaxis].astype(np.uint8)).quantize(GIF_COLOURS)


def _changed_part(last: Pixels | None, pixels: Pixels) -> tuple[tuple[int, int], Pixels]:
    """Its place and its pixels; at least one, for the time that it is shown."""
    if last is None:
        return (0, 0), pixels
    differs = pixels != last
    rows, columns = np.flatnonzero(differs.any(axis=1)), np.flatnonzero(differs.any(axis=0))
    if not len(rows):
        return (0, 0), np.full((1, 1), UNCHANGED, np.uint8)
    top, bottom, left, right = rows[0], rows[-1] + 1, columns[0], columns[-1] + 1
    part = np.where(differs, pixels, UNCHANGED) if differs.mean() < FEW_CHANGED else pixels
    return (int(left), int(top)), np.ascontiguousarray(part[top:bottom, left:right], np.uint8)


def _header(size: tuple[int, int], palette: list[int]) -> bytes:
    """Up to the first picture: the size, 256 colours for all, and that it begins again when it ends."""
    table = bytes(palette[: 3 * UNCHANGED]).ljust(768, b"\0")
    screen = struct.pack("<HHBBB", *size, 0b1111_0111, 0, 0)
    return b"GIF89a" + screen + table + b"!\xff\x0bNETSCAPE2.0\x03\x01\0\0\0"


QUALITY = "17"
"""Constant rate factor of x264: thin lines and small letters stay sharp."""
PRESET = "veryfast"
CONVERSION = "scale=out_color_matrix=bt709:out_range=tv:flags=accurate_rnd+full_chroma_int,format=yuv420p"
"""To the colours that players expect of a film in HD."""
MP4_COLOURS = ("-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709", "-color_range", "tv")
RED, GREEN, BLUE = 0xFF0000, 0xFF00, 0xFF
"""Masks of a surface whose bytes are what ffmpeg calls bgr0."""
NO_SPACE = "No space left on device"


class Mp4Writer:
    """H.264 at exactly 60 frames a second. Width and height are even; a column or row that is too many is cut."""

    moments_per_frame = 1

    def __init__(self, path: Path, size: tuple[int, int]) -> None:
        self.size = size[0] // 2 * 2, size[1] // 2 * 2
        self.frames = 0
        self._picture = pygame.Surface(self.size, depth=32, masks=(RED, GREEN, BLUE, 0))
        self._file = PlacedFile(path)
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            self._ffmpeg = _start(self._file.temporary, self.size, self._said)
        except BaseException:
            self._said.close()
            self._file.drop()
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
        self._said.close()
        return self._file.place()

    def cancel(self) -> None:
        if not self.ended:
            self._ffmpeg.kill()
            self._ffmpeg.wait()
        with suppress(OSError):
            self._input.close()
        self._said.close()
        self._file.drop()

    def _failed(self) -> FilmError:
        """Why ffmpeg took no more: it says so before it ends, if it still can."""
        self._ffmpeg.wait()
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        if any(NO_SPACE in line for line in lines):
            return FilmError(f"The film {self._file.path} could not be written: there is no space left on the disk")
        reason = lines[-1] if lines else f"it ended with code {self._ffmpeg.returncode}"
        return FilmError(f"The film {self._file.path} could not be written, ffmpeg failed: {reason}")


def _start(path: Path, size: tuple[int, int], said: Any) -> subprocess.Popen[bytes]:
    """An ffmpeg that Ctrl-C at the terminal does not reach: what becomes of the film is decided here."""
    from imageio_ffmpeg import get_ffmpeg_exe  # type: ignore[import-untyped]

    pictures = ("-f", "rawvideo", "-pixel_format", "bgr0", "-video_size", f"{size[0]}x{size[1]}")
    pace = ("-framerate", str(MOMENTS_PER_SECOND), "-i", "pipe:0")
    film = ("-an", "-vf", CONVERSION, "-c:v", "libx264", "-preset", PRESET, "-crf", QUALITY, *MP4_COLOURS)
    place = ("-movflags", "+faststart", "-f", "mp4", str(path))
    try:
        command = [get_ffmpeg_exe(), "-v", "error", "-y", *pictures, *pace, *film, *place]
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=sys.platform != "win32",
            creationflags=_new_group_without_window(),
        )
    except (OSError, RuntimeError) as error:
        raise FilmError(f"ffmpeg cannot be started: {error}. Films that end in .gif or .png need none") from None


def _new_group_without_window() -> int:
    if sys.platform == "win32":
        return subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
    return 0


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
