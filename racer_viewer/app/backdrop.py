"""What goes on behind the menu: the champion drives, on one circuit after the other."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from racer_env.engine import circuits
from racer_viewer.agents import CHAMPION, load_agent
from racer_viewer.modes.race import Entrant, Race
from racer_viewer.modes.screen import AppContext
from racer_viewer.render.scene import Scene, SceneOptions
from racer_viewer.snapshot import Snapshot

if TYPE_CHECKING:
    import pygame

TICKS_ON_A_CIRCUIT = 1500


class Backdrop:
    """A race of one that nobody controls."""

    def __init__(self, app: AppContext) -> None:
        self._app = app
        self._agent = load_agent(CHAMPION)
        self._circuits = itertools.cycle([circuit.id for circuit in circuits()])
        self._scene = Scene(app.theme)
        self._before = self._after = self._begin()

    def tick(self) -> None:
        if self._race.ticks >= TICKS_ON_A_CIRCUIT:
            self._race.close()
            self._after = self._begin()
        self._race.step((0.0, 0.0, 0.0))
        self._before, self._after = self._after, self._race.snapshot()
        self._scene.tick(self._after)

    def draw(self, surface: pygame.Surface, share: float) -> None:
        self._scene.use(self._app.theme)
        self._scene.draw(surface, self._before, self._after, share, SceneOptions(rays=True, names=False))

    def draw_ahead(self) -> bool:
        return self._scene.draw_ahead()

    def close(self) -> None:
        self._race.close()

    def _begin(self) -> Snapshot:
        """On the next circuit."""
        self._race = Race(next(self._circuits), [Entrant(CHAMPION, self._app.theme.palette.player, self._agent)])
        return self._race.snapshot()
