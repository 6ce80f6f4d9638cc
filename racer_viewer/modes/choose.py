"""Screens before a race: circuit, laps and opponents to play, circuit and models to watch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from racer_env.engine import load_circuit
from racer_viewer.agents import CHAMPION, AgentInfo, models_folder
from racer_viewer.modes.circuits import CircuitPicker, circuit_of
from racer_viewer.modes.file_browser import FileBrowser
from racer_viewer.modes.ladder import GHOST_LABELS, MARGINS, take_measured_laps
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
from racer_viewer.modes.waiting import open_when_ready, when_ready
from racer_viewer.modes.watch import MAX_CARS, open_watch
from racer_viewer.replays.records import HALF_DIGIT, medals_of
from racer_viewer.settings import GHOST_KINDS
from racer_viewer.translation import _, mark, ngettext
from racer_viewer.ui.intents import Controls
from racer_viewer.ui.item_list import Button, Choice, Column, Item, Row
from racer_viewer.ui.views import Key, ListView

if TYPE_CHECKING:
    import pygame

LAPS = (1, 3, 5, 10, 0)
"""Numbers of laps to choose from; 0 is no limit."""
COLUMNS = (
    Column(mark("Model"), 0.29),
    Column(mark("Algorithm"), 0.115),
    Column(mark("Trained on"), 0.25),
    Column(mark("Standing / flying [s]"), 0.205, right=True),
    Column(mark("File date"), 0.14, right=True),
)
OPPONENT_COLUMNS = (
    Column(mark("Opponent"), 0.30),
    Column(mark("Skill"), 0.17),
    Column(mark("Standing / flying [s]"), 0.23, right=True),
    Column(mark("Trained on"), 0.30),
)
SKILLS = (mark("Champion"), mark("Expert"), mark("Amateur"), mark("Rookie"))
"""Names of skill: within the margin of gold, of silver, of bronze, and slower."""
UNKNOWN = "–"
MODEL_SUFFIXES = (".zip", ".onnx")


def open_last_race(app: AppContext) -> None:
    """Start a race with the circuit, laps and opponents of the settings."""
    chosen = chosen_models(known_models(app.data), app.settings.opponents)[:MAX_OPPONENTS]
    open_play(app, circuit_of(app), [(model.name, model.path) for model in chosen], app.settings.laps)


class PlaySetupScreen(Screen):
    """Circuit, laps, ghost and opponents of a race to drive, also while the engine is compiled.

    On a circuit without medals the champion is timed in the background; its clean laps decide the medals.
    """

    def __init__(self, app: AppContext) -> None:
        self.picker = CircuitPicker(app, self._measure)
        self.timer, self._champion = ModelTimer(app.data), models_folder() / f"{CHAMPION}.zip"
        self._timed = ""
        """Circuit that the champion is timed on; empty if there is none, or when it is done."""
        self._can_drive = app.warmup.ready
        self._models = known_models(app.data)
        super().__init__(app, ListView(_("Play"), draw_beside=self.picker.draw))
        settings = app.settings
        laps = [
            ngettext("{laps} lap", "{laps} laps", laps).format(laps=laps) if laps else _("no limit") for laps in LAPS
        ]
        self.list.items = [
            Button(_("Start"), _("3, 2, 1, go"), on_press=self._start),
            self.picker.item,
            Choice(
                _("Laps"),
                _("Without a limit, Esc and Finish show the results"),
                options=laps,
                chosen=LAPS.index(settings.laps) if settings.laps in LAPS else 1,
                on_change=lambda number: app.change(laps=LAPS[number]),
            ),
            Choice(
                _("Ghost"),
                _("A car to compare with: your record on this circuit, or the time of a medal"),
                options=[_("none"), *(_(GHOST_LABELS[kind]) for kind in GHOST_KINDS)],
                chosen=1 + GHOST_KINDS.index(settings.ghost_kind) if settings.ghost else 0,
                on_change=self._choose_ghost,
            ),
            self._opponents_button(),
        ]

    def refresh(self) -> None:
        self.picker.refresh()
        self._models = known_models(self.app.data)
        self.list.items[-1] = self._opponents_button()
        self._measure()

    def on_cover(self) -> None:
        self.timer.stop()

    def on_close(self) -> None:
        self.timer.stop()

    def draw(self, surface: pygame.Surface, share: float) -> None:
        super().draw(surface, share)
        self.timer.resume()

    def tick(self, controls: Controls) -> None:
        self.timer.pause()
        if not self._can_drive and self.app.warmup.ready:
            self._can_drive = True
            self._measure()
        facts = self.timer.facts.get(self._champion)
        if self._timed and facts is not None and facts.laps is not None:
            take_measured_laps(self.picker.circuit, facts.laps)
            self._timed = ""

    def _measure(self) -> None:
        """Time the champion if the chosen circuit has no medals."""
        self._timed = "" if medals_of(self.picker.circuit) or not self._can_drive else self.picker.circuit_id
        if self._timed:
            self.timer.start([self._champion], self._timed)
        else:
            self.timer.stop()

    def _choose_ghost(self, number: int) -> None:
        if number == 0:
            self.app.change(ghost=False)
        else:
            self.app.change(ghost=True, ghost_kind=GHOST_KINDS[number - 1])

    def _opponents_button(self) -> Item:
        names = ", ".join(model.name for model in self._opponents()) or _("none")
        return Button(_("Opponents"), _("Enter to choose"), on_press=self._choose_opponents, note=names)

    def _choose_opponents(self) -> None:
        open_when_ready(self.app, lambda: OpponentsScreen(self.app))

    def _opponents(self) -> list[ModelFile]:
        return chosen_models(self._models, self.app.settings.opponents)[:MAX_OPPONENTS]

    def _start(self) -> None:
        when_ready(self.app, lambda: open_last_race(self.app))


class OpponentsScreen(Screen):
    """Agents to race against, up to seven, with their skill and lap times on the chosen circuit."""

    def __init__(self, app: AppContext) -> None:
        circuit_id = circuit_of(app)
        circuit = load_circuit(circuit_id).circuit
        name = circuit.name if circuit is not None else circuit_id
        subtitle = _("On {circuit}. * left the road or touched a wall").format(circuit=name)
        super().__init__(app, ListView(_("Opponents"), columns=OPPONENT_COLUMNS, subtitle=subtitle, width=860))
        self._author = getattr(medals_of(circuit), "author", None) if circuit is not None else None
        self._circuit_id = circuit_id
        self.timer = ModelTimer(app.data)
        self._models = {model.path: model for model in known_models(app.data)}
        chosen = {model.path for model in self._opponents()}
        self._rows = {
            path: Row(
                model.name,
                f"{model.origin}: {path}",
                on_press=partial(self._press, path),
                marked=path in chosen,
                on_mark=partial(self._mark, path),
            )
            for path, model in self._models.items()
        }
        self.list.items = [*self._rows.values()] or [Button(_("No models yet: train one"), enabled=False)]
        self._seen_changes = -1

    def keys(self) -> Sequence[Key]:
        return (("Up Down", _("choose")), ("Enter", _("mark")), ("Esc", _("back")), ("F1", _("help")))

    def on_show(self) -> None:
        super().on_show()
        self.timer.start(list(self._models), self._circuit_id)

    def on_cover(self) -> None:
        self.timer.stop()

    def on_close(self) -> None:
        self.timer.stop()

    def draw(self, surface: pygame.Surface, share: float) -> None:
        super().draw(surface, share)
        self.timer.resume()

    def tick(self, controls: Controls) -> None:
        self.timer.pause()
        self.timer.next_model = next((path for path, row in self._rows.items() if row is self.list.item), None)
        if self._seen_changes != self.timer.changes:
            self._seen_changes = self.timer.changes
            self._fill()

    def _fill(self) -> None:
        """Fill the rows with what is known so far."""
        facts = {path: self.timer.facts.get(path, ModelFacts()) for path in self._rows}
        flying = [each.laps.flying for each in facts.values() if each.laps is not None and each.laps.flying]
        best = self._author or min(flying, default=None)
        pending = "…" if self.timer.running else UNKNOWN
        for path, row in self._rows.items():
            laps = facts[path].laps
            times = _("cannot drive") if facts[path].problem else _format_laps(laps) or pending
            skill = _(skill_of(laps, best)) if laps is not None else pending
            row.cells = (skill, times, trained_on(self._models[path].tracks) or UNKNOWN)

    def _opponents(self) -> list[ModelFile]:
        return chosen_models(list(self._models.values()), self.app.settings.opponents)

    def _press(self, path: Path) -> None:
        self._rows[path].change(1)

    def _mark(self, path: Path, on: bool) -> None:
        model = self._models[path]
        others = [each.key for each in self._opponents() if each != model]
        if on and len(others) >= MAX_OPPONENTS:
            self._rows[path].marked = False
            self.app.notify(_("At most {limit} opponents").format(limit=MAX_OPPONENTS))
        else:
            self.app.change(opponents=(*others, model.key) if on else tuple(others))


def skill_of(laps: ModelLaps, best: float | None) -> str:
    """Return the name of a model's skill by its flying lap, compared with the best clean lap of an agent [s].

    The limits are those of the medals; a model that leaves the road is one level lower.
    """
    if laps.flying is None or best is None:
        return SKILLS[-1]
    level = sum(laps.flying > best * margin + HALF_DIGIT for margin in MARGINS.values())
    return SKILLS[min(len(SKILLS) - 1, level + int(not laps.clean))]


class WatchSetupScreen(Screen):
    """The circuit, and a row for every model: bundled ones first, then those of the user's runs."""

    def __init__(self, app: AppContext) -> None:
        self.picker = CircuitPicker(app, self._measure)
        view = ListView(
            _("Watch"),
            [self.picker.item],
            COLUMNS,
            subtitle=_("Left and right mark models to watch together. * left the road or touched a wall"),
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
        back = ("Esc", _("back")), ("F1", _("help"))
        if self._model is None:
            return (("Up Down", _("choose")), ("Left Right", _("circuit")), *back)
        starters = len(self._starters())
        enter = _("watch {starters} together").format(starters=starters) if starters > 1 else _("watch")
        return (("Up Down", _("choose")), ("Left Right", _("mark")), ("Enter", enter), *back)

    def refresh(self) -> None:
        self.picker.refresh()
        self._models = {model.path: model for model in known_models(self.app.data)}
        self._marked = [path for path in self._marked if path in self._models]
        self._rows = {path: self._row(model) for path, model in self._models.items()}
        rows: list[Item] = list(self._rows.values())
        browse = Button(_("Open file..."), _("A model as .zip or .onnx from any folder"), on_press=self._browse)
        self.list.items = [self.picker.item, *rows, browse]
        self._measure()
        self._fill_rows()

    def on_cover(self) -> None:
        self.timer.stop()

    def on_close(self) -> None:
        self.timer.stop()

    def _browse(self) -> None:
        def watch(path: Path) -> None:
            open_watch(self.app, [path], self.picker.circuit_id)

        self.app.push(FileBrowser(self.app, _("Open a model"), MODEL_SUFFIXES, watch))

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
            _("cannot drive") if facts.problem else _format_laps(facts.laps) or pending,
            f"{model.modified:%Y-%m-%d}",
        )
        row.hint = facts.problem or (facts.info and facts.info.problem) or model.problem or _describe(model, facts.info)
        if facts.problem and row.marked is not None:
            row.marked = None
            self._marked = [each for each in self._marked if each != path]

    def _mark(self, path: Path, on: bool) -> None:
        if on and len(self._marked) >= MAX_CARS:
            self._rows[path].marked = False
            self.app.notify(_("At most {limit} cars").format(limit=MAX_CARS))
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
        return _("no lap")
    flying = UNKNOWN if laps.flying is None else f"{laps.flying:.2f}"
    return f"{'' if laps.clean else '* '}{laps.standing:.2f} / {flying}"


def _describe(model: ModelFile, info: AgentInfo | None) -> str:
    """Return a line with what has no column."""
    parts = [f"{model.origin}: {model.path.name}"]
    if info is not None and info.timesteps:
        parts.append(_("{timesteps:,} steps").format(timesteps=info.timesteps))
    if info is not None and info.policy_layers:
        parts.append(_("layers of {sizes}").format(sizes=", ".join(map(str, info.policy_layers))))
    if model.tracks:
        parts.append(
            _("trained on {circuits}").format(
                circuits=", ".join(circuit_names(model.tracks)) or trained_on(model.tracks)
            )
        )
    return " · ".join(parts)
