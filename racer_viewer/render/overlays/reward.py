"""Reward panel: the reward components in this tick, in the last seconds and in the whole episode."""

from __future__ import annotations

import math

import numpy as np
import pygame

from racer_env.engine import REWARD_COMPONENTS, Component, component_colours
from racer_viewer.render.overlays.panel import (
    EDGE,
    ROW,
    SECONDS,
    TICKS,
    Floats,
    History,
    Panel,
    PanelInput,
    StableAxis,
    TextPainter,
    blend,
    fill_signed_bar,
)
from racer_viewer.timing import signed
from racer_viewer.translation import _, mark
from racer_viewer.ui.theme import TEXT_SMALL, Colour

LABELS = (
    mark("progress"), mark("speed"), mark("wall"), mark("off track"), mark("backward"), mark("stillness"),
    mark("total"),
)  # fmt: skip
"""Labels of the engine's components, collected here for translation."""
TICKS_PER_COLUMN = 4
COLUMNS = TICKS // TICKS_PER_COLUMN
GRAPH_HEIGHT = 54
LABEL_WIDTH, SWATCH_WIDTH, LABEL_GAP, SUM_WIDTH = 80, 13, 4, 56
"""Space left and right of the bars, at scale 1 [px]."""
MIN_REACH = 1e-4
"""Smallest reach of the axis, reward per tick."""


def panel_height(rows: int, compact: bool) -> int:
    """Return the height of the panel of so many components at scale 1 [px]."""
    height = 2 * EDGE + (rows + 2) * ROW + 2
    return height if compact else height + GRAPH_HEIGHT + 6


