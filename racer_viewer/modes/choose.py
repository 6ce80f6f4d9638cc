"""Before a race: which circuit, how many laps, and against whom."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from racer_env.engine import Circuit, circuits
from racer_viewer.agents import load_agent
from racer_viewer.modes.circuit_card import CircuitCard
from racer_viewer.modes.lists import ListScreen
from racer_viewer.modes.loading import open_safely
from racer_viewer.modes.model_list import known_models
from racer_viewer.modes.play import PlayScreen
from racer_viewer.modes.race import Entrant, Race
from racer_viewer.modes.screen import Stage
from racer_viewer.replays import Trace, trace_replay
from racer_viewer.ui.items import Button, Choice, Item, toggle

if TYPE_CHECKING:
    import pygame

LAPS = (1, 3, 5, 10, 0)
MOST_OPPONENTS = 7


class CircuitChooser(ListScreen):
    """A list of which the first line is the circuit, with its picture beside it."""

    def __init__(self, app: Stage) -> None:
        super().__init__(app)
        self._card = CircuitCard()
        self.circuits: Sequence[Circuit] = circuits()
        ids = [circuit.id for circuit in self.circuits]
        now = ids.index(app.settings.circuit) if app.settings.circuit in ids else 0
        self._chosen_circuit = Choice(
            "Circuit",
            options=[circuit.name for circuit in self.circuits],
            chosen=now,
            changed=lambda number: app.change(circuit=ids[number]),
        )
        self._chosen_circuit.hint = "Left and right, or click"

    @property
    def circuit(self) -> Circuit:
        return self.circuits[self._chosen_circuit.chosen]

    def draw_beside(self, surface: pygame.Surface, area: pygame.Rect) -> None:
        best = self.app.records.best(self.circuit)
        self._card.draw(surface, self.app.theme, self.circuit, area, best)


class ChooseScreen(CircuitChooser):
    title = "Play"

    def __init__(self, app: Stage) -> None:
        super().__init__(app)
        settings = app.settings
        self._models = known_models(app.data)
        laps = [f"{laps} laps" if laps > 1 else "1 lap" if laps else "open end" for laps in LAPS]
        self.list.items = [
            Button("Start", "3, 2, 1, go", do=lambda: open_safely(app, self._race)),
            self._chosen_circuit,
            Choice(
                "Laps",
                "With an open end, Esc and Finish show the results",
                options=laps,
                chosen=LAPS.index(settings.laps) if settings.laps in LAPS else 1,
                changed=lambda number: app.change(laps=LAPS[number]),
            ),
            toggle(
                "Ghost", settings.ghost, lambda on: app.change(ghost=on), "Your record on this circuit drives with you"
            ),
            self._opponents_button(),
        ]

    def shown(self) -> None:
        self._models = known_models(self.app.data)
        self.list.items[-1] = self._opponents_button()

    def _opponents_button(self) -> Item:
        chosen = self.app.settings.opponents
        names = ", ".join(chosen) if chosen else "nobody"
        return Button("Against", "Enter to choose", do=lambda: self.app.push(OpponentsScreen(self.app)), note=names)

    def _race(self) -> PlayScreen:
        app = self.app
        palette = app.theme.palette
        models = {model.name: model.path for model in self._models}
        rivals = [name for name in app.settings.opponents if name in models][:MOST_OPPONENTS]
        entrants = [
            Entrant(app.settings.name, palette.player),
            *(
                Entrant(name, palette.cars[n % len(palette.cars)], load_agent(models[name]))
                for n, name in enumerate(rivals)
            ),
        ]
        race = Race(self.circuit.id, entrants, self._ghost() if app.settings.ghost else None)
        return PlayScreen(app, race, app.settings.laps)

    def _ghost(self) -> Trace | None:
        """The record on this circuit; a database that cannot be read is no reason not to drive."""
        from racer_env.errors import RacerError

        try:
            best = self.app.records.best(self.circuit)
            return trace_replay(self.app.records.replay_of(best)) if best else None
        except (RacerError, OSError) as error:
            self.app.say(f"No ghost: {error}")
            return None


class OpponentsScreen(ListScreen):
    """Agents to race: any number of lines up to seven."""

    title = "Against"

    def __init__(self, app: Stage) -> None:
        super().__init__(app)
        self._models = known_models(app.data)
        self.list.items = [
            toggle(
                model.name,
                model.name in app.settings.opponents,
                partial(self._switch, model.name),
                f"{model.of}: {model.path}",
            )
            for model in self._models
        ]
        if not self._models:
            self.list.items = [Button("No models yet: train one", enabled=False)]

    def _switch(self, name: str, on: bool) -> None:
        others = tuple(each for each in self.app.settings.opponents if each != name)
        if on and len(others) >= MOST_OPPONENTS:
            self.app.say(f"At most {MOST_OPPONENTS} at a time")
        self.app.change(opponents=(*others, name)[:MOST_OPPONENTS] if on else others)
