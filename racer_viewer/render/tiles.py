"""Ground at any scale: tiles are drawn at fixed levels, and shrunk or enlarged slightly to the scale of a view.

New tiles are drawn in the time left after a frame (`draw_ahead`), or one per frame if that is never called. Until a
tile is ready, a coarser picture of its area is enlarged.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
import pygame

from racer_env.engine import Track
from racer_viewer.render.camera import REST_SCALE, View
from racer_viewer.render.ground import MAX_TILES, TILE, Ground, GroundPlan, Place, ground_plan
from racer_viewer.render.scenery import GRASS

FINEST, RATIO = 4, math.sqrt(2.0)
"""Index of the finest level; level 0 has the base scale, each next one is larger by this ratio."""
MAGNIFIED = 1.2
"""Largest enlargement of a level before the next one is used."""
BRIDGED = 1.8
"""Largest enlargement, or inverse shrinking, while tiles of the right level are still missing."""
COARSER = 4
"""Number of levels between a tile and the coarser one that stands in for it, which covers 4 times the length."""
OVERVIEW = 384
"""Width or height of the overview picture of the whole track [px]."""
SURROUNDINGS = 120.0
"""Margin around the track in the overview [units]."""
EFFORT = 8
"""Cost of drawing a tile, where shrinking one from a finer level costs 1; also the budget per frame."""
LOST_LIGHT = (2, 2, 2)
"""Brightness that pygame's scaling loses in every shrunk pixel, and that is added again."""
SLACK = 8
"""Number of extra pixels that may be taken to align the pixels of level and window."""
AHEAD = 2
"""Number of tiles beyond the view that are prepared."""
OUTLOOK = 24.0
"""Number of frames of camera motion for which tiles ahead are preferred."""


class _Span(NamedTuple):
    """Pixel range of a level, and its position in the window."""

    first: int
    end: int
    to_first: int
    to_end: int

    @property
    def length(self) -> int:
        return self.end - self.first

    @property
    def to_length(self) -> int:
        return self.to_end - self.to_first


class Cover(NamedTuple):
    """Tiles of level `number` that a view needs, and those not drawn yet."""

    number: int
    x: _Span
    y: _Span
    places: list[Place]
    missing: list[Place]


