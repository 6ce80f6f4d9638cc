"""Swarm view: all training cars on the whole circuit, as fast as they learn."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_env.engine import CAR, Track
from racer_viewer.render.camera import REFERENCE_HEIGHT, Camera, Mode, View
from racer_viewer.render.car import CAR_LENGTH, ENLARGED
from racer_viewer.render.swarm_backdrop import HALF_LIFE, Heat, SwarmBackdrop
from racer_viewer.render.swarm_legend import Legend, heat_colours, quality_colours, shades_of
from racer_viewer.render.swarm_motion import TRAIL, Stretch, SwarmMotion
from racer_viewer.render.swarm_sprites import Darts, Marks, TrailRenderer, ring_picture
from racer_viewer.run_history import Swarm
from racer_viewer.snapshot import CarStyle, Snapshot
from racer_viewer.translation import _
from racer_viewer.ui.theme import Theme

CAR_LENGTHS = ((16, 17.0), (64, 14.0), (256, 11.0))
"""Car length by the number of cars, in a window of the reference height [px]."""
MIN_SWARM_CAR_LENGTH = 7.0
"""Smallest car length in any window [px]."""
TRAIL_LENGTH = 68.0
"""Trail length of the fastest car, in a window of the reference height [px]."""
TRAIL_WIDTH = 1.6
"""Trail width, in a window of the reference height [px]."""
MARK, MIN_MARK = 9.0, 5.5
"""Width of an episode-end mark, in a window of the reference height and at least [px]."""
BETTER = 0.06
"""Quality margin by which another car becomes the best, so that the ring does not flicker between two."""
HEAT_SAMPLES = 10
"""Maximum number of samples along the path of a tick, about one per cell."""
MAX_TRACKS, MAX_PICTURES = 3, 4
BEYOND = 100
"""Largest extent of anything drawn around its centre [px]."""
ROAD_POINTS = 300
USUAL_ASPECT = 16 / 9
"""Aspect ratio assumed before the window is known."""


@dataclass(frozen=True)
class SwarmOptions:
    """Optional layers besides ground and cars."""

    heat: bool = True
    marks: bool = True
    trails: bool = True
    legend: bool = True


Numbers = NDArray[np.intp]
EVERYTHING = SwarmOptions()


@dataclass(frozen=True, eq=False)
class _Circuit:
    """Persistent state of a circuit of the run. road: (n, 2) points along its middle and its walls [units]."""

    track: Track
    heat: Heat
    road: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Pictures:
    """Sprites for cars of one length in a window of one height."""

    darts: Darts
    marks: Marks
    ring: pygame.Surface


class SwarmScene:
    """Renderer of the swarm; it advances once per window tick.

    patient: draw the whole ground in every picture, for films; otherwise keeping the frame rate has priority.
    half_life: half-life of the heat in car ticks, or None to keep it for ever.
    """

    def __init__(self, theme: Theme, patient: bool = False, half_life: float | None = HALF_LIFE) -> None:
        self.camera = Camera()
        self.camera.mode = Mode.WHOLE
        self._patient, self._half_life, self._theme = patient, half_life, theme
        self.motion = SwarmMotion()
        self.circuits: dict[int, _Circuit] = {}
        self._backdrops: dict[Track, SwarmBackdrop] = {}
        self._pictures: dict[tuple[int, float], _Pictures] = {}
        self._legend, self._light = self._new_legend(), self._new_light()
        self.ticks, self._best = 0, -1
        self._shown: SwarmBackdrop | None = None

    def use(self, theme: Theme) -> None:
        """Change the theme."""
        if theme is not self._theme:
            self._theme = theme
            self._pictures.clear()
            self._legend, self._light = self._new_legend(), self._new_light()

    def prepare(self, track: Track, height: int = REFERENCE_HEIGHT, number: int = 0, width: int | None = None) -> None:
        """Build the ground of circuit `number` for a surface of this size, about 0.2 s.

        Otherwise the first pictures do it piece by piece. Several sizes may be prepared for several layouts. The
        circuit's heat is recorded from here on.

        width: None if the surface has the usual aspect ratio.
        """
        self._circuit(number, track)
        size = width or round(height * USUAL_ASPECT), height
        self._backdrop(track).prepare(self.view_of(track, size))

    def reset(self) -> None:
        """Clear everything for another run."""
        self.motion.reset()
        self._best = -1
        for circuit in self.circuits.values():
            circuit.heat.reset()

    def tick(self, swarm: Swarm | None) -> None:
        """Advance by one window tick with the newest swarm; the same object again means no news."""
        self.ticks += 1
        before = self.motion.run_tick
        stretches = self.motion.tick(swarm)
        for number, circuit in self.circuits.items():
            circuit.heat.cool(self.motion.run_tick - before)
            for stretch in stretches:
                _warm(circuit.heat, stretch, np.flatnonzero(stretch.tracks == number))

    def draw(self, surface: pygame.Surface, track: Track, options: SwarmOptions = EVERYTHING, number: int = 0) -> None:
        """Draw the cars on circuit `number` of the run, which is `track`; cars on other circuits are left out."""
        circuit = self._circuit(number, track)
        view = self.view_of(track, surface.get_size())
        self.motion.spacing = TRAIL_LENGTH * view.size[1] / REFERENCE_HEIGHT / view.scale / TRAIL
        self._shown = self._backdrop(track)
        heat = circuit.heat if options.heat else None
        self._shown.draw(surface, view, heat, heat_colours(self._theme.palette), self.ticks)
        cars = self.motion.cars
        here = np.flatnonzero(cars["track"] == number)
        pictures = self._pictures_for(view, len(here))
        if options.trails:
            self._draw_trails(surface, view, here)
        if options.marks:
            self._draw_marks(surface, view, number, pictures.marks)
        self._draw_cars(surface, view, here, pictures)
        if options.legend:
            self._draw_legend(surface, view, circuit.road, len(here), number)

    def draw_ahead(self) -> bool:
        """Prepare a part of the ground, about 2 ms; return False if there is nothing to prepare.

        Call it when a frame has time left, so that later frames do not need it.
        """
        return self._shown is not None and self._shown.draw_ahead()

    def _draw_trails(self, surface: pygame.Surface, view: View, here: Numbers) -> None:
        motion = self.motion
        shades = shades_of(motion.cars["quality"][here])
        width = max(1, round(TRAIL_WIDTH * view.size[1] / REFERENCE_HEIGHT))
        self._light.draw(surface, view, motion.trail[:, here], motion.trail_lengths[here], shades, width)

    def _draw_marks(self, surface: pygame.Surface, view: View, number: int, marks: Marks) -> None:
        ends, ages = self.motion.marks, self.motion.mark_ages()
        places = view.points_to_screen(ends[:, :2])
        seen = (ends[:, 2] == number) & (ages < 1.0) & _within(view, places)
        blits = marks.blits(places[seen], ages[seen], ends[seen, 4] > 0.0)
        surface.fblits(blits, pygame.BLEND_PREMULTIPLIED)

    def _draw_cars(self, surface: pygame.Surface, view: View, here: Numbers, pictures: _Pictures) -> None:
        """Draw the cars, better ones on top, with a ring around the best."""
        cars = self.motion.cars
        best = self._best = _best(cars["quality"], here, self._best)
        order = here[np.argsort(np.where(here == best, np.inf, cars["quality"][here]))]
        places = view.points_to_screen(np.stack([cars["x"][order], cars["y"][order]], axis=1))
        seen = _within(view, places)
        order, places = order[seen], places[seen]
        blits = pictures.darts.blits(places, cars["heading"][order], cars["quality"][order])
        if len(order) and order[-1] == best:
            half = pictures.ring.get_width() / 2.0
            x, y = np.rint(places[-1] - half).astype(int).tolist()
            blits.insert(-1, (pictures.ring, (x, y)))
        surface.fblits(blits, pygame.BLEND_PREMULTIPLIED)

    def _draw_legend(
        self, surface: pygame.Surface, view: View, road: NDArray[np.float64], here: int, number: int
    ) -> None:
        insets = self.camera.insets
        width, height = surface.get_size()
        area = pygame.Rect(insets.left, insets.top, width - insets.left - insets.right,
                           height - insets.top - insets.bottom)  # fmt: skip
        there = len(self.motion.cars)
        cars = (
            _("{here} of {there} cars").format(here=here, there=there)
            if here < there
            else _("{there} cars").format(there=there)
            if there
            else _("no cars")
        )
        stopped = _("{count} stopped").format(count=self.motion.crashes(number)) if there else ""
        at_walls = _("{count} at walls").format(count=self.motion.at_walls(number)) if there else ""
        self._legend.draw(surface, view, area, road, cars, stopped, at_walls)

    def view_of(self, track: Track, size: tuple[int, int]) -> View:
        self.camera.tick(Snapshot(track, np.zeros(1, CAR), (CarStyle("", (0, 0, 0)),)))
        return self.camera.look(size)

    def _circuit(self, number: int, track: Track) -> _Circuit:
        circuit = self.circuits.get(number)
        if circuit is None or circuit.track is not track:
            middle = track.centreline.points(np.linspace(0.0, track.length, ROAD_POINTS))
            walls = (wall[:: max(1, len(wall) // ROAD_POINTS)] for wall in (track.inner, track.outer))
            road = np.concatenate([middle, *walls])
            circuit = self.circuits[number] = _Circuit(track, Heat(track, self._half_life), road)
        return circuit

    def _backdrop(self, track: Track) -> SwarmBackdrop:
        backdrop = self._backdrops.pop(track, None) or SwarmBackdrop(track, self._patient)
        self._backdrops[track] = backdrop
        while len(self._backdrops) > MAX_TRACKS:
            del self._backdrops[next(iter(self._backdrops))]
        return backdrop

    def _pictures_for(self, view: View, cars: int) -> _Pictures:
        height = view.size[1]
        length = round(max(CAR_LENGTH * ENLARGED * view.scale, _length(cars, height)), 1)
        if (height, length) not in self._pictures:
            if len(self._pictures) >= MAX_PICTURES:
                self._pictures.clear()
            palette = self._theme.palette
            mark = max(MIN_MARK, MARK * height / REFERENCE_HEIGHT)
            ring = ring_picture(0.95 * length + 1.0, max(1.6, 0.14 * length), palette.text)
            darts = Darts(length, quality_colours(palette))
            self._pictures[height, length] = _Pictures(darts, Marks(mark, palette.bad, palette.text), ring)
        return self._pictures[height, length]

    def _new_legend(self) -> Legend:
        palette = self._theme.palette
        return Legend(
            self._theme, quality_colours(palette), Marks(self._theme.px(MARK), palette.bad, palette.text).sign
        )

    def _new_light(self) -> TrailRenderer:
        return TrailRenderer(quality_colours(self._theme.palette), TRAIL)


def _warm(heat: Heat, stretch: Stretch, here: Numbers) -> None:
    """Add the paths of some cars to the heat."""
    places = stretch.places[:: max(1, len(stretch.places) // HEAT_SAMPLES), here]
    way = np.broadcast_to(stretch.way[here] / max(1, len(places)), places.shape[:2])
    driven = way > 0.0
    heat.add(places[driven], way[driven])


def _best(quality: NDArray[np.float32], here: Numbers, last: int) -> int:
    """Return the index of the best of some cars, or -1; the last best stays until another is clearly better."""
    if not len(here):
        return -1
    top = int(here[np.argmax(quality[here])])
    return last if last in here and quality[last] + BETTER >= quality[top] else top


def _length(cars: int, height: int) -> float:
    """Return the length of a car among so many [px]."""
    counts, lengths = zip(*CAR_LENGTHS, strict=True)
    length = float(np.interp(math.log(max(1, cars)), np.log(counts), lengths))
    return max(MIN_SWARM_CAR_LENGTH, length * height / REFERENCE_HEIGHT)


def _within(view: View, places: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return a mask of the positions that are at least partly visible."""
    return np.asarray(((places > -BEYOND) & (places < np.array(view.size) + BEYOND)).all(axis=1))
