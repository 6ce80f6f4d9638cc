"""A grid of tiles with pictures, in titled sections; chosen by keyboard, mouse or gamepad."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pygame

from racer_viewer.ui.intents import Click, Command, Intent, MouseMove, Scroll
from racer_viewer.ui.theme import TEXT, TEXT_SMALL, Colour, Theme

TILE_WIDTH, PICTURE_HEIGHT = 212, 94
"""Minimum width of a tile, and height of its picture, at scale 1 [px]."""
TILE_GAP, PAD = 12, 10
"""Distance between tiles, and padding within one, at scale 1 [px]."""
TITLE_HEIGHT = 34
"""Height of a section's title at scale 1 [px]."""
MAX_LINES = 3
"""Lines of small text below the name."""
MAX_CACHED = 100
"""Maximum number of drawn tiles that are kept."""
WRAP_SHRINK, MIN_SHRINK = 0.85, 0.6
"""Smallest parts of their size to which letters shrink before a text is broken, and before it is shortened."""
DOT_RADIUS, DOT_GAP = 5, 15
"""Radius of a dot and distance between two of them, at scale 1 [px]."""
TILE_COLOUR = (44, 54, 52, 120)

DrawPicture = Callable[[tuple[int, int]], pygame.Surface | None]
"""Function that returns a picture of this size; None while it is being drawn."""


@dataclass
class Tile:
    """One tile.

    lines: small text below the name.
    dots: colours of dots beside the name; hollow ones are rings.
    badge: word in the corner of the picture.
    sign: large sign in place of a picture.
    picture: function that returns the picture; None without one.
    """

    label: str
    hint: str = ""
    on_press: Callable[[], None] = lambda: None
    lines: tuple[str, ...] = ()
    dots: tuple[tuple[Colour, bool], ...] = ()
    badge: str = ""
    sign: str = ""
    picture: DrawPicture | None = None


@dataclass(frozen=True)
class TileSection:
    """A title and the tiles below it. note: text beside the title, such as why there are no tiles."""

    title: str
    tiles: Sequence[Tile]
    note: str = ""


@dataclass
class _Row:
    """A row of the grid: the title of a section, or tiles with the index of the first one."""

    section: TileSection | None = None
    first: int = 0
    tiles: Sequence[Tile] = field(default_factory=tuple)


