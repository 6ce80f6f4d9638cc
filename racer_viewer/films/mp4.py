"""MP4 by an ffmpeg of our own, which is fed one picture after the other and never outlives the film."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pygame

from racer_viewer.films.film import MOMENTS_PER_SECOND, FilmError
from racer_viewer.films.placed import PlacedFile

QUALITY = "17"
"""Constant rate factor of x264: thin lines and small letters stay sharp."""
PRESET = "veryfast"
CONVERSION = "scale=out_color_matrix=bt709:out_range=tv:flags=accurate_rnd+full_chroma_int,format=yuv420p"
"""To the colours that players expect of a film in HD."""
COLOURS = ("-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709", "-color_range", "tv")
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
    film = ("-an", "-vf", CONVERSION, "-c:v", "libx264", "-preset", PRESET, "-crf", QUALITY, *COLOURS)
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
