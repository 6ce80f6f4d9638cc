"""A list of items: moved through, pressed and changed by intents, drawn wherever it is told to."""

from __future__ import annotations

from collections.abc import Sequence

import pygame

from racer_viewer.ui.intents import Click, Do, Drag, Intent, Point, Scroll
from racer_viewer.ui.items import Choice, Item, Slider
from racer_viewer.ui.theme import TEXT, Colour, Theme

ROW_HEIGHT, ROW_GAP = 38, 5
"""At scale 1 [px]."""
INSET = 16
PLATE = (10, 14, 16, 150)
TRACK_WIDTH, TRACK_HEIGHT = 120, 6
"""Of a slider [px]."""


class ItemList:
    """Some lines, of which one is chosen. What does not fit is scrolled to."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = list(items)
        self._chosen = 0
        self._first = 0
        self._rows: dict[int, pygame.Rect] = {}
        """Where the visible items were drawn."""
        self._sliders: dict[int, pygame.Rect] = {}
        self._values: dict[int, pygame.Rect] = {}
        self._plates: dict[tuple[int, int], pygame.Surface] = {}

    @property
    def chosen(self) -> int:
        return min(self._chosen, len(self.items) - 1)

    @property
    def item(self) -> Item | None:
        """The chosen one."""
        return self.items[self.chosen] if self.items else None

    def handle(self, intent: Intent) -> bool:
        """Whether the intent meant something here."""
        if not self.items:
            return False
        match intent:
            case Do.UP | Do.DOWN:
                self._chosen = (self.chosen + (1 if intent == Do.DOWN else -1)) % len(self.items)
            case Do.LEFT | Do.RIGHT:
                self._change(1 if intent == Do.RIGHT else -1)
            case Do.ACCEPT:
                self._press()
            case Scroll(steps=steps):
                self._chosen = min(len(self.items) - 1, max(0, self.chosen - (1 if steps > 0 else -1)))
            case Point(x, y):
                return self._point(x, y)
            case Click(x, y):
                return self._click(x, y)
            case Drag(x=x, y=y):
                return self._slide(x, y)
            case _:
                return False
        return True

    def draw(self, surface: pygame.Surface, theme: Theme, area: pygame.Rect) -> int:
        """Into an area; returns the height that was used."""
        height, gap = theme.px(ROW_HEIGHT), theme.px(ROW_GAP)
        visible = max(1, (area.height + gap) // (height + gap))
        self._first = min(max(self._first, self.chosen - visible + 1), self.chosen)
        self._first = max(0, min(self._first, len(self.items) - visible))
        self._rows.clear()
        self._sliders.clear()
        self._values.clear()
        shown = range(self._first, min(len(self.items), self._first + visible))
        for place, number in enumerate(shown):
            self._rows[number] = pygame.Rect(area.x, area.y + place * (height + gap), area.width, height)
            self._draw_row(surface, theme, number)
        if self.items and len(shown) < len(self.items):
            self._draw_scrollbar(surface, theme, area, shown)
        return len(shown) * (height + gap) - gap

    def _draw_row(self, surface: pygame.Surface, theme: Theme, number: int) -> None:
        item, row = self.items[number], self._rows[number]
        palette = theme.palette
        chosen = number == self.chosen
        colour = palette.on_accent if chosen else palette.text
        if not item.enabled:
            colour = palette.line if chosen else palette.faint
        if chosen:
            pygame.draw.rect(surface, palette.accent, row, border_radius=theme.px(8))
        else:
            surface.blit(self._plate(theme, row.size), row)
        inset = theme.px(INSET)
        right = row.right - inset
        if item.value:
            right = self._draw_value(surface, theme, number, colour)
        label = theme.text(theme.fitting(item.label, right - row.x - 2 * inset), TEXT, colour)
        surface.blit(label, (row.x + inset, row.centery - label.get_height() // 2))

    def _draw_value(self, surface: pygame.Surface, theme: Theme, number: int, colour: Colour) -> int:
        """At the right of a row; returns where it begins."""
        item, row = self.items[number], self._rows[number]
        right = row.right - theme.px(INSET)
        text = f"‹  {item.value}  ›" if isinstance(item, Choice) and len(item.options) > 1 else item.value
        text = theme.fitting(text, row.width * 2 // 3)
        value = theme.text(text, TEXT, colour)
        left = right - value.get_width()
        surface.blit(value, (left, row.centery - value.get_height() // 2))
        self._values[number] = pygame.Rect(left, row.y, value.get_width(), row.height)
        if isinstance(item, Slider):
            width = theme.px(TRACK_WIDTH)
            left = right - theme.width("100 %") - theme.px(INSET) - width
            track = pygame.Rect(left, row.centery - theme.px(TRACK_HEIGHT) // 2, width, theme.px(TRACK_HEIGHT))
            self._sliders[number] = track.inflate(theme.px(12), row.height - track.height)
            pygame.draw.rect(surface, theme.palette.line, track, border_radius=track.height // 2)
            filled = pygame.Rect(track.topleft, (round(track.width * item.share), track.height))
            pygame.draw.rect(surface, colour, filled, border_radius=track.height // 2)
            pygame.draw.aacircle(surface, colour, (filled.right, track.centery), theme.px(7))
        return left

    def _draw_scrollbar(self, surface: pygame.Surface, theme: Theme, area: pygame.Rect, shown: range) -> None:
        width, height = theme.px(4), area.height
        bar = pygame.Rect(area.right + theme.px(6), area.y, width, height)
        part = pygame.Rect(bar.x, 0, width, max(theme.px(16), height * len(shown) // len(self.items)))
        room = max(1, len(self.items) - len(shown))
        part.y = area.y + (height - part.height) * shown.start // room
        pygame.draw.rect(surface, theme.palette.line, bar, border_radius=width // 2)
        pygame.draw.rect(surface, theme.palette.faint, part, border_radius=width // 2)

    def _press(self) -> None:
        item = self.item
        if item is not None and item.enabled:
            item.accept()

    def _change(self, by: int) -> None:
        item = self.item
        if item is not None and item.enabled:
            item.change(by)

    def _at(self, x: int, y: int) -> int | None:
        return next((number for number, row in self._rows.items() if row.collidepoint(x, y)), None)

    def _point(self, x: int, y: int) -> bool:
        number = self._at(x, y)
        if number is not None:
            self._chosen = number
        return number is not None

    def _click(self, x: int, y: int) -> bool:
        if not self._point(x, y):
            return False
        if self._slide(x, y):
            return True
        if isinstance(self.item, Choice):
            value = self._values[self.chosen]
            self._change(-1 if value.x <= x < value.centerx else 1)
        else:
            self._press()
        return True

    def _slide(self, x: int, y: int) -> bool:
        item, track = self.item, self._sliders.get(self.chosen)
        if not isinstance(item, Slider) or track is None or not track.collidepoint(x, y):
            return False
        item.move_to(min(1.0, max(0.0, (x - track.x) / track.width)))
        return True

    def _plate(self, theme: Theme, size: tuple[int, int]) -> pygame.Surface:
        """What lies under a row that is not chosen."""
        if size not in self._plates:
            self._plates = {size: pygame.Surface(size, pygame.SRCALPHA, 32)}
            pygame.draw.rect(self._plates[size], PLATE, self._plates[size].get_rect(), border_radius=theme.px(8))
        return self._plates[size]
