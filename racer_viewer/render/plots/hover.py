"""A crosshair at the mouse, and a box with the values there."""

from __future__ import annotations

from dataclasses import dataclass

import pygame

from racer_viewer.render.overlays.panel import blend
from racer_viewer.render.plots.chart import SWATCH, TICK_TEXT, Chart
from racer_viewer.render.plots.marks import colour_of
from racer_viewer.render.plots.readings import NEAR, Reading, readings
from racer_viewer.render.plots.series import Words
from racer_viewer.ui.theme import Colour, Theme

EDGE, OFF, GAP, CORNER = 7, 14, 10, 5
"""Free within the box, between it and the mouse, between columns, and of its corners, at scale 1 [px]."""
OPACITY = 236
NAME_SHARE = 0.6
"""Of the width there is: longer names are cut."""
CROSSHAIR_SHADE = 0.55
RING, DOT = 4, 3
"""Radius of the mark at a value, with and without its dark edge, at scale 1 [px]."""


def draw_crosshair(surface: pygame.Surface, chart: Chart, place: tuple[int, int], x: float, y: float | None) -> None:
    """Of a chart whose picture is at `place`, at pixels of the chart; without y only the upright line."""
    frame = chart.axes.frame.move(place)
    colour = blend(chart.theme.palette.panel[:3], chart.theme.palette.text, CROSSHAIR_SHADE)
    surface.fill(colour, pygame.Rect(place[0] + round(x), frame.top, 1, frame.height).clip(frame))
    if y is not None:
        surface.fill(colour, pygame.Rect(frame.left, place[1] + round(y), frame.width, 1).clip(frame))


def draw_hover(
    surface: pygame.Surface, chart: Chart, place: tuple[int, int], mouse: tuple[int, int], within: pygame.Rect
) -> None:
    """Crosshair, a ring around each value, and the box with all of them, which stays within a rectangle."""
    x, y = mouse[0] - place[0], mouse[1] - place[1]
    draw_crosshair(surface, chart, place, x, y)
    found = readings(chart, x, y)
    frame, px = chart.axes.frame, chart.theme.px
    for reading in found:
        if reading.point is not None and frame.collidepoint(reading.point):
            centre = place[0] + round(reading.point[0]), place[1] + round(reading.point[1])
            pygame.draw.aacircle(surface, chart.theme.palette.panel[:3], centre, px(RING))
            pygame.draw.aacircle(surface, reading.colour, centre, px(DOT))
    box = _value_box(chart.theme, _notes(chart, x), found, within.size)
    area = box.get_rect(topleft=(mouse[0] + px(OFF), mouse[1] + px(OFF)))
    if area.right > within.right:
        area.right = mouse[0] - px(OFF)
    if area.bottom > within.bottom:
        area.bottom = mouse[1] - px(OFF)
    surface.blit(box, area.clamp(within))


def _notes(chart: Chart, x: float) -> Words:
    """How many steps, and what happened there."""
    palette = chart.theme.palette
    near = [(mark.text, colour_of(mark, palette)) for mark, at in chart.marks if abs(at - x) <= chart.theme.px(NEAR)]
    return [(f"{chart.axes.steps_at(x):,.0f} steps", palette.faint), *near]


@dataclass(frozen=True, eq=False)
class _Row:
    """Letters of a reading."""

    colour: Colour
    name: pygame.Surface
    value: pygame.Surface
    average: pygame.Surface | None

    @property
    def average_width(self) -> int:
        return self.average.get_width() if self.average else 0


def _value_box(theme: Theme, notes: Words, found: list[Reading], most: tuple[int, int]) -> pygame.Surface:
    """The notes, and below them names, values and moving averages in columns; as much as there is room for."""
    px, edge = theme.px, theme.px(EDGE)
    height = theme.line_height(TICK_TEXT) + px(1)
    room = most[0] - 2 * edge
    heads = [theme.text(theme.fitting(text, room, TICK_TEXT), TICK_TEXT, colour) for text, colour in notes]
    rows = [_row(theme, reading, room) for reading in found[: max(0, (most[1] - 2 * edge) // height - len(heads))]]
    averages = max((row.average_width for row in rows), default=0)
    right = averages + px(GAP) if averages else 0
    width = max([*(head.get_width() for head in heads), _columns_width(theme, rows) + right])
    box = _plate(theme, (min(most[0], width + 2 * edge), min(most[1], 2 * edge + height * (len(heads) + len(rows)))))
    for number, head in enumerate(heads):
        box.blit(head, (edge, edge + number * height))
    for number, row in enumerate(rows, len(heads)):
        top, end = edge + number * height, box.get_width() - edge
        swatch = pygame.Rect(edge, top + (height - px(SWATCH)) // 2, px(SWATCH), px(SWATCH))
        pygame.draw.rect(box, row.colour, swatch, border_radius=px(2))
        box.blit(row.name, (edge + px(SWATCH + 4), top))
        box.blit(row.value, (end - right - row.value.get_width(), top))
        if row.average:
            box.blit(row.average, (end - row.average_width, top))
    return box


def _row(theme: Theme, reading: Reading, room: int) -> _Row:
    name = theme.fitting(reading.name or "value", round(NAME_SHARE * room), TICK_TEXT)
    average = theme.text(f"avg {reading.average}", TICK_TEXT, theme.palette.faint) if reading.average else None
    return _Row(reading.colour, theme.text(name, TICK_TEXT), theme.text(reading.text, TICK_TEXT), average)


def _columns_width(theme: Theme, rows: list[_Row]) -> int:
    """Of names and values with what is between them."""
    if not rows:
        return 0
    names, values = max(row.name.get_width() for row in rows), max(row.value.get_width() for row in rows)
    return theme.px(SWATCH + 4) + names + theme.px(GAP) + values


def _plate(theme: Theme, size: tuple[int, int]) -> pygame.Surface:
    box = pygame.Surface(size, pygame.SRCALPHA, 32)
    pygame.draw.rect(box, (*theme.palette.panel[:3], OPACITY), box.get_rect(), border_radius=theme.px(CORNER))
    pygame.draw.rect(box, theme.palette.line, box.get_rect(), theme.px(1), border_radius=theme.px(CORNER))
    return box
