"""Results of a race: standings, laps with their sectors, the medal, the reward by component, and what to do next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import pygame

from racer_env.engine import TICKS_PER_SECOND, component_colours
from racer_viewer.modes.circuits import MEDAL_NAMES, MEDALS
from racer_viewer.modes.lap_comparison import open_lap_comparison
from racer_viewer.modes.race import RaceSetup, Tick
from racer_viewer.modes.race_view import save_to_replays
from racer_viewer.modes.replay_screen import open_runs
from racer_viewer.modes.screen import AppContext, Screen
from racer_viewer.replays import Replay, trace_replay
from racer_viewer.replays.records import Medal, medal_for, medal_ticks, next_medal
from racer_viewer.snapshot import CarStyle
from racer_viewer.timing import NO_TIME, LapTime, lap_time, signed
from racer_viewer.translation import _, mark, ngettext
from racer_viewer.ui.item_list import Button
from racer_viewer.ui.theme import PADDING, TEXT, TEXT_LARGE, TEXT_SMALL, Colour, Theme
from racer_viewer.ui.views import ListView

BESIDE_LIST, MIN_WIDTH = 40, 440
"""Distance of the results from the list, and the width that they need, at scale 1 [px]."""
MAX_LAPS_SHOWN = 8
NEW_RECORD = mark("new record on this circuit")
PODIUM = (1, 0, 2)
"""Places on the podium from left to right, from 0."""
PODIUM_HEIGHTS = (44, 30, 20)
"""Heights of the steps of the podium by place, at scale 1 [px]."""


@dataclass(frozen=True)
class RaceResult:
    """Result of one car.

    behind: time behind the winner [s]; for a car that is still driving, its gap when the race ended.
    laps_behind: whole laps behind the winner.
    best: fastest clean lap, or the fastest of all if none is clean.
    """

    place: int
    style: CarStyle
    is_player: bool
    behind: float
    laps_behind: int
    best: LapTime | None

    @property
    def gap(self) -> str:
        """Distance to the winner as it is shown."""
        if self.place == 1:
            return _("winner")
        if self.laps_behind:
            return ngettext("+{laps} lap", "+{laps} laps", self.laps_behind).format(laps=self.laps_behind)
        return f"{signed(self.behind)} s"


def race_results(last: Tick, laps: int) -> tuple[RaceResult, ...]:
    """Return the results in their order at the end of a race of so many laps; 0 for no limit.

    Cars that had finished before the player count with their time at the line, all others with their gap.
    """
    snapshot, length = last.snapshot, last.snapshot.track.length
    now = last.followed.ticks
    gaps = snapshot.gaps or (0.0,)
    times = [
        state.lap_ends[laps - 1] if laps and len(state.lap_ends) >= laps else now + gap * TICKS_PER_SECOND
        for state, gap in zip(last.episodes, gaps, strict=True)
    ]
    order = sorted(range(len(times)), key=lambda number: (times[number], -last.episodes[number].distance))
    winner = order[0]
    farthest = min(last.episodes[winner].distance, laps * length) if laps else last.episodes[winner].distance
    return tuple(
        RaceResult(
            place,
            snapshot.styles[number],
            number == snapshot.focus,
            (times[number] - times[winner]) / TICKS_PER_SECOND,
            max(0, int((farthest - last.episodes[number].distance) / length)),
            last.episodes[number].shown_lap,
        )
        for place, number in enumerate(order, 1)
    )


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
        self._theme = app.theme
        """Theme in which the results fit."""
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
            Button(app.leave_label, on_press=app.leave_race),
        ]
        circuit = last.followed.circuit
        super().__init__(
            app,
            ListView(_("Results"), items, subtitle=circuit, width=340, darkness=215, draw_beside=self._draw_results),
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

    def _draw_results(self, surface: pygame.Surface, area: pygame.Rect) -> None:
        """Draw the results beside the list, in smaller letters where they would not fit."""
        left = area.right + self.app.theme.px(BESIDE_LIST)
        size = surface.get_width() - left - self.app.theme.px(24), area.height
        self._theme = theme = self.app.theme.fitting(lambda smaller: self._fits(smaller, size))
        if size[0] < theme.px(240):
            return
        y = self._draw_outcome(surface, left, area.y, size[0])
        y = self._draw_best(surface, left, y)
        if len(self.results) > 1:
            y = self._draw_standings(surface, left, y, size[0])
        y = self._draw_laps(surface, left, y, size[0], area.bottom)
        self._draw_reward(surface, left, y + theme.px(14), size[0], area.bottom)

    def _fits(self, theme: Theme, size: tuple[int, int]) -> bool:
        """Return whether best lap, standings and laps fit into (width, height)."""
        row, cars = theme.line_height() + theme.px(4), len(self.results)
        laps = min(MAX_LAPS_SHOWN, len(self._last.laps))
        height = theme.line_height(TEXT_LARGE + 10) + theme.line_height() + theme.px(4 + PADDING * 1.5)
        if self.outcome is not None:
            height += len(theme.wrapped(self.outcome.text, size[0])) * row + theme.px(PADDING)
        if cars > 1:
            height += theme.px(PODIUM_HEIGHTS[0]) + theme.line_height() + cars * row + 2 * theme.px(PADDING)
        if laps:
            height += theme.line_height(TEXT_SMALL) + theme.px(6) + laps * row
        return theme.px(MIN_WIDTH) <= size[0] and height <= size[1]

    def _draw_outcome(self, surface: pygame.Surface, x: int, y: int, width: int) -> int:
        """Draw whether the event was won, if the race belongs to one; return where it ends [px]."""
        theme = self._theme
        if self.outcome is None:
            return y
        colour = theme.palette.good if self.outcome.won else theme.palette.accent
        for line in theme.wrapped(self.outcome.text, width):
            surface.blit(theme.text(line, TEXT, colour), (x, y))
            y += theme.line_height() + theme.px(4)
        return y + theme.px(PADDING)

    def _draw_best(self, surface: pygame.Surface, x: int, y: int) -> int:
        """Draw the best lap, its medal and the time to the next one."""
        theme, state = self._theme, self._last.followed
        palette, shown = theme.palette, state.shown_lap
        if shown is None:
            figure = theme.text(_("No lap finished"), TEXT_LARGE, palette.faint)
        else:
            figure = theme.text(
                f"{lap_time(shown.ticks)} s", TEXT_LARGE + 10, palette.text if shown.clean else palette.bad
            )
        surface.blit(figure, (x, y))
        beside, medal = x + figure.get_width() + theme.px(16), self._medal(state.best)
        if medal:
            radius = theme.px(13)
            centre = beside + radius, y + figure.get_height() // 2
            pygame.draw.aacircle(surface, MEDALS[medal], centre, radius)
            pygame.draw.aacircle(surface, _darker(MEDALS[medal]), centre, radius, theme.px(3))
            label = theme.text(_(MEDAL_NAMES[medal]), TEXT, MEDALS[medal])
            surface.blit(label, (beside + 2 * radius + theme.px(8), centre[1] - label.get_height() // 2))
        y += figure.get_height() + theme.px(4)
        words: list[tuple[str, Colour]] = []
        if self.is_record:
            words.append((_(NEW_RECORD), palette.good))
        elif shown is not None and not shown.clean:
            words.append((_("invalid: {fault}").format(fault=shown.fault), palette.bad))
        elif shown is not None:
            words.append((_("best lap of this run"), palette.faint))
        if self.medal_text:
            words.append((self.medal_text, palette.accent))
        left = x
        for text, colour in words:
            line = theme.text(text, TEXT, colour)
            surface.blit(line, (left, y))
            left += line.get_width() + theme.px(18)
        return y + theme.line_height() + theme.px(PADDING * 1.5)

    def _draw_standings(self, surface: pygame.Surface, x: int, y: int, width: int) -> int:
        """Draw the podium, and a row for each car."""
        theme = self._theme
        y = self._draw_podium(surface, x, y, min(width, theme.px(420)))
        columns = x, x + theme.px(30), x + min(width - theme.px(190), theme.px(230))
        best_end = columns[2] + theme.px(190)
        for result in self.results:
            colour = theme.palette.accent if result.is_player else theme.palette.text
            name = theme.truncate(result.style.name, columns[2] - columns[1] - theme.px(30))
            pygame.draw.aacircle(
                surface, result.style.colour, (columns[1] + theme.px(5), y + theme.line_height() // 2), theme.px(5)
            )
            surface.blit(theme.text(str(result.place), TEXT, colour), (columns[0], y))
            surface.blit(theme.text(name, TEXT, colour), (columns[1] + theme.px(18), y))
            surface.blit(theme.text(result.gap, TEXT, colour), (columns[2], y))
            best = theme.text(result.best.text if result.best else NO_TIME, TEXT, theme.palette.faint)
            surface.blit(best, (best_end - best.get_width(), y))
            y += theme.line_height() + theme.px(4)
        return y + theme.px(PADDING)

    def _draw_podium(self, surface: pygame.Surface, x: int, y: int, width: int) -> int:
        """Draw three steps with the names of the first three cars; return where they end [px]."""
        theme, step = self._theme, width // 3
        base = y + theme.px(PODIUM_HEIGHTS[0]) + theme.line_height()
        colours = [MEDALS[medal] for medal in ("gold", "silver", "bronze")]
        for column, place in enumerate(PODIUM):
            if place >= len(self.results):
                continue
            result, height = self.results[place], theme.px(PODIUM_HEIGHTS[place])
            block = pygame.Rect(x + column * step, base - height, step - theme.px(4), height)
            pygame.draw.rect(surface, _darker(colours[place]), block, border_radius=theme.px(4))
            pygame.draw.rect(surface, colours[place], (*block.topleft, block.width, theme.px(4)))
            number = theme.text(str(place + 1), TEXT, theme.palette.on_accent)
            surface.blit(number, number.get_rect(center=block.center))
            colour = theme.palette.accent if result.is_player else theme.palette.text
            name = theme.text(theme.truncate(result.style.name, block.width, TEXT), TEXT, colour)
            surface.blit(name, name.get_rect(midbottom=(block.centerx, block.top - theme.px(2))))
        return base + theme.px(PADDING)

    def _draw_laps(self, surface: pygame.Surface, x: int, y: int, width: int, end: int) -> int:
        """Draw a row for each of the last laps: its time and its sectors, or why it does not count."""
        theme, laps, palette = self._theme, self._last.laps, self._theme.palette
        best = self._last.followed.best
        columns = [x, x + theme.px(40), x + theme.px(130), x + theme.px(210), x + theme.px(290)]
        end -= theme.line_height()
        if laps and y < end:
            for column, name in zip(columns, (_("lap"), _("time"), _("sector 1"), "2", "3"), strict=True):
                surface.blit(theme.text(name, TEXT_SMALL, palette.faint), (column, y))
            y += theme.line_height(TEXT_SMALL) + theme.px(6)
        first = max(0, len(laps) - MAX_LAPS_SHOWN)
        for number, lap in enumerate(laps[first:], first + 1):
            if y > end:
                break
            colour = palette.good if lap is best else palette.text if lap.clean else palette.faint
            cells = [str(number), lap_time(lap.ticks), *map(lap_time, lap.sectors())]
            for column, cell in zip(columns, cells if lap.clean else cells[:2], strict=False):
                if column < x + width - theme.px(40):
                    surface.blit(theme.text(cell, TEXT, colour), (column, y))
            if not lap.clean:
                fault = theme.truncate(_("invalid: {fault}").format(fault=lap.fault), x + width - columns[2])
                surface.blit(theme.text(fault, TEXT, palette.bad), (columns[2], y))
            y += theme.line_height() + theme.px(4)
        return y

    def _draw_reward(self, surface: pygame.Surface, x: int, y: int, width: int, end: int) -> None:
        """Draw the reward of this run by component, if there is room for all of it."""
        theme, components = self._theme, self._last.snapshot.reward_components
        totals = self._last.followed.totals[: len(components)]
        row = theme.line_height(TEXT_SMALL) + theme.px(3)
        if y + (len(components) + 2) * row + theme.px(4) > end:
            return
        surface.blit(theme.text(_("reward of this run"), TEXT_SMALL, theme.palette.faint), (x, y))
        y += row + theme.px(3)
        largest = max(1e-9, *(abs(float(value)) for value in totals))
        bar_left, bar_width = x + theme.px(110), min(theme.px(180), width - theme.px(210))
        colours = component_colours(theme.palette.colour_blind, components)
        for component, value, colour in zip(components, totals, colours, strict=True):
            label = theme.truncate(_(component.label), theme.px(104), TEXT_SMALL)
            surface.blit(theme.text(label, TEXT_SMALL), (x, y))
            length = round(max(0, bar_width) * abs(float(value)) / largest)
            pygame.draw.rect(surface, colour, (bar_left, y + theme.px(2), max(1, length), theme.px(9)))
            figure = theme.text(f"{value:+.3f}", TEXT_SMALL, theme.palette.text)
            surface.blit(figure, (bar_left + max(0, bar_width) + theme.px(12), y))
            y += row
        surface.blit(
            theme.text(_("total {reward:+.3f}").format(reward=float(totals.sum())), TEXT_SMALL), (x, y + theme.px(4))
        )

    def _medal(self, lap: LapTime | None) -> Medal | None:
        circuit = self._last.snapshot.track.circuit
        return medal_for(circuit, lap.ticks) if circuit is not None and lap is not None else None

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


def _darker(colour: Colour) -> Colour:
    red, green, blue = (part * 3 // 4 for part in colour)
    return red, green, blue