class GroundLevels:
    """Ground of one track, or of a meadow without one, for views of any scale and size.

    base: scale of level 0 [px per unit]. Views at the scale of a level are drawn directly; others are scaled, which
    costs several times as much.
    """

    def __init__(self, track: Track | None, base: float = REST_SCALE, plan: GroundPlan | None = None) -> None:
        self.track, self.base = track, base
        self.plan = plan or ground_plan(track)
        self.levels: dict[int, Ground] = {}
        self._stand_ins: dict[tuple[int, Place], pygame.Surface] = {}
        self._overview, self._overview_level, self._overview_place = self._drawn_overview()
        self.shown_level: int | None = None
        self.complete = False
        """True if no tile was missing in the last frame."""
        self._source = self._scaled = pygame.Surface((1, 1), depth=32)
        self._last: tuple[object, ...] = ()
        self._drew_ahead = False
        """True if `draw_ahead` was called since the last frame."""
        self._middle = (0.0, 0.0)
        self._motion = (0.0, 0.0)

    def draw(self, surface: pygame.Surface, view: View, patient: bool = False) -> None:
        """Cover a surface. patient: draw every missing tile now."""
        self._make_room(view.size)
        self._compose(surface, self.cover(view, patient), view)

    def cover(self, view: View, patient: bool = False, finest: int = FINEST) -> Cover:
        """Return the tiles to show in a new frame, after drawing some missing ones.

        patient: draw every missing tile now.
        finest: finest level that may stand in while tiles of the right one are missing.
        """
        self._motion = view.x - self._middle[0], view.y - self._middle[1]
        self._middle = view.x, view.y
        right = fitting_level(view.scale, self.base)
        if self.shown_level is None:
            self.shown_level = right
            for number in (right, right - 1, right - COARSER, right - 1 - COARSER):
                self._level(number).warm_up()
        cover = self._cover(right, view)
        if patient:
            for place in cover.missing:
                self._level(right).tile(place)
            cover = cover._replace(missing=[])
        elif cover.missing:
            cover = self._best(cover, view, finest)
        self.shown_level, self.complete = cover.number, not cover.missing
        self._drew_ahead = False
        return cover

    def pictures(self, cover: Cover) -> list[pygame.Surface]:
        """Return the pictures of the places of a cover: tiles, or coarser pictures that stand in for them."""
        tiles = self._level(cover.number).tiles
        return [tiles.get(place) or self._stand_in(cover.number, place) for place in cover.places]

    def draw_ahead(self, view: View) -> bool:
        """Draw a part of what the view lacks, then of what it will need next; return False if all is ready.

        Call it when a frame has time left.
        """
        self._drew_ahead = True
        cover = self._cover(fitting_level(view.scale, self.base), view)
        if cover.missing:
            self._add_to(cover, view)
            return True
        level = self._level(cover.number)
        beyond = AHEAD * TILE
        x, y = _spans(view, level.scale)
        size = x.length + 2 * beyond, y.length + 2 * beyond
        missing = [each for each in level.places(size, x.first - beyond, y.first - beyond) if each not in level.tiles]
        goal = view.x + OUTLOOK * self._motion[0], view.y + OUTLOOK * self._motion[1]
        self._work_on(fitting_level(view.scale, self.base), missing, goal)
        return bool(missing)

    def _level(self, number: int) -> Ground:
        if number not in self.levels:
            self.levels[number] = Ground(self.plan, level_scale(number, self.base))
        return self.levels[number]

    def _cover(self, number: int, view: View) -> Cover:
        level = self._level(number)
        x, y = _spans(view, level.scale)
        places = level.places((x.length, y.length), x.first, y.first)
        level.kept = max(MAX_TILES, 2 * len(places))
        return Cover(number, x, y, places, [place for place in places if place not in level.tiles])

    def _best(self, right: Cover, view: View, finest: int) -> Cover:
        """Return the right level, or the level shown last while fewer of its tiles are missing."""
        best, shown = right, self.shown_level or 0
        if right.number != shown <= finest and 1.0 / BRIDGED < view.scale / level_scale(shown, self.base) < BRIDGED:
            last = self._cover(shown, view)
            best = last if len(last.missing) < len(right.missing) else right
        if best.missing and not self._drew_ahead:
            self._add_to(best, view)
        return best

    def _add_to(self, cover: Cover, view: View) -> None:
        """Draw some missing tiles, starting with those that can stand in for others."""
        if not self._add_coarse(cover, (view.x, view.y)):
            self._work_on(cover.number, cover.missing, (view.x, view.y))

    def _add_coarse(self, cover: Cover, goal: tuple[float, float]) -> bool:
        """Draw a tile that can stand in for missing ones; return False if all have one."""
        coarse = cover.number - COARSER
        if coarse <= self._overview_level:
            return False
        level = self._level(coarse)
        above = {(column >> 2, row >> 2) for column, row in cover.missing}.difference(level.tiles)
        if above:
            place = _nearest(list(above), level.scale, goal)
            level.tile(place)
            for column, row in itertools.product(range(4), repeat=2):
                self._stand_ins.pop((cover.number, (place[0] * 4 + column, place[1] * 4 + row)), None)
        return bool(above)

    def _work_on(self, number: int, missing: list[Place], goal: tuple[float, float]) -> None:
        """Make the tiles nearest to a point within the budget of a frame, and remove them from the list."""
        effort = 0
        while missing and effort < EFFORT:
            place = _nearest(missing, level_scale(number, self.base), goal)
            missing.remove(place)
            effort += self._add(number, place)

    def _add(self, number: int, place: Place) -> int:
        """Make a tile, from the next finer level if cached; return the cost."""
        finer = self.levels.get(number + 1)
        if finer is not None:
            left, right, top, bottom = (round(at * TILE * RATIO) for at in _ends(*place))
            size = right - left, bottom - top
            tiles = [(each, finer.tiles.get(each)) for each in finer.places(size, left, top)]
            if all(tile for _, tile in tiles):
                joined = pygame.Surface(size, depth=32)
                joined.blits([(tile, (x * TILE - left, y * TILE - top)) for (x, y), tile in tiles if tile])
                tile = pygame.transform.smoothscale(joined, (TILE, TILE))
                tile.fill(LOST_LIGHT, special_flags=pygame.BLEND_RGB_ADD)
                self._level(number).keep(place, tile)
                return 1
        self._level(number).tile(place)
        return EFFORT

    def _compose(self, surface: pygame.Surface, cover: Cover, view: View) -> None:
        x, y = cover.x, cover.y
        if _same(view.scale, level_scale(cover.number, self.base)):
            self._put_tiles(surface, cover, x.first - x.to_first, y.first - y.to_first)
            return
        key = (cover.number, x, y)
        if cover.missing or key != self._last:
            self._source = _at_least(self._source, (x.length, y.length))
            self._scaled = _at_least(self._scaled, (x.to_length, y.to_length))
            source = self._source.subsurface((0, 0, x.length, y.length))
            self._put_tiles(source, cover, x.first, y.first)
            size = x.to_length, y.to_length
            scaled = self._scaled.subsurface((0, 0, *size))
            pygame.transform.smoothscale(source, size, scaled)
            if x.to_length < x.length:
                scaled.fill(LOST_LIGHT, special_flags=pygame.BLEND_RGB_ADD)
            self._last = () if cover.missing else key
        surface.blit(self._scaled, (x.to_first, y.to_first), (0, 0, x.to_length, y.to_length))

    def _make_room(self, size: tuple[int, int]) -> None:
        """Allocate work surfaces that are large enough for nearly any view of this size."""
        width, height = size[0] + SLACK * RATIO * 2.0, size[1] + SLACK * RATIO * 2.0
        if self._scaled.get_width() < width or self._scaled.get_height() < height:
            self._scaled = pygame.Surface((math.ceil(width), math.ceil(height)), depth=32)
            self._source = pygame.Surface((math.ceil(width * BRIDGED), math.ceil(height * BRIDGED)), depth=32)
            _warm_up_scaling(self._source, self._scaled)

    def _put_tiles(self, target: pygame.Surface, cover: Cover, left: int, top: int) -> None:
        corners = [(column * TILE - left, row * TILE - top) for column, row in cover.places]
        target.fblits(list(zip(self.pictures(cover), corners, strict=True)))

    def _stand_in(self, number: int, place: Place) -> pygame.Surface:
        """Return a tile from the finest cached picture of its area."""
        key = number, place
        if key not in self._stand_ins:
            if len(self._stand_ins) >= MAX_TILES:
                self._stand_ins.clear()
            coarse, above = number - COARSER, (place[0] >> 2, place[1] >> 2)
            if coarse > self._overview_level and above in self._level(coarse).tiles:
                part = TILE // 4
                area = (
                    self._level(coarse).tile(above).subsurface((place[0] % 4 * part, place[1] % 4 * part, part, part))
                )
                self._stand_ins[key] = pygame.transform.smoothscale(area, (TILE, TILE))
            else:
                self._stand_ins[key] = self._from_overview(number, place)
        return self._stand_ins[key]

    def _from_overview(self, number: int, place: Place) -> pygame.Surface:
        ratio = level_scale(self._overview_level) / level_scale(number)
        left, top = self._overview_place
        area = pygame.Rect(0, 0, max(1, round(TILE * ratio)), max(1, round(TILE * ratio)))
        area.topleft = round(place[0] * TILE * ratio) - left, round(place[1] * TILE * ratio) - top
        if not self._overview.get_rect().contains(area):
            tile = pygame.Surface((TILE, TILE), depth=32)
            tile.fill(GRASS[0])
            return tile
        return pygame.transform.smoothscale(self._overview.subsurface(area), (TILE, TILE))

    def _drawn_overview(self) -> tuple[pygame.Surface, int, Place]:
        """Return the whole track as one small picture, with its level and origin."""
        low, high = self.plan.extent
        low, high = low - SURROUNDINGS, high + SURROUNDINGS
        number = math.floor(2.0 * math.log2(OVERVIEW / float((high - low).max()) / self.base))
        level = self._level(number)
        left, top = math.floor(low[0] * level.scale), math.floor(-high[1] * level.scale)
        size = np.ceil((high - low) * level.scale).astype(int).tolist()
        picture = pygame.Surface(size, depth=32)
        level.draw(picture, left, top)
        return picture, number, (left, top)


