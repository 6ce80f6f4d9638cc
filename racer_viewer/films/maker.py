"""Making films: frames recorded during a race, drawn in full later and written to a file."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import pygame

from racer_viewer.films.film import SOURCE_FPS, Film, FilmError, write_error
from racer_viewer.films.writers import open_writer
from racer_viewer.render.camera import Camera, Mode, View
from racer_viewer.render.overlays import Overlays
from racer_viewer.render.scene import Scene, SceneOptions
from racer_viewer.snapshot import InterpolatedFrame, Snapshot, cars_between
from racer_viewer.ui.theme import ORDINARY, Palette, Theme, fitting_scale

MAX_SECONDS = 10 * 60
"""Maximum length of a clip [s]."""
GC_FREEZE_INTERVAL = 5 * SOURCE_FPS
"""Number of frames after which recorded frames are excluded from garbage collection."""


class RecordedFrame(NamedTuple):
    """A frame as a window showed it: its snapshots, the camera's view and the overlays."""

    frame: InterpolatedFrame
    view: View
    shown: tuple[str, ...]


def record_frame(
    frame: InterpolatedFrame, camera: Camera, size: tuple[int, int], shown: tuple[str, ...]
) -> RecordedFrame:
    """Record what a window of this size shows; the camera is not changed."""
    share = 1.0 if frame.before is frame.after else frame.share
    followed = cars_between(frame.before, frame.after, share)[frame.after.focus]
    view = copy(camera).look(size, share, (float(followed["x"]), float(followed["y"])))
    return RecordedFrame(frame, view, shown)


class Clip:
    """Recorded frames, 60 per second. They share snapshots: a minute takes 10 MB with one car, 25 MB with eight."""

    def __init__(self, max_seconds: float = MAX_SECONDS) -> None:
        self._capacity = round(max_seconds * SOURCE_FPS)
        self._frames: list[RecordedFrame] = []

    def __len__(self) -> int:
        return len(self._frames)

    def __getitem__(self, number: int) -> RecordedFrame:
        return self._frames[number]

    @property
    def seconds(self) -> float:
        return len(self) / SOURCE_FPS

    @property
    def full(self) -> bool:
        return len(self) >= self._capacity

    def add(self, frame: RecordedFrame) -> None:
        """Append a frame; has no effect on a full clip."""
        if self.full:
            return
        self._frames.append(frame)
        if len(self) % GC_FREEZE_INTERVAL == 0:
            gc.freeze()  # a collection that visits minutes of snapshots would delay a frame of the race


@dataclass(frozen=True)
class FilmLook:
    """Appearance of a film.

    Attributes:
        shown: overlays and parts of the scene, by their names in the settings
        letters: text size chosen by the user, relative to the one that fits the film
        camera: camera mode for frames without a view of their own
    """

    size: tuple[int, int] = (1280, 720)
    shown: tuple[str, ...] = ("timing", "map", "rays", "names")
    units: str = "km/h"
    palette: Palette = ORDINARY
    letters: float = 1.0
    camera: Mode = Mode.FOLLOW

    def theme(self) -> Theme:
        return Theme(fitting_scale(self.size, self.letters), self.palette)


