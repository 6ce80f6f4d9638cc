"""Before watching: which circuit, and which models, with what is known of each and how fast it is there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from racer_viewer.agents import AgentInfo
from racer_viewer.modes.choose import CircuitChooser
from racer_viewer.modes.model_list import ModelFile, circuit_names, known_models, trained_on
from racer_viewer.modes.model_times import Known, Laps, ModelTimes
from racer_viewer.modes.screen import Key, Stage
from racer_viewer.modes.watch import MOST_CARS, open_watch
from racer_viewer.ui.intents import Controls
from racer_viewer.ui.item_list import Column, ItemList
from racer_viewer.ui.items import Item, Row

if TYPE_CHECKING:
    import pygame

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

    def __init__(self, app: Stage) -> None:
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

    def shown(self) -> None:
        super().shown()
        self._models = {model.path: model for model in known_models(self.app.data)}
        self._marked = [path for path in self._marked if path in self._models]
        self._rows = {path: self._row(model) for path, model in self._models.items()}
        rows: list[Item] = list(self._rows.values())
        self.list.items = [self._chosen_circuit, *rows]
        self._measure()
        self._fill_rows()

    def covered(self) -> None:
        self._times.stop()

    def closed(self) -> None:
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
        return Row(model.name, do=self._watch, marked=marked, on_mark=partial(self._mark, model.path))

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
        if on and len(self._marked) >= MOST_CARS:
            self._rows[path].marked = False
            self.app.say(f"At most {MOST_CARS} at a time")
        elif on:
            self._marked.append(path)
        else:
            self._marked.remove(path)

    def _starters(self) -> list[Path]:
        """The chosen one, then the marked ones; one that cannot drive is alone, and says why."""
        chosen = [self._model] if self._model is not None else []
        if chosen and self._rows[chosen[0]].marked is None:
            return chosen
        return [*chosen, *(path for path in self._marked if path not in chosen)][:MOST_CARS]

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
