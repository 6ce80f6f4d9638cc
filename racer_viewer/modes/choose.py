"""Before a race: which circuit, how many laps, and against whom."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from racer_env.engine import Circuit, circuits
from racer_env.errors import RacerError
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

    from racer_viewer.records import Entry

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
        self._best: dict[str, Entry | None] = {}

    @property
    def circuit(self) -> Circuit:
        return self.circuits[self._chosen_circuit.chosen]

    def shown(self) -> None:
        self._best.clear()

    def draw_beside(self, surface: pygame.Surface, area: pygame.Rect) -> None:
        if self.circuit.id not in self._best:
            self._best[self.circuit.id] = self._record()
        self._card.draw(surface, self.app.theme, self.circuit, area, self._best[self.circuit.id])

    def _record(self) -> Entry | None:
        """On the chosen circuit; a database that cannot be read is no reason not to drive."""
        try:
            return self.app.records.best(self.circuit)
        except (RacerError, OSError) as error:
            self.app.say(str(error))
            return None


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
        super().shown()
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
        """The record on this circuit, driven again."""
        best = self._record()
        try:
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
