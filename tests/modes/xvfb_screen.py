"""A real X server without a monitor: its pixels can be read, and xdotool presses its keys."""

from __future__ import annotations

import mmap
import os
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

LIMIT = 90.0
"""Timeout of everything that is waited for [s]."""


def is_there() -> bool:
    return bool(shutil.which("Xvfb") and shutil.which("xdotool"))


class XvfbScreen:
    """An X server that runs while its context is open. `pixels` is the current content of the screen."""

    def __init__(self, folder: Path, size: tuple[int, int]) -> None:
        self._folder, self._size = folder, size

    def __enter__(self) -> XvfbScreen:
        reading, writing = os.pipe()
        width, height = self._size
        # Without -noreset the server starts anew when its last client leaves, and refuses others meanwhile.
        command = ["Xvfb", "-noreset", "-displayfd", str(writing), "-screen", "0", f"{width}x{height}x24"]
        self._server = subprocess.Popen(
            [*command, "-fbdir", str(self._folder)], pass_fds=[writing], stderr=subprocess.DEVNULL
        )
        os.close(writing)
        with os.fdopen(reading) as numbers:
            self.display = f":{numbers.readline().strip()}"
        with (self._folder / "Xvfb_screen0").open("rb") as file:
            self._memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        header = struct.unpack(">25I", self._memory[:100])
        self._begin, self._row = header[0] + header[19] * 12, header[12]
        return self

    def __exit__(self, *error: object) -> None:
        self._server.terminate()
        self._server.wait(LIMIT)

    @property
    def environment(self) -> dict[str, str]:
        others = {name: value for name, value in os.environ.items() if name != "SDL_VIDEODRIVER"}
        return {**others, "DISPLAY": self.display, "SDL_AUDIODRIVER": "dummy"}

    @property
    def pixels(self) -> NDArray[np.uint8]:
        """(height, width, 3), red first."""
        width, height = self._size
        raw = np.frombuffer(self._memory, np.uint8, self._row * height, self._begin)
        return raw.reshape(height, self._row)[:, : width * 4].reshape(height, width, 4)[:, :, 2::-1].copy()

    def do(self, *arguments: Any) -> str:
        """Call xdotool."""
        command = ["xdotool", *map(str, arguments)]
        return subprocess.run(
            command, env=self.environment, check=True, capture_output=True, text=True, timeout=LIMIT
        ).stdout
