"""The screen that edits one reward term: name and formula, with completion, errors at their place and a preview."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pygame

from racer_env.engine import parse_config
from racer_env.engine.formulas import FUNCTIONS, MAX_LENGTH, FormulaError
from racer_env.engine.quantities import QUANTITIES
from racer_env.engine.scoring import pay
from racer_env.engine.terms import MAX_NAME_LENGTH
from racer_env.errors import ConfigError
from racer_viewer.modes.screen import AppContext, Screen
from racer_viewer.training.reward_lab import LabDrive
from racer_viewer.translation import _, mark
from racer_viewer.ui.intents import Click, Intent, KeyPress, MouseMove, Scroll, TextInput
from racer_viewer.ui.paint import FOOTER_HEIGHT, draw_heading, shade
from racer_viewer.ui.theme import MARGIN, PADDING, TEXT, TEXT_SMALL, Theme
from racer_viewer.ui.views import Key, draw_keys, translated

KEYS: tuple[Key, ...] = (
    ("Enter", mark("accept")),
    ("Tab", mark("complete, or next field")),
    ("Up Down", mark("choose")),
    ("Esc", mark("cancel")),
)
FIELD_HEIGHT, ROW = 34, 24
"""Heights of a text field and of a row of the list, at scale 1 [px]."""
MIN_HEIGHT, MIN_SCALE = 400, 0.4
"""Height that the screen needs at scale 1 [px], and the smallest part of the scale that it shrinks to."""
SAMPLES = 240
"""Points of the preview's line."""
_WORD = re.compile(r"[A-Za-z_]\w*$", re.ASCII)


@dataclass(frozen=True)
class Suggestion:
    """A word that completes the formula. insert: its text; show: as it is listed; unit, help: what it means."""

    insert: str
    show: str
    unit: str
    help: str


SUGGESTIONS = (
    *(Suggestion(each.name, each.name, each.unit, each.help) for each in QUANTITIES),
    *(Suggestion(f"{each.name}(", f"{each.name}({each.arguments})", "", each.help) for each in FUNCTIONS.values()),
)


def suggestions(text: str, cursor: int) -> list[Suggestion]:
    """Return what completes the word before the cursor: first the words that begin with it, then those that have it."""
    word = _WORD.search(text[:cursor])
    part = word[0].lower() if word else ""
    first = [each for each in SUGGESTIONS if each.show.startswith(part)]
    return first + [each for each in SUGGESTIONS if part in each.show and each not in first]


class TextField:
    """One line of text with a cursor."""

    def __init__(self, text: str, longest: int) -> None:
        self.text, self.cursor, self._longest = text, len(text), longest

    def insert(self, text: str) -> None:
        plain = "".join(sign for sign in text if sign.isprintable())
        room = max(0, self._longest - len(self.text))
        self.text = self.text[: self.cursor] + plain[:room] + self.text[self.cursor :]
        self.cursor += len(plain[:room])

    def complete(self, insert: str) -> None:
        """Replace the word before the cursor."""
        word = _WORD.search(self.text[: self.cursor])
        begin = word.start() if word else self.cursor
        self.text, self.cursor = self.text[:begin] + self.text[self.cursor :], begin
        self.insert(insert)

    def press(self, key: str) -> None:
        match key:
            case "backspace" if self.cursor:
                self.text = self.text[: self.cursor - 1] + self.text[self.cursor :]
                self.cursor -= 1
            case "delete":
                self.text = self.text[: self.cursor] + self.text[self.cursor + 1 :]
            case "left":
                self.cursor = max(0, self.cursor - 1)
            case "right":
                self.cursor = min(len(self.text), self.cursor + 1)
            case "home":
                self.cursor = 0
            case "end":
                self.cursor = len(self.text)


def _visible(theme: Theme, field: TextField, width: int) -> tuple[int, int]:
    """Return the range of a field's text that is shown in a width [px]; the cursor is in it."""
    first = 0
    while theme.width(field.text[first : field.cursor]) > width:
        first += 1
    last = field.cursor
    while last < len(field.text) and theme.width(field.text[first : last + 1]) <= width:
        last += 1
    return first, last


