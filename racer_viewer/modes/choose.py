"""Screens before a race: circuit, laps and opponents to play, circuit and models to watch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from racer_viewer.agents import AgentInfo
from racer_viewer.modes.circuits import CircuitPicker
from racer_viewer.modes.models import (
    ModelFacts,
    ModelFile,
    ModelLaps,
    ModelTimer,
    chosen_models,
    circuit_names,
    known_models,
    trained_on,
)
from racer_viewer.modes.play import MAX_OPPONENTS, open_play
from racer_viewer.modes.screen import AppContext, Screen
from racer_viewer.modes.watch import MAX_CARS, open_watch
from racer_viewer.ui.intents import Controls
from racer_viewer.ui.item_list import Button, Choice, Column, Item, Row, toggle
from racer_viewer.ui.views import Key, ListView

if TYPE_CHECKING:
    import pygame

LAPS = (1, 3, 5, 10, 0)
"""Numbers of laps to choose from; 0 is no limit."""
COLUMNS = (
    Column("Model", 0.29),
    Column("Algorithm", 0.115),
    Column("Trained on", 0.25),
    Column("Standing / flying [s]", 0.205, right=True),
    Column("File date", 0.14, right=True),
)
UNKNOWN = "–"


class PlaySetupScreen(Screen):
    """Circuit, laps, ghost and opponents of a race to drive."""

    def __init__(self, app: AppContext) -> None:
        self.picker = CircuitPicker(app)
        self._models = known_models(app.data)
        super().__init__(app, ListView("Play", draw_beside=self.picker.draw))
        settings = app.settings
        laps = [f"{laps} laps" if laps > 1 else "1 lap" if laps else "no limit" for laps in LAPS]
        self.list.items = [
            Button("Start", "3, 2, 1, go", on_press=self._start),
            self.picker.item,
            Choice(
                "Laps",
                "Without a limit, Esc and Finish show the results",
                options=laps,
                chosen=LAPS.index(settings.laps) if settings.laps in LAPS else 1,
                on_change=lambda number: app.change(laps=LAPS[number]),
            ),
            toggle(
                "Ghost", settings.ghost, lambda on: app.change(ghost=on), "Your record on this circuit drives with you"
            ),
            self._opponents_button(),
        ]

    def refresh(self) -> None:
        self.picker.refresh()
        self._models = known_models(self.app.data)
        self.list.items[-1] = self._opponents_button()

    def _opponents_button(self) -> Item:
        names = ", ".join(model.name for model in self._opponents()) or "none"
        return Button("Opponents", "Enter to choose", on_press=self._choose_opponents, note=names)

    def _choose_opponents(self) -> None:
        self.app.push(OpponentsScreen(self.app))

    def _opponents(self) -> list[ModelFile]:
        return chosen_models(self._models, self.app.settings.opponents)[:MAX_OPPONENTS]

    def _start(self) -> None:
        opponents = [(model.name, model.path) for model in self._opponents()]
        open_play(self.app, self.picker.circuit_id, opponents, self.app.settings.laps)


class OpponentsScreen(Screen):
    """Agents to race against, up to seven."""

    def __init__(self, app: AppContext) -> None:
        super().__init__(app, ListView("Opponents"))
        self._models = known_models(app.data)
        opponents = self._opponents()
        self._lines = {
            model.key: toggle(
                model.name, model in opponents, partial(self._switch, model), f"{model.origin}: {model.path}"
            )
            for model in self._models
        }
        self.list.items = [*self._lines.values()] or [Button("No models yet: train one", enabled=False)]

    def _opponents(self) -> list[ModelFile]:
        return chosen_models(self._models, self.app.settings.opponents)

    def _switch(self, model: ModelFile, on: bool) -> None:
        others = [each.key for each in self._opponents() if each != model]
        if on and len(others) >= MAX_OPPONENTS:
            self._lines[model.key].chosen = 0
            self.app.notify(f"At most {MAX_OPPONENTS} opponents")
        else:
            self.app.change(opponents=(*others, model.key) if on else tuple(others))


class WatchSetupScreen(Screen):
    """The circuit, and a row for every model: bundled ones first, then those of the user's runs."""

    def __init__(self, app: AppContext) -> None:
        self.picker = CircuitPicker(app, self._measure)
        view = ListView(
            "Watch",
            [self.picker.item],
            COLUMNS,
            subtitle="Left and right mark models to watch together. * left the road or touched a wall",
            width=800,
            draw_beside=self.picker.draw,
        )
        super().__init__(app, view)
        self.timer = ModelTimer(app.data)
        self._models: dict[Path, ModelFile] = {}
        self._rows: dict[Path, Row] = {}
        self._marked: list[Path] = []
        self._seen_changes = -1

    def keys(self) -> Sequence[Key]:
        back = ("Esc", "back"), ("F1", "help")
        if self._model is None:
            return (("Up Down", "choose"), ("Left Right", "circuit"), *back)
        starters = len(self._starters())
        enter = f"watch {starters} together" if starters > 1 else "watch"
        return (("Up Down", "choose"), ("Left Right", "mark"), ("Enter", enter), *back)

    def refresh(self) -> None:
        self.picker.refresh()
        self._models = {model.path: model for model in known_models(self.app.data)}
        self._marked = [path for path in self._marked if path in self._models]
        self._rows = {path: self._row(model) for path, model in self._models.items()}
        rows: list[Item] = list(self._rows.values())
        self.list.items = [self.picker.item, *rows]
        self._measure()
        self._fill_rows()

    def on_cover(self) -> None:
        self.timer.stop()

    def on_close(self) -> None:
        self.timer.stop()

    def draw(self, surface: pygame.Surface, share: float) -> None:
        super().draw(surface, share)
        self.timer.resume()

    def tick(self, controls: Controls) -> None:
        self.timer.pause()
        self.timer.next_model = self._model
        if self._seen_changes != self.timer.changes:
            self._fill_rows()

    @property
    def _model(self) -> Path | None:
        """Selected model; None while the circuit is selected."""
        return next((path for path, row in self._rows.items() if row is self.list.item), None)

    def _measure(self) -> None:
        self.timer.start(list(self._models), self.picker.circuit_id)

    def _row(self, model: ModelFile) -> Row:
        marked = model.path in self._marked
        return Row(model.name, on_press=self._watch, marked=marked, on_mark=partial(self._mark, model.path))

    def _fill_rows(self) -> None:
        self._seen_changes = self.timer.changes
        for path in self._rows:
            self._fill(path)

    def _fill(self, path: Path) -> None:
        """Fill the row of a model with what is known so far."""
        row, model, facts = self._rows[path], self._models[path], self.timer.facts.get(path, ModelFacts())
        pending = "…" if self.timer.running else UNKNOWN
        row.cells = (
            facts.info.algorithm if facts.info else UNKNOWN,
            trained_on(model.tracks) or UNKNOWN,
            "cannot drive" if facts.problem else _format_laps(facts.laps) or pending,
            f"{model.modified:%Y-%m-%d}",
        )
        row.hint = facts.problem or (facts.info and facts.info.problem) or _describe(model, facts.info)
        if facts.problem and row.marked is not None:
            row.marked = None
            self._marked = [each for each in self._marked if each != path]

    def _mark(self, path: Path, on: bool) -> None:
        if on and len(self._marked) >= MAX_CARS:
            self._rows[path].marked = False
            self.app.notify(f"At most {MAX_CARS} cars")
        elif on:
            self._marked.append(path)
        else:
            self._marked.remove(path)

    def _starters(self) -> list[Path]:
        """Return the selected model and the marked ones; a model that cannot drive is opened alone, to show why."""
        chosen = [self._model] if self._model is not None else []
        if chosen and self._rows[chosen[0]].marked is None:
            return chosen
        return [*chosen, *(path for path in self._marked if path not in chosen)][:MAX_CARS]

    def _watch(self) -> None:
        open_watch(self.app, self._starters(), self.picker.circuit_id)


def _format_laps(laps: ModelLaps | None) -> str:
    """Return the times of the standing and the best flying lap; empty if they are not measured yet."""
    if laps is None:
        return ""
    if laps.standing is None:
        return "no lap"
    flying = UNKNOWN if laps.flying is None else f"{laps.flying:.2f}"
    return f"{'' if laps.clean else '* '}{laps.standing:.2f} / {flying}"


def _describe(model: ModelFile, info: AgentInfo | None) -> str:
    """Return a line with what has no column."""
    parts = [f"{model.origin}: {model.path.name}"]
    if info is not None and info.timesteps:
        parts.append(f"{info.timesteps:,} steps")
    if info is not None and info.policy_layers:
        parts.append(f"layers of {' and '.join(map(str, info.policy_layers))}")
    if model.tracks:
        parts.append(f"trained on {', '.join(circuit_names(model.tracks)) or trained_on(model.tracks)}")
    return " · ".join(parts)
