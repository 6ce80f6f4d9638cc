"""Effects of driving: skid marks on the ground, dust beside the road, sparks at the walls.

Effects live in world coordinates and move once per tick; the same ticks always give the same picture.
"""

from __future__ import annotations

import math

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_env.engine import DT, Track
from racer_env.engine.car import ROAD, RUNOFF
from racer_viewer.render.camera import View
from racer_viewer.render.car import ENLARGED
from racer_viewer.snapshot import Cars, Snapshot

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

SKID_SLIP, FULL_SLIP = 0.03, 0.09
"""Slip angles at which tyres start to leave marks, and leave full marks [rad]."""
HARD_BRAKE = 0.45
SKID_SPEED, DUST_SPEED, SPARK_SPEED = 30.0, 12.0, 6.0
"""Smallest car speed for each effect [units/s]."""
MARK_TICKS = 3
"""Length of a mark segment [ticks of driving]."""
MARK_LIFE, DUST_LIFE, SPARK_LIFE = 1500, 54, 22
"""Lifetimes [ticks]."""
MARKS, PUFFS, SPARKS = 3000, 200, 320
"""Maximum numbers; the oldest are replaced."""
MARKS_DRAWN = 240
"""Maximum number of marks drawn in one view, newest first."""
DARKNESS = 26
"""Brightness that a fresh mark subtracts, of 255."""
DUST_EVERY = 2
SPARKS_AT_ONCE = 7
REAR_AXLE, TRACK_WIDTH, TYRE_WIDTH = 1.22 * ENLARGED, 0.8 * ENLARGED, 0.4 * ENLARGED
"""Dimensions of drawn cars [units]."""
DUST_COLOURS = ((206, 184, 140), (150, 148, 96))
"""Colours on the runoff and on the shoulder."""
DUST_SIZES = (1.2, 5.2)
"""Radius of a new and of an old dust puff [units]."""
DUST_OPACITY = 0.42
SPARK_HOT, SPARK_COLD = np.array((255, 244, 190.0)), np.array((255, 96, 20.0))
_SEED = 20
_SIZES, _SHADES = 8, 8
"""Number of sizes and opacities of cached puff sprites."""


class _Ring:
    """Ring buffer of rows; a new row replaces the oldest."""

    def __init__(self, rows: int, columns: int) -> None:
        self._rows = np.zeros((rows, columns))
        self._next = 0
        self._used = 0

    def add(self, rows: Floats) -> None:
        rows = rows[-len(self._rows) :]
        places = (self._next + np.arange(len(rows))) % len(self._rows)
        self._rows[places] = rows
        self._next = (self._next + len(rows)) % len(self._rows)
        self._used = min(len(self._rows), self._used + len(rows))

    @property
    def rows(self) -> Floats:
        return self._rows[: self._used]

    def clear(self) -> None:
        self._next = self._used = 0


