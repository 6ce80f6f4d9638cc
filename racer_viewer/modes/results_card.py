"""Card beside the list of the results: best lap with its medal, podium and standings, laps, and the reward.

Where there is room it has two columns; it shrinks until everything but the reward fits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import pygame

from racer_env.engine import component_colours
from racer_viewer.modes.circuits import MEDAL_NAMES, MEDALS
from racer_viewer.modes.race import Tick
from racer_viewer.modes.standings import RaceResult
from racer_viewer.render.car import Pose, car_picture
from racer_viewer.timing import NO_TIME, lap_time
from racer_viewer.translation import _, mark
from racer_viewer.ui.paint import darker, draw_medal
from racer_viewer.ui.theme import PADDING, TEXT, TEXT_LARGE, TEXT_SMALL, Colour, Theme

if TYPE_CHECKING:
    from racer_viewer.replays.records import Medal

NEW_RECORD = mark("new record on this circuit")
MIN_WIDTH, TWO_COLUMNS, MAX_WIDTH = 400, 720, 900
"""Smallest width of the card, width from which it has two columns, and its largest width, at scale 1 [px]."""
MIN_SHRINK = 0.34
"""Smallest part of the scale to which letters shrink in a narrow window."""
BORDER, COLUMN_GAP = 20, 36
"""Distance of the contents from the card's edge, and between its columns, at scale 1 [px]."""
MAX_LAPS_SHOWN = 8
TIME_SIZE, MEDAL_RADIUS = TEXT_LARGE + 22, 36
"""Font size of the best lap, and radius of its medal, at scale 1 [px]."""
PODIUM = (1, 0, 2)
"""Places on the podium from left to right, from 0."""
PODIUM_HEIGHTS = (58, 40, 26)
"""Heights of the steps of the podium by place, at scale 1 [px]."""
CAR_SCALE, CAR_HEIGHT = 11.0, 50
"""Scale of the cars on the podium [px per unit], and the height that one needs, at scale 1 [px]."""
POP_TICKS, RISE_TICKS, RISE_DELAY = 24, 30, 10
"""Time in which the medal appears, in which a step of the podium rises, and between two steps [ticks]."""


