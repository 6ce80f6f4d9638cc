"""GIF: twenty pictures a second, which it can say exactly, written as they come."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pygame
from numpy.typing import NDArray
from PIL import GifImagePlugin, Image

from racer_viewer.films.film import MOMENTS_PER_SECOND
from racer_viewer.films.placed import PlacedFile

MOMENTS_PER_FRAME = 3
FRAME_MILLISECONDS = MOMENTS_PER_FRAME * 1000 // MOMENTS_PER_SECOND
COLOURS = 96
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
    return Image.fromarray(colours[np.newaxis].astype(np.uint8)).quantize(COLOURS)


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
