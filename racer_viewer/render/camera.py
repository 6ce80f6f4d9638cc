"""Camera: follows a car with north up or turning with it, shows the whole circuit, or goes where the user drags it."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from racer_env.engine import Track
from racer_env.engine.car import MAX_SPEED
from racer_viewer.snapshot import Snapshot

REFERENCE_HEIGHT = 720
"""Window height that scales are given for [px]; a larger window shows the same area, larger."""
REST_SCALE = 6.5
"""Scale of the view that follows a slow car [px per unit]."""
FAST_SCALE = REST_SCALE / math.sqrt(2.0)
"""Scale of the view that follows a fast car [px per unit]; equal to a tile level, so that no rescaling is needed."""
SLOW, FAST = 60.0, 95.0
"""Speeds for zooming in and out [units/s]: a car faster than FAST is shown from farther away until it is slower than
SLOW.

There are only these two scales: both are tile levels, and any scale between costs several times as much.
"""
ZOOM_TICKS = 40
"""Duration of a zoom [ticks]."""
LEVEL_RATIO = math.sqrt(2.0)
"""Ratio between the scales of two tile levels."""
MAX_CLOSER, CLOSER_STEP = 2, 0.12
"""Maximum number of tile levels by which the user moves a following view closer or farther; levels per tick."""
LOOK_AHEAD_STEP, FREE_STEP = 0.06, 0.3
"""Share of the remaining distance that look-ahead and a free view move per tick."""
LOOK_AHEAD = (0.25, 0.22)
"""Distance of a car at top speed from the centre, as shares of width and height."""
TURNED_LOOK_AHEAD = (0.12, 0.26)
"""Distance below the centre of a car at rest and at top speed in a view that turns with it, as shares of the height."""
TURN_STEP = 0.09
"""Share of the remaining angle that a view turns with the car per tick."""
CLEAR = 0.05
"""Smallest distance of the car from panels, as a share of width and height; without space it is centred between them.
"""
JUMP = 20.0
"""Distance from which a change of position counts as a jump [units]."""
FREE_SCALES = (0.25, 40.0)
"""Smallest and largest scale of a free view [px per unit]."""
ROAM = 400.0
"""Largest distance of a free view beyond the track [units]."""
GLIDE_TICKS = 30
"""Duration of the transition between camera modes [ticks]."""
MARGIN = 0.04
"""Margin around the whole track, as a share of the window's height."""


class Mode(enum.Enum):
    """Camera mode: FOLLOW a car with north up, TURN with the car, the WHOLE track, or FREE."""

    FOLLOW = "follow"
    TURN = "turn"
    WHOLE = "whole"
    FREE = "free"


class Insets(NamedTuple):
    """Parts of the window covered by panels [px]."""

    left: int = 0
    top: int = 0
    right: int = 0
    bottom: int = 0


