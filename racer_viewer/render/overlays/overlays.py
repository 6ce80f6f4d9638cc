"""All panels: which are shown, where, and what they remember."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pygame

from racer_viewer.render.overlays.agent import AgentPanel, NobodyPanel
from racer_viewer.render.overlays.circuit_map import CircuitMap
from racer_viewer.render.overlays.gaps import COMPACT_ROWS, ROWS, GapsPanel
from racer_viewer.render.overlays.history import History
from racer_viewer.render.overlays.inputs import InputsPanel
from racer_viewer.render.overlays.layout import COLUMN_SHARE, GAP, Place, Room, Wish, arrange
from racer_viewer.render.overlays.letters import Letters
from racer_viewer.render.overlays.panel import WIDTH, Panel, View
from racer_viewer.render.overlays.physics import PhysicsPanel
from racer_viewer.render.overlays.reward import RewardPanel
from racer_viewer.render.overlays.speed import SpeedPanel
from racer_viewer.render.overlays.timing import TimingPanel
from racer_viewer.snapshot import Snapshot
from racer_viewer.ui.theme import MARGIN, Theme

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
    return int(name == "agent" and snapshot.thought is not None)


def _made(name: str, compact: bool, kind: int, letters: Letters) -> Panel:
    if name == "gaps":
        return GapsPanel(letters, min(COMPACT_ROWS, kind) if compact else kind)
    if name == "agent" and not kind:
        return NobodyPanel(letters)
    return _PANELS[name](letters, compact)
