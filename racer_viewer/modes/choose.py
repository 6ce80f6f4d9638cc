"""Before a race: which circuit, how many laps, and against whom."""

from __future__ import annotations

from functools import partial
from random import randrange
from typing import TYPE_CHECKING

import msgspec

from racer_env.engine import Circuit, load_circuit
from racer_env.errors import CircuitError, RacerError
from racer_viewer.modes.circuit_card import CircuitCard
from racer_viewer.modes.known_circuits import RANDOM, fixed_circuits, is_random
from racer_viewer.modes.lists import ListScreen
from racer_viewer.modes.model_list import ModelFile, chosen_models, known_models
from racer_viewer.modes.play import MOST_OPPONENTS, open_play
from racer_viewer.modes.screen import Stage
from racer_viewer.ui.items import Button, Choice, Item, toggle

if TYPE_CHECKING:
    import pygame

    from racer_viewer.records import Entry

LAPS = (1, 3, 5, 10, 0)
RANDOM_SEEDS = 100_000


class CircuitChooser(ListScreen):
    """A list of which the first line is the circuit, with its picture beside it.

    Bundled circuits, those of the user that were dropped on the window, and a random one, another each time.
    """

    def __init__(self, app: Stage) -> None:
        super().__init__(app)
        self._card = CircuitCard()
        self._chosen_circuit = Choice("Circuit", "Left and right, or click", changed=self._take_circuit)
        self._best: dict[str, Entry | None] = {}
        self.offer_circuits()

    @property
    def circuit(self) -> Circuit:
        if self.where in self._fixed:
            return self._fixed[self.where]
        circuit = load_circuit(self.where).circuit
        assert circuit is not None, "a random track has its circuit"
        return circuit

    @property
    def where(self) -> str:
        """What the chosen circuit is found by: its id, or the path of its file."""
        number = self._chosen_circuit.chosen
        return list(self._fixed)[number] if number < len(self._fixed) else self._random

    def offer_circuits(self) -> None:
        """All that there are now, with the one of the settings chosen."""
        wanted = self.app.settings.circuit
        self._fixed = fixed_circuits(wanted)
        self._random = wanted if is_random(wanted) else ""
        chosen = list(self._fixed).index(wanted) if wanted in self._fixed else 0
        self._chosen_circuit.chosen = len(self._fixed) if self._random else chosen
        self._name_options()

    def _name_options(self) -> None:
        names = [circuit.name for circuit in self._fixed.values()]
        self._chosen_circuit.options = [*names, self.circuit.name if self._random else "Random"]

    def circuit_changed(self) -> None:
        """Another one is chosen now."""

    def shown(self) -> None:
        """Whoever was on top may have changed the settings' circuit, or brought one."""
        self._best.clear()
        self.offer_circuits()

    def draw_beside(self, surface: pygame.Surface, area: pygame.Rect) -> None:
        if self.where not in self._best:
            self._best[self.where] = self._record()
        found = msgspec.structs.replace(self.circuit, id=self.where)
        try:
            self._card.draw(surface, self.app.theme, found, area, self._best[self.where])
        except CircuitError as error:
            self.app.say(str(error))

    def _take_circuit(self, number: int) -> None:
        self._random = f"{RANDOM}{randrange(RANDOM_SEEDS)}" if number == len(self._fixed) else ""
        self._name_options()
        self.app.change(circuit=self.where)
        self.circuit_changed()

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
            Button("Start", "3, 2, 1, go", do=self._start),
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
        names = ", ".join(model.name for model in self._rivals()) or "nobody"
        return Button("Against", "Enter to choose", do=lambda: self.app.push(OpponentsScreen(self.app)), note=names)

    def _rivals(self) -> list[ModelFile]:
        return chosen_models(self._models, self.app.settings.opponents)[:MOST_OPPONENTS]

    def _start(self) -> None:
        rivals = [(rival.name, rival.path) for rival in self._rivals()]
        open_play(self.app, self.where, rivals, self.app.settings.laps)


class OpponentsScreen(ListScreen):
    """Agents to race: any number of lines up to seven."""

    title = "Against"

    def __init__(self, app: Stage) -> None:
        super().__init__(app)
        self._models = known_models(app.data)
        rivals = self._rivals()
        self._lines = {
            model.key: toggle(model.name, model in rivals, partial(self._switch, model), f"{model.of}: {model.path}")
            for model in self._models
        }
        self.list.items = [*self._lines.values()] or [Button("No models yet: train one", enabled=False)]

    def _rivals(self) -> list[ModelFile]:
        return chosen_models(self._models, self.app.settings.opponents)

    def _switch(self, model: ModelFile, on: bool) -> None:
        others = [each.key for each in self._rivals() if each != model]
        if on and len(others) >= MOST_OPPONENTS:
            self._lines[model.key].chosen = 0
            self.app.say(f"At most {MOST_OPPONENTS} at a time")
        else:
            self.app.change(opponents=(*others, model.key) if on else tuple(others))