class FormulaScreen(Screen):
    """Name and formula of a term. on_accept gets both; others are the other terms of the reward."""

    typing = True

    def __init__(
        self,
        app: AppContext,
        name: str,
        formula: str,
        others: Mapping[str, str],
        drives: Sequence[LabDrive],
        on_accept: Callable[[str, str], None],
    ) -> None:
        super().__init__(app)
        self._others, self._drives, self._on_accept = dict(others), drives, on_accept
        self.name, self.formula = TextField(name, MAX_NAME_LENGTH), TextField(formula, MAX_LENGTH)
        self.field = self.formula if name else self.name
        """Field that is edited."""
        self.chosen = 0
        """Index of the chosen suggestion."""
        self.problem: ConfigError | None = None
        """Reason why the term would be refused; None if it is accepted."""
        self._values: dict[str, np.ndarray] = {}
        self._places: dict[str, pygame.Rect] = {}
        self._rows: list[tuple[pygame.Rect, int]] = []
        self._first = 0
        self._check()

    @property
    def found(self) -> list[Suggestion]:
        """Suggestions for the place of the cursor."""
        return suggestions(self.formula.text, self.formula.cursor) if self.field is self.formula else []

    @property
    def suggestion_rows(self) -> list[pygame.Rect]:
        """Rectangles of the suggestions that are shown, from top to bottom."""
        return [row for row, _number in self._rows]

    def keys(self) -> Sequence[Key]:
        return translated(KEYS)

    def handle(self, intent: Intent) -> None:
        match intent:
            case TextInput(text):
                self.field.insert(text)
                self.chosen = 0
            case KeyPress("escape"):
                self.app.pop()
                return
            case KeyPress("return" | "enter" | "keypad enter"):
                self._accept()
                return
            case KeyPress("tab"):
                self._tab()
            case KeyPress("up" | "down" as key) if self.found:
                self.chosen = (self.chosen + (1 if key == "down" else -1)) % len(self.found)
            case KeyPress("up" | "down"):
                self._other_field()
            case KeyPress(key):
                self.field.press(key)
                self.chosen = 0
            case Scroll(steps=steps) if self.found:
                self.chosen = min(len(self.found) - 1, max(0, self.chosen - (1 if steps > 0 else -1)))
            case MouseMove(x, y):
                self.chosen = next((number for row, number in self._rows if row.collidepoint(x, y)), self.chosen)
            case Click(x, y):
                self._click(x, y)
                return
            case _:
                return
        self._check()

    def _tab(self) -> None:
        """Complete the word before the cursor, or go to the other field."""
        word = _WORD.search(self.formula.text[: self.formula.cursor])
        if self.field is self.formula and word and self.found:
            self._complete(self.chosen)
        else:
            self._other_field()

    def _other_field(self) -> None:
        self.field, self.chosen = self.name if self.field is self.formula else self.formula, 0

    def _complete(self, number: int) -> None:
        self.field = self.formula
        self.formula.complete(self.found[number].insert)
        self.chosen = 0
        self._check()

    def _click(self, x: int, y: int) -> None:
        for row, number in self._rows:
            if row.collidepoint(x, y):
                self._complete(number)
                return
        for key, place in self._places.items():
            if place.collidepoint(x, y):
                if key == "ok":
                    self._accept()
                elif key == "cancel":
                    self.app.pop()
                else:
                    self.field = self.name if key == "name" else self.formula
                return

    def _accept(self) -> None:
        self._check()
        if self.problem is not None:
            self.app.notify(str(self.problem))
            return
        self.app.pop()
        self._on_accept(self.name.text, self.formula.text)

    def _check(self) -> None:
        """Check the term with the others, and pay it for the drives."""
        name, formula = self.name.text, self.formula.text
        try:
            parse_config({"terms": {**self._others, name: formula}})
            if name in self._others:
                raise ConfigError(_("another term has the name {name}").format(name=name))
            own = parse_config({"terms": {name: formula}})
        except ConfigError as error:
            self.problem, self._values = error, {}
            return
        self.problem = None
        self._values = {each.label: pay(each.drive, own)[:, -1] for each in self._drives}

    def draw(self, surface: pygame.Surface, share: float) -> None:
        keys, height = self.app.theme, surface.get_height()
        theme = keys.fitting(lambda smaller: smaller.px(MIN_HEIGHT) <= height - keys.px(FOOTER_HEIGHT), MIN_SCALE)
        surface.fill(theme.palette.panel[:3])
        surface.blit(shade(surface.get_size(), 120), (0, 0))
        top = draw_heading(surface, theme, _("Reward term"))
        x, bottom = theme.px(MARGIN * 3), height - keys.px(FOOTER_HEIGHT) - theme.px(PADDING)
        width, self._places, self._rows = surface.get_width() - 2 * x, {}, []
        column = min(theme.px(220), width // 4)
        self._draw_field(surface, theme, "name", _("Name"), self.name, pygame.Rect(x, top, column, 0))
        left = x + column + theme.px(PADDING)
        self._draw_field(
            surface, theme, "formula", _("Formula"), self.formula, pygame.Rect(left, top, x + width - left, 0)
        )
        y = self._places["formula"].bottom + theme.px(8)
        y = self._draw_problem(surface, theme, pygame.Rect(x, y, width, 0))
        y = self._draw_buttons(surface, theme, x, y)
        half = width // 2
        self._draw_suggestions(surface, theme, pygame.Rect(x, y, half - theme.px(PADDING), bottom - y))
        self._draw_preview(surface, theme, pygame.Rect(x + half, y, width - half, bottom - y))
        draw_keys(surface, keys, self.keys())

    def _draw_field(
        self, surface: pygame.Surface, theme: Theme, key: str, label: str, field: TextField, place: pygame.Rect
    ) -> None:
        palette, active = theme.palette, field is self.field
        caption = theme.text(theme.truncate(label, place.width, TEXT_SMALL), TEXT_SMALL, palette.faint)
        surface.blit(caption, place.topleft)
        box = pygame.Rect(
            place.x, place.y + theme.line_height(TEXT_SMALL) + theme.px(2), place.width, theme.px(FIELD_HEIGHT)
        )
        self._places[key] = box
        pygame.draw.rect(surface, (10, 14, 16), box, border_radius=theme.px(6))
        pygame.draw.rect(surface, palette.accent if active else palette.line, box, theme.px(1.5), theme.px(6))
        inner = box.inflate(-2 * theme.px(8), 0)
        first, last = _visible(theme, field, inner.width - theme.px(4))
        text_y = box.centery - theme.line_height() // 2
        if last > first:
            surface.blit(theme.text(field.text[first:last]), (inner.x, text_y))

        def x_of(index: int) -> int:
            return inner.x + theme.width(field.text[first : min(last, max(first, index))])

        error = self.problem
        if key == "formula" and isinstance(error, FormulaError) and error.term == self.name.text:
            start, end = x_of(error.column), x_of(error.column + error.length)
            start = min(start, inner.right - theme.px(8))
            marked = max(theme.px(8), end - start)
            surface.fill(palette.bad, (start, box.bottom - theme.px(7), marked, theme.px(3)))
        if active:
            cursor = x_of(field.cursor), box.y + theme.px(6), max(1, theme.px(1.5)), box.height - theme.px(12)
            surface.fill(palette.text, cursor)

    def _draw_problem(self, surface: pygame.Surface, theme: Theme, place: pygame.Rect) -> int:
        """Draw what is wrong, or that nothing is; return the y where it ends [px]."""
        palette = theme.palette
        if self.problem is None:
            lines, colour = [_("This term is accepted.")], palette.good
        else:
            reason = str(self.problem).removeprefix("config.").removeprefix(f"terms.{self.name.text}: ")
            lines, colour = theme.wrapped(reason, place.width, TEXT_SMALL + 2)[:2], palette.bad
        y = place.y
        for line in lines:
            surface.blit(theme.text(line, TEXT_SMALL + 2, colour), (place.x, y))
            y += theme.line_height(TEXT_SMALL + 2)
        return place.y + 2 * theme.line_height(TEXT_SMALL + 2) + theme.px(6)

    def _draw_buttons(self, surface: pygame.Surface, theme: Theme, x: int, y: int) -> int:
        for key, label in (("ok", _("Accept")), ("cancel", _("Cancel"))):
            place = pygame.Rect(x, y, theme.width(label) + theme.px(28), theme.px(30))
            self._places[key] = place
            ready = key == "cancel" or self.problem is None
            colour = theme.palette.accent if key == "ok" and ready else theme.palette.line
            pygame.draw.rect(surface, colour, place, border_radius=theme.px(7))
            own = theme.palette.on_accent if key == "ok" and ready else theme.palette.text
            drawn = theme.text(label, TEXT, own)
            surface.blit(drawn, drawn.get_rect(center=place.center))
            x = place.right + theme.px(10)
        return y + theme.px(30 + PADDING)

    def _draw_suggestions(self, surface: pygame.Surface, theme: Theme, place: pygame.Rect) -> None:
        found, palette, row = self.found or list(SUGGESTIONS), theme.palette, theme.px(ROW)
        foot = 2 * theme.line_height(TEXT_SMALL) + theme.px(6)
        visible = max(1, (place.height - foot) // row)
        chosen = min(self.chosen, len(found) - 1)
        self._first = max(0, min(max(self._first, chosen - visible + 1), chosen, max(0, len(found) - visible)))
        for number in range(self._first, min(len(found), self._first + visible)):
            box = pygame.Rect(place.x, place.y + (number - self._first) * row, place.width, row - theme.px(2))
            each, active = found[number], number == chosen
            if active:
                pygame.draw.rect(surface, palette.line, box, border_radius=theme.px(5))
            unit = theme.text(each.unit, TEXT_SMALL, palette.faint) if each.unit else None
            room = box.width - theme.px(20) - (unit.get_width() if unit else 0)
            name = theme.text(theme.truncate(each.show, room, TEXT_SMALL + 2), TEXT_SMALL + 2, palette.text)
            surface.blit(name, (box.x + theme.px(6), box.centery - name.get_height() // 2))
            if unit is not None:
                surface.blit(unit, (box.right - unit.get_width() - theme.px(6), box.centery - unit.get_height() // 2))
            if self.found:
                self._rows.append((box, number))
        each, y = found[chosen], place.bottom - foot + theme.px(6)
        for line in theme.wrapped(f"{each.show}: {each.help}", place.width, TEXT_SMALL)[:2]:
            surface.blit(theme.text(line, TEXT_SMALL, palette.faint), (place.x, y))
            y += theme.line_height(TEXT_SMALL)

    def _draw_preview(self, surface: pygame.Surface, theme: Theme, place: pygame.Rect) -> None:
        """Draw what the term pays per second in each drive, and along the best one."""
        palette, row = theme.palette, theme.px(ROW)
        surface.blit(theme.text(_("This term per second"), TEXT_SMALL, palette.faint), place.topleft)
        y = place.y + theme.line_height(TEXT_SMALL) + theme.px(4)
        means = {label: float(values.mean()) * 60.0 for label, values in self._values.items()}
        largest = max((abs(value) for value in means.values()), default=0.0) or 1.0
        label_width = min(theme.px(170), place.width // 2)
        graph, room = theme.px(70), label_width - theme.px(8)
        fitted = theme.fitting(lambda smaller: all(smaller.width(_(label), TEXT_SMALL) <= room for label in means))
        for label, value in means.items():
            if y + row > place.bottom - graph:
                break
            name = fitted.truncate(_(label), room, TEXT_SMALL)
            surface.blit(fitted.text(name, TEXT_SMALL, palette.text), (place.x, y))
            bar = pygame.Rect(
                place.x + label_width, y + theme.px(4), place.width - label_width - theme.px(80), theme.px(8)
            )
            surface.fill(palette.line, bar)
            colour = palette.good if value >= 0.0 else palette.bad
            surface.fill(colour, (bar.x, bar.y, round(bar.width * abs(value) / largest), bar.height))
            figure = theme.text(f"{value:+.4g}", TEXT_SMALL, palette.text)
            surface.blit(figure, (place.right - figure.get_width(), y))
            y += row
        if not self._values and place.height > graph:
            words = theme.truncate(_("Shown as soon as the formula is right"), place.width, TEXT_SMALL)
            surface.blit(theme.text(words, TEXT_SMALL, palette.faint), (place.x, y))
        if self._values:
            values = next(iter(self._values.values()))
            self._draw_line(surface, theme, pygame.Rect(place.x, place.bottom - graph, place.width, graph), values)

    def _draw_line(self, surface: pygame.Surface, theme: Theme, place: pygame.Rect, values: np.ndarray) -> None:
        """Draw the values of a drive over its time."""
        palette = theme.palette
        low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
        span = (high - low) or 1.0
        at = np.linspace(0, len(values) - 1, min(SAMPLES, len(values))).astype(int)
        height = place.height - theme.line_height(TEXT_SMALL) - theme.px(6)
        top = place.bottom - height
        words = f"{_(next(iter(self._values)))}: {low:.3g} … {high:.3g}"
        surface.blit(
            theme.text(theme.truncate(words, place.width, TEXT_SMALL), TEXT_SMALL, palette.faint), place.topleft
        )
        zero = top + round((high / span) * (height - 1))
        surface.fill(palette.line, (place.x, zero, place.width, 1))
        points = [
            (place.x + number * (place.width - 1) / max(1, len(at) - 1), top + (high - values[i]) / span * (height - 1))
            for number, i in enumerate(at.tolist())
        ]
        if len(points) > 1:
            pygame.draw.aalines(surface, palette.accent, False, points)
