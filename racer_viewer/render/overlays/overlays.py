"""The set of overlay panels and their layout: two columns at the window's edges, with the middle free.

A panel goes into its home column if it fits there, else into the other one. If not all panels fit, the least important
ones become compact one by one; if that is not enough, the least important ones are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import pygame

from racer_viewer.render.overlays.agent import AgentPanel, EmptyAgentPanel
from racer_viewer.render.overlays.circuit_map import CircuitMap
from racer_viewer.render.overlays.inputs import InputsPanel, SpeedPanel
from racer_viewer.render.overlays.panel import WIDTH, History, Panel, PanelInput, TextPainter
from racer_viewer.render.overlays.physics import PhysicsPanel
from racer_viewer.render.overlays.reward import RewardPanel
from racer_viewer.render.overlays.timing import COMPACT_ROWS, ROWS, GapsPanel, TimingPanel
from racer_viewer.snapshot import Snapshot
from racer_viewer.ui.theme import MARGIN, Theme

LEFT, RIGHT = 0, 1


@dataclass(frozen=True)
class PanelKind:
    """Overlay panel: how it is made, and where it goes.

    make: builds the panel for a text painter, in its compact or full form, and with so many rows of content.
    column: home column, LEFT or RIGHT.
    importance: the panel with the smallest value is left out first.
    at_bottom: True if it goes to the bottom of its column.
    toggled: True if a command of the same name shows it; the others come with the timing panel.
    """

    make: Callable[[TextPainter, bool, int], Panel]
    column: int
    importance: int
    at_bottom: bool = False
    toggled: bool = True


PANELS = {
    "timing": PanelKind(lambda painter, compact, rows: TimingPanel(painter, compact), LEFT, 8),
    "gaps": PanelKind(
        lambda painter, compact, rows: GapsPanel(painter, min(COMPACT_ROWS, rows) if compact else rows),
        LEFT,
        5,
        toggled=False,
    ),
    "inputs": PanelKind(lambda painter, compact, rows: InputsPanel(painter, compact), LEFT, 4),
    "physics": PanelKind(lambda painter, compact, rows: PhysicsPanel(painter, compact), LEFT, 1),
    "speed": PanelKind(
        lambda painter, compact, rows: SpeedPanel(painter, compact), LEFT, 7, at_bottom=True, toggled=False
    ),
    "reward": PanelKind(lambda painter, compact, rows: RewardPanel(painter, compact, rows), RIGHT, 3),
    "agent": PanelKind(
        lambda painter, compact, rows: AgentPanel(painter, compact) if rows else EmptyAgentPanel(painter), RIGHT, 2
    ),
    "map": PanelKind(lambda painter, compact, rows: CircuitMap(painter, compact), RIGHT, 6, at_bottom=True),
}
"""All overlay panels by name, from top to bottom of their columns."""
OVERLAYS = tuple(name for name, kind in PANELS.items() if kind.toggled)
"""Names of the panels that a command shows or hides."""
GAP = 8
"""Gap between two panels, at scale 1 [px]."""
COLUMN_SHARE = 0.3
"""Share of the window's width that a column and its margin may take."""


@dataclass(frozen=True)
class PanelRequest:
    """Panel to be placed, with its height in both forms [px]."""

    name: str
    full: int
    compact: int


@dataclass(frozen=True)
class PanelPlacement:
    name: str
    compact: bool
    rect: pygame.Rect


@dataclass(frozen=True)
class PanelArea:
    """Window size and column width [px]."""

    window: tuple[int, int]
    width: int
    margin: int
    gap: int

    @property
    def height(self) -> int:
        """Height of a column plus one gap, so that each panel can count its own gap."""
        return self.window[1] - 2 * self.margin + self.gap


def arrange(requests: Iterable[PanelRequest], room: PanelArea) -> list[PanelPlacement]:
    """Return the placements of as many panels as fit, column by column from top to bottom."""
    ranked = sorted(requests, key=lambda panel: -PANELS[panel.name].importance)
    for kept in range(len(ranked), 0, -1):
        for compact in range(kept + 1):
            small = {panel.name for panel in ranked[kept - compact : kept]}
            heights = {panel.name: panel.compact if panel.name in small else panel.full for panel in ranked[:kept]}
            columns = _columns(heights, room)
            if columns is not None:
                return [
                    PanelPlacement(name, name in small, rect)
                    for side, names in enumerate(columns)
                    for name, rect in _stack(names, heights, _left_edge(side, room), room)
                ]
    return []


def _columns(heights: dict[str, int], room: PanelArea) -> tuple[list[str], list[str]] | None:
    """Return the panel names of the left and right column, or None if they do not fit."""
    columns: tuple[list[str], list[str]] = [], []
    free = [room.height, room.height]
    for name, height in heights.items():
        home = PANELS[name].column
        side = next((side for side in (home, 1 - home) if free[side] >= height + room.gap), None)
        if side is None:
            return None
        columns[side].append(name)
        free[side] -= height + room.gap
    return columns