class FilmMaker:
    """Draws frames, 60 per second, and writes them to a film. After an error no part of the film is left on disk.

    Attributes:
        added: number of frames added
        picture: the frame that was drawn last
    """

    def __init__(self, path: Path, look: FilmLook) -> None:
        self.path = path
        self.added = 0
        self._look = look
        theme = look.theme()
        self._scene, self._overlays = Scene(theme, patient=True), Overlays(theme, patient=True)
        self._camera = _FilmCamera(look.camera)
        self._scene.camera = self._camera
        self._last: Snapshot | None = None
        try:
            self._writer = open_writer(path, look.size)
        except OSError as error:
            raise write_error(path, error) from error
        self.picture = pygame.Surface(self._writer.size, depth=32)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.cancel()

    def add(self, frame: InterpolatedFrame, view: View | None = None, shown: tuple[str, ...] | None = None) -> None:
        """Draw the next frame.

        Parameters:
            view: view of the frame; that of the film's own camera if None
            shown: overlays of this frame; those of the look if None
        """
        with self._cancel_on_error():
            if frame.after is not self._last:
                self._scene.tick(frame.after)
                self._overlays.tick(frame.after)
                self._last = frame.after
            if self.added % self._writer.frame_step == 0:
                self._camera.fixed = view
                self._draw(frame, self._look.shown if shown is None else shown)
                self._writer.add(self.picture)
        self.added += 1

    def end(self) -> None:
        """Complete the film after the last frame; this may go on in the background until `ended`."""
        with self._cancel_on_error():
            if not self.added:
                raise FilmError(f"The film {self.path} was not written: it has no frames")
            self._writer.end()

    @property
    def ended(self) -> bool:
        """True when `finish` returns at once."""
        return self._writer.ended

    def finish(self) -> Film:
        """Wait until everything is written and move the film into place."""
        self.end()
        with self._cancel_on_error():
            place = self._writer.finish()
        frames = self._writer.frames
        return Film(place, frames, frames * self._writer.frame_step / SOURCE_FPS)

    def cancel(self) -> None:
        """Remove everything that was written; has no effect after `finish`."""
        self._writer.cancel()

    def _draw(self, frame: InterpolatedFrame, shown: tuple[str, ...]) -> None:
        options = SceneOptions(rays="rays" in shown, gates="gates" in shown, names="names" in shown)
        self._scene.draw(self.picture, frame.before, frame.after, frame.share, options)
        self._overlays.draw(self.picture, frame.after, shown, self._look.units)

    @contextmanager
    def _cancel_on_error(self) -> Iterator[None]:
        """Cancel the film on any error; raise a `FilmError` in place of an OSError."""
        try:
            yield
        except BaseException as error:
            self.cancel()
            if isinstance(error, OSError):
                raise write_error(self.path, error) from error
            raise


class _FilmCamera(Camera):
    """A camera with an optional fixed view."""

    def __init__(self, mode: Mode) -> None:
        super().__init__()
        self.mode = mode
        self.fixed: View | None = None

    def look(self, size: tuple[int, int], share: float = 1.0, place: tuple[float, float] | None = None) -> View:
        """Return the fixed view scaled to the film's size, or the camera's own view."""
        if self.fixed is None:
            return super().look(size, share, place)
        self._view = replace(self.fixed, scale=self.fixed.scale * size[1] / self.fixed.size[1], size=size)
        return self._view


class FilmExport:
    """Turns a clip into a film, one frame per `step`. After an interruption within a frame it starts again.

    Attributes:
        over: True when the film is finished, cancelled or cannot be written
    """

    def __init__(self, clip: Clip, path: Path, look: FilmLook) -> None:
        self.path = path
        self.over = False
        self._clip, self._look = clip, look
        self._maker: FilmMaker | None = None

    @property
    def done(self) -> int:
        """Number of frames drawn."""
        return self._maker.added if self._maker is not None else 0

    @property
    def total(self) -> int:
        """Number of frames of the clip."""
        return len(self._clip)

    @property
    def size(self) -> tuple[int, int]:
        """Size of the film, which the writer may reduce by a pixel [px]."""
        return self._look.size

    @property
    def picture(self) -> pygame.Surface | None:
        """The frame that was drawn last."""
        return self._maker.picture if self._maker is not None else None

    def step(self) -> Film | None:
        """Draw one more frame; after the last one, return the film as soon as it is written."""
        with self._over_after_film_error():
            maker = self._start()
            if maker.added < self.total:
                maker.add(*self._clip[maker.added])
                return None
            maker.end()
            return self._end(maker) if maker.ended else None

    def finish(self, progress: Callable[[float], None]) -> Film:
        """Draw all remaining frames and return the film; `progress` gets the part that is done."""
        while self.done < self.total:
            self.step()
            progress(self.done / self.total)
        with self._over_after_film_error():
            return self._end(self._start())

    def cancel(self) -> None:
        """Remove everything that was written."""
        self.over = True
        if self._maker is not None:
            self._maker.cancel()

    def _start(self) -> FilmMaker:
        if self._maker is None:
            self._maker = FilmMaker(self.path, self._look)
        return self._maker

    def _end(self, maker: FilmMaker) -> Film:
        film = maker.finish()
        self.over = True
        return film

    @contextmanager
    def _over_after_film_error(self) -> Iterator[None]:
        """Mark the export as over if the film cannot be written; start again after any other error."""
        try:
            yield
        except BaseException as error:
            self.over = isinstance(error, FilmError)
            self._maker = None
            raise