class TileGrid:
    """Sections of tiles, one of which is chosen; rows are scrolled as a whole, so that the chosen tile is visible."""

    def __init__(self, sections: Sequence[TileSection] = ()) -> None:
        self.sections: Sequence[TileSection] = sections
        self._chosen = 0
        self._columns = 1
        self._first_row = 0
        self._follow = True
        """True if the chosen tile must be scrolled into view."""
        self._drawn: dict[int, pygame.Rect] = {}
        self._pictures: dict[object, pygame.Surface] = {}

    @property
    def tiles(self) -> list[Tile]:
        return [tile for section in self.sections for tile in section.tiles]

    @property
    def tile(self) -> Tile | None:
        """Chosen tile; None in an empty grid."""
        tiles = self.tiles
        return tiles[min(self._chosen, len(tiles) - 1)] if tiles else None

    def fill(self, sections: Sequence[TileSection]) -> None:
        """Show other tiles; the chosen one stays by its label, else by its place."""
        before = self.tile
        self.sections = sections
        if before is not None:
            self.select(before.label)
        self._chosen = max(0, min(self._chosen, len(self.tiles) - 1))

    def select(self, label: str) -> None:
        """Choose the first tile with this label, if there is one."""
        self._chosen = next((i for i, tile in enumerate(self.tiles) if tile.label == label), self._chosen)
        self._follow = True

    def rect_of(self, label: str) -> pygame.Rect | None:
        """Return where the first tile with this label was drawn; None if it is out of view."""
        tiles = self.tiles
        return next((rect for number, rect in self._drawn.items() if tiles[number].label == label), None)

    def handle(self, intent: Intent) -> None:
        """Handle an intent."""
        tiles = self.tiles
        if not tiles:
            return
        match intent:
            case Command.LEFT | Command.RIGHT:
                self._choose((self._chosen + (1 if intent == Command.RIGHT else -1)) % len(tiles))
            case Command.UP | Command.DOWN:
                self._choose(self._beside(1 if intent == Command.DOWN else -1))
            case Command.ACCEPT:
                tiles[self._chosen].on_press()
            case Scroll(steps=steps):
                self._first_row = max(0, self._first_row - (1 if steps > 0 else -1))
                self._follow = False
            case MouseMove(x, y) | Click(x, y):
                under = next((number for number, rect in self._drawn.items() if rect.collidepoint(x, y)), None)
                if under is not None:
                    self._chosen = under
                    if isinstance(intent, Click):
                        tiles[under].on_press()

    def repeats(self, direction: Command) -> bool:
        """Return whether a held direction goes on: it stops at both ends."""
        if direction in (Command.UP, Command.DOWN):
            return self._beside(1 if direction == Command.DOWN else -1) != self._chosen
        return self._chosen != (0 if direction == Command.LEFT else len(self.tiles) - 1)

    def draw(self, surface: pygame.Surface, theme: Theme, area: pygame.Rect) -> None:
        """Draw as many rows as fit in an area."""
        gap = theme.px(TILE_GAP)
        self._columns = max(1, (area.width + gap) // (theme.px(TILE_WIDTH) + gap))
        width = (area.width + gap) // self._columns - gap
        rows = self._rows()
        heights = [theme.px(TITLE_HEIGHT) if row.section else _tile_height(theme) + gap for row in rows]
        self._scroll(rows, heights, area.height + gap)
        self._drawn.clear()
        y = area.y
        for number in range(self._first_row, len(rows)):
            row, height = rows[number], heights[number]
            with_tiles = height + heights[number + 1] if row.section and row.section.tiles else height
            if y + with_tiles > area.bottom + gap:
                break  # no title stands alone at the bottom
            if row.section is not None:
                _draw_title(surface, theme, row.section, pygame.Rect(area.x, y, area.width, height))
            for column, tile in enumerate(row.tiles):
                rect = pygame.Rect(area.x + column * (width + gap), y, width, height - gap)
                self._drawn[row.first + column] = rect
                surface.blit(self._picture_of(theme, tile, rect.size, row.first + column == self._chosen), rect)
            y += height
        self._draw_scrollbar(surface, theme, area, len(rows))

    def _picture_of(self, theme: Theme, tile: Tile, size: tuple[int, int], chosen: bool) -> pygame.Surface:
        """Return the drawn tile, from a cache: its texts take a millisecond."""
        picture = tile.picture(picture_size(theme, size[0])) if tile.picture is not None else None
        key = theme, size, tile.label, tile.lines, tile.dots, tile.badge, tile.sign, picture, chosen
        if key not in self._pictures:
            if len(self._pictures) >= MAX_CACHED:
                self._pictures.clear()
            self._pictures[key] = _drawn_tile(theme, tile, size, picture, chosen)
        return self._pictures[key]

    def _choose(self, number: int) -> None:
        self._chosen, self._follow = number, True

    def _rows(self) -> list[_Row]:
        rows, first = [], 0
        for section in self.sections:
            rows.append(_Row(section))
            for start in range(0, len(section.tiles), self._columns):
                tiles = section.tiles[start : start + self._columns]
                rows.append(_Row(None, first, tiles))
                first += len(tiles)
        return rows

    def _beside(self, by: int) -> int:
        """Return the tile above or below the chosen one."""
        rows = [row for row in self._rows() if row.section is None]
        here = next(i for i, row in enumerate(rows) if row.first <= self._chosen < row.first + len(row.tiles))
        if not 0 <= here + by < len(rows):
            return self._chosen
        column, row = self._chosen - rows[here].first, rows[here + by]
        return row.first + min(column, len(row.tiles) - 1)

    def _scroll(self, rows: Sequence[_Row], heights: Sequence[int], room: int) -> None:
        """Set the first row so that the chosen tile is visible, and the end of the list is not left behind."""
        last = len(rows) - 1
        while last > 0 and sum(heights[last - 1 :]) <= room:
            last -= 1
        if self._follow:
            chosen = next((i for i, row in enumerate(rows) if row.tiles and self._is_in(row)), 0)
            top = chosen - 1 if chosen and rows[chosen - 1].section else chosen
            self._first_row = min(self._first_row, top)
            while sum(heights[self._first_row : chosen + 1]) > room and self._first_row < chosen:
                self._first_row += 1
        self._first_row = max(0, min(self._first_row, last))

    def _is_in(self, row: _Row) -> bool:
        return row.first <= self._chosen < row.first + len(row.tiles)

    def _draw_scrollbar(self, surface: pygame.Surface, theme: Theme, area: pygame.Rect, rows: int) -> None:
        if len(self._drawn) == len(self.tiles):
            return
        bar = pygame.Rect(area.right + theme.px(8), area.y, theme.px(4), area.height)
        part = pygame.Rect(bar.x, 0, bar.width, max(theme.px(16), bar.height // 3))
        part.y = bar.y + (bar.height - part.height) * self._first_row // max(1, rows - 1)
        pygame.draw.rect(surface, theme.palette.line, bar, border_radius=bar.width // 2)
        pygame.draw.rect(surface, theme.palette.faint, part, border_radius=bar.width // 2)


def picture_size(theme: Theme, width: int) -> tuple[int, int]:
    """Return the size of the picture of a tile of this width [px]."""
    return width - 2 * theme.px(PAD), theme.px(PICTURE_HEIGHT) - theme.px(PAD)


def _tile_height(theme: Theme) -> int:
    text = theme.line_height(TEXT) + MAX_LINES * (theme.line_height(TEXT_SMALL) + theme.px(2))
    return theme.px(PICTURE_HEIGHT) + theme.px(6) + text + theme.px(PAD)


def _draw_title(surface: pygame.Surface, theme: Theme, section: TileSection, area: pygame.Rect) -> None:
    title = theme.text(section.title, TEXT, theme.palette.accent)
    y = area.y + theme.px(4)
    surface.blit(title, (area.x, y))
    if section.note:
        x = area.x + title.get_width() + theme.px(14)
        room = area.right - x
        smaller = theme.fitting(lambda each: each.width(section.note, TEXT_SMALL) <= room)
        note = smaller.text(smaller.truncate(section.note, room, TEXT_SMALL), TEXT_SMALL, theme.palette.faint)
        surface.blit(note, (x, y + title.get_height() - note.get_height() - theme.px(1)))


def _drawn_tile(
    theme: Theme, tile: Tile, size: tuple[int, int], picture: pygame.Surface | None, chosen: bool
) -> pygame.Surface:
    """Return the picture of a whole tile."""
    palette, pad = theme.palette, theme.px(PAD)
    panel = pygame.Surface(size, pygame.SRCALPHA, 32)
    pygame.draw.rect(panel, TILE_COLOUR, panel.get_rect(), border_radius=theme.px(8))
    place = pygame.Rect((pad, pad), picture_size(theme, size[0]))
    if tile.sign:
        sign = Theme(theme.scale * 2.4, palette).text(tile.sign, TEXT, palette.accent)
        panel.blit(sign, sign.get_rect(center=place.center))
    elif picture is not None:
        panel.blit(picture, picture.get_rect(center=place.center))
    if tile.badge:
        badge = theme.text(tile.badge, TEXT_SMALL, palette.on_accent)
        back = badge.get_rect().inflate(theme.px(10), theme.px(4))
        back.topleft = place.topleft
        pygame.draw.rect(panel, palette.accent, back, border_radius=theme.px(4))
        panel.blit(badge, badge.get_rect(center=back.center))
    _draw_texts(panel, theme, tile, pygame.Rect(pad, theme.px(PICTURE_HEIGHT + 6), place.width, 0))
    if chosen:
        pygame.draw.rect(panel, palette.accent, panel.get_rect(), max(2, theme.px(3)), border_radius=theme.px(8))
    return panel


def _draw_texts(surface: pygame.Surface, theme: Theme, tile: Tile, area: pygame.Rect) -> None:
    palette, y = theme.palette, area.y
    dots = len(tile.dots) * theme.px(DOT_GAP)
    room = area.width - dots
    smaller = theme.fitting(lambda each: each.width(tile.label) <= room)
    label = smaller.text(smaller.truncate(tile.label, room), TEXT)
    surface.blit(label, (area.x, y))
    for number, (colour, hollow) in enumerate(tile.dots):
        centre = area.right - dots + round((number + 0.6) * theme.px(DOT_GAP)), y + theme.line_height(TEXT) // 2
        pygame.draw.aacircle(surface, colour, centre, theme.px(DOT_RADIUS), theme.px(1.5) if hollow else 0)
    y += theme.line_height(TEXT) + theme.px(2)
    for line in _wrapped_lines(theme, tile.lines, area.width):
        smaller = theme.fitting(lambda each, line=line: each.width(line, TEXT_SMALL) <= area.width, MIN_SHRINK)  # type: ignore[misc]
        text = smaller.text(smaller.truncate(line, area.width, TEXT_SMALL), TEXT_SMALL, palette.faint)
        surface.blit(text, (area.x, y))
        y += theme.line_height(TEXT_SMALL) + theme.px(2)


def _wrapped_lines(theme: Theme, texts: Sequence[str], width: int) -> list[str]:
    """Return at most MAX_LINES lines; only the last text is broken, and what has no room is in the last line."""
    *short, last = texts or ("",)
    room = MAX_LINES - len(short)
    smallest = Theme(theme.scale * WRAP_SHRINK, theme.palette)
    if smallest.width(last, TEXT_SMALL) <= width:
        return [*short, last][:MAX_LINES]
    lines = theme.wrapped(last, width, TEXT_SMALL)
    return [*short, *lines[: room - 1], " ".join(lines[room - 1 :])][:MAX_LINES]
