"""Watched episodes: their results, the table over the picture, and the list from which one can be replayed or saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pygame

from racer_viewer.modes.race import EpisodeState
from racer_viewer.modes.race_view import save_to_replays
from racer_viewer.modes.replay_screen import ReplayScreen
from racer_viewer.modes.screen import MENU_KEYS, AppContext, Screen
from racer_viewer.modes.waiting import open_safely
from racer_viewer.replays import Replay, trace_replay
from racer_viewer.timing import NO_TIME, lap_time
from racer_viewer.translation import _, mark
from racer_viewer.ui.intents import Command, Intent
from racer_viewer.ui.item_list import Button, Column, Row
from racer_viewer.ui.theme import MARGIN, PADDING, TEXT_SMALL, Theme
from racer_viewer.ui.views import Key, ListView, translated

MAX_EPISODES = 400
"""Episodes kept in memory, about 70 kB each; older ones are dropped."""


@dataclass(frozen=True, eq=False)
class WatchedEpisode:
    """One car's result in one episode.

    number: counts the episodes since watching began, from 1.
    best: fastest lap [ticks]; None without a lap.
    ending: reason for the end; empty while the episode is running.
    replay: recording of the episode; None while it is running, or if it cannot be replayed.
    """

    number: int
    driver: str
    circuit: str
    reward: float
    laps: int
    best: int | None
    ending: str
    replay: Replay | None


def watched_episode(state: EpisodeState, number: int, ending: str = "") -> WatchedEpisode:
    """Describe an episode; `ending` counts unless the simulation ended it."""
    best, ending = state.best, state.ending or ending
    return WatchedEpisode(
        number,
        state.driver,
        state.circuit,
        state.reward,
        len(state.laps),
        best.ticks if best else None,
        ending,
        state.replay() if ending else None,
    )


MAX_ROWS = 6
"""Rows of the table, newest at the bottom; all running episodes are shown even if there are more."""
TABLE_WIDTH, ROW_HEIGHT = 460, 21
"""Size at scale 1 [px]."""
MIN_DRIVER_WIDTH, COLUMN_GAP = 90, 12
"""Least width of the driver's column, and distance between columns, at scale 1 [px]."""
TITLES = ("#", mark("driver"), mark("reward"), mark("laps"), mark("best"), mark("ended"))
DRIVER, LEFT_ALIGNED = 1, (1, 5)
"""Index of the column with the driver, which is as wide as there is room, and those that are aligned to the left."""


class EpisodeTable:
    """Table over the picture, redrawn only when an episode was added or has changed."""

    def __init__(self) -> None:
        self._drawn: tuple[object, ...] = ()
        self._panel: pygame.Surface | None = None
        self.drivers: tuple[str, ...] = ()
        """Drivers in the rows drawn last, from top to bottom."""

    def draw(
        self,
        surface: pygame.Surface,
        theme: Theme,
        ended: Sequence[WatchedEpisode],
        running: Sequence[WatchedEpisode],
        top: int,
    ) -> pygame.Rect:
        """Draw the last ended and all running episodes in the centre, below `top` [px]; returns the covered area."""
        room = min(max(0, MAX_ROWS - len(running)), len(ended))
        rows = [*ended[len(ended) - room :], *running]
        free = surface.get_width() - 2 * round(surface.get_width() * 0.3)
        theme = theme.fitting(lambda smaller: smaller.px(TABLE_WIDTH) <= free)
        width = min(theme.px(TABLE_WIDTH), free)
        key = (theme, width, tuple((row.number, row.driver, _table_cells(row)) for row in rows))
        if key != self._drawn or self._panel is None:
            self._drawn, self._panel = key, _panel(theme, width, rows, len(running))
            self.drivers = tuple(row.driver for row in rows)
        x = (surface.get_width() - width) // 2
        return surface.blit(self._panel, (x, top + theme.px(MARGIN)))


def _table_cells(row: WatchedEpisode) -> tuple[str, ...]:
    return (f"{row.reward:.2f}", str(row.laps), _best_text(row), _(row.ending) if row.ending else _("running"))


def _best_text(episode: WatchedEpisode) -> str:
    return NO_TIME if episode.best is None else lap_time(episode.best)


def _panel(theme: Theme, width: int, rows: Sequence[WatchedEpisode], running: int) -> pygame.Surface:
    titles = [_(title) for title in TITLES]
    table = [titles, *([str(row.number), row.driver, *_table_cells(row)] for row in rows)]
    height = theme.px(ROW_HEIGHT)
    panel = theme.panel(width, height * len(table) + theme.px(PADDING))

    longest = [max(cells, key=len) for cells in zip(*table, strict=True)]

    def needed(theme: Theme) -> list[int]:
        widths = [theme.width(cell, TEXT_SMALL) for cell in longest]
        widths[DRIVER] = theme.px(MIN_DRIVER_WIDTH)
        return widths

    room = width - 2 * theme.px(PADDING)
    smaller = theme.fitting(lambda each: sum(needed(each)) + each.px(COLUMN_GAP) * (len(titles) - 1) <= room)
    widths, gap = needed(smaller), smaller.px(COLUMN_GAP)
    widths[DRIVER] += room - sum(widths) - gap * (len(widths) - 1)
    for number, cells in enumerate(table):
        is_running = number > len(rows) - running
        x, middle = theme.px(PADDING), theme.px(PADDING) // 2 + number * height + height // 2
        for column, (cell, space) in enumerate(zip(cells, widths, strict=True)):
            shown = smaller.truncate(cell, space, TEXT_SMALL) if column == DRIVER else cell
            text = smaller.text(shown, TEXT_SMALL, theme.palette.text if is_running else theme.palette.faint)
            left = x if column in LEFT_ALIGNED else x + space - text.get_width()
            panel.blit(text, (left, middle - text.get_height() // 2))
            x += space + gap
    return panel


LIST_COLUMNS = (
    Column(mark("driver"), 0.28),
    Column(mark("episode"), 0.09, right=True),
    Column(mark("circuit"), 0.2),
    Column(mark("reward"), 0.11, right=True),
    Column(mark("laps"), 0.07, right=True),
    Column(mark("best"), 0.1, right=True),
    Column(mark("ended"), 0.15),
)


class EpisodesScreen(Screen):
    """List of all watched episodes, newest first."""

    def __init__(self, app: AppContext, episodes: Sequence[WatchedEpisode]) -> None:
        super().__init__(app, ListView(_("Episodes"), columns=LIST_COLUMNS, width=0))
        self._episodes = list(episodes)[::-1]
        self.list.items = [
            Row(e.driver, cells=_list_cells(e), on_press=partial(self._watch, e)) for e in self._episodes
        ]
        if not self._episodes:
            self.list.items = [Button(_("No episodes yet"), enabled=False)]

    def keys(self) -> Sequence[Key]:
        save = self.app.key_label(Command.KEEP), _("save replay")
        return (*translated(MENU_KEYS[:1]), ("Enter", _("watch again")), save, ("Esc", _("back")))

    def handle(self, intent: Intent) -> None:
        if intent == Command.KEEP and self._episodes:
            save_to_replays(self.app, self._episodes[self.list.chosen].replay)
        else:
            super().handle(intent)

    def _watch(self, episode: WatchedEpisode) -> None:
        replay = episode.replay
        if replay is not None:
            open_safely(self.app, lambda: ReplayScreen(self.app, [trace_replay(replay)]))


def _list_cells(episode: WatchedEpisode) -> tuple[str, ...]:
    reward = f"{episode.reward:.3f}"
    return (str(episode.number), episode.circuit, reward, str(episode.laps), _best_text(episode), _(episode.ending))
