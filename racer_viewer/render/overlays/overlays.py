"""Where the panels lie: two columns at the edges of the window, the middle stays free.

A panel lies in its home column if there is room, else in the other one. Where not all fit, the least important are
made compact, one after another; if they do not fit even so, the least important are left out.


All panels: which are shown, where, and what they remember."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import pygame

from racer_viewer.render.overlays.agent import AgentPanel, NobodyPanel
from racer_viewer.render.overlays.circuit_map import CircuitMap
from racer_viewer.render.overlays.inputs import InputsPanel, SpeedPanel
from racer_viewer.render.overlays.panel import WIDTH, History, Letters, Panel, View
from racer_viewer.render.overlays.physics import PhysicsPanel
from racer_viewer.render.overlays.reward import RewardPanel
from racer_viewer.render.overlays.timing import COMPACT_ROWS, ROWS, GapsPanel, TimingPanel
from racer_viewer.snapshot import Snapshot
from racer_viewer.ui.theme import MARGIN, Theme

IMPORTANCE = ("timing", "speed", "map", "gaps", "inputs", "reward", "agent", "physics")
"""The first are left out last."""
LEFT = ("timing", "gaps", "inputs", "physics", "speed")
"""At home in the left column, from top to bottom; the others are at home in the right one."""
RIGHT = ("reward", "agent", "map")
FROM_BELOW = ("speed", "map")
"""These lie at the bottom of their column."""
GAP = 8
"""Between two panels, at scale 1 [px]."""
COLUMN_SHARE = 0.3
"""Of the window's width that a column and its margin may take."""


@dataclass(frozen=True)
class Wish:
    """A panel that is to be shown, and its height in both forms [px]."""

    name: str
    full: int
    compact: int


@dataclass(frozen=True)
class Place:
    name: str
    compact: bool
    rect: pygame.Rect


@dataclass(frozen=True)
class Room:
    """The window, and the width of a column [px]."""

    window: tuple[int, int]
    width: int
    margin: int
    gap: int

    @property
    def height(self) -> int:
        """Of a column, with one gap more than needed, so that every panel can bring its own."""
        return self.window[1] - 2 * self.margin + self.gap


def arrange(wishes: Iterable[Wish], room: Room) -> list[Place]:
    """The places of as many of the panels as there is room for, in the order of `LEFT` and `RIGHT`."""
    ranked = sorted(wishes, key=lambda wish: IMPORTANCE.index(wish.name))
    for kept in range(len(ranked), 0, -1):
        for compact in range(kept + 1):
            small = {wish.name for wish in ranked[kept - compact : kept]}
            heights = {wish.name: wish.compact if wish.name in small else wish.full for wish in ranked[:kept]}
            columns = _columns(heights, room)
            if columns is not None:
                return [
                    Place(name, name in small, rect)
                    for side, names in enumerate(columns)
                    for name, rect in _stack(names, heights, _left_edge(side, room), room)
                ]
    return []


def _columns(heights: dict[str, int], room: Room) -> tuple[list[str], list[str]] | None:
    """The names in the left and in the right column; None if they do not fit."""
    columns: tuple[list[str], list[str]] = [], []
    free = [room.height, room.height]
    for name, height in heights.items():
        home = 0 if name in LEFT else 1
        side = next((side for side in (home, 1 - home) if free[side] >= height + room.gap), None)
        if side is None:
            return None
        columns[side].append(name)
        free[side] -= height + room.gap
    return columns


def _left_edge(side: int, room: Room) -> int:
    return room.margin if side == 0 else room.window[0] - room.margin - room.width


def _stack(names: Sequence[str], heights: dict[str, int], left: int, room: Room) -> list[tuple[str, pygame.Rect]]:
    """The panels of one column."""
    order = [name for name in (*LEFT, *RIGHT) if name in names]
    placed: list[tuple[str, pygame.Rect]] = []
    top, bottom = room.margin, room.window[1] - room.margin
    for name in order:
        if name not in FROM_BELOW:
            placed.append((name, pygame.Rect(left, top, room.width, heights[name])))
            top += heights[name] + room.gap
    for name in order:
        if name in FROM_BELOW:
            bottom -= heights[name]
            placed.append((name, pygame.Rect(left, bottom, room.width, heights[name])))
            bottom -= room.gap
    return placed


