"""The table of episodes, over the picture between the panels."""

from __future__ import annotations

from collections.abc import Sequence

import pygame

from racer_viewer.modes.episodes import Episode
from racer_viewer.render.overlays import lap_time
from racer_viewer.ui.theme import MARGIN, PADDING, TEXT_SMALL, Colour, Theme

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
        text = theme.text(theme.fitting(cell, end - begin, TEXT_SMALL), TEXT_SMALL, colour)
        at_left = number in (1, len(cells) - 1)
        panel.blit(text, (begin if at_left else end - text.get_width(), y + (theme.px(ROW) - text.get_height()) // 2))
