"""Career: events to win, one after the other, and the medals of all circuits. Wins are kept with the records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from racer_env.engine import circuits
from racer_env.errors import RacerError, in_one_line
from racer_viewer.agents import bundled_models
from racer_viewer.modes.circuits import RANDOM, fixed_circuits
from racer_viewer.modes.ladder import CircuitMedal, medal_overview
from racer_viewer.modes.models import ModelFile, known_models
from racer_viewer.modes.play import open_play
from racer_viewer.modes.race import Tick
from racer_viewer.modes.results import EventOutcome, race_results
from racer_viewer.modes.screen import AppContext, MessageScreen, Screen
from racer_viewer.replays.records import MEDAL_NAMES, Medal, medal_ticks
from racer_viewer.timing import NO_TIME, lap_time
from racer_viewer.translation import _, mark
from racer_viewer.ui.item_list import Button, Column, Item, Row
from racer_viewer.ui.views import ListView

OPEN_EVENTS = 2
"""Number of events that can be raced at a time: the first ones that are not won."""
MEDAL_LAPS = 3
"""Laps of a race for a medal."""
BUNDLED = "bundled"
"""Origin of the models that come with the app."""


@dataclass(frozen=True)
class CareerEvent:
    """An event of the career: a time attack for a medal, or a duel with an agent.

    id: key in the database.
    circuit: id of its circuit; a duel with a pupil is on the circuit that it was trained on.
    medal: medal to win, for time attacks.
    opponent: bundled model to beat, for duels; empty for the player's newest trained agent.
    """

    id: str
    name: str
    circuit: str
    laps: int
    medal: Medal | None = None
    opponent: str = ""

    @property
    def goal(self) -> str:
        """Description of what wins the event."""
        if self.medal is not None:
            return _("A clean lap for {medal}").format(medal=_(self.medal))
        rival = self.opponent or _("your newest agent")
        return _("Beat {name} over {laps} clean laps").format(name=rival, laps=self.laps)

    def is_won(self, last: Tick) -> bool:
        """Return whether a race that ends with this tick wins the event."""
        state, circuit = last.followed, last.snapshot.track.circuit
        if self.medal is not None:
            needed = medal_ticks(circuit, self.medal) if circuit is not None else None
            return needed is not None and state.best is not None and state.best.ticks <= needed
        drove_all = len(state.laps) >= self.laps and all(lap.clean for lap in state.laps)
        return drove_all and race_results(last, self.laps)[0].is_player


EVENTS = (
    CareerEvent("first-medal", mark("First medal"), "track-01", 3, "bronze"),
    CareerEvent("first-duel", mark("First duel"), "track-01", 3, opponent="learning-3-slow"),
    CareerEvent("pupil", mark("Master and pupil"), "track-01", 3),
    CareerEvent("speedway", mark("Full throttle"), "track-02", 3, "silver"),
    CareerEvent("hairpins", mark("Hairpins"), "track-03", 3, "bronze"),
    CareerEvent("coast", mark("Coast road"), "track-05", 3, opponent="sac-track-01"),
    CareerEvent("endurance", mark("Endurance"), "track-06", 3, "gold"),
    CareerEvent("final", mark("The champion"), "track-01", 5, opponent="champion"),
)
"""Events in their order."""
EVENT_COLUMNS = (
    Column(mark("Event"), 1.5),
    Column(mark("Circuit"), 1.0),
    Column(mark("Goal"), 2.6),
    Column(mark("State"), 0.9, right=True),
)
MEDAL_COLUMNS = (
    Column(mark("Circuit"), 1.6),
    Column(mark("Best lap"), 0.9, right=True),
    Column(mark("Medal"), 0.9),
    *(Column(mark(medal.capitalize()), 0.8, right=True) for medal in reversed(MEDAL_NAMES)),
    Column(mark("Missing"), 1.1, right=True),
)


def open_events(won: Collection[str]) -> tuple[CareerEvent, ...]:
    """Return the events that can be raced: those won, and the next ones."""
    left = [event for event in EVENTS if event.id not in won]
    return tuple(event for event in EVENTS if event.id in won or event in left[:OPEN_EVENTS])


def pupil_of(models: Sequence[ModelFile]) -> ModelFile | None:
    """Return the newest agent that the player has trained on circuits that are still there; None without one."""
    known = {circuit.id for circuit in circuits()}
    own = (model for model in models if model.origin != BUNDLED and not model.problem)
    return next((model for model in own if model.tracks and (known & {*model.tracks} or _is_random(model))), None)


class CareerScreen(Screen):
    """The events of the career; Enter starts one. The first row leads to the medals."""

    return_label = mark("Career")

    def __init__(self, app: AppContext) -> None:
        super().__init__(app, ListView(_("Career"), columns=EVENT_COLUMNS, subtitle=self._progress, width=0))
        self._won: Collection[str] = ()
        self._medals: tuple[CircuitMedal, ...] = ()

    def refresh(self) -> None:
        try:
            self._won, self._medals = self.app.records.events_won(), medal_overview(self.app)
        except (RacerError, OSError) as error:
            self._won, self._medals = (), ()
            self.app.notify(in_one_line(error))
        names = {circuit_id: circuit.name for circuit_id, circuit in fixed_circuits("").items()}
        rows: list[Item] = [self._row(event, names.get(event.circuit, event.circuit)) for event in EVENTS]
        won = sum(each.medal is not None for each in self._medals)
        note = _("{won} of {number} circuits").format(won=won, number=len(self._medals))
        hint = _("All circuits with their medals")
        self.list.items = [Button(_("Medals"), hint, on_press=self._show_medals, note=note), *rows]

    def _progress(self) -> str:
        won = sum(event.id in self._won for event in EVENTS)
        return _("{won} of {number} events won").format(won=won, number=len(EVENTS))

    def _row(self, event: CareerEvent, circuit: str) -> Row:
        is_open = event in open_events(self._won)
        state = _("won") if event.id in self._won else _("open") if is_open else _("locked")
        hint = _("{laps} laps").format(laps=event.laps) if is_open else _("Win an earlier event first")
        if event.medal is None and not event.opponent:
            circuit = _("as trained")
        row = Row(_(event.name), hint, cells=(circuit, event.goal, state), on_press=partial(self._start, event))
        row.enabled = is_open
        return row

    def _start(self, event: CareerEvent) -> None:
        if event.medal is not None:
            open_play(self.app, event.circuit, [], event.laps, self._rule(event), ghost=event.medal)
            return
        opponent, circuit = self._opponent(event)
        if opponent is None:
            text = _("Train an agent first: main menu, Train. You decide for how long it learns.")
            self.app.push(MessageScreen(self.app, _("You have no pupil yet"), text))
        else:
            open_play(self.app, circuit, [opponent], event.laps, self._rule(event))

    def _opponent(self, event: CareerEvent) -> tuple[tuple[str, Path] | None, str]:
        """Return the name and model to beat, and the circuit."""
        if event.opponent:
            path = next(path for path in bundled_models() if path.stem == event.opponent)
            return (event.opponent, path), event.circuit
        pupil = pupil_of(known_models(self.app.data))
        return (None, event.circuit) if pupil is None else ((pupil.name, pupil.path), pupil.tracks[0])

    def _rule(self, event: CareerEvent) -> Callable[[Tick], EventOutcome]:
        """Return the function that decides an event at the end of its race, and enters it if it is won."""

        def decide(last: Tick) -> EventOutcome:
            won = event.is_won(last)
            if won:
                try:
                    self.app.records.win_event(event.id, last.followed.driver)
                except (RacerError, OSError) as error:
                    self.app.notify(in_one_line(error))
            return EventOutcome(_(event.name), event.goal, won)

        return decide

    def _show_medals(self) -> None:
        self.app.push(MedalsScreen(self.app))


class MedalsScreen(Screen):
    """Best lap and medal on every circuit, with the time that is missing to the next; Enter races for it."""

    return_label = mark("Medals")

    def __init__(self, app: AppContext) -> None:
        super().__init__(app, ListView(_("Medals"), columns=MEDAL_COLUMNS, width=0))

    def refresh(self) -> None:
        try:
            medals = medal_overview(self.app)
        except (RacerError, OSError) as error:
            self.list.items = [Button(in_one_line(error), enabled=False)]
            return
        self.list.items = [self._row(each) for each in medals]

    def _row(self, each: CircuitMedal) -> Row:
        times = (getattr(each.circuit.medals, medal, None) for medal in reversed(MEDAL_NAMES))
        cells = (
            NO_TIME if each.best is None else lap_time(each.best),
            NO_TIME if each.medal is None else _(each.medal),
            *(NO_TIME if seconds is None else f"{seconds:.2f}" for seconds in times),
            each.missing_text,
        )
        ghost = each.missing or "author"
        hint = _("Enter races the ghost of the {medal} medal").format(medal=_(ghost))
        return Row(each.circuit.name, hint, cells=cells, on_press=partial(self._race, each.circuit.id, ghost))

    def _race(self, circuit: str, ghost: Medal) -> None:
        self.app.change(circuit=circuit)
        open_play(self.app, circuit, [], MEDAL_LAPS, ghost=ghost)


def _is_random(model: ModelFile) -> bool:
    return model.tracks[0].startswith(RANDOM)
