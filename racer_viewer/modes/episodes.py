"""Episodes that were watched: what came of each, and how it can be seen again.

The table of episodes, over the picture between the panels.

All episodes that were watched this time: see one again, or keep it as a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pygame

from racer_viewer.modes.keeping import keep_replay
from racer_viewer.modes.race import RaceCar
from racer_viewer.modes.replay_screen import ReplayScreen
from racer_viewer.modes.screen import MENU_KEYS, AppContext, Key, ListScreen
from racer_viewer.modes.waiting import open_safely
from racer_viewer.render.overlays import lap_time
from racer_viewer.replays import Replay, trace_replay
from racer_viewer.ui.intents import Command, Intent
from racer_viewer.ui.item_list import Button, Column, Row
from racer_viewer.ui.theme import MARGIN, PADDING, TEXT_SMALL, Colour, Theme

if TYPE_CHECKING:
    from racer_viewer.modes.watch import WatchScreen

KEPT = 400
"""The last so many are remembered; each is some 70 kB."""


@dataclass(frozen=True, eq=False)
class Episode:
    """What one car made of an episode.

    number: which it was since watching began, from 1.
    best: its fastest lap [ticks]; None without one.
    ending: how it ended, in a few words.
    replay: what was driven; None if nothing was, or while it is driven.
    """

    number: int
    driver: str
    circuit: str
    reward: float
    laps: int
    best: int | None
    ending: str
    replay: Replay | None


def episode_of(car: RaceCar, number: int, ending: str = "") -> Episode:
    """As far as it is; the ending is the one given unless it came to its own."""
    best, circuit = car.stopwatch.best_of_run, car.env.track.circuit
    return Episode(
        number,
        car.entrant.name,
        circuit.name if circuit else "",
        float(car.totals.sum()),
        len(car.stopwatch.laps),
        best.ticks if best else None,
        car.ending or ending,
        car.replay() if car.ending or ending else None,
    )


ROWS = 6
"""The newest at the bottom; all that are driven now are there, however many they are."""
WIDTH, ROW = 460, 21
"""At scale 1 [px]."""
COLUMNS = ((0.06, "#"), (0.43, "driver"), (0.57, "reward"), (0.66, "laps"), (0.79, "best"), (1.0, "ended"))
"""Where each ends, of the width, and its title; the driver begins where the number ends."""


class EpisodeTable:
    """Drawn anew only when an episode has been added or changed."""

    def __init__(self) -> None:
        self._drawn: tuple[object, ...] = ()
        self._panel: pygame.Surface | None = None

    def draw(
        self, surface: pygame.Surface, theme: Theme, episodes: Sequence[Episode], running: Sequence[Episode], top: int
    ) -> pygame.Rect:
        """Episodes that are over, and those that are running now; in the middle, so far from the upper edge [px]."""
        room = min(max(0, ROWS - len(running)), len(episodes))
        rows = [*episodes[len(episodes) - room :], *running]
        free = surface.get_width() - 2 * round(surface.get_width() * 0.3)
        width = min(theme.px(WIDTH), free)
        key = (theme, width, tuple((row.number, row.driver, _cells(row)) for row in rows))
        if key != self._drawn or self._panel is None:
            self._drawn, self._panel = key, _panel(theme, width, rows, len(running))
        x = (surface.get_width() - width) // 2
        return surface.blit(self._panel, (x, top + theme.px(MARGIN)))


def _cells(row: Episode) -> tuple[str, ...]:
    best = "–" if row.best is None else lap_time(row.best)
    return (f"{row.reward:.2f}", str(row.laps), best, row.ending or "drives")


def _panel(theme: Theme, width: int, rows: Sequence[Episode], running: int) -> pygame.Surface:
    padding, row_height = theme.px(PADDING), theme.px(ROW)
    panel = theme.panel(width, row_height * (len(rows) + 1) + padding)
    inside = width - 2 * padding
    edges = [padding + round(inside * share) for share, _ in COLUMNS]
    titles = [title for _, title in COLUMNS]
    _draw_row(panel, theme, edges, titles, padding // 2, theme.palette.faint)
    for place, row in enumerate(rows, 1):
        goes_on = place > len(rows) - running
        colour = theme.palette.text if goes_on else theme.palette.faint
        cells = [str(row.number), row.driver, *_cells(row)]
        _draw_row(panel, theme, edges, cells, padding // 2 + place * row_height, colour)
    return panel


def _draw_row(
    panel: pygame.Surface, theme: Theme, edges: Sequence[int], cells: Sequence[str], y: int, colour: Colour
) -> None:
    gap = theme.px(8)
    for number, (cell, end) in enumerate(zip(cells, edges, strict=True)):
        begin = edges[number - 1] + gap if number else theme.px(PADDING)
        text = theme.text(theme.truncate(cell, end - begin, TEXT_SMALL), TEXT_SMALL, colour)
        at_left = number in (1, len(cells) - 1)
        panel.blit(text, (begin if at_left else end - text.get_width(), y + (theme.px(ROW) - text.get_height()) // 2))


class EpisodesScreen(ListScreen):
    """The newest first, beginning with those that are driven now."""

    title = "Episodes"
    list_width = 0

    def __init__(self, app: AppContext, watch: WatchScreen) -> None:
        super().__init__(app)
        running = [episode_of(car, watch.number, "goes on") for car in watch.race.cars if car.ticks]
        self._episodes = [*watch.episodes, *running][::-1]
        self.list.columns = (
            Column("driver", 0.28),
            Column("episode", 0.09, right=True),
            Column("circuit", 0.2),
            Column("reward", 0.11, right=True),
            Column("laps", 0.07, right=True),
            Column("best", 0.1, right=True),
            Column("ended", 0.15),
        )
        self.list.items = [Row(e.driver, cells=_list_cells(e), on_press=partial(self._see, e)) for e in self._episodes]
        if not self._episodes:
            self.list.items = [Button("None yet", enabled=False)]

    def keys(self) -> Sequence[Key]:
        keep = self.app.key_label(Command.KEEP), "keep as a replay"
        return (MENU_KEYS[0], ("Enter", "see it again"), keep, ("Esc", "back"))

    def handle(self, intent: Intent) -> None:
        if intent == Command.KEEP and self._episodes:
            keep_replay(self.app, self._episodes[self.list.chosen].replay)
        else:
            super().handle(intent)

    def _see(self, episode: Episode) -> None:
        replay = episode.replay
        if replay is not None:
            open_safely(self.app, lambda: ReplayScreen(self.app, [trace_replay(replay)]))


def _list_cells(episode: Episode) -> tuple[str, ...]:
    best = "–" if episode.best is None else lap_time(episode.best)
    return (str(episode.number), episode.circuit, f"{episode.reward:.3f}", str(episode.laps), best, episode.ending)
