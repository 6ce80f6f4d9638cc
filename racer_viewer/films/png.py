"""PNGs: every picture to the last bit, numbered."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pygame
from PIL import Image

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
