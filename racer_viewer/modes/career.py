"""Career: events to win, one after the other, and the medals of all circuits. Wins are kept with the records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from racer_env.engine import circuits
from racer_env.errors import RacerError, in_one_line
from racer_viewer.agents import bundled_models
from racer_viewer.modes.circuits import MEDALS, RANDOM, fixed_circuits
from racer_viewer.modes.ladder import CircuitMedal, medal_overview
from racer_viewer.modes.models import ModelFile, known_models
from racer_viewer.modes.play import open_play
from racer_viewer.modes.race import Tick
from racer_viewer.modes.results import EventOutcome
from racer_viewer.modes.screen import AppContext, MessageScreen, Screen
from racer_viewer.modes.standings import race_results
from racer_viewer.replays.records import MEDAL_NAMES, Medal, medal_ticks
from racer_viewer.timing import NO_TIME, lap_time
from racer_viewer.translation import _, mark
from racer_viewer.ui.item_list import Button, Column, Item, Row
from racer_viewer.ui.views import ListView

OPEN_EVENTS = 2
"""Number of events that can be raced at a time: the first ones that are not won."""
MEDAL_LAPS = 3
"""Laps of a race for a medal."""


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


def next_event(won: Collection[str]) -> CareerEvent | None:
    """Return the first event that is not won; None after the last one."""
    return next((event for event in EVENTS if event.id not in won), None)


def career_progress(won: Collection[str]) -> str:
    """Return how many events are won."""
    return _("{won} of {number} events won").format(won=sum(event.id in won for event in EVENTS), number=len(EVENTS))


def pupil_of(models: Sequence[ModelFile]) -> tuple[ModelFile, str] | None:
    """Return the newest agent that the player has trained, and its first circuit that is still there; None without."""
    known = {circuit.id for circuit in circuits()}
    for model in models:
        there = [each for each in model.tracks if each in known or each.startswith(RANDOM) or Path(each).is_file()]
        if there and not model.is_bundled and not model.problem:
            return model, there[0]
    return None


class CareerScreen(Screen):
    """The events of the career; Enter starts one. The last row leads to the medals."""

    return_label = mark("Career")

    def __init__(self, app: AppContext) -> None:
        super().__init__(app, ListView(_("Career"), columns=EVENT_COLUMNS, subtitle=self._progress, width=0))
        self._won: Collection[str] = ()
        self._medals: tuple[CircuitMedal, ...] = ()
        self._aimed_at: CareerEvent | None = None
        """Event that was selected last by itself."""

    def refresh(self) -> None:
        self._read()
        names = {circuit_id: circuit.name for circuit_id, circuit in fixed_circuits(self.app.data).items()}
        rows: list[Item] = [self._row(event, names.get(event.circuit, event.circuit)) for event in EVENTS]
        won = sum(each.medal is not None for each in self._medals)
        note = _("{won} of {number} circuits").format(won=won, number=len(self._medals))
        hint = _("All circuits with their medals")
        self.list.items = [*rows, Button(_("Medals"), hint, on_press=self._show_medals, note=note)]
        following = next_event(self._won)
        if following is not None and following is not self._aimed_at:
            self.list.choose(EVENTS.index(following))
        self._aimed_at = following

    def _read(self) -> None:
        try:
            self._won, self._medals = self.app.records.events_won(), medal_overview(self.app)
        except (RacerError, OSError) as error:
            self._won, self._medals = (), ()
            self.app.notify(in_one_line(error))

    def _progress(self) -> str:
        return career_progress(self._won)

    def _row(self, event: CareerEvent, circuit: str) -> Row:
        is_open, is_won, palette = event in open_events(self._won), event.id in self._won, self.app.theme.palette
        state = _("won") if is_won else _("available") if is_open else _("locked")
        hint = _("{laps} laps").format(laps=event.laps) if is_open else _("Win an earlier event first")
        if event.medal is None and not event.opponent:
            circuit = _("as trained")
        return Row(
            _(event.name),
            hint,
            is_open,
            cells=(circuit, event.goal, state),
            on_press=partial(self._start, event),
            dot=palette.good if is_won else palette.accent if is_open else palette.line,
            hollow=not is_won,
        )

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
        found = pupil_of(known_models(self.app.data))
        if found is None:
            return None, event.circuit
        pupil, circuit = found
        return (pupil.name, pupil.path), circuit

    def _rule(self, event: CareerEvent) -> Callable[[Tick], EventOutcome]:
        """Return the function that decides an event at the end of its race, and enters it if it is won."""

        def decide(last: Tick) -> EventOutcome:
            won = event.is_won(last)
            if won:
                try:
                    self.app.records.win_event(event.id, last.followed.driver)
                except (RacerError, OSError) as error:
                    self.app.notify(in_one_line(error))
            self._read()
            following = next_event(self._won) if won else None
            if following is None:
                return EventOutcome(_(event.name), event.goal, won)
            describe = f"{_(following.name)}: {following.goal}"
            return EventOutcome(_(event.name), event.goal, won, describe, partial(self._start, following))

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
        return Row(
            each.circuit.name,
            hint,
            cells=cells,
            on_press=partial(self._race, each.circuit.id, ghost),
            dot=self.app.theme.palette.line if each.medal is None else MEDALS[each.medal],
            hollow=each.medal is None,
        )

    def _race(self, circuit: str, ghost: Medal) -> None:
        self.app.change(circuit=circuit)
        open_play(self.app, circuit, [], MEDAL_LAPS, ghost=ghost)