@dataclass(frozen=True)
class ResultsCard:
    """Contents of the card.

    last: last tick of the race.
    results: all cars in their order.
    outcome: text of the event that the race belongs to, and whether it was won; empty without one.
    medal: medal of the best clean lap.
    goal: time that is missing to the next medal.
    """

    last: Tick
    results: Sequence[RaceResult]
    outcome: str
    won: bool
    medal: Medal | None
    goal: str
    is_record: bool

    def draw(self, surface: pygame.Surface, theme: Theme, room: pygame.Rect, ticks: int) -> None:
        """Draw the card into an area, in smaller letters where it would not fit.

        ticks: time since the results are shown, for the medal and the podium to appear [ticks].
        """
        if room.width < MIN_SHRINK * theme.px(MIN_WIDTH):
            return
        room = pygame.Rect(room.x, room.y, min(room.width, theme.px(MAX_WIDTH)), room.height)
        parts, theme = self._fitting(theme, room.size)
        room.height = min(room.height, self._height(theme, room.width, parts))
        surface.blit(_plate(theme, room.size), room)
        inner = room.inflate(-2 * theme.px(BORDER), -2 * theme.px(BORDER))
        y = self._draw_header(surface, theme, inner, ticks)
        columns = self._columns(theme, inner.width)
        ends = [y] * len(columns)
        for number, part in enumerate(parts):
            column = min(number, len(columns) - 1)
            left, width = columns[column]
            area = pygame.Rect(inner.x + left, ends[column], width, self._part_height(theme, part))
            if part == "standings":
                self._draw_podium(surface, theme, area, ticks)
            if part in ("standings", "places"):
                self._draw_places(surface, theme, area)
            elif part == "laps":
                self._draw_laps(surface, theme, area)
            elif part == "reward":
                self._draw_reward(surface, theme, area)
            ends[column] = area.bottom + theme.px(BORDER)

    def _fitting(self, theme: Theme, size: tuple[int, int]) -> tuple[Sequence[str], Theme]:
        """Return the parts below the header that fit, and the theme in which they do.

        The reward is left out where letters would have to shrink for it, laps and podium where that is not enough.
        """
        laps = ["laps"] * bool(self.last.laps)
        choices = [["standings", *laps], ["standings"], ["places"]] if len(self.results) > 1 else [laps]

        def height(theme: Theme, parts: Sequence[str]) -> int:
            return self._height(theme, size[0], parts)

        def fitting(parts: Sequence[str]) -> Theme:
            return theme.fitting(
                lambda each: each.px(MIN_WIDTH) <= size[0] and height(each, parts) <= size[1], MIN_SHRINK
            )

        parts = next((each for each in choices if height(fitting(each), each) <= size[1]), choices[-1])
        theme = fitting(parts)
        complete = [*parts, "reward"]
        return (complete if height(theme, complete) <= size[1] else parts), theme

    def _columns(self, theme: Theme, width: int) -> list[tuple[int, int]]:
        """Return the left edge and the width of each column in the card [px]."""
        if width < theme.px(TWO_COLUMNS):
            return [(0, width)]
        half = (width - theme.px(COLUMN_GAP)) // 2
        return [(0, half), (width - half, half)]

    def _height(self, theme: Theme, width: int, parts: Sequence[str]) -> int:
        """Return the height of the card with these parts [px]: the first at the left, all others at the right."""
        inner = width - 2 * theme.px(BORDER)
        heights = [0] * len(self._columns(theme, inner))
        for number, part in enumerate(parts):
            heights[min(number, len(heights) - 1)] += self._part_height(theme, part) + theme.px(BORDER)
        return self._header_height(theme, inner) + max(heights)

    def _part_height(self, theme: Theme, part: str) -> int:
        row = _row(theme)
        if part in ("standings", "places"):
            podium = theme.px(PODIUM_HEIGHTS[0] + CAR_HEIGHT) + row + theme.px(PADDING)
            return (podium if part == "standings" else 0) + len(self.results) * row
        if part == "laps":
            return _title_height(theme) + min(MAX_LAPS_SHOWN, len(self.last.laps)) * row
        components = len(self.last.snapshot.reward_components)
        return _title_height(theme) + (components + 1) * (theme.line_height(TEXT_SMALL) + theme.px(3))

    def _header_height(self, theme: Theme, width: int) -> int:
        lines = len(theme.wrapped(self.outcome, width)) * _row(theme) + theme.px(PADDING) if self.outcome else 0
        below = len(self._words(theme, width)) * _row(theme)
        return theme.px(BORDER) + lines + theme.line_height(TIME_SIZE) + theme.px(4) + below + theme.px(BORDER)

    def _words(self, theme: Theme, width: int) -> list[list[tuple[str, Colour]]]:
        """Return the lines below the best lap: what it is worth, and the time to the next medal."""
        palette, shown = theme.palette, self.last.followed.shown_lap
        words: list[tuple[str, Colour]] = []
        if self.is_record:
            words.append((_(NEW_RECORD), palette.good))
        elif shown is not None and not shown.clean:
            words.append((_("invalid: {fault}").format(fault=shown.fault), palette.bad))
        elif shown is not None:
            words.append((_("best lap of this run"), palette.faint))
        if self.goal:
            words.append((self.goal, palette.accent))
        beside = width - (2 * theme.px(MEDAL_RADIUS) + theme.px(BORDER) if self.medal else 0)
        both = sum(theme.width(text) for text, _colour in words) + theme.px(18)
        return [words] if both <= beside else [[word] for word in words]

    def _draw_header(self, surface: pygame.Surface, theme: Theme, area: pygame.Rect, ticks: int) -> int:
        """Draw whether the event was won, the best lap and its medal; return where that ends [px]."""
        palette, shown, y = theme.palette, self.last.followed.shown_lap, area.y
        if self.outcome:
            for line in theme.wrapped(self.outcome, area.width):
                surface.blit(theme.text(line, TEXT, palette.good if self.won else palette.accent), (area.x, y))
                y += _row(theme)
            y += theme.px(PADDING)
        if shown is None:
            figure = theme.text(_("No lap finished"), TEXT_LARGE, palette.faint)
        else:
            colour = palette.text if shown.clean else palette.bad
            figure = theme.text(f"{lap_time(shown.ticks)} s", TIME_SIZE, colour)
        lines = self._words(theme, area.width)
        x, height = area.x, theme.line_height(TIME_SIZE) + theme.px(4) + len(lines) * _row(theme)
        if self.medal:
            radius = theme.px(MEDAL_RADIUS)
            draw_medal(surface, MEDALS[self.medal], (x + radius, y + height // 2), round(radius * _popped(ticks)))
            x += 2 * radius + theme.px(BORDER)
        surface.blit(figure, figure.get_rect(bottomleft=(x, y + theme.line_height(TIME_SIZE))))
        if self.medal:
            label = theme.text(_(MEDAL_NAMES[self.medal]), TEXT_LARGE, MEDALS[self.medal])
            left = x + figure.get_width() + theme.px(14)
            if left + label.get_width() <= area.right:
                ascents = theme.font(TIME_SIZE).get_ascent() - theme.font(TEXT_LARGE).get_ascent()
                surface.blit(label, (left, y + ascents))
        y += theme.line_height(TIME_SIZE) + theme.px(4)
        for words in lines:
            left = x
            for text, ink in words:
                note = theme.text(text, TEXT, ink)
                surface.blit(note, (left, y))
                left += note.get_width() + theme.px(18)
            y += _row(theme)
        rule = pygame.Rect(area.x, y + theme.px(BORDER) // 2, area.width, theme.px(1))
        pygame.draw.rect(surface, palette.line, rule)
        return y + theme.px(BORDER)

    def _draw_places(self, surface: pygame.Surface, theme: Theme, area: pygame.Rect) -> None:
        """Draw a row for each car at the bottom of an area: place, name, gap and best lap."""
        row = _row(theme)
        y = area.bottom - len(self.results) * row
        name_x, best_end = area.x + theme.px(26), area.right
        gap_end = area.right - theme.px(92)
        for result in self.results:
            colour = theme.palette.accent if result.is_player else theme.palette.text
            if result.is_player:
                bar = pygame.Rect(area.x - theme.px(8), y - theme.px(2), area.width + theme.px(16), row)
                pygame.draw.rect(surface, theme.palette.line, bar, border_radius=theme.px(5))
            gap = theme.text(result.gap, TEXT, colour)
            name = theme.truncate(result.style.name, gap_end - gap.get_width() - name_x - theme.px(30))
            dot = name_x + theme.px(5), y + theme.line_height() // 2
            pygame.draw.aacircle(surface, result.style.colour, dot, theme.px(5))
            surface.blit(theme.text(str(result.place), TEXT, colour), (area.x, y))
            surface.blit(theme.text(name, TEXT, colour), (name_x + theme.px(18), y))
            surface.blit(gap, (gap_end - gap.get_width(), y))
            best = theme.text(result.best.text if result.best else NO_TIME, TEXT, theme.palette.faint)
            surface.blit(best, (best_end - best.get_width(), y))
            y += row

    def _draw_podium(self, surface: pygame.Surface, theme: Theme, area: pygame.Rect, ticks: int) -> None:
        """Draw three steps that rise one after the other, with the first three cars and their names below."""
        step = area.width // 3
        base = area.y + theme.px(PODIUM_HEIGHTS[0] + CAR_HEIGHT)
        colours = [MEDALS[medal] for medal in ("gold", "silver", "bronze")]
        for column, place in enumerate(PODIUM):
            if place >= len(self.results):
                continue
            result = self.results[place]
            height = max(1, round(theme.px(PODIUM_HEIGHTS[place]) * _risen(ticks - (2 - place) * RISE_DELAY)))
            block = pygame.Rect(area.x + column * step, base - height, step - theme.px(4), height)
            pygame.draw.rect(surface, darker(colours[place]), block, border_radius=theme.px(4))
            pygame.draw.rect(surface, colours[place], (*block.topleft, block.width, min(height, theme.px(4))))
            if height >= theme.line_height():
                number = theme.text(str(place + 1), TEXT, theme.palette.on_accent)
                surface.blit(number, number.get_rect(center=block.center))
            car = _podium_car(theme.scale, result.style.colour)
            place_of_car = car.get_rect(midbottom=(block.centerx, block.top + theme.px(5)))
            surface.blit(car, place_of_car, special_flags=pygame.BLEND_PREMULTIPLIED)
            colour = theme.palette.accent if result.is_player else theme.palette.text
            name = theme.text(theme.truncate(result.style.name, block.width, TEXT), TEXT, colour)
            surface.blit(name, name.get_rect(midtop=(block.centerx, base + theme.px(3))))
        pygame.draw.rect(surface, theme.palette.line, (area.x, base, area.width - theme.px(4), theme.px(2)))

    def _draw_laps(self, surface: pygame.Surface, theme: Theme, area: pygame.Rect) -> None:
        """Draw a row for each of the last laps: its time and its sectors, or why it does not count."""
        laps, palette, y = self.last.laps, theme.palette, area.y
        best = self.last.followed.best
        columns = [area.x, *(area.x + round(area.width * share) for share in (0.13, 0.38, 0.62, 0.83))]
        for column, name in zip(columns, (_("lap"), _("time"), _("sector 1"), "2", "3"), strict=True):
            surface.blit(theme.text(name, TEXT_SMALL, palette.faint), (column, y))
        y += _title_height(theme)
        first = max(0, len(laps) - MAX_LAPS_SHOWN)
        for number, lap in enumerate(laps[first:], first + 1):
            colour = palette.good if lap is best else palette.text if lap.clean else palette.faint
            cells = [str(number), lap_time(lap.ticks), *map(lap_time, lap.sectors())]
            for column, cell in zip(columns, cells if lap.clean else cells[:2], strict=False):
                surface.blit(theme.text(cell, TEXT, colour), (column, y))
            if not lap.clean:
                text, room = _("invalid: {fault}").format(fault=lap.fault), area.right - columns[2]
                smaller = theme.fitting(lambda each, text=text, room=room: each.width(text) <= room)  # type: ignore[misc]
                fault = smaller.text(smaller.truncate(text, room), TEXT, palette.bad)
                surface.blit(fault, fault.get_rect(midleft=(columns[2], y + theme.line_height() // 2)))
            y += _row(theme)

    def _draw_reward(self, surface: pygame.Surface, theme: Theme, area: pygame.Rect) -> None:
        """Draw the reward of this run by component."""
        components, y = self.last.snapshot.reward_components, area.y
        totals = self.last.followed.totals[: len(components)]
        surface.blit(theme.text(_("reward of this run"), TEXT_SMALL, theme.palette.faint), (area.x, y))
        y += _title_height(theme)
        largest = max(1e-9, *(abs(float(value)) for value in totals))
        left, right = area.x + theme.px(120), area.right - theme.px(70)
        colours = component_colours(theme.palette.colour_blind, components)
        for component, value, colour in zip(components, totals, colours, strict=True):
            label = theme.truncate(_(component.label), left - area.x - theme.px(6), TEXT_SMALL)
            surface.blit(theme.text(label, TEXT_SMALL), (area.x, y))
            length = max(1, round(max(0, right - left) * abs(float(value)) / largest))
            pygame.draw.rect(surface, colour, (left, y + theme.px(2), length, theme.px(9)), border_radius=theme.px(2))
            figure = theme.text(f"{value:+.3f}", TEXT_SMALL)
            surface.blit(figure, (area.right - figure.get_width(), y))
            y += theme.line_height(TEXT_SMALL) + theme.px(3)
        total = theme.text(_("total {reward:+.3f}").format(reward=float(totals.sum())), TEXT_SMALL)
        surface.blit(total, (area.right - total.get_width(), y))


def _row(theme: Theme) -> int:
    return theme.line_height() + theme.px(5)


def _title_height(theme: Theme) -> int:
    return theme.line_height(TEXT_SMALL) + theme.px(6)


def _popped(ticks: int) -> float:
    """Return the size of a medal that appears: it grows a little beyond its size and swings back."""
    share = min(1.0, max(0.0, ticks / POP_TICKS))
    return 1.0 - math.cos(share * 1.5 * math.pi) * (1.0 - share)


def _risen(ticks: int) -> float:
    """Return the share of its height that a step of the podium has reached."""
    share = min(1.0, max(0.0, ticks / RISE_TICKS))
    return share * (2.0 - share)


@lru_cache(maxsize=4)
def _plate(theme: Theme, size: tuple[int, int]) -> pygame.Surface:
    return theme.panel(*size)


@lru_cache(maxsize=32)
def _podium_car(scale: float, colour: Colour) -> pygame.Surface:
    """Return a premultiplied picture of a car that points up, without an empty border."""
    picture = car_picture(Pose(math.pi / 2.0, 0.0, False, CAR_SCALE * scale), colour, shadow=False)
    return picture.subsurface(picture.get_bounding_rect())
