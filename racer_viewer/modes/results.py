"""Results of a race: laps with their sectors, the medal, the reward by component, and saving a replay."""

from __future__ import annotations

from collections.abc import Callable

import pygame

from racer_env.engine import REWARD_COMPONENTS, component_colours
from racer_env.errors import RacerError
from racer_viewer.modes.circuits import MEDALS
from racer_viewer.modes.race import RaceSetup, Tick
from racer_viewer.modes.race_view import save_to_replays
from racer_viewer.modes.screen import AppContext, Screen
from racer_viewer.replays.records import medal_for
from racer_viewer.timing import LapTime, lap_time
from racer_viewer.ui.item_list import Button
from racer_viewer.ui.theme import PADDING, TEXT, TEXT_LARGE, TEXT_SMALL
from racer_viewer.ui.views import ListView

MAX_LAPS_SHOWN = 8
NEW_RECORD = "new record on this circuit"


class ResultsScreen(Screen):
    """Results over the finished race.

    last: last tick of the race.
    restart: starts the race again.
    """

    def __init__(self, app: AppContext, setup: RaceSetup, last: Tick, restart: Callable[[], None]) -> None:
        self._last, self._restart = last, restart
        self._replay = last.followed.replay()
        self.is_record = setup.entrants[0].agent is None and self._enter_record(app)
        items = [
            Button("Race again", "From the start line, same opponents", on_press=self._race_again),
            Button("Save replay", "As a file, to watch or to share", on_press=self._save),
            Button(app.leave_label, on_press=app.leave_race),
        ]
        circuit = last.followed.circuit
        super().__init__(
            app, ListView("Results", items, subtitle=circuit, darkness=215, draw_beside=self._draw_results)
        )
        if self.is_record:
            app.sound.play("record")

    def back(self) -> None:
        self.app.leave_race()

    def _draw_results(self, surface: pygame.Surface, area: pygame.Rect) -> None:
        theme = self.app.theme
        left = area.right + theme.px(40)
        width = surface.get_width() - left - theme.px(24)
        if width < theme.px(240):
            return
        y = self._draw_best(surface, left, area.y)
        y = self._draw_laps(surface, left, y, width)
        self._draw_reward(surface, left, y + theme.px(14), width)

    def _draw_best(self, surface: pygame.Surface, x: int, y: int) -> int:
        theme, best = self.app.theme, self._last.followed.best
        if best is None:
            text = theme.text("No lap finished", TEXT, theme.palette.faint)
            surface.blit(text, (x, y))
            return y + text.get_height() + theme.px(PADDING)
        medal = self._medal(best)
        figure = theme.text(f"{lap_time(best.ticks)} s", TEXT_LARGE + 10)
        surface.blit(figure, (x, y))
        beside = x + figure.get_width() + theme.px(16)
        if medal:
            radius = theme.px(13)
            centre = beside + radius, y + figure.get_height() // 2
            pygame.draw.aacircle(surface, MEDALS[medal], centre, radius)
            pygame.draw.aacircle(surface, tuple(part * 3 // 4 for part in MEDALS[medal]), centre, radius, theme.px(3))
            label = theme.text(medal, TEXT, MEDALS[medal])
            surface.blit(label, (beside + 2 * radius + theme.px(8), centre[1] - label.get_height() // 2))
        y += figure.get_height() + theme.px(4)
        caption = NEW_RECORD if self.is_record else "best lap of this run"
        line = theme.text(caption, TEXT, theme.palette.good if self.is_record else theme.palette.faint)
        surface.blit(line, (x, y))
        return y + line.get_height() + theme.px(PADDING * 1.5)

    def _draw_laps(self, surface: pygame.Surface, x: int, y: int, width: int) -> int:
        """Draw a row for each of the last laps: its time and its sectors."""
        theme, laps = self.app.theme, self._last.laps
        best = self._last.followed.best
        columns = [x, x + theme.px(56), x + theme.px(150), x + theme.px(230), x + theme.px(310)]
        if laps:
            for column, name in zip(columns, ("lap", "time", "sector 1", "2", "3"), strict=True):
                surface.blit(theme.text(name, TEXT_SMALL, theme.palette.faint), (column, y))
            y += theme.line_height(TEXT_SMALL) + theme.px(6)
        first = max(0, len(laps) - MAX_LAPS_SHOWN)
        for number, lap in enumerate(laps[first:], first + 1):
            colour = theme.palette.good if lap is best else theme.palette.text
            cells = [str(number), lap_time(lap.ticks), *map(lap_time, lap.sectors())]
            for column, cell in zip(columns, cells, strict=False):
                if column < x + width - theme.px(40):
                    surface.blit(theme.text(cell, TEXT, colour), (column, y))
            y += theme.line_height() + theme.px(4)
        return y

    def _draw_reward(self, surface: pygame.Surface, x: int, y: int, width: int) -> None:
        """Draw the reward of this run by component."""
        theme, totals = self.app.theme, self._last.followed.totals
        surface.blit(theme.text("reward of this run", TEXT_SMALL, theme.palette.faint), (x, y))
        y += theme.line_height(TEXT_SMALL) + theme.px(6)
        largest = max(1e-9, *(abs(float(value)) for value in totals))
        bar_left, bar_width = x + theme.px(110), min(theme.px(180), width - theme.px(210))
        colours = component_colours(theme.palette.colour_blind)
        for component, value, colour in zip(REWARD_COMPONENTS, totals, colours, strict=True):
            if y > surface.get_height() - theme.px(70):
                return
            surface.blit(theme.text(component.label, TEXT_SMALL), (x, y))
            length = round(max(0, bar_width) * abs(float(value)) / largest)
            pygame.draw.rect(surface, colour, (bar_left, y + theme.px(2), max(1, length), theme.px(9)))
            figure = theme.text(f"{value:+.3f}", TEXT_SMALL, theme.palette.text)
            surface.blit(figure, (bar_left + max(0, bar_width) + theme.px(12), y))
            y += theme.line_height(TEXT_SMALL) + theme.px(3)
        surface.blit(theme.text(f"total {float(totals.sum()):+.3f}", TEXT_SMALL), (x, y + theme.px(4)))

    def _medal(self, lap: LapTime) -> str | None:
        circuit = self._last.snapshot.track.circuit
        return medal_for(circuit, lap.ticks) if circuit is not None else None

    def _enter_record(self, app: AppContext) -> bool:
        """Enter the run in the records; returns whether it is the best on this circuit."""
        if self._replay is None or not self._last.laps:
            return False
        try:
            entry = app.records.enter(self._replay)
            best = app.records.best(self._replay.circuit)
        except (RacerError, OSError) as error:
            app.notify(f"The record was not saved: {error}")
            return False
        return best is not None and best == entry

    def _race_again(self) -> None:
        self.app.pop()
        self._restart()

    def _save(self) -> None:
        save_to_replays(self.app, self._replay)
