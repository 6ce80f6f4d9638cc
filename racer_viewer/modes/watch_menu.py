"""What can be done while watching, for those who have no keyboard at hand or do not know its keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from racer_viewer.modes.episodes_screen import EpisodesScreen
from racer_viewer.modes.known_circuits import fixed_circuits
from racer_viewer.modes.lists import ListScreen
from racer_viewer.modes.pace import NAMES
from racer_viewer.modes.screen import Stage
from racer_viewer.modes.settings_screen import SettingsScreen
from racer_viewer.ui.items import Button, Choice, Item, toggle

if TYPE_CHECKING:
    from racer_viewer.modes.watch import WatchScreen


class WatchMenu(ListScreen):
    """Nothing moves while it is open."""

    title = "Watch"
    darkness = 150

    def __init__(self, app: Stage, watch: WatchScreen) -> None:
        self._watch = watch
        here = watch.setup.circuit
        names = {found: circuit.name for found, circuit in fixed_circuits(here).items()}
        names.setdefault(here, here)
        self._circuits = list(names)
        self._here = self._circuits.index(here)
        self._circuit = Choice(
            "Circuit",
            "All begin at its start as soon as you go on",
            options=list(names.values()),
            chosen=self._here,
        )
        super().__init__(app, self._items(app, watch))

    @property
    def subtitle(self) -> str:
        return ", ".join(entrant.name for entrant in self._watch.setup.entrants)

    def back(self) -> None:
        """Go on watching, on another circuit if one was chosen."""
        super().back()
        if self._circuit.chosen != self._here:
            self._watch.go_to(self._circuits[self._circuit.chosen])

    def _items(self, app: Stage, watch: WatchScreen) -> list[Item]:
        wheel = "Hand the wheel back" if watch.at_the_wheel else "Take the wheel"
        return [
            Button("Go on", do=self.back),
            Button(wheel, "The agent goes on from wherever you leave the car", do=self._take_or_leave),
            Button("Next episode", do=self._next),
            Choice("Speed", options=NAMES, chosen=watch.pace.chosen, changed=self._change_speed),
            self._circuit,
            Choice(
                "Actions",
                "Stochastic ones are drawn around the best, as in training",
                options=("deterministic", "stochastic"),
                chosen=int(watch.drawn),
                changed=lambda number: watch.draw_actions(bool(number)),
            ),
            toggle(
                "Start anywhere",
                watch.anywhere,
                watch.start_anywhere,
                "The next episodes begin elsewhere",
            ),
            Button("Episodes", "See one again, or keep it", do=lambda: app.push(EpisodesScreen(app, watch))),
            Button("Settings", do=lambda: app.push(SettingsScreen(app))),
            Button("Leave", do=self._leave),
        ]

    def _change_speed(self, number: int) -> None:
        self._watch.pace.chosen = number

    def _take_or_leave(self) -> None:
        self.app.pop()
        self._watch.take_the_wheel(not self._watch.at_the_wheel)

    def _next(self) -> None:
        self.app.pop()
        self._watch.next_episode()

    def _leave(self) -> None:
        self.app.pop()
        self.app.pop()