@dataclass(frozen=True)
class View:
    """Visible part of the world: centre x, y and scale [px per unit].

    turn: angle by which the world is turned to the left about the centre [rad]; 0 has north up.
    """

    x: float
    y: float
    scale: float
    size: tuple[int, int]
    turn: float = 0.0

    @cached_property
    def rotation(self) -> tuple[float, float]:
        """Cosine and sine of `turn`."""
        return (math.cos(self.turn), math.sin(self.turn)) if self.turn else (1.0, 0.0)

    def to_screen(self, x: float, y: float) -> tuple[float, float]:
        (cos, sin), dx, dy = self.rotation, x - self.x, y - self.y
        across, up = dx * cos - dy * sin, dx * sin + dy * cos
        return across * self.scale + self.size[0] / 2, -up * self.scale + self.size[1] / 2

    def points_to_screen(self, points: ArrayLike) -> NDArray[np.float64]:
        """Map an array of points (…, 2) to pixels."""
        middle, offsets = (self.size[0] / 2, self.size[1] / 2), np.asarray(points) - (self.x, self.y)
        if self.turn:
            cos, sin = self.rotation
            offsets = offsets @ np.array([(cos, sin), (-sin, cos)])
        return np.asarray(offsets * (self.scale, -self.scale) + middle)

    def to_world(self, px: float, py: float) -> tuple[float, float]:
        (cos, sin), across, up = self.rotation, px - self.size[0] / 2, self.size[1] / 2 - py
        return self.x + (across * cos + up * sin) / self.scale, self.y + (up * cos - across * sin) / self.scale

    def bounds(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the lower left and upper right corner of the smallest area with north up that holds the view."""
        width, height = self.size
        corners = [self.to_world(px, py) for px in (0, width) for py in (0, height)]
        (left, right), (bottom, top) = ((min(side), max(side)) for side in zip(*corners, strict=True))
        return (left, bottom), (right, top)


@dataclass(frozen=True)
class _Pose:
    """View at the reference height. Poses are interpolated linearly, so that a zoom keeps its centre fixed."""

    x: float
    y: float
    units: float
    """Units per pixel."""
    turn: float = 0.0

    def towards(self, other: _Pose, share: float) -> _Pose:
        x, y, units = (a + (b - a) * share for a, b in zip(self._values(), other._values(), strict=True))
        return _Pose(x, y, units, _mixed_angle(self.turn, other.turn, share))

    def _values(self) -> tuple[float, float, float]:
        return self.x, self.y, self.units

    def view(self, size: tuple[int, int]) -> View:
        return View(self.x, self.y, size[1] / REFERENCE_HEIGHT / self.units, size, self.turn)


@dataclass(frozen=True)
class _Chase:
    """Offset of the followed car from the window's centre, zoom and turn.

    ahead: offset of the view along the axes of the world, as shares of width and height.
    turned_ahead: offset along the axes of the screen in a view that turns with the car, as a share of the height.
    """

    place: tuple[float, float]
    ahead: tuple[float, float]
    units: float
    turned_ahead: float
    turn: float

    def towards(self, other: _Chase, share: float) -> _Chase:
        return _Chase(_mixed(self.place, other.place, share), _mixed(self.ahead, other.ahead, share),
                      self.units + (other.units - self.units) * share,
                      self.turned_ahead + (other.turned_ahead - self.turned_ahead) * share,
                      _mixed_angle(self.turn, other.turn, share))  # fmt: skip

    def pose(self, size: tuple[int, int], ahead: tuple[float, float], turn: float) -> _Pose:
        """Return the pose with an offset along the axes of the screen."""
        reach = REFERENCE_HEIGHT / size[1] * self.units
        across, up = ahead[0] * size[0] * reach, ahead[1] * size[1] * reach
        cos, sin = math.cos(turn), math.sin(turn)
        x, y = self.place
        return _Pose(x + across * cos + up * sin, y + up * cos - across * sin, self.units, turn)


class Camera:
    """Camera that moves once per tick; views between two ticks are interpolated."""

    def __init__(self) -> None:
        self.insets = Insets()
        self.zooms = True
        """True if the view zooms in on a slow car; otherwise every car is shown at the fast scale."""
        self.closer = 0
        """Tile levels by which a following view is closer than usual, at most MAX_CLOSER; negative is farther."""
        self._closer: float | None = None
        """Position of the view on its way to `closer`; None before the first tick."""
        self._mode = Mode.FOLLOW
        self._track: Track | None = None
        self._focus = -1
        self._episode_tick = -1
        self._chases = (_Chase((0.0, 0.0), (0.0, 0.0), 1.0 / REST_SCALE, 0.0, 0.0),) * 2
        self._free = (_Pose(0.0, 0.0, 1.0 / REST_SCALE),) * 2
        self._free_goal = self._free[1]
        self._left_behind = self._free[1]
        self._far, self._going_far = 0.0, False
        """Zoom position from 0 (near) to 1 (far), and zoom direction."""
        self._glide = GLIDE_TICKS
        self._view = View(0.0, 0.0, REST_SCALE, (REFERENCE_HEIGHT, REFERENCE_HEIGHT))

    @property
    def mode(self) -> Mode:
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        """Change the mode with a smooth transition."""
        if mode is self._mode:
            return
        self._mode = mode
        if mode is Mode.FREE:
            self._free_goal = replace(self._pose_of(self._view), turn=0.0)
            self._free = (self._free_goal, self._free_goal)
        if mode is Mode.FREE and not self._view.turn:
            self._glide = GLIDE_TICKS
        else:
            self._depart()

    @property
    def view(self) -> View:
        """View returned by the last call of `look`."""
        return self._view

    def drag(self, dx: float, dy: float) -> None:
        """Pan a free view by so many pixels of mouse movement."""
        goal = self._free_goal
        ratio = REFERENCE_HEIGHT / self._view.size[1]
        here = self._free[1].units * ratio
        moved = self._within(replace(goal, x=goal.x - dx * here, y=goal.y + dy * here))
        x, y = moved.x - goal.x, moved.y - goal.y
        self._free_goal = moved
        before, after = (replace(pose, x=pose.x + x, y=pose.y + y) for pose in self._free)
        self._free = (before, after)

    def zoom(self, factor: float, about: tuple[float, float]) -> None:
        """Scale a free view by a factor, keeping the point at these pixels in place."""
        goal, size = self._free_goal, self._view.size
        least, most = (1.0 / scale for scale in reversed(FREE_SCALES))
        units = min(most, max(least, goal.units / factor))
        change = (goal.units - units) * REFERENCE_HEIGHT / size[1]
        dx, dy = about[0] - size[0] / 2, size[1] / 2 - about[1]
        self._free_goal = replace(goal, x=goal.x + dx * change, y=goal.y + dy * change, units=units)

    def tick(self, snapshot: Snapshot) -> None:
        """Follow the car for one tick; a jump of the car moves the view at once."""
        car = snapshot.car
        place, last = (float(car["x"]), float(car["y"])), self._chases[1]
        same_track, same_car = snapshot.track is self._track, snapshot.focus == self._focus
        jumped = math.dist(place, last.place) > JUMP or int(car["step_count"]) < self._episode_tick
        self._track, self._focus, self._episode_tick = snapshot.track, snapshot.focus, int(car["step_count"])
        self._glide = min(GLIDE_TICKS, self._glide + 1)
        anew = not same_track or not same_car or jumped
        drawn_to = _goal(car, self._zoomed(float(car["speed"]), anew), self._moved_closer())
        if not same_track or (same_car and jumped):
            self._chases = (drawn_to, drawn_to)
            self._glide = GLIDE_TICKS
        elif not same_car:
            self._chases = (drawn_to, drawn_to)
            self._depart()
        else:
            self._chases = (last, _eased(last, drawn_to))
        self._free = (self._free[1], self._free[1].towards(self._free_goal, FREE_STEP))

    def _zoomed(self, speed: float, anew: bool) -> float:
        """Return the zoom position after one more tick at this speed; without transition after a jump."""
        if not self.zooms:
            self._going_far = True
        elif speed > FAST or speed < SLOW:
            self._going_far = speed > FAST
        elif anew:
            self._going_far = speed > (SLOW + FAST) / 2.0
        step = 1.0 if anew else 1.0 / ZOOM_TICKS
        self._far = min(1.0, max(0.0, self._far + (step if self._going_far else -step)))
        return self._far * self._far * (3.0 - 2.0 * self._far)

    def _moved_closer(self) -> float:
        """Return the tile levels by which the view is closer after one more tick."""
        goal = float(min(MAX_CLOSER, max(-MAX_CLOSER, self.closer)))
        now = goal if self._closer is None else self._closer
        self._closer = goal if abs(goal - now) < CLOSER_STEP else now + math.copysign(CLOSER_STEP, goal - now)
        return self._closer

    def look(self, size: tuple[int, int], share: float = 1.0, place: tuple[float, float] | None = None) -> View:
        """Return the view for a window size, between the last two ticks; share 1 is the last one.

        place: position of the followed car at that time, if known.
        """
        goal = self._goal_pose(size, share, place)
        glide = min(1.0, max(0.0, (self._glide - 1.0 + share) / GLIDE_TICKS))
        if self._glide < GLIDE_TICKS:
            goal = self._left_behind.towards(goal, glide * glide * (3.0 - 2.0 * glide))
        self._view = goal.view(size)
        return self._view

    def _goal_pose(self, size: tuple[int, int], share: float, place: tuple[float, float] | None) -> _Pose:
        if self._mode is Mode.FREE:
            return self._free[0].towards(self._free[1], share)
        if self._mode is Mode.WHOLE and self._track is not None:
            return self._whole(self._track, size)
        chase = self._chases[0].towards(self._chases[1], share)
        chase = replace(chase, place=place or chase.place)
        turns = self._mode is Mode.TURN
        ahead = self._beside_panels((0.0, chase.turned_ahead) if turns else chase.ahead, size)
        return chase.pose(size, ahead, chase.turn if turns else 0.0)

    def _beside_panels(self, ahead: tuple[float, float], size: tuple[int, int]) -> tuple[float, float]:
        """Limit the look-ahead so that no panel covers the car."""
        left, top, right, bottom = (
            max(0.0, 0.5 - CLEAR - pixels / side) for pixels, side in zip(self.insets, (*size, *size), strict=True)
        )
        return max(-right, min(left, ahead[0])), max(-top, min(bottom, ahead[1]))

    def _whole(self, track: Track, size: tuple[int, int]) -> _Pose:
        """Return a pose with the track centred in the area without panels."""
        low, high = track.outer.min(axis=0), track.outer.max(axis=0)
        low, high = np.minimum(low, track.inner.min(axis=0)), np.maximum(high, track.inner.max(axis=0))
        margin = 2.0 * MARGIN * size[1]
        width = max(1.0, size[0] - self.insets.left - self.insets.right - margin)
        height = max(1.0, size[1] - self.insets.top - self.insets.bottom - margin)
        units = max(float(high[0] - low[0]) / width, float(high[1] - low[1]) / height)
        x, y = ((low + high) / 2.0).tolist()
        x -= (self.insets.left - self.insets.right) / 2.0 * units
        y += (self.insets.top - self.insets.bottom) / 2.0 * units
        return _Pose(x, y, units * size[1] / REFERENCE_HEIGHT)

    def _depart(self) -> None:
        self._left_behind, self._glide = self._pose_of(self._view), 0

    def _pose_of(self, view: View) -> _Pose:
        return _Pose(view.x, view.y, view.size[1] / REFERENCE_HEIGHT / view.scale, view.turn)

    def _within(self, pose: _Pose) -> _Pose:
        """Clamp a free pose to the surroundings of the track."""
        if self._track is None:
            return pose
        low, high = self._track.outer.min(axis=0) - ROAM, self._track.outer.max(axis=0) + ROAM
        x, y = (min(float(b), max(float(a), value)) for a, b, value in zip(low, high, (pose.x, pose.y), strict=True))
        return replace(pose, x=x, y=y)


def _goal(car: Any, far: float, closer: float = 0.0) -> _Chase:
    """Return the target offset and zoom for a car in steady motion."""
    units = ((1.0 - far) / REST_SCALE + far / FAST_SCALE) / LEVEL_RATIO**closer
    ahead = float(car["vx"]) / MAX_SPEED * LOOK_AHEAD[0], float(car["vy"]) / MAX_SPEED * LOOK_AHEAD[1]
    near, far_ahead = TURNED_LOOK_AHEAD
    turned_ahead = near + (far_ahead - near) * min(1.0, float(car["speed"]) / MAX_SPEED)
    turn = math.pi / 2.0 - float(car["heading"])
    return _Chase((float(car["x"]), float(car["y"])), ahead, units, turned_ahead, turn)


def _eased(last: _Chase, goal: _Chase) -> _Chase:
    return replace(
        goal,
        ahead=_mixed(last.ahead, goal.ahead, LOOK_AHEAD_STEP),
        turned_ahead=last.turned_ahead + (goal.turned_ahead - last.turned_ahead) * LOOK_AHEAD_STEP,
        turn=_mixed_angle(last.turn, goal.turn, TURN_STEP),
    )


def _mixed(a: tuple[float, float], b: tuple[float, float], share: float) -> tuple[float, float]:
    return a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share


def _mixed_angle(a: float, b: float, share: float) -> float:
    """Return the angle between two, on the shorter way from one to the other, from −π to π."""
    if a == b:
        return a
    way = (b - a + math.pi) % (2.0 * math.pi) - math.pi
    return (a + way * share + math.pi) % (2.0 * math.pi) - math.pi