class RewardPanel(Panel):
    """Bars and a stacked graph on one axis with labelled ends. The compact form has no graph.

    rows: number of components.
    """

    EVERY, PHASE = 3, 2

    def __init__(self, painter: TextPainter, compact: bool, rows: int = len(REWARD_COMPONENTS)) -> None:
        super().__init__(painter, panel_height(rows, compact))
        self.axis = StableAxis(MIN_REACH)
        left, width = self.left + self.px(LABEL_WIDTH), self.right - self.left - self.px(LABEL_WIDTH + SUM_WIDTH)
        self.bars = [self.bar_in_row(left, self._row_top(row), width // 2 * 2) for row in range(rows + 1)]
        """Bars of the components, then of the total; the middle is 0."""
        self.graph = None if compact else self._graph_frame()
        """Area of the stacked graph; its middle is 0."""
        self._rows = rows
        self._blank = self.plate.copy()
        self._components: tuple[Component, ...] = ()
        self._colours: tuple[Colour, ...] = ()

    def prepare(self, view: PanelInput) -> None:
        """Draw the names of the components again if they have changed."""
        components = view.snapshot.reward_components
        if components == self._components:
            return
        self._components, self._colours = components, component_colours(self.palette.colour_blind, components)
        self.plate = self._blank.copy()
        self.title(_("REWARD"), _("sum"))
        names = (*(_(each.label) for each in components), _("total"))
        for row, (name, bar) in enumerate(zip(names, self.bars, strict=True)):
            if row < self._rows:
                swatch = pygame.Rect(self.left, bar.top, self.bar_height, self.bar_height)
                pygame.draw.rect(self.plate, self._colours[row], swatch, border_radius=self.px(2))
            begin, room = self.left + self.px(SWATCH_WIDTH), self.px(LABEL_WIDTH - SWATCH_WIDTH - LABEL_GAP)
            self.painter.label(self.plate, name, begin, self._row_top(row), room, self.palette.text)
            self.groove(bar)
        first, last = self.bars[0], self.bars[-1]
        self.plate.fill(self.palette.faint, (first.centerx, first.top, 1, last.bottom - first.top))

    def draw_moving(self, board: pygame.Surface, view: PanelInput) -> None:
        now = view.snapshot.car["components"][: self._rows]
        parts = now.tolist()
        columns = stacked_columns(view.history)[:, : self._rows]
        reach = self.axis.cover(_stacked_reach(np.vstack([columns, now[None]])))
        digits = max(0, -math.floor(math.log10(reach)))
        label = _("tick") + f" ±{reach:.{digits}f}"
        drawn = self.theme.text(label, TEXT_SMALL, self.palette.faint)
        board.blit(drawn, (self.bars[0].centerx - drawn.get_width() // 2, self.top))
        totals = view.snapshot.totals[: self._rows].tolist()
        for row, (part, total) in enumerate(zip(parts, totals, strict=True)):
            fill_signed_bar(board, self.bars[row], part / reach, self._colours[row])
            self._draw_sum(board, row, total)
        fill_signed_bar(board, self.bars[-1], sum(parts) / reach, self.palette.text)
        self._draw_sum(board, self._rows, sum(totals))
        if self.graph is not None:
            self._draw_graph(board, self.graph, columns / reach)

    def _draw_sum(self, board: pygame.Surface, row: int, total: float) -> None:
        decimals = 3 if abs(total) < 100.0 else 1
        colour = self.palette.text if total else self.palette.faint
        self.painter.number(board, signed(total, decimals), self.right, self._row_top(row), colour)

    def _graph_frame(self) -> pygame.Rect:
        top = self._row_top(len(self.bars)) + self.px(3)
        height = self.px(GRAPH_HEIGHT) // 2 * 2
        frame = pygame.Rect(self.left, top, self.right - self.left, height)
        self.plate.fill(blend(self.palette.panel[:3], self.palette.line, 0.5), frame)
        self.plate.fill(self.palette.line, (frame.left, frame.centery, frame.width, 1))
        bottom = frame.bottom - self.theme.line_height(TEXT_SMALL)
        self.painter.text(self.plate, f"{SECONDS} s", frame.left + self.px(4), bottom, self.palette.faint)
        return frame

    def _draw_graph(self, board: pygame.Surface, frame: pygame.Rect, columns: Floats) -> None:
        """Stack the components, positive ones upwards and negative ones downwards."""
        edges = [frame.left + number * frame.width // COLUMNS for number in range(COLUMNS + 1)]
        half = frame.height // 2
        for sign in (1.0, -1.0):
            parts = np.maximum(columns * sign, 0.0)
            ends = np.rint(np.minimum(np.cumsum(parts, axis=1), 1.0) * half).astype(int)
            starts = np.hstack([np.zeros((COLUMNS, 1), int), ends[:, :-1]])
            there = np.nonzero(ends > starts)
            rows = zip(*(each.tolist() for each in (*there, starts[there], ends[there])), strict=True)
            for column, part, start, end in rows:
                left, top = edges[column], frame.centery - end if sign > 0.0 else frame.centery + start
                board.fill(self._colours[part], (left, top, edges[column + 1] - left, end - start))

    def _row_top(self, row: int) -> int:
        return self.top + (row + 1) * self.row + self.px(2)


def stacked_columns(history: History) -> Floats:
    """Return means over four ticks each, (90, COMPONENT_CAPACITY); the newest column may cover fewer ticks.

    Columns start at every fourth tick of the episode, so that a full column only moves and never changes.
    """
    rewards = history.rewards
    begun = history.ticks % TICKS_PER_COLUMN
    older = rewards[TICKS_PER_COLUMN - begun : TICKS - begun] if begun else rewards
    columns = older.reshape(-1, TICKS_PER_COLUMN, rewards.shape[1]).mean(axis=1)
    return np.vstack([columns, rewards[-begun:].mean(axis=0)[None]]) if begun else columns


def _stacked_reach(parts: Floats) -> float:
    """Return the largest stacked height of any row, up or down."""
    up, down = np.maximum(parts, 0.0).sum(axis=1).max(), np.minimum(parts, 0.0).sum(axis=1).min()
    return float(max(up, -down))