class Effects:
    """Effect state. Marks: from xy, to xy, strength, tick. Dust and sparks: xy, velocity xy, tick, and a colour index
    for dust."""

    def __init__(self) -> None:
        self.marks, self._dust, self._sparks = _Ring(MARKS, 6), _Ring(PUFFS, 6), _Ring(SPARKS, 5)
        self._layer = pygame.Surface((1, 1), depth=32)
        self._puffs: dict[tuple[int, int, int], pygame.Surface] = {}
        self._puff_scale = 0.0
        self._track: Track | None = None
        self.clear()

    def clear(self) -> None:
        """Remove all effects."""
        for ring in (self.marks, self._dust, self._sparks):
            ring.clear()
        self._random = np.random.default_rng(_SEED)
        self._tick = 0
        self._steps = np.zeros(0, np.int64)
        self._wheels = np.zeros((0, 2, 2))
        self._skidding = np.zeros(0, np.bool_)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Numbers of visible marks, dust puffs and sparks."""
        lives = ((self.marks, MARK_LIFE, 5), (self._dust, DUST_LIFE, 4), (self._sparks, SPARK_LIFE, 4))
        marks, puffs, sparks = (int((self._tick - ring.rows[:, born] < life).sum()) for ring, life, born in lives)
        return marks, puffs, sparks

    def tick(self, snapshot: Snapshot) -> None:
        cars, focus = snapshot.cars, snapshot.focus
        fresh = len(cars) != len(self._steps) or snapshot.track is not self._track
        if fresh or cars["step_count"][focus] < self._steps[focus]:
            self.clear()
            self._track = snapshot.track
            self._steps = cars["step_count"].copy()
            self._skidding = np.zeros(len(cars), np.bool_)
            self._wheels = _rear_wheels(cars)
        real = ~np.array([look.ghost for look in snapshot.styles], np.bool_)
        drove = real & (cars["step_count"] > self._steps)
        self._tick += 1
        self._skid(cars, drove & (cars["step_count"] <= self._steps + MARK_TICKS))
        self._raise_dust(cars, drove)
        self._strike_sparks(cars, drove)
        self._steps = cars["step_count"].copy()

    def _skid(self, cars: Cars, drove: Bools) -> None:
        self._skidding &= drove
        if self._tick % MARK_TICKS:
            return
        wheels = _rear_wheels(cars)
        slip = (cars["slip_angle"] - SKID_SLIP) / (FULL_SLIP - SKID_SLIP)
        strength = np.clip(np.maximum(slip, (cars["brake"] - HARD_BRAKE) * 1.2), 0.0, 1.0)
        strength[~drove | (cars["speed"] < SKID_SPEED)] = 0.0
        now = strength > 0.0
        both = np.flatnonzero(now & self._skidding)
        if len(both):
            ends = np.concatenate([self._wheels[both], wheels[both]], axis=2).reshape(-1, 4)
            kinds = np.repeat(0.35 + 0.65 * strength[both], 2)
            self.marks.add(np.column_stack([ends, kinds, np.full(len(ends), self._tick)]))
        self._wheels, self._skidding = wheels, now

    def _raise_dust(self, cars: Cars, drove: Bools) -> None:
        if self._tick % DUST_EVERY:
            return
        dusty = np.flatnonzero(drove & (cars["surface"] != ROAD) & (cars["speed"] > DUST_SPEED))
        if len(dusty):
            chosen = cars[dusty]
            wheels = _rear_wheels(chosen)[np.arange(len(dusty)), self._random.integers(0, 2, len(dusty))]
            drift = np.column_stack([chosen["vx"], chosen["vy"]]) * 0.12 + self._random.normal(
                0.0, 3.0, (len(dusty), 2)
            )
            kind = (chosen["surface"] != RUNOFF).astype(float)
            self._dust.add(np.column_stack([wheels, drift, np.full(len(dusty), self._tick), kind]))

    def _strike_sparks(self, cars: Cars, drove: Bools) -> None:
        for car in cars[drove & cars["wall_contact"] & (cars["speed"] > SPARK_SPEED)]:
            way = math.atan2(car["vy"], car["vx"]) + self._random.normal(0.0, 0.5, SPARKS_AT_ONCE)
            speed = (0.35 + self._random.uniform(size=SPARKS_AT_ONCE)) * (12.0 + 0.5 * float(car["speed"]))
            side = self._random.uniform(-1.0, 1.0, (SPARKS_AT_ONCE, 2)) * TRACK_WIDTH
            place = np.array([car["x"], car["y"]]) + side
            moves = np.stack([np.cos(way), np.sin(way)], axis=1) * speed[:, None]
            self._sparks.add(np.column_stack([place, moves, np.full(SPARKS_AT_ONCE, self._tick)]))

    def draw_marks(self, surface: pygame.Surface, view: View) -> None:
        """Darken the ground where tyres slid."""
        rows = self.marks.rows
        age = (self._tick - rows[:, 5]) / MARK_LIFE
        low, high = _limits(view, 0.0)
        seen = np.flatnonzero((age < 1.0) & (rows[:, :2] > low).all(axis=1) & (rows[:, :2] < high).all(axis=1))
        if not len(seen):
            return
        seen = seen[np.argsort(age[seen])[:MARKS_DRAWN][::-1]]
        ends = view.points_to_screen(rows[seen, :4].reshape(-1, 2, 2))
        dark = (DARKNESS * rows[seen, 4] * (1.0 - age[seen]) ** 0.5).astype(int)
        self._darken(surface, ends, dark.tolist(), max(1, round(TYRE_WIDTH * view.scale)))

    def _darken(self, surface: pygame.Surface, ends: Floats, dark: list[int], width: int) -> None:
        low, high = ends.min(axis=(0, 1)) - width, ends.max(axis=(0, 1)) + width
        area = pygame.Rect(low.tolist(), (high - low + 1.0).tolist()).clip(surface.get_rect())
        if not area:
            return
        if self._layer.get_width() < area.width or self._layer.get_height() < area.height:
            self._layer = pygame.Surface(surface.get_size(), depth=32)
        layer = self._layer.subsurface((0, 0, *area.size))
        layer.fill((0, 0, 0))
        for (start, end), level in zip((ends - area.topleft).tolist(), dark, strict=True):
            pygame.draw.aaline(layer, (level, level, level), start, end, width)
        surface.blit(layer, area.topleft, special_flags=pygame.BLEND_RGB_SUB)

    def draw_dust(self, surface: pygame.Surface, view: View, share: float) -> None:
        """Draw dust puffs that grow and fade."""
        rows = self._dust.rows
        age = (self._tick - 1.0 + share - rows[:, 4]) / DUST_LIFE
        low, high = _limits(view, DUST_SIZES[1])
        there = (age > 0.0) & (age < 1.0) & (rows[:, :2] > low).all(axis=1) & (rows[:, :2] < high).all(axis=1)
        if not there.any():
            return
        rows, age = rows[there], age[there]
        self._keep_puffs(view.scale)
        seconds = age * DUST_LIFE * DT
        places = view.points_to_screen(rows[:, :2] + rows[:, 2:4] * (seconds * (1.0 - 0.4 * age))[:, None])
        sizes = np.minimum(np.sqrt(age) * _SIZES, _SIZES - 1).astype(int).tolist()
        shades = np.minimum((1.0 - age) * _SHADES, _SHADES - 1).astype(int).tolist()
        puffs = []
        for (x, y), *key in zip(places.tolist(), rows[:, 5].astype(int).tolist(), sizes, shades, strict=True):
            puff = self._puff(*key)
            puffs.append((puff, (round(x - puff.get_width() / 2), round(y - puff.get_height() / 2))))
        surface.fblits(puffs, pygame.BLEND_PREMULTIPLIED)

    def _keep_puffs(self, scale: float) -> None:
        """Build the puff sprites for about this scale."""
        if not 0.9 < scale / max(self._puff_scale, 1e-9) < 1.1:
            self._puff_scale = scale
            self._puffs.clear()

    def _puff(self, kind: int, size: int, shade: int) -> pygame.Surface:
        key = kind, size, shade
        if key not in self._puffs:
            least, most = DUST_SIZES
            radius = (least + (most - least) * size / (_SIZES - 1)) * self._puff_scale
            self._puffs[key] = _soft_disc(radius, DUST_COLOURS[kind], DUST_OPACITY * (shade + 1) / _SHADES)
        return self._puffs[key]

    def draw_sparks(self, surface: pygame.Surface, view: View, share: float) -> None:
        """Draw sparks as short bright strokes along their path."""
        rows = self._sparks.rows
        ticks = self._tick - 1.0 + share - rows[:, 4]
        there = (ticks > -1.0) & (ticks < SPARK_LIFE)
        if not there.any():
            return
        rows, age = rows[there], np.maximum(0.0, ticks[there]) / SPARK_LIFE
        flown = (age - 0.5 * age * age) * SPARK_LIFE * DT
        tails = np.maximum(0.0, flown - 0.035)
        heads, ends = (view.points_to_screen(rows[:, :2] + rows[:, 2:4] * time[:, None]) for time in (flown, tails))
        colours = SPARK_HOT + age[:, None] * (SPARK_COLD - SPARK_HOT)
        width = max(1, round(0.3 * view.scale))
        for head, end, colour in zip(heads.tolist(), ends.tolist(), colours.astype(int).tolist(), strict=True):
            pygame.draw.aaline(surface, colour, end, head, width)


def _limits(view: View, beyond: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the lower left and upper right corner of the area around the view, enlarged by a margin [units]."""
    (left, bottom), (right, top) = view.bounds()
    return (left - beyond, bottom - beyond), (right + beyond, top + beyond)


def _rear_wheels(cars: Cars) -> Floats:
    """Return the ground contact points of the left and right rear wheel, (n, 2, 2)."""
    cos, sin = np.cos(cars["heading"]), np.sin(cars["heading"])
    axle = np.stack([cars["x"] - REAR_AXLE * cos, cars["y"] - REAR_AXLE * sin], axis=1)
    left = np.stack([-sin, cos], axis=1) * TRACK_WIDTH
    return np.stack([axle + left, axle - left], axis=1)


def _soft_disc(radius: float, colour: tuple[int, int, int], opacity: float) -> pygame.Surface:
    """Return a premultiplied disc that fades towards its edge."""
    half = max(2, math.ceil(radius))
    steps = np.arange(2 * half) - half + 0.5
    distance = np.hypot(*np.meshgrid(steps, steps)) / half
    alpha = opacity * np.clip(1.0 - distance * distance, 0.0, 1.0)
    pixels = alpha[..., None] * (*colour, 255.0)
    return pygame.image.frombuffer(pixels.astype(np.uint8).tobytes(), (2 * half, 2 * half), "RGBA")