def _left_edge(side: int, room: PanelArea) -> int:
    return room.margin if side == 0 else room.window[0] - room.margin - room.width


def _stack(names: Sequence[str], heights: dict[str, int], left: int, room: PanelArea) -> list[tuple[str, pygame.Rect]]:
    """Return the rectangles of the panels of one column."""
    order = [name for name in PANELS if name in names]
    placed: list[tuple[str, pygame.Rect]] = []
    top, bottom = room.margin, room.window[1] - room.margin
    for name in order:
        if not PANELS[name].at_bottom:
            placed.append((name, pygame.Rect(left, top, room.width, heights[name])))
            top += heights[name] + room.gap
    for name in order:
        if PANELS[name].at_bottom:
            bottom -= heights[name]
            placed.append((name, pygame.Rect(left, bottom, room.width, heights[name])))
            bottom -= room.gap
    return placed


MIN_SCALE = 0.5
"""Smallest text scale; panels that would need smaller text are not drawn."""


class Overlays:
    """Panels in one theme. The timing panel brings the speed panel and, in a race, the gaps panel.

    If the window is too narrow for a column at the theme's scale, the panels are drawn at the scale that fits.

    patient: redraw every panel in every frame, for screenshots and films.
    """

    def __init__(self, theme: Theme, patient: bool = False) -> None:
        self.theme, self._patient = theme, patient
        self.history = History()
        self._painter = TextPainter(theme)
        self._panels: dict[tuple[str, bool, int], Panel] = {}
        self._places: list[PanelPlacement] = []
        self._arranged_for: tuple[object, ...] = ()

    @property
    def places(self) -> dict[str, pygame.Rect]:
        """Rectangles of the panels drawn last, by name."""
        return {place.name: place.rect for place in self._places}

    def with_theme(self, theme: Theme) -> Overlays:
        """Return overlays in another theme with the same history."""
        other = Overlays(theme, self._patient)
        other.history = self.history
        return other

    def tick(self, snapshot: Snapshot) -> None:
        """Record a snapshot; called once per simulation tick, whether panels are shown or not."""
        self.history.tick(snapshot)

    def draw(
        self, surface: pygame.Surface, snapshot: Snapshot, shown: Collection[str], units: str = "units/s"
    ) -> list[pygame.Rect]:
        """Draw the shown panels and return their rectangles; names that are not in `OVERLAYS` are ignored."""
        names = _names(shown, snapshot)
        rows = {name: _rows(name, snapshot) for name in names}
        wanted = (surface.get_size(), id(snapshot.track), *rows.items())
        if wanted != self._arranged_for:
            self._places = self._arrange(surface.get_size(), rows)
            self._arranged_for = wanted
            for panel in self._panels.values():
                panel.forget()
        view = PanelInput(snapshot, self.history, units)
        for place in self._places:
            panel = self._panel(place.name, place.compact, rows[place.name])
            if self._patient:
                panel.forget()
            panel.draw(surface.subsurface(place.rect), view)
        return [place.rect for place in self._places]

    def _arrange(self, window: tuple[int, int], rows: dict[str, int]) -> list[PanelPlacement]:
        margin = self.theme.px(MARGIN)
        scale = min(self.theme.scale, (int(window[0] * COLUMN_SHARE) - margin) / (WIDTH + 1))
        if scale < MIN_SCALE:
            return []
        if scale != self._painter.theme.scale:
            fitting = self.theme if scale == self.theme.scale else Theme(scale, self.theme.palette)
            self._painter, self._panels = TextPainter(fitting), {}
        theme = self._painter.theme
        requests = [
            PanelRequest(name, *(self._panel(name, compact, count).size[1] for compact in (False, True)))
            for name, count in rows.items()
        ]
        return arrange(requests, PanelArea(window, theme.px(WIDTH), margin, theme.px(GAP)))

    def _panel(self, name: str, compact: bool, rows: int) -> Panel:
        key = name, compact, rows
        if key not in self._panels:
            self._panels[key] = PANELS[name].make(self._painter, compact, rows)
        return self._panels[key]


def _names(shown: Collection[str], snapshot: Snapshot) -> list[str]:
    """Return the names of the panels to draw."""
    names = [name for name in OVERLAYS if name in shown]
    if "timing" in names:
        names.append("speed")
        if len(snapshot.gaps) > 1:
            names.append("gaps")
    return names


def _rows(name: str, snapshot: Snapshot) -> int:
    """Return the number of rows of the gaps and of the reward panel, and 1 if the agent panel has content."""
    if name == "gaps":
        return min(ROWS, len(snapshot.gaps) - 1)
    if name == "reward":
        return len(snapshot.reward_components)
    return int(name == "agent" and snapshot.insight is not None)
