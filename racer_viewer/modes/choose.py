"""Before a race: which circuit, how many laps, and against whom.

Before watching: which circuit, and which models, with what is known of each and how fast it is there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import randrange
from typing import TYPE_CHECKING

import msgspec

from racer_env.engine import Circuit, load_circuit
from racer_env.errors import CircuitError, RacerError
from racer_viewer.agents import AgentInfo
from racer_viewer.modes.circuits import RANDOM, CircuitCard, fixed_circuits, is_random
from racer_viewer.modes.models import (
    Known,
    Laps,
    ModelFile,
    ModelTimes,
    chosen_models,
    circuit_names,
    known_models,
    trained_on,
)
from racer_viewer.modes.play import MAX_OPPONENTS, open_play
from racer_viewer.modes.screen import AppContext, Key, ListScreen
from racer_viewer.modes.watch import MAX_CARS, open_watch
from racer_viewer.ui.intents import Controls
from racer_viewer.ui.item_list import Button, Choice, Column, Item, ItemList, Row, toggle

if TYPE_CHECKING:
    import pygame

    from racer_viewer.replays.records import RecordEntry

LAPS = (1, 3, 5, 10, 0)
RANDOM_SEEDS = 100_000


class CircuitChooser(ListScreen):
    """A list of which the first line is the circuit, with its picture beside it.

    Bundled circuits, those of the user that were dropped on the window, and a random one, another each time.
    """

    def __init__(self, app: AppContext) -> None:
        super().__init__(app)
        self._card = CircuitCard()
        self._chosen_circuit = Choice("Circuit", "Left and right, or click", on_change=self._take_circuit)
        self._best: dict[str, RecordEntry | None] = {}
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

    def on_show(self) -> None:
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
            self.app.notify(str(error))

    def _take_circuit(self, number: int) -> None:
        self._random = f"{RANDOM}{randrange(RANDOM_SEEDS)}" if number == len(self._fixed) else ""
        self._name_options()
        self.app.change(circuit=self.where)
        self.circuit_changed()

    def _record(self) -> RecordEntry | None:
        """On the chosen circuit; a database that cannot be read is no reason not to drive."""
        try:
            return self.app.records.best(self.circuit)
        except (RacerError, OSError) as error:
            self.app.notify(str(error))
            return None


class ChooseScreen(CircuitChooser):
    title = "Play"

    def __init__(self, app: AppContext) -> None:
        super().__init__(app)
        settings = app.settings
        self._models = known_models(app.data)
        laps = [f"{laps} laps" if laps > 1 else "1 lap" if laps else "open end" for laps in LAPS]
        self.list.items = [
            Button("Start", "3, 2, 1, go", on_press=self._start),
            self._chosen_circuit,
            Choice(
                "Laps",
                "With an open end, Esc and Finish show the results",
                options=laps,
                chosen=LAPS.index(settings.laps) if settings.laps in LAPS else 1,
                on_change=lambda number: app.change(laps=LAPS[number]),
            ),
            toggle(
                "Ghost", settings.ghost, lambda on: app.change(ghost=on), "Your record on this circuit drives with you"
            ),
            self._opponents_button(),
        ]

    def on_show(self) -> None:
        super().on_show()
        self._models = known_models(self.app.data)
        self.list.items[-1] = self._opponents_button()

    def _opponents_button(self) -> Item:
        names = ", ".join(model.name for model in self._rivals()) or "nobody"
        return Button(
            "Against", "Enter to choose", on_press=lambda: self.app.push(OpponentsScreen(self.app)), note=names
        )

    def _rivals(self) -> list[ModelFile]:
        return chosen_models(self._models, self.app.settings.opponents)[:MAX_OPPONENTS]

    def _start(self) -> None:
        rivals = [(rival.name, rival.path) for rival in self._rivals()]
        open_play(self.app, self.where, rivals, self.app.settings.laps)


class OpponentsScreen(ListScreen):
    """Agents to race: any number of lines up to seven."""

    title = "Against"

    def __init__(self, app: AppContext) -> None:
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
        if on and len(others) >= MAX_OPPONENTS:
            self._lines[model.key].chosen = 0
            self.app.notify(f"At most {MAX_OPPONENTS} at a time")
        else:
            self.app.change(opponents=(*others, model.key) if on else tuple(others))


COLUMNS = (
    Column("Model", 0.29),
    Column("Algorithm", 0.115),
    Column("Trained on", 0.25),
    Column("Standing / flying [s]", 0.205, right=True),
    Column("File date", 0.14, right=True),
)
UNKNOWN = "–"


class ChooseAgentScreen(CircuitChooser):
    """The circuit, and a row for every model: bundled ones first, then those of the user's runs."""

    title = "Watch"
    list_width = 800

    def __init__(self, app: AppContext) -> None:
        super().__init__(app)
        self.list = ItemList([self._chosen_circuit], COLUMNS)
        self._times = ModelTimes(app.data)
        self._models: dict[Path, ModelFile] = {}
        self._rows: dict[Path, Row] = {}
        self._marked: list[Path] = []
        self._seen_changes = -1

    @property
    def subtitle(self) -> str:
        return "Left and right mark models that drive together. * left the road or touched a wall"

    def keys(self) -> Sequence[Key]:
        back = ("Esc", "back"), ("F1", "help")
        if self._model is None:
            return (("Up Down", "choose"), ("Left Right", "circuit"), *back)
        starters = len(self._starters())
        enter = f"watch {starters} together" if starters > 1 else "watch"
        return (("Up Down", "choose"), ("Left Right", "mark"), ("Enter", enter), *back)

    def on_show(self) -> None:
        super().on_show()
        self._models = {model.path: model for model in known_models(self.app.data)}
        self._marked = [path for path in self._marked if path in self._models]
        self._rows = {path: self._row(model) for path, model in self._models.items()}
        rows: list[Item] = list(self._rows.values())
        self.list.items = [self._chosen_circuit, *rows]
        self._measure()
        self._fill_rows()

    def on_cover(self) -> None:
        self._times.stop()

    def on_close(self) -> None:
        self._times.stop()

    def circuit_changed(self) -> None:
        self._measure()

    def draw(self, surface: pygame.Surface, share: float) -> None:
        super().draw(surface, share)
        self._times.idle()

    def tick(self, controls: Controls) -> None:
        self._times.busy()
        self._times.wanted = self._model
        if self._seen_changes != self._times.changes:
            self._fill_rows()

    @property
    def _model(self) -> Path | None:
        """The chosen one; None while the circuit is chosen."""
        return next((path for path, row in self._rows.items() if row is self.list.item), None)

    def _measure(self) -> None:
        self._times.measure(list(self._models), self.where)

    def _row(self, model: ModelFile) -> Row:
        marked = model.path in self._marked
        return Row(model.name, on_press=self._watch, marked=marked, on_mark=partial(self._mark, model.path))

    def _fill_rows(self) -> None:
        self._seen_changes = self._times.changes
        for path in self._rows:
            self._fill(path)

    def _fill(self, path: Path) -> None:
        """With what is known by now."""
        row, model, known = self._rows[path], self._models[path], self._times.known.get(path, Known())
        laps = "cannot drive" if known.problem else _laps_text(known.laps) or ("…" if self._times.going else UNKNOWN)
        row.cells = (
            known.info.algorithm if known.info else UNKNOWN,
            trained_on(model.tracks) or UNKNOWN,
            laps,
            f"{model.modified:%Y-%m-%d}",
        )
        row.hint = known.problem or _about(model, known.info)
        if known.problem and row.marked is not None:
            row.marked = None
            self._marked = [each for each in self._marked if each != path]

    def _mark(self, path: Path, on: bool) -> None:
        if on and len(self._marked) >= MAX_CARS:
            self._rows[path].marked = False
            self.app.notify(f"At most {MAX_CARS} at a time")
        elif on:
            self._marked.append(path)
        else:
            self._marked.remove(path)

    def _starters(self) -> list[Path]:
        """The chosen one, then the marked ones; one that cannot drive is alone, and says why."""
        chosen = [self._model] if self._model is not None else []
        if chosen and self._rows[chosen[0]].marked is None:
            return chosen
        return [*chosen, *(path for path in self._marked if path not in chosen)][:MAX_CARS]

    def _watch(self) -> None:
        open_watch(self.app, self._starters(), self.where)


def _laps_text(laps: Laps | None) -> str:
    """Of the standing and of the best flying lap; empty if nobody has driven yet."""
    if laps is None:
        return ""
    if laps.standing is None:
        return "no lap"
    flying = UNKNOWN if laps.flying is None else f"{laps.flying:.2f}"
    return f"{'' if laps.clean else '* '}{laps.standing:.2f} / {flying}"


def _about(model: ModelFile, info: AgentInfo | None) -> str:
    """In a line, what has no column."""
    parts = [f"{model.of}: {model.path.name}"]
    if info is not None and info.timesteps:
        parts.append(f"{info.timesteps:,} steps")
    if info is not None and info.policy_layers:
        parts.append(f"layers of {' and '.join(map(str, info.policy_layers))}")
    if model.tracks:
        parts.append(f"trained on {', '.join(circuit_names(model.tracks)) or trained_on(model.tracks)}")
    return " · ".join(parts)
