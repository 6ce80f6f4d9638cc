"""What came of a race: laps with their splits, the medal, where the reward came from, and keeping it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pygame

from racer_env.engine import REWARD_COMPONENTS, component_colours
from racer_env.errors import RacerError
from racer_viewer.modes.circuits import MEDALS
from racer_viewer.modes.keeping import keep_replay
from racer_viewer.modes.screen import AppContext, ListScreen
from racer_viewer.render.overlays import lap_time
from racer_viewer.replays.records import medal_for
from racer_viewer.timing import LapTime
from racer_viewer.ui.item_list import Button
from racer_viewer.ui.theme import PADDING, TEXT, TEXT_LARGE, TEXT_SMALL

if TYPE_CHECKING:
    from racer_viewer.modes.play import PlayScreen

MOST_LAPS_SHOWN = 8


class ResultsScreen(ListScreen):
    """The race goes on lying below it."""

    title = "Results"
    darkness = 215

    def __init__(self, app: AppContext, play: PlayScreen) -> None:
        self._play, self._race = play, play.race
        self._news = self._enter_record(app)
        super().__init__(
            app,
            [
                Button("Again", "From the line, same opponents", on_press=self._again),
                Button("Save replay", "Keep it as a file, to watch or to send", on_press=self._save),
                Button(app.leave_label, on_press=app.leave_race),
            ],
        )
        if self._news:
            app.sound.play("record")

    @property
    def subtitle(self) -> str:
        circuit = self._race.track.circuit
        return circuit.name if circuit else ""

    def back(self) -> None:
        self.app.leave_race()

    def draw_beside(self, surface: pygame.Surface, area: pygame.Rect) -> None:
        theme = self.app.theme
        left = area.right + theme.px(40)
        width = surface.get_width() - left - theme.px(24)
        if width < theme.px(240):
            return
        y = self._draw_best(surface, left, area.y)
        y = self._draw_laps(surface, left, y, width)
        self._draw_reward(surface, left, y + theme.px(14), width)

    def _draw_best(self, surface: pygame.Surface, x: int, y: int) -> int:
        theme, best = self.app.theme, self._race.stopwatch.best_of_run
        if best is None:
            text = theme.text("No lap was finished", TEXT, theme.palette.faint)
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
        line = theme.text(
            self._news or "best lap of this run", TEXT, theme.palette.good if self._news else theme.palette.faint
        )
        surface.blit(line, (x, y))
        return y + line.get_height() + theme.px(PADDING * 1.5)

    def _draw_laps(self, surface: pygame.Surface, x: int, y: int, width: int) -> int:
        """A line for each of the last laps: its time, and its sectors."""
        theme, laps = self.app.theme, self._race.laps
        best = self._race.stopwatch.best_of_run
        columns = [x, x + theme.px(56), x + theme.px(150), x + theme.px(230), x + theme.px(310)]
        if laps:
            for column, name in zip(columns, ("lap", "time", "sector 1", "2", "3"), strict=True):
                surface.blit(theme.text(name, TEXT_SMALL, theme.palette.faint), (column, y))
            y += theme.line_height(TEXT_SMALL) + theme.px(6)
        first = max(0, len(laps) - MOST_LAPS_SHOWN)
        for number, lap in enumerate(laps[first:], first + 1):
            colour = theme.palette.good if lap is best else theme.palette.text
            cells = [str(number), lap_time(lap.ticks), *map(lap_time, lap.sectors())]
            for column, cell in zip(columns, cells, strict=False):
                if column < x + width - theme.px(40):
                    surface.blit(theme.text(cell, TEXT, colour), (column, y))
            y += theme.line_height() + theme.px(4)
        return y

    def _draw_reward(self, surface: pygame.Surface, x: int, y: int, width: int) -> None:
        """What an agent would have been paid for this drive, by its parts."""
        theme, totals = self.app.theme, self._race.totals
        surface.blit(theme.text("reward of this drive", TEXT_SMALL, theme.palette.faint), (x, y))
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
        circuit = self._race.track.circuit
        return medal_for(circuit, lap.ticks) if circuit is not None else None

    def _enter_record(self, app: AppContext) -> str:
        """Enter the drive as a record; a line if it is the best on this circuit."""
        replay = self._race.replay()
        if replay is None or not self._race.laps or self._race.entrants[0].agent is not None:
            return ""
        try:
            entry = app.records.enter(replay)
            best = app.records.best(replay.circuit)
        except (RacerError, OSError) as error:
            app.notify(f"The record could not be kept: {error}")
            return ""
        return "a new record on this circuit" if best is not None and best == entry else ""

    def _again(self) -> None:
        self.app.pop()
        self._play.restart()

    def _save(self) -> None:
        keep_replay(self.app, self._race.replay())