def level_scale(number: int, base: float = REST_SCALE) -> float:
    """Return the scale of a level [px per unit]."""
    return float(base * RATIO**number)


def fitting_level(scale: float, base: float = REST_SCALE) -> int:
    """Return the coarsest level that needs no large enlargement."""
    return min(FINEST, math.ceil(2.0 * math.log2(scale / MAGNIFIED / base)))


def _spans(view: View, scale: float) -> tuple[_Span, _Span]:
    """Return the horizontal and vertical pixel ranges of a level that cover a view."""
    ratio = view.scale / scale
    width, height = view.size
    return (
        _span(view.x * scale - width / 2 / ratio, width, ratio),
        _span(-view.y * scale - height / 2 / ratio, height, ratio),
    )


def _span(start: float, length: int, ratio: float) -> _Span:
    """Return a pixel range from a fractional start, aligned to window pixels within `SLACK`."""
    if _same(ratio, 1.0):
        first = round(start)
        return _Span(first, first + length, 0, length)
    first = min(range(math.floor(start) - SLACK, math.floor(start) + 1), key=lambda at: _off((at - start) * ratio))
    last = math.ceil(start + length / ratio)
    end = min(range(last, last + SLACK + 1), key=lambda at: _off((at - start) * ratio))
    return _Span(first, end, round((first - start) * ratio), round((end - start) * ratio))