OVERLAYS = ("timing", "map", "inputs", "reward", "agent", "physics")
LEAST_SCALE = 0.5
"""Letters that would have to be smaller than this are not drawn at all."""

_PANELS: dict[str, Callable[[Letters, bool], Panel]] = {
    "timing": TimingPanel,
    "speed": SpeedPanel,
    "map": CircuitMap,
    "inputs": InputsPanel,
    "reward": RewardPanel,
    "agent": AgentPanel,
    "physics": PhysicsPanel,
}


class Overlays:
    """The panels of one theme. With the timing come the speed and, in a race, the gaps.

    Where a window is too narrow for a column of panels at the scale of the theme, they are drawn at the scale that
    fits; `layout` says what happens where it is too low.

    patient: every panel is drawn anew in every frame, for pictures and films.
    """

    def __init__(self, theme: Theme, patient: bool = False) -> None:
        self.theme, self._patient = theme, patient
        self.history = History()
        self._letters = Letters(theme)
        self._panels: dict[tuple[str, bool, int], Panel] = {}
        self._places: list[Place] = []
        self._arranged_for: tuple[object, ...] = ()

    def with_theme(self, theme: Theme) -> Overlays:
        """The same past in another look."""
        other = Overlays(theme, self._patient)
        other.history = self.history
        return other

    def tick(self, snapshot: Snapshot) -> None:
        """Once per tick of the simulation, whether anything is shown or not."""
        self.history.tick(snapshot)

    def draw(
        self, surface: pygame.Surface, snapshot: Snapshot, shown: Collection[str], units: str = "units/s"
    ) -> list[pygame.Rect]:
        """The rectangles that are covered, in the order drawn. Names that are not of `OVERLAYS` are for others."""
        names = _names(shown, snapshot)
        kinds = {name: _kind(name, snapshot) for name in names}
        wanted = (surface.get_size(), id(snapshot.track), *kinds.items())
        if wanted != self._arranged_for:
            self._places = self._arrange(surface.get_size(), kinds)
            self._arranged_for = wanted
            for panel in self._panels.values():
                panel.forget()
        view = View(snapshot, self.history, units)
        for place in self._places:
            panel = self._panel(place.name, place.compact, kinds[place.name])
            if self._patient:
                panel.forget()
            panel.draw(surface.subsurface(place.rect), view)
        return [place.rect for place in self._places]

    def _arrange(self, window: tuple[int, int], kinds: dict[str, int]) -> list[Place]:
        margin = self.theme.px(MARGIN)
        scale = min(self.theme.scale, (int(window[0] * COLUMN_SHARE) - margin) / (WIDTH + 1))
        if scale < LEAST_SCALE:
            return []
        if scale != self._letters.theme.scale:
            fitting = self.theme if scale == self.theme.scale else Theme(scale, self.theme.palette)
            self._letters, self._panels = Letters(fitting), {}
        theme = self._letters.theme
        wishes = [
            Wish(name, *(self._panel(name, compact, kind).size[1] for compact in (False, True)))
            for name, kind in kinds.items()
        ]
        return arrange(wishes, Room(window, theme.px(WIDTH), margin, theme.px(GAP)))

    def _panel(self, name: str, compact: bool, kind: int) -> Panel:
        key = name, compact, kind
        if key not in self._panels:
            self._panels[key] = _made(name, compact, kind, self._letters)
        return self._panels[key]


def _names(shown: Collection[str], snapshot: Snapshot) -> list[str]:
    """Of the panels that are to be shown."""
    names = [name for name in OVERLAYS if name in shown]
    if "timing" in names:
        names.append("speed")
        if len(snapshot.gaps) > 1:
            names.append("gaps")
    return names


def _kind(name: str, snapshot: Snapshot) -> int:
    """What the size of a panel depends on: the number of rows, or whether there is anything to show."""
    if name == "gaps":
        return min(ROWS, len(snapshot.gaps) - 1)
    return int(name == "agent" and snapshot.insight is not None)


def _made(name: str, compact: bool, kind: int, letters: Letters) -> Panel:
    if name == "gaps":
        return GapsPanel(letters, min(COMPACT_ROWS, kind) if compact else kind)
    if name == "agent" and not kind:
        return NobodyPanel(letters)
    return _PANELS[name](letters, compact)
