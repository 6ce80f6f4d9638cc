"""Moving background of the main menu. A module of its own, since it needs the engine and the menu must not."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from racer_env.engine import circuits
from racer_viewer.agents import CHAMPION, load_agent
from racer_viewer.modes.drive import Drive, open_drive
from racer_viewer.modes.race import ENDLESS, NO_ACTION, Entrant, RaceSetup
from racer_viewer.modes.screen import AppContext
from racer_viewer.render.scene import Scene, SceneOptions
from racer_viewer.snapshot import Snapshot

if TYPE_CHECKING:
    import pygame

TICKS_PER_CIRCUIT = 1500


class MenuBackdrop:
    """The champion driving on one circuit after another. ticks: ticks driven on this circuit."""

    def __init__(self, app: AppContext) -> None:
        self._app = app
        self._agent = load_agent(CHAMPION)
        self._circuits = itertools.cycle([circuit.id for circuit in circuits()])
        self._scene = Scene(app.theme)
        self._drive = self._open_next()
        self._before = self._after = self._drive.first.snapshot

    def tick(self) -> None:
        if self.ticks >= TICKS_PER_CIRCUIT:
            self._drive.close()
            self._drive = self._open_next()
            self._show(self._drive.first.snapshot)
        for tick in self._drive.advance(1, NO_ACTION):
            self.ticks += 1
            self._show(tick.snapshot)
            self._scene.tick(tick.snapshot)

    def draw(self, surface: pygame.Surface, share: float) -> None:
        self._scene.use(self._app.theme)
        self._scene.draw(surface, self._before, self._after, share, SceneOptions(rays=True, names=False))

    def draw_ahead(self) -> bool:
        return self._scene.draw_ahead()

    def close(self) -> None:
        self._drive.close()

    def _show(self, snapshot: Snapshot) -> None:
        self._before, self._after = self._after, snapshot

    def _open_next(self) -> Drive:
        self.ticks = 0
        entrant = Entrant(CHAMPION, self._app.theme.palette.player, self._agent)
        return open_drive(RaceSetup(next(self._circuits), (entrant,), config=ENDLESS))
