"""Lists of items that are selected, pressed and changed by keyboard, mouse or gamepad; the app's main widget."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pygame

from racer_viewer.translation import _
from racer_viewer.ui.intents import Click, Command, Drag, Intent, MouseMove, Scroll
from racer_viewer.ui.paint import draw_medal
from racer_viewer.ui.theme import TEXT, TEXT_SMALL, Colour, Theme


@dataclass
class Item:
    """One line of a list. `hint` is shown while it is selected; a disabled item is drawn but does nothing."""

    label: str
    hint: str = ""
    enabled: bool = True

    @property
    def value(self) -> str:
        """Text at the right end of the line."""
        return ""

    def accept(self) -> None:
        """Handle Enter or a click."""

    def change(self, by: int) -> None:
        """Handle Left (−1) or Right (+1)."""


@dataclass
class Button(Item):
    """An item that calls `on_press`. `note` is shown at the right."""

    on_press: Callable[[], object] = lambda: None
    note: str = ""

    @property
    def value(self) -> str:
        return self.note

    def accept(self) -> None:
        self.on_press()


@dataclass
class Row(Item):
    """A table row: its label and cells in columns. Enter presses it; Left and Right mark or unmark it.

    marked: None if the row cannot be marked.
    on_mark: called with the new state; it may set `marked` back.
    dot: colour of a medal before the label; None without one.
    hollow: a ring takes the place of the medal.
    """

    cells: tuple[str, ...] = ()
    on_press: Callable[[], object] = lambda: None
    marked: bool | None = None
    on_mark: Callable[[bool], None] = lambda on: None
    dot: Colour | None = None
    hollow: bool = False

    def accept(self) -> None:
        self.on_press()

    def change(self, by: int) -> None:
        if self.marked is not None:
            self.marked = not self.marked
            self.on_mark(self.marked)


@dataclass
class Choice(Item):
    """A choice between several options; `chosen` is an index."""

    options: Sequence[str] = ()
    chosen: int = 0
    on_change: Callable[[int], None] = lambda number: None

    @property
    def value(self) -> str:
        return self.options[self.chosen] if self.options else ""

    def accept(self) -> None:
        self.change(1)

    def change(self, by: int) -> None:
        if self.options:
            self.chosen = (self.chosen + by) % len(self.options)
            self.on_change(self.chosen)


@dataclass
class Slider(Item):
    """A number between `low` and `high`, changed in steps."""

    low: float = 0.0
    high: float = 1.0
    step: float = 0.1
    number: float = 0.0
    unit: str = ""
    on_change: Callable[[float], None] = lambda number: None

    @property
    def value(self) -> str:
        return f"{self.number * 100:.0f} %" if self.unit == "%" else f"{self.number:g} {self.unit}".strip()

    @property
    def share(self) -> float:
        """Position between `low` and `high`, 0 to 1."""
        return min(1.0, max(0.0, (self.number - self.low) / (self.high - self.low)))

    def change(self, by: int) -> None:
        self._set(self.number + by * self.step)

    def move_to(self, share: float) -> None:
        """Set the number at a position between 0 and 1, rounded to whole steps."""
        steps = round(share * (self.high - self.low) / self.step)
        self._set(self.low + steps * self.step)

    def _set(self, number: float) -> None:
        number = round(min(self.high, max(self.low, number)), 6)
        if number != self.number:
            self.number = number
            self.on_change(number)


def toggle(label: str, on: bool, on_change: Callable[[bool], None], hint: str = "") -> Choice:
    """Return a choice between off and on."""
    return Choice(
        label, hint, options=(_("off"), _("on")), chosen=int(on), on_change=lambda number: on_change(bool(number))
    )


ROW_HEIGHT, ROW_GAP, INSET = 38, 5, 16
"""Height of a row, distance between rows, and padding at both ends of a row, at scale 1 [px]."""
ROW_COLOUR = (10, 14, 16, 150)
SLIDER_WIDTH, SLIDER_HEIGHT = 120, 6
"""Size of a slider's track, at scale 1 [px]."""
HEADER_HEIGHT, COLUMN_GAP = 26, 14
"""Height of a table's header and distance between columns, at scale 1 [px]."""
MARK_SIZE, DOT_RADIUS = 18, 6
"""Sizes of a row's check box and dot, at scale 1 [px]."""
CHECK = ((0.2, 0.52), (0.42, 0.74), (0.8, 0.28))
"""Points of the check mark, in parts of the box's size."""
MIN_LABEL_SHRINK = 0.5
"""Smallest part of the scale to which letters of a label shrink before it is shortened."""
MAX_CACHED_CELLS = 512
MAX_NAME_SHARE = 0.4
"""Largest part of a table's width that names in its first column take from other columns."""


