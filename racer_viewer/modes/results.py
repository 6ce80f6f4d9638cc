"""Results of a race: the standings, the time to the next medal, and what to do next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import pygame

from racer_env.engine import TICKS_PER_SECOND
from racer_viewer.modes.circuits import MEDAL_NAMES
from racer_viewer.modes.lap_comparison import open_lap_comparison
from racer_viewer.modes.race import RaceSetup, Tick
from racer_viewer.modes.race_view import save_to_replays
from racer_viewer.modes.replay_screen import open_runs
from racer_viewer.modes.results_card import ResultsCard
from racer_viewer.modes.screen import AppContext, Screen
from racer_viewer.modes.standings import race_results
from racer_viewer.replays import Replay, trace_replay
from racer_viewer.replays.records import medal_for, medal_ticks, next_medal
from racer_viewer.timing import lap_time
from racer_viewer.translation import _
from racer_viewer.ui.intents import Controls
from racer_viewer.ui.item_list import Button
from racer_viewer.ui.theme import MARGIN, TEXT_LARGE
from racer_viewer.ui.views import ListView

BESIDE_LIST = 24
"""Distance of the card from the list, at scale 1 [px]."""
MIN_CARD_HEIGHT = 300
"""Height of the list from which the card needs no room beside the title, at scale 1 [px]."""


@dataclass(frozen=True)
class EventOutcome:
    """Result of an event of the career, with what wins it.

    following: name and goal of the next event; empty if the event is not won, or the last one.
    race_next: starts the next event, from the screen that the race belongs to.
    """

    name: str
    goal: str
    won: bool
    following: str = ""
    race_next: Callable[[], None] = lambda: None

    @property
    def text(self) -> str:
        if self.won:
            return _("{event}: won").format(event=self.name)
        return _("{event}, not won yet: {goal}").format(event=self.name, goal=self.goal)


class RaceControl(Protocol):
    """Screen of the race that the results belong to."""

    def restart(self) -> None: ...

    def next_circuit(self) -> None: ...

    def save_record(self) -> bool: ...


class ResultsScreen(Screen):
    """Results over the finished race.

    last: last tick of the race.
    laps: laps of the race; 0 for no limit.
    race: screen of the race.
    outcome: result of the event that the race belongs to; None without one.
    """

    def __init__(
        self,
        app: AppContext,
        setup: RaceSetup,
        last: Tick,
        laps: int,
        race: RaceControl,
        outcome: EventOutcome | None = None,
    ) -> None:
        self._last, self._race, self.outcome = last, race, outcome
        self._ticks = 0
        """Time since the results are shown [ticks]."""
        self._replay = last.followed.replay()
        self.results = race_results(last, laps)
        self.is_record = setup.entrants[0].agent is None and race.save_record()
        rivals = len(self.results) > 1
        items = [
            *(
                [Button(_("Next event"), outcome.following, on_press=self._next_event)]
                if outcome is not None and outcome.following
                else []
            ),
            Button(_("Race again"), _("Same opponents; a new record is the new ghost"), on_press=self._race_again),
            *(
                [Button(_("Next circuit"), _("Same opponents"), on_press=self._next_circuit)]
                if setup.bridge is None and outcome is None
                else []
            ),
            Button(_("Watch replay"), _("All cars of this race") if rivals else _("Your drive"), on_press=self._watch),
            *(
                [
                    Button(
                        _("Compare laps"), _("Lines, speed and inputs, and where time was won"), on_press=self._compare
                    )
                ]
                if sum(len(state.laps) for state in last.episodes) > 1
                else []
            ),
            Button(_("Save replay"), _("As a file to watch or share"), on_press=self._save),
            *(
                [
                    Button(
                        _("Teach an agent this"),
                        _("A policy is cloned from the clean laps; then PPO goes on"),
                        on_press=self._teach,
                    )
                ]
                if app.teach is not None and setup.entrants[0].agent is None and last.followed.best is not None
                else []
            ),
            Button(app.leave_label, on_press=app.leave_race),
        ]
        circuit, course, best = last.followed.circuit, last.snapshot.track.circuit, last.followed.best
        self.card = ResultsCard(
            last,
            self.results,
            outcome.text if outcome is not None else "",
            outcome is not None and outcome.won,
            medal_for(course, best.ticks) if course is not None and best is not None else None,
            self.medal_text,
            self.is_record,
        )
        super().__init__(
            app,
            ListView(_("Results"), items, subtitle=circuit, width=300, darkness=215, draw_beside=self._draw_results),
        )
        if self.is_record:
            app.sound.play("record")

    @property
    def medal_text(self) -> str:
        """Time that is missing to the next medal; empty without one."""
        best, circuit = self._last.followed.best, self._last.snapshot.track.circuit
        missing = next_medal(circuit, best.ticks if best else None) if circuit is not None else None
        if missing is None or circuit is None:
            return ""
        needed = medal_ticks(circuit, missing) or 0
        if best is None:
            return _("{lap} s earns {medal}").format(lap=lap_time(needed), medal=_(MEDAL_NAMES[missing]))
        return _("{seconds:.2f} s to {medal}").format(
            seconds=(best.ticks - needed) / TICKS_PER_SECOND, medal=_(MEDAL_NAMES[missing])
        )

    def back(self) -> None:
        self.app.leave_race()

    def tick(self, controls: Controls) -> None:
        self._ticks += 1

    def _draw_results(self, surface: pygame.Surface, area: pygame.Rect) -> None:
        """Draw the card beside the list and, where there is little room, beside the title too."""
        theme = self.app.theme
        left, top = area.right + theme.px(BESIDE_LIST), area.y
        title = max(theme.width(_("Results"), TEXT_LARGE), theme.width(self._last.followed.circuit))
        if area.height < theme.px(MIN_CARD_HEIGHT) and theme.px(3 * MARGIN) + title < left:
            top = theme.px(MARGIN)
        self.card.draw(
            surface,
            theme,
            pygame.Rect(left, top, surface.get_width() - left - theme.px(MARGIN), area.bottom - top),
            self._ticks,
        )

    def _race_again(self) -> None:
        self.app.pop()
        self._race.restart()

    def _next_event(self) -> None:
        assert self.outcome is not None
        self.app.leave_race()
        self.outcome.race_next()

    def _next_circuit(self) -> None:
        self.app.pop()
        self._race.next_circuit()

    def _replays(self) -> list[Replay]:
        """Return the drives of all cars, the followed one first."""
        states = [self._last.followed, *(each for each in self._last.episodes if each is not self._last.followed)]
        replays = [self._replay, *(state.replay() for state in states[1:])]
        return [replay for replay in replays if replay is not None]

    def _watch(self) -> None:
        open_runs(self.app, self._replays)

    def _compare(self) -> None:
        track = self._last.snapshot.track
        open_lap_comparison(self.app, [trace_replay(replay, track) for replay in self._replays()])

    def _save(self) -> None:
        save_to_replays(self.app, self._replay)

    def _teach(self) -> None:
        path = save_to_replays(self.app, self._replay)
        if path is not None and self.app.teach is not None:
            self.app.teach(path)
