"""Sharing of a circuit: its file, and a picture of it with its figures and its record."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pygame

from racer_env.engine import Circuit, load_circuit
from racer_env.errors import CircuitError
from racer_viewer.circuits.library import write_circuit
from racer_viewer.circuits.preview import preview
from racer_viewer.modes.circuits import MEDALS
from racer_viewer.modes.gallery.facts import GalleryCircuit, GalleryFacts, cropped_picture
from racer_viewer.paths import atomic_write, free_path
from racer_viewer.plain_text import plain_line
from racer_viewer.replays.records import medal_ticks, medals_of
from racer_viewer.timing import lap_time
from racer_viewer.translation import _
from racer_viewer.ui.theme import TEXT, TEXT_HUGE, TEXT_LARGE, Theme

if TYPE_CHECKING:
    from racer_viewer.modes.screen import AppContext

EXPORTS = "exports"
"""Folder in the data folder that models are exported to, too."""
CARD_SIZE = (1200, 675)
"""Size of the picture [px]."""
CARD_SCALE = 1.6
"""Size of its letters, as a scale of the theme."""
EDGE = 48
"""Margin of the picture [px]."""
BACKGROUND, PANEL = (20, 28, 25), (12, 17, 16)


def share_circuit(app: AppContext, circuit: GalleryCircuit, facts: GalleryFacts) -> tuple[Path, ...]:
    """Write the file of a circuit, and a card if its road can be built, to the folder of exports; return the paths."""
    definition = circuit.draft().to_circuit()
    stem = re.sub(r"[^\w-]+", "-", plain_line(circuit.name)).strip("-") or "circuit"
    path = free_path(app.data / EXPORTS / f"{stem}.json")
    write_circuit(definition, path)
    try:
        card = draw_card(app.theme, circuit, definition, facts)
    except CircuitError:
        return (path,)
    if card is None:
        return (path,)
    picture = path.with_suffix(".png")
    with atomic_write(picture) as temporary:
        pygame.image.save(card, temporary)
    return path, picture


def draw_card(theme: Theme, circuit: GalleryCircuit, definition: Circuit, facts: GalleryFacts) -> pygame.Surface | None:
    """Return a picture of a circuit with its figures, its record and its medals; None if it has no road."""
    theme = Theme(CARD_SCALE, theme.palette)
    track = load_circuit(circuit.source) if circuit.drivable else preview(circuit.draft()).track
    if track is None:
        return None
    card = pygame.Surface(CARD_SIZE)
    card.fill(BACKGROUND)
    width, height = CARD_SIZE
    place = pygame.Rect(EDGE, EDGE, width * 58 // 100 - EDGE, height - 2 * EDGE)
    road = cropped_picture(track, place.size)
    card.blit(road, road.get_rect(center=place.center))
    side = pygame.Rect(place.right + EDGE, 0, width - place.right - EDGE, height)
    pygame.draw.rect(card, PANEL, side)
    x, y, room = side.x + EDGE, EDGE, side.width - 2 * EDGE
    mark = theme.text("RACER", TEXT, theme.palette.accent)
    card.blit(mark, (x, y))
    y += mark.get_height() + theme.px(18)
    for line in theme.fitting(lambda each: each.width(circuit.name, TEXT_HUGE) <= 2 * room).wrapped(circuit.name, room):
        smaller = theme.fitting(lambda each, line=line: each.width(line, TEXT_LARGE) <= room, 0.4)  # type: ignore[misc]
        title = smaller.text(smaller.truncate(line, room, TEXT_LARGE), TEXT_LARGE)
        card.blit(title, (x, y))
        y += title.get_height()
    y += theme.px(14)
    for line, colour in _lines(facts, theme):
        smaller = theme.fitting(lambda each, line=line: each.width(line) <= room, 0.4)  # type: ignore[misc]
        text = smaller.text(smaller.truncate(line, room), TEXT, colour)
        card.blit(text, (x, y))
        y += theme.line_height() + theme.px(8)
    _draw_medals(card, theme, definition, facts, x, y + theme.px(12))
    return card


def _lines(facts: GalleryFacts, theme: Theme) -> list[tuple[str, tuple[int, int, int]]]:
    """Return the lines of a card with their colours."""
    palette, lines = theme.palette, list[tuple[str, tuple[int, int, int]]]()
    if facts.facts is not None:
        lines.append((_("{length:,.0f} units").format(length=facts.facts.length), palette.text))
        lines.append((_("tightest corner {radius:.0f}").format(radius=facts.facts.tightest_radius), palette.text))
    if facts.record is not None:
        lap = lap_time(facts.record.best_lap)
        lines.append((_("record {lap} s ({driver})").format(lap=lap, driver=facts.record.driver), palette.good))
    if facts.agent is not None:
        name, seconds = facts.agent
        lines.append((_("best agent: {name}, {seconds:.2f} s").format(name=name, seconds=seconds), palette.faint))
    return lines


def _draw_medals(card: pygame.Surface, theme: Theme, circuit: Circuit, facts: GalleryFacts, x: int, y: int) -> None:
    """Draw the times of the medals, filled if they were won."""
    for name, colour in MEDALS.items():
        seconds = getattr(medals_of(circuit), name, None)
        if seconds is None:
            continue
        won = facts.record is not None and facts.record.best_lap <= (medal_ticks(circuit, name) or 0)
        text = theme.text(f"{seconds:.2f} s", TEXT, theme.palette.text if won else theme.palette.faint)
        centre = x + theme.px(8), y + text.get_height() // 2
        pygame.draw.aacircle(card, colour, centre, theme.px(7), 0 if won else theme.px(2))
        card.blit(text, (x + theme.px(24), y))
        y += text.get_height() + theme.px(6)