def _same(scale: float, other: float) -> bool:
    """Return True if two scales differ too little to move any pixel of a window."""
    return math.isclose(scale, other, rel_tol=1e-5)


def _ends(column: int, row: int) -> tuple[int, int, int, int]:
    """Return left, right, top and bottom of a tile, in tiles."""
    return column, column + 1, row, row + 1


def _off(place: float) -> float:
    return abs(place - round(place))


def _nearest(places: list[Place], scale: float, goal: tuple[float, float]) -> Place:
    column, row = goal[0] * scale / TILE - 0.5, -goal[1] * scale / TILE - 0.5
    return min(places, key=lambda place: (place[0] - column) ** 2 + (place[1] - row) ** 2)


def _at_least(surface: pygame.Surface, size: tuple[int, int]) -> pygame.Surface:
    """Return a surface that is at least as large as the given one and as this size."""
    width, height = map(max, surface.get_size(), size)
    return surface if (width, height) == surface.get_size() else pygame.Surface((width, height), depth=32)


def _warm_up_scaling(source: pygame.Surface, target: pygame.Surface) -> None:
    """Scale once with more intermediate memory than any view will need.

    The C library keeps that memory. Otherwise it asks the system for fresh memory whenever a view needs more than all
    before it, in every frame of a slow zoom, which is several times slower than the scaling itself.
    """
    strip = source.subsurface((0, 0, 64, source.get_height()))
    pygame.transform.smoothscale(strip, target.get_size(), target)
