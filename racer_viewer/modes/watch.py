"""Watch: a trained agent drives, and everything that it sees and wants is shown."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from racer_viewer.agents import AgentError, load_agent
from racer_viewer.modes.choose import CircuitChooser
from racer_viewer.modes.driving import DrivingScreen
from racer_viewer.modes.loading import open_safely
from racer_viewer.modes.model_list import ModelFile, known_models
from racer_viewer.modes.race import Entrant, Race
from racer_viewer.modes.screen import Key, Stage
from racer_viewer.sound import car_sound
from racer_viewer.ui.intents import Controls, Do, Intent
from racer_viewer.ui.items import Button, Item


class ChooseAgentScreen(CircuitChooser):
    """The circuit, and a line for every model."""

    title = "Watch"

    def __init__(self, app: Stage) -> None:
        super().__init__(app)
        models = known_models(app.data)
        lines: list[Item] = [Button(model.name, _about(model), do=partial(self._watch, model)) for model in models]
        self.list.items = [self._chosen_circuit, *lines]

    def _watch(self, model: ModelFile) -> None:
        open_safely(self.app, lambda: WatchScreen(self.app, self._race(model)))

    def _race(self, model: ModelFile) -> Race:
        colour = self.app.theme.palette.player
        return Race(self.circuit.id, [Entrant(model.name, colour, load_agent(model.path))])


def _about(model: ModelFile) -> str:
    """In a line, what is known of a model without driving it."""
    try:
        info = load_agent(model.path).info
    except AgentError as error:
        return str(error)
    steps = f", {info.timesteps:,} steps" if info.timesteps else ""
    return f"{model.of}: {info.algorithm}{steps}, {info.modified:%Y-%m-%d}"


class WatchScreen(DrivingScreen):
    """Nobody at the keys; Esc goes back."""

    def __init__(self, app: Stage, race: Race) -> None:
        super().__init__(app, race.snapshot())
        self.race = race

    def keys(self) -> Sequence[Key]:
        return (("Esc", "back"), (self.app.key_of(Do.RESTART), "restart"), *super().keys()[1:])

    def handle(self, intent: Intent) -> None:
        if intent == Do.BACK:
            self.app.pop()
        elif intent == Do.RESTART:
            self.race.restart()
            self.begin_at(self.race.snapshot())
        else:
            super().handle(intent)

    def tick(self, controls: Controls) -> None:
        self.race.step((0.0, 0.0, 0.0))
        self.show(self.race.snapshot())
        self.app.speaker.tick(car_sound(self.race.car))

    def closed(self) -> None:
        super().closed()
        self.race.close()
