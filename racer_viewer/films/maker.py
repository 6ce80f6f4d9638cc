"""What was seen while somebody drove, kept until there is time to draw it.

From moments to a film: each is drawn in full, however long that takes.

From a roll to a film, a little at a time."""

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

from racer_viewer.films.film import MOMENTS_PER_SECOND, Film, FilmError, not_written
from racer_viewer.films.writers import open_writer
from racer_viewer.render.camera import Camera, Mode, View
from racer_viewer.render.overlays import Overlays
from racer_viewer.render.scene import Scene, SceneOptions
from racer_viewer.snapshot import InterpolatedFrame, Snapshot, cars_between
from racer_viewer.ui.theme import ORDINARY, Palette, Theme, fitting_scale

LONGEST = 10 * 60
"""[s]"""
SETTLED = 5 * MOMENTS_PER_SECOND
"""Moments after which those that are kept are left out of the search for garbage."""


class Shot(NamedTuple):
    """A moment, where it was looked at from, and the overlays that were shown."""

    moment: InterpolatedFrame
    view: View
    shown: tuple[str, ...]


def take_shot(moment: InterpolatedFrame, camera: Camera, size: tuple[int, int], shown: tuple[str, ...]) -> Shot:
    """What a window of this size shows. The camera does not notice."""
    share = 1.0 if moment.before is moment.after else moment.share
    followed = cars_between(moment.before, moment.after, share)[moment.after.focus]
    view = copy(camera).look(size, share, (float(followed["x"]), float(followed["y"])))
    return Shot(moment, view, shown)


class Roll:
    """Shots, sixty for each second. They share their snapshots: a minute takes 10 MB with one car, 25 MB with eight."""

    def __init__(self, longest: float = LONGEST) -> None:
        self._room = round(longest * MOMENTS_PER_SECOND)
        self._shots: list[Shot] = []

    def __len__(self) -> int:
        return len(self._shots)

    def __getitem__(self, number: int) -> Shot:
        return self._shots[number]

    @property
    def seconds(self) -> float:
        return len(self) / MOMENTS_PER_SECOND

    @property
    def full(self) -> bool:
        return len(self) >= self._room

    def add(self, shot: Shot) -> None:
        """Nothing more goes onto a full one."""
        if self.full:
            return
        self._shots.append(shot)
        if len(self) % SETTLED == 0:
            gc.freeze()  # looking through minutes of snapshots again would hold up a frame of the race


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

    def add(self, moment: InterpolatedFrame, view: View | None = None, shown: tuple[str, ...] | None = None) -> None:
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

    def _draw(self, moment: InterpolatedFrame, shown: tuple[str, ...]) -> None:
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


class Development:
    """Can be left and taken up again. If it is interrupted in the middle of a picture it begins anew.

    over: there is a film now, or there will be none.
    """

    def __init__(self, roll: Roll, path: Path, look: FilmLook) -> None:
        self.path = path
        self.over = False
        self._roll, self._look = roll, look
        self._maker: FilmMaker | None = None

    @property
    def done(self) -> int:
        """Moments that are drawn."""
        return self._maker.moments if self._maker is not None else 0

    @property
    def total(self) -> int:
        """Moments on the roll."""
        return len(self._roll)

    @property
    def size(self) -> tuple[int, int]:
        """Of the film, about [px]."""
        return self._look.size

    @property
    def picture(self) -> pygame.Surface | None:
        """The last one of the film."""
        return self._maker.picture if self._maker is not None else None

    def step(self) -> Film | None:
        """Draw one more moment; when all are drawn, the film as soon as it is in its place."""
        with self._given_up_after_errors():
            maker = self._begun()
            if maker.moments < self.total:
                maker.add(*self._roll[maker.moments])
                return None
            maker.end()
            return self._end(maker) if maker.ended else None

    def finish(self, progress: Callable[[float], None]) -> Film:
        """All the rest at once; `progress` is told the part that is done."""
        while self.done < self.total:
            self.step()
            progress(self.done / self.total)
        with self._given_up_after_errors():
            return self._end(self._begun())

    def cancel(self) -> None:
        """Nothing is left of it."""
        self.over = True
        if self._maker is not None:
            self._maker.cancel()

    def _begun(self) -> FilmMaker:
        if self._maker is None:
            self._maker = FilmMaker(self.path, self._look)
        return self._maker

    def _end(self, maker: FilmMaker) -> Film:
        film = maker.finish()
        self.over = True
        return film

    @contextmanager
    def _given_up_after_errors(self) -> Iterator[None]:
        """A film that cannot be written will not be written later either; all else is an interruption."""
        try:
            yield
        except BaseException as error:
            self.over = isinstance(error, FilmError)
            self._maker = None
            raise
