"""Timing panel of the followed car: lap, last, best, delta and sectors; and the gaps panel of a race."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pygame

from racer_viewer.render.overlays.panel import EDGE, ROW, Panel, PanelInput, TextPainter, blend
from racer_viewer.snapshot import Snapshot
from racer_viewer.timing import NO_TIME, SECTORS, Sector, SectorRank, Timing, lap_time, signed, signed_time
from racer_viewer.translation import _, mark
from racer_viewer.ui.theme import TEXT, TEXT_SMALL, Colour

ROWS, COMPACT_ROWS = 7, 3
"""Maximum number of listed cars."""
DOT = 4
"""Dot radius at scale 1 [px]."""


class GapsPanel(Panel):
    """Position in the race, and a row for each of the nearest cars from the one farthest ahead."""

    EVERY, PHASE = 4, 2

    def __init__(self, painter: TextPainter, rows: int) -> None:
        super().__init__(painter, 2 * EDGE + (rows + 1) * ROW - 2)
        self._rows = rows
        self.title(_("GAPS s"))
        self._figure_width = painter.number_width("+00.00")

    def draw_moving(self, board: pygame.Surface, view: PanelInput) -> None:
        snapshot, gaps = view.snapshot, view.snapshot.gaps
        ahead = sum(gap < 0.0 for number, gap in enumerate(gaps) if number != snapshot.focus)
        place = snapshot.places[snapshot.focus] if snapshot.places else ahead + 1
        self.painter.text_right(
            board,
            _("place {place} of {count}").format(place=place, count=len(gaps)),
            self.right,
            self.top,
            self.palette.text,
        )
        name_left = self.left + self.px(3.5 * DOT)
        room = self.right - self._figure_width - self.px(6) - name_left
        for row, number in enumerate(nearest(gaps, snapshot.focus, self._rows), start=1):
            look, gap, top = snapshot.styles[number], gaps[number], self.top + row * self.row
            middle = top + self.theme.line_height() // 2 - self.px(1)
            pygame.draw.aacircle(
                board, look.colour, (self.left + self.px(DOT), middle), self.px(DOT), self.px(1.5) if look.ghost else 0
            )
            self.painter.text(board, self.painter.fitted(look.name, room), name_left, top, self.palette.text)
            known = signed(gap) if math.isfinite(gap) else NO_TIME
            self.painter.number(board, known, self.right, top, self.palette.text)


def nearest(gaps: Sequence[float], focus: int, rows: int) -> list[int]:
    """Return the indices of the cars with the smallest gaps, farthest ahead first and unknown gaps last."""
    others = [number for number in range(len(gaps)) if number != focus]
    near = sorted(others, key=lambda number: _unknown_last(abs(gaps[number])))[:rows]
    return sorted(near, key=lambda number: _unknown_last(gaps[number]))


def _unknown_last(gap: float) -> float:
    return gap if math.isfinite(gap) else math.inf


HEIGHT, COMPACT_HEIGHT = 132, 66
LAP_TIME_SIZE = 44
"""Text height of the lap time at scale 1 [px]."""
FIELDS_TOP, CELLS_TOP, CELL_HEIGHT, CELL_GAP = 44, 86, 36, 5
"""Top of last, best and delta; top, height and gap of the sector cells, at scale 1 [px]."""
CELL_TINT = 0.28
"""Share of the good or bad colour in the background of a cell."""
PURPLE: Colour = (196, 124, 255)
"""Colour of the fastest sector of all cars."""
FIELDS = (mark("LAST s"), mark("BEST s"), mark("DELTA s"))


class TimingPanel(Panel):
    """Lap time, reference times and sectors. The compact form has lap, time and delta only."""

    EVERY, PHASE = 2, 0

    def __init__(self, painter: TextPainter, compact: bool) -> None:
        super().__init__(painter, COMPACT_HEIGHT if compact else HEIGHT)
        self._compact = compact
        self._cell_gap = self.px(CELL_GAP)
        self._cell_width = (self.right - self.left - (SECTORS - 1) * self._cell_gap) // SECTORS
        self._ends = [
            self.left + (number + 1) * self._cell_width + number * self._cell_gap for number in range(SECTORS - 1)
        ] + [self.right]
        self._baseline = self.top + self.theme.font(LAP_TIME_SIZE).get_ascent()
        self.painter.text(self.plate, _("LAP"), self.left, self._on_baseline(TEXT_SMALL), self.palette.faint)
        unit_left = self.right - self.theme.width("s", TEXT_SMALL)
        self.painter.text(self.plate, "s", unit_left, self._on_baseline(TEXT_SMALL), self.palette.faint)
        self._time_end = unit_left - self.px(3)
        if compact:
            self.painter.text(self.plate, _(FIELDS[-1]), self.left, self._row(0), self.palette.faint)
        else:
            for label, end in zip(FIELDS, self._ends, strict=True):
                self.painter.text_right(self.plate, _(label), end, self._row(0), self.palette.faint)
        self._empty = self.plate
        self._shown: tuple[object, ...] = ()

    def prepare(self, view: PanelInput) -> None:
        """Redraw everything but the lap time, which changes at gates only."""
        timing = _timing(view.snapshot)
        shown = timing.lap, timing.last, timing.best, timing.delta, timing.sectors
        if shown != self._shown:
            self._shown = shown
            self.plate = self._empty.copy()
            self._show(timing)

    def draw_moving(self, board: pygame.Surface, view: PanelInput) -> None:
        timing = _timing(view.snapshot)
        colour = self.palette.bad if timing.fault else self.palette.text
        self.painter.number(board, lap_time(timing.lap_ticks), self._time_end, self.top, colour, LAP_TIME_SIZE)

    def _show(self, timing: Timing) -> None:
        """Draw lap, last, best, delta and sectors onto the plate."""
        lap_end = self.left + self.theme.width(_("LAP") + " ", TEXT_SMALL) + self.painter.number_width("00", TEXT)
        lap_top = self._on_baseline(TEXT)
        self.painter.number(self.plate, str(timing.lap), lap_end, lap_top, self.palette.text, TEXT)
        delta = NO_TIME if timing.delta is None else signed_time(timing.delta)
        top = self._row(0) if self._compact else self._row(1)
        self.painter.number(self.plate, delta, self.right, top, self._difference_colour(timing.delta), TEXT)
        if self._compact:
            return
        for ticks, end in zip((timing.last, timing.best), self._ends, strict=False):
            known = NO_TIME if ticks is None else lap_time(ticks)
            colour = self.palette.faint if ticks is None else self.palette.text
            self.painter.number(self.plate, known, end, top, colour, TEXT)
        for number, end in enumerate(self._ends):
            sector = timing.sectors[number] if number < len(timing.sectors) else Sector(None, None)
            self._show_sector(number, end, sector)

    def _show_sector(self, number: int, end: int, sector: Sector) -> None:
        """Draw a sector's time and its difference to the best."""
        cell = pygame.Rect(end - self._cell_width, self.px(CELLS_TOP), self._cell_width, self.px(CELL_HEIGHT))
        difference = None if sector.now is None or sector.best is None else sector.now - sector.best
        colour = self._sector_colour(sector.rank, difference)
        ranked = difference is not None or sector.rank is not SectorRank.NONE
        ground = blend(self.palette.panel[:3], colour, CELL_TINT) if ranked else self.palette.line
        pygame.draw.rect(self.plate, ground, cell, border_radius=self.px(4))
        inset, upper = self.px(6), cell.top + self.px(5)
        self.painter.text(self.plate, f"S{number + 1}", cell.left + inset, upper, self.palette.faint)
        time = NO_TIME if sector.now is None else lap_time(sector.now)
        shade = self.palette.faint if sector.now is None else self.palette.text
        self.painter.number(self.plate, time, cell.right - inset, upper, shade)
        if difference is not None:
            self.painter.number(self.plate, signed_time(difference), cell.right - inset, upper + self.px(14), colour)

    def _sector_colour(self, rank: SectorRank, difference: int | None) -> Colour:
        """Return purple for the fastest of all, green for the own best, yellow for a slower sector."""
        ranks = {
            SectorRank.FASTEST: PURPLE,
            SectorRank.BEST: self.palette.good,
            SectorRank.SLOWER: self.palette.accent,
        }
        return ranks.get(rank) or self._difference_colour(difference)

    def _difference_colour(self, difference: int | None) -> Colour:
        """Return the colour of a difference; equal to the best counts as good."""
        if difference is None:
            return self.palette.faint
        return self.palette.bad if difference > 0 else self.palette.good

    def _row(self, number: int) -> int:
        return self.px(FIELDS_TOP) + number * self.px(15)

    def _on_baseline(self, size: int) -> int:
        """Return the top of text of this size on the baseline of the lap time."""
        return self._baseline - self.theme.font(size).get_ascent()


def _timing(snapshot: Snapshot) -> Timing:
    """Return the snapshot's timing, or the car's own lap counters if it has none."""
    if snapshot.timing is not None:
        return snapshot.timing
    car = snapshot.car
    last, best = int(car["last_lap_ticks"]), int(car["best_lap_ticks"])
    return Timing(int(car["lap"]), int(car["lap_ticks"]), last or None, best or None, None)