@dataclass(frozen=True)
class Column:
    """A column of a table. `share` is its relative width; `right` aligns its cells to the right."""

    title: str
    share: float
    right: bool = False


@dataclass
class ItemRects:
    """Rectangles that an item was drawn in [px]; `value`, `slider` and `mark` are None where the item has none."""

    row: pygame.Rect
    value: pygame.Rect | None = None
    slider: pygame.Rect | None = None
    mark: pygame.Rect | None = None


class ItemList:
    """A vertical list with one selected item, scrolled so that the selection stays visible.

    columns: if given, `Row` items form a table with a header above the first visible row.
    """

    def __init__(self, items: Sequence[Item], columns: Sequence[Column] = ()) -> None:
        self.items = list(items)
        self.columns = tuple(columns)
        self._chosen = 0
        self._first = 0
        self._drawn: dict[int, ItemRects] = {}
        """Maps the index of each visible item to its rectangles."""
        self._backgrounds: dict[tuple[int, int], pygame.Surface] = {}
        self._truncated: dict[tuple[str, int, float], str] = {}
        self._fitted: Theme | None = None
        """Theme in which the cells of a table fit."""
        self._widths: list[int] = []
        """Widths of the columns [px]."""
        self._fitted_for: tuple[object, ...] = ()

    @property
    def chosen(self) -> int:
        """Index of the selected item."""
        return min(self._chosen, len(self.items) - 1)

    @property
    def item(self) -> Item | None:
        """Selected item; None in an empty list."""
        return self.items[self.chosen] if self.items else None

    def choose(self, number: int) -> None:
        """Select an item by its index."""
        self._chosen = number

    def find(self, label: str) -> Item:
        """Return the first item with this label; raise LookupError if there is none."""
        for item in self.items:
            if item.label == label:
                return item
        raise LookupError(f"{label!r} is not among {[item.label for item in self.items]}")

    def select(self, label: str) -> None:
        """Select the first item with this label, if there is one."""
        self._chosen = next((number for number, item in enumerate(self.items) if item.label == label), self._chosen)

    def rects_of(self, item: Item) -> ItemRects | None:
        """Return where an item was drawn last; None if it is scrolled out of view."""
        return next((rects for number, rects in self._drawn.items() if self.items[number] is item), None)

    def handle(self, intent: Intent) -> bool:
        """Handle an intent; return whether it had an effect."""
        if not self.items:
            return False
        match intent:
            case Command.UP | Command.DOWN:
                self._chosen = (self.chosen + (1 if intent == Command.DOWN else -1)) % len(self.items)
            case Command.LEFT | Command.RIGHT:
                self._change(1 if intent == Command.RIGHT else -1)
            case Command.ACCEPT:
                self._press()
            case Scroll(steps=steps):
                self._chosen = min(len(self.items) - 1, max(0, self.chosen - (1 if steps > 0 else -1)))
            case MouseMove(x, y):
                return self._point(x, y)
            case Click(x, y):
                return self._click(x, y)
            case Drag(x=x, y=y):
                return self._slide(x, y)
            case _:
                return False
        return True

    def repeats(self, direction: Command) -> bool:
        """Return whether a held direction goes on: through the list, or through the values of the selected item.

        It stops at both ends, and it does not switch things on and off.
        """
        item = self.item
        if item is None:
            return False
        match direction:
            case Command.UP | Command.DOWN:
                return self.chosen != (0 if direction == Command.UP else len(self.items) - 1)
            case _ if isinstance(item, Choice) and len(item.options) > 2:
                return item.chosen != (0 if direction == Command.LEFT else len(item.options) - 1)
            case _:
                return isinstance(item, Slider)

    def draw(self, surface: pygame.Surface, theme: Theme, area: pygame.Rect) -> int:
        """Draw within an area; return the height that was used [px]. A table gets smaller until its cells fit."""
        theme = self._fitting(theme, area.width)
        height, gap = theme.px(ROW_HEIGHT), theme.px(ROW_GAP)
        header = theme.px(HEADER_HEIGHT) if self.columns and any(isinstance(item, Row) for item in self.items) else 0
        visible = max(1, (area.height - header + gap) // (height + gap))
        self._first = min(max(self._first, self.chosen - visible + 1), self.chosen)
        self._first = max(0, min(self._first, len(self.items) - visible))
        self._drawn.clear()
        shown = range(self._first, min(len(self.items), self._first + visible))
        y = area.y
        for number in shown:
            if header and isinstance(self.items[number], Row):
                self._draw_header(surface, theme, pygame.Rect(area.x, y, area.width, header))
                y, header = y + header, 0
            self._drawn[number] = ItemRects(pygame.Rect(area.x, y, area.width, height))
            self._draw_row(surface, theme, number)
            y += height + gap
        if self.items and len(shown) < len(self.items):
            self._draw_scrollbar(surface, theme, area, shown)
        return y - gap - area.y

    def _fitting(self, theme: Theme, width: int) -> Theme:
        """Return the theme in which the cells of a table fit, except long names in the first column.

        A table that is far too wide keeps its letters and shortens its cells.
        """
        rows = [item for item in self.items if isinstance(item, Row)] if self.columns else []
        key = theme, width, tuple((row.label, row.cells, row.marked is None, row.dot is None) for row in rows)
        if key != self._fitted_for:
            self._fitted_for = key
            words = self._words(rows)

            def fits(smaller: Theme) -> bool:
                return not rows or sum(self._needed(smaller, words, width)) <= self._room(smaller, width)[1]

            smaller = theme.fitting(fits)
            self._fitted = smaller if fits(smaller) else theme
            self._widths = self._column_widths(self._fitted, words, width)
        return self._fitted or theme

    def _words(self, rows: Sequence[Row]) -> list[set[str]]:
        """Return the words of each column."""
        words: list[set[str]] = [set() for _column in self.columns]
        for row in rows:
            for column, word in zip(words, (row.label, *row.cells), strict=False):
                column.add(word)
        return words

    def _needed(self, theme: Theme, words: Sequence[set[str]], width: int) -> list[int]:
        """Return the width that each column needs [px]; that of names is limited."""
        room = self._room(theme, width)[1]
        needed = []
        for number, (column, found) in enumerate(zip(self.columns, words, strict=True)):
            widest = max((theme.width(word) for word in found), default=0)
            title = theme.width(_(column.title), TEXT_SMALL)
            needed.append(max(title, widest if number else min(widest, round(room * MAX_NAME_SHARE))))
        return needed

    def _column_widths(self, theme: Theme, words: Sequence[set[str]], width: int) -> list[int]:
        """Return the width of each column: its share, or more where its cells need it and others have room to spare."""
        room = self._room(theme, width)[1]
        needed = self._needed(theme, words, width)
        total = sum(column.share for column in self.columns)
        usual = [room * column.share / total for column in self.columns]
        missing = sum(max(0.0, need - share) for need, share in zip(needed, usual, strict=True))
        spare = sum(max(0.0, share - need) for need, share in zip(needed, usual, strict=True))
        if missing > spare:
            return [round(share) for share in usual]
        given = missing / spare if spare else 0.0
        return [
            round(need if need > share else share - (share - need) * given)
            for need, share in zip(needed, usual, strict=True)
        ]

    def _room(self, theme: Theme, width: int) -> tuple[int, int]:
        """Return where the first column of a row begins, and the width of all columns without their gaps [px]."""
        gap, rows = theme.px(COLUMN_GAP), [item for item in self.items if isinstance(item, Row)]
        x = theme.px(INSET)
        if any(row.marked is not None for row in rows):
            x += theme.px(MARK_SIZE) + gap
        if any(row.dot is not None for row in rows):
            x += 2 * theme.px(DOT_RADIUS) + gap
        return x, width - theme.px(INSET) - x - gap * (len(self.columns) - 1)

    def _draw_row(self, surface: pygame.Surface, theme: Theme, number: int) -> None:
        item, row = self.items[number], self._drawn[number].row
        palette = theme.palette
        chosen = number == self.chosen
        colour = palette.on_accent if chosen else palette.text
        if not item.enabled:
            colour = palette.line if chosen else palette.faint
        if chosen:
            pygame.draw.rect(surface, palette.accent, row, border_radius=theme.px(8))
        else:
            surface.blit(self._background(theme, row.size), row)
        if self.columns and isinstance(item, Row):
            self._draw_cells(surface, theme, number, colour)
            return
        inset = theme.px(INSET)
        right = row.right - inset
        if item.value:
            right = self._draw_value(surface, theme, number, colour)
        room = right - row.x - 2 * inset
        smaller = theme.fitting(lambda smaller: smaller.width(item.label) <= room, MIN_LABEL_SHRINK)
        label = smaller.text(smaller.truncate(item.label, room), TEXT, colour)
        surface.blit(label, (row.x + inset, row.centery - label.get_height() // 2))

    def _draw_header(self, surface: pygame.Surface, theme: Theme, area: pygame.Rect) -> None:
        for column, (x, width) in zip(self.columns, self.column_spans(theme, area), strict=True):
            title = self._truncate(theme, _(column.title), width, TEXT_SMALL)
            text = theme.text(title, TEXT_SMALL, theme.palette.faint)
            left = x + width - text.get_width() if column.right else x
            surface.blit(text, (left, area.centery - text.get_height() // 2))

    def _draw_cells(self, surface: pygame.Surface, theme: Theme, number: int, colour: Colour) -> None:
        item, row = self.items[number], self._drawn[number].row
        assert isinstance(item, Row)
        if item.marked is not None:
            self._draw_mark(surface, theme, number, colour)
        if item.dot is not None:
            radius = theme.px(DOT_RADIUS)
            first = self.column_spans(theme, row)[0][0]
            centre = first - theme.px(COLUMN_GAP) - radius, row.centery
            if number == self.chosen:
                pygame.draw.aacircle(surface, theme.palette.on_accent, centre, radius + theme.px(3))
            if item.hollow:
                pygame.draw.aacircle(surface, item.dot, centre, radius, theme.px(2))
            else:
                draw_medal(surface, item.dot, centre, radius + theme.px(2))
        words = (item.label, *item.cells)
        for column, word, (x, width) in zip(self.columns, words, self.column_spans(theme, row), strict=False):
            text = theme.text(self._truncate(theme, word, width, TEXT), TEXT, colour)
            left = x + width - text.get_width() if column.right else x
            surface.blit(text, (left, row.centery - text.get_height() // 2))

    def _draw_mark(self, surface: pygame.Surface, theme: Theme, number: int, colour: Colour) -> None:
        """Draw a check box; clicks near it count as clicks on it."""
        item, row = self.items[number], self._drawn[number].row
        size = theme.px(MARK_SIZE)
        box = pygame.Rect(row.x + theme.px(INSET), row.centery - size // 2, size, size)
        pygame.draw.rect(surface, colour, box, theme.px(1.5), border_radius=theme.px(4))
        if isinstance(item, Row) and item.marked:
            points = [(box.x + x * size, box.y + y * size) for x, y in CHECK]
            pygame.draw.lines(surface, colour, False, points, theme.px(3))
        self._drawn[number].mark = pygame.Rect(row.x, row.y, box.right + theme.px(COLUMN_GAP // 2) - row.x, row.height)

    def column_spans(self, theme: Theme, row: pygame.Rect) -> list[tuple[int, int]]:
        """Return the x and the width of each column within a row, as it was drawn last [px]."""
        x, gap = row.x + self._room(theme, row.width)[0], theme.px(COLUMN_GAP)
        ends = itertools.accumulate(width + gap for width in self._widths)
        return [(x + end - width - gap, width) for end, width in zip(ends, self._widths, strict=True)]

    def _truncate(self, theme: Theme, text: str, width: int, size: int) -> str:
        """Return `theme.truncate`'s result from a cache: a table has many cells and is drawn 60 times a second."""
        key = text, width, size * theme.scale
        if key not in self._truncated:
            if len(self._truncated) >= MAX_CACHED_CELLS:
                self._truncated.clear()
            self._truncated[key] = theme.truncate(text, width, size)
        return self._truncated[key]

    def _draw_value(self, surface: pygame.Surface, theme: Theme, number: int, colour: Colour) -> int:
        """Draw an item's value at the right of its row; return the x where it begins."""
        item, row = self.items[number], self._drawn[number].row
        right = row.right - theme.px(INSET)
        text = f"‹  {item.value}  ›" if isinstance(item, Choice) and len(item.options) > 1 else item.value
        text = theme.truncate(text, row.width * 2 // 3)
        value = theme.text(text, TEXT, colour)
        left = right - value.get_width()
        surface.blit(value, (left, row.centery - value.get_height() // 2))
        self._drawn[number].value = pygame.Rect(left, row.y, value.get_width(), row.height)
        if isinstance(item, Slider):
            width = theme.px(SLIDER_WIDTH)
            left = right - theme.width("100 %") - theme.px(INSET) - width
            track = pygame.Rect(left, row.centery - theme.px(SLIDER_HEIGHT) // 2, width, theme.px(SLIDER_HEIGHT))
            self._drawn[number].slider = track.inflate(theme.px(12), row.height - track.height)
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
        return next((number for number, rects in self._drawn.items() if rects.row.collidepoint(x, y)), None)

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
        rects = self._drawn[self.chosen]
        if rects.mark is not None and rects.mark.collidepoint(x, y):
            self._change(1)
        elif isinstance(self.item, Choice) and rects.value is not None:
            self._change(-1 if rects.value.x <= x < rects.value.centerx else 1)
        else:
            self._press()
        return True

    def _slide(self, x: int, y: int) -> bool:
        item, rects = self.item, self._drawn.get(self.chosen)
        track = rects.slider if rects is not None else None
        if not isinstance(item, Slider) or track is None or not track.collidepoint(x, y):
            return False
        item.move_to(min(1.0, max(0.0, (x - track.x) / track.width)))
        return True

    def _background(self, theme: Theme, size: tuple[int, int]) -> pygame.Surface:
        """Return the background of a row that is not selected."""
        if size not in self._backgrounds:
            self._backgrounds = {size: pygame.Surface(size, pygame.SRCALPHA, 32)}
            pygame.draw.rect(
                self._backgrounds[size], ROW_COLOUR, self._backgrounds[size].get_rect(), border_radius=theme.px(8)
            )
        return self._backgrounds[size]
