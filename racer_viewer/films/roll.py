"""What was seen while somebody drove, kept until there is time to draw it."""

from __future__ import annotations

import gc
from copy import copy
from typing import NamedTuple

from racer_viewer.films.film import MOMENTS_PER_SECOND
from racer_viewer.render.camera import Camera, View
from racer_viewer.snapshot import Moment, cars_between

LONGEST = 10 * 60
"""[s]"""
SETTLED = 5 * MOMENTS_PER_SECOND
"""Moments after which those that are kept are left out of the search for garbage."""


class Shot(NamedTuple):
    """A moment, where it was looked at from, and the overlays that were shown."""

    moment: Moment
    view: View
    shown: tuple[str, ...]


def take_shot(moment: Moment, camera: Camera, size: tuple[int, int], shown: tuple[str, ...]) -> Shot:
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
