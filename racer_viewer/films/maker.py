"""From moments to a film: each is drawn in full, however long that takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

import pygame

from racer_viewer.films.film import MOMENTS_PER_SECOND, Film, FilmError, not_written
from racer_viewer.films.writers import open_writer
from racer_viewer.render.camera import Camera, Mode, View
from racer_viewer.render.overlays import Overlays
from racer_viewer.render.scene import Scene, SceneOptions
from racer_viewer.snapshot import Moment, Snapshot
from racer_viewer.ui.theme import ORDINARY, Palette, Theme, fitting_scale


@dataclass(frozen=True)
class FilmLook:
    """How a film looks, in pixels and colours.

    shown: overlays, and what the scene shows besides cars, by their names in the settings.
    letters: their size as the user wants it, times what fits the film.
    camera: where it looks from, if nobody says so with each moment.
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
    """Draws moments and writes them; frame k is moment k. After an error nothing is left of the film."""

    def __init__(self, path: Path, look: FilmLook) -> None:
        self.path = path
        self.moments = 0
        self._look = look
        theme = look.theme()
        self._scene, self._overlays = Scene(theme, patient=True), Overlays(theme, patient=True)
        self._camera = _ToldCamera(look.camera)
        self._scene.camera = self._camera
        self._last: Snapshot | None = None
        try:
            self._writer = open_writer(path, look.size)
        except OSError as error:
            raise not_written(path, error) from error
        self.picture = pygame.Surface(self._writer.size, depth=32)
        """The last one that was drawn."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.cancel()

    def add(self, moment: Moment, view: View | None = None, shown: tuple[str, ...] | None = None) -> None:
        """The next sixtieth of a second, seen by the film's own camera unless there is a view of it.

        shown: other overlays than those of the look, at this moment.
        """
        with self._nothing_left_after_errors():
            if moment.after is not self._last:
                self._scene.tick(moment.after)
                self._overlays.tick(moment.after)
                self._last = moment.after
            if self.moments % self._writer.moments_per_frame == 0:
                self._camera.told = view
                self._draw(moment, self._look.shown if shown is None else shown)
                self._writer.add(self.picture)
        self.moments += 1

    def end(self) -> None:
        """No more moments will come. What is still to be written may take a while, until `ended`."""
        with self._nothing_left_after_errors():
            if not self.moments:
                raise FilmError(f"The film {self.path} was not written: there is nothing in it")
            self._writer.end()

    @property
    def ended(self) -> bool:
        """Whether `finish` has nothing to wait for any more."""
        return self._writer.ended

    def finish(self) -> Film:
        """Wait until everything is written, and put the film in its place."""
        self.end()
        with self._nothing_left_after_errors():
            place = self._writer.finish()
        frames = self._writer.frames
        return Film(place, frames, frames * self._writer.moments_per_frame / MOMENTS_PER_SECOND)

    def cancel(self) -> None:
        """Nothing is left of it, unless it is finished."""
        self._writer.cancel()

    def _draw(self, moment: Moment, shown: tuple[str, ...]) -> None:
        options = SceneOptions(rays="rays" in shown, gates="gates" in shown, names="names" in shown)
        self._scene.draw(self.picture, moment.before, moment.after, moment.share, options)
        self._overlays.draw(self.picture, moment.after, shown, self._look.units)

    @contextmanager
    def _nothing_left_after_errors(self) -> Iterator[None]:
        """Whatever it is that goes wrong; that a file cannot be written is told as a `FilmError`."""
        try:
            yield
        except BaseException as error:
            self.cancel()
            if isinstance(error, OSError):
                raise not_written(self.path, error) from error
            raise


class _ToldCamera(Camera):
    """Looks where it is told to, else where it would by itself."""

    def __init__(self, mode: Mode) -> None:
        super().__init__()
        self.mode = mode
        self.told: View | None = None

    def look(self, size: tuple[int, int], share: float = 1.0, place: tuple[float, float] | None = None) -> View:
        """A view of a window of another size shows the same, larger or smaller."""
        if self.told is None:
            return super().look(size, share, place)
        self._view = replace(self.told, scale=self.told.scale * size[1] / self.told.size[1], size=size)
        return self._view
