"""Panels over the canvas: the tool bar with all commands, and the facts of the circuit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pygame

from racer_viewer.modes.circuits import MEDALS
from racer_viewer.modes.editor.actions import ACTIONS, EditorAction
from racer_viewer.modes.editor.document import CircuitDocument
from racer_viewer.render.explanations import Explanation
from racer_viewer.replays.records import medals_of
from racer_viewer.translation import _, mark, ngettext
from racer_viewer.ui.paint import draw_key_cap, key_cap_width
from racer_viewer.ui.theme import CORNER, PADDING, TEXT, TEXT_SMALL, Colour, Theme

if TYPE_CHECKING:
    from racer_viewer.modes.editor.screen import EditorScreen

BAR_ROW, GROUP_GAP, CAP_GAP = 25, 8, 14
"""Height of a button, distance between groups of buttons, and between a label and its key, at scale 1 [px]."""
FACTS_WIDTH, FACTS_ROW = 236, 22
"""Width of the facts and height of one, at scale 1 [px]."""
MAX_FACTS_SHARE, MAX_FACTS_HEIGHT = 0.25, 0.55
"""Largest parts of the canvas' width, and of the height beside it, that the facts take."""
CIRCUIT_EXPLANATION = Explanation(
    mark("Circuit"),
    mark(
        "What you have drawn so far. It can be driven if nothing is wrong; marks on the canvas show where something is"
        " wrong, and why. Medals are proposed from the lap of an agent: author is its time, gold 4 %, silver 12 % and"
        " bronze 30 % more."
    ),
    mark("units; one unit is about one metre"),
)


class ToolBar:
    """Buttons for the commands, with their keys. rects: places of the buttons drawn last [px]."""

    def __init__(self) -> None:
        self.area = pygame.Rect(0, 0, 0, 0)
        self.rects: dict[str, pygame.Rect] = {}
        self._actions = [action for action in ACTIONS if action.in_bar]

    def action_at(self, x: int, y: int) -> EditorAction | None:
        """Return the command of the button at a pixel."""
        return next((action for action in self._actions if self.rects[action.name].collidepoint(x, y)), None)

    def draw(self, surface: pygame.Surface, theme: Theme, editor: EditorScreen, area: pygame.Rect) -> None:
        """Draw at the top left of an area, in smaller letters where not all buttons fit."""
        theme = theme.fitting(lambda smaller: self._size(smaller)[1] <= area.height)
        width, height = self._size(theme)
        self.area = pygame.Rect(area.topleft, (width, height))
        surface.blit(theme.panel(width, height), self.area)
        y, group = self.area.y + theme.px(PADDING) // 2, self._actions[0].group
        for action in self._actions:
            y += theme.px(GROUP_GAP) if action.group != group else 0
            group = action.group
            row = pygame.Rect(self.area.x + theme.px(4), y, width - 2 * theme.px(4), theme.px(BAR_ROW))
            self.rects[action.name] = row
            _draw_button(surface, theme, action, row, editor)
            y += row.height

    def _size(self, theme: Theme) -> tuple[int, int]:
        labels = max(theme.width(_(action.label), TEXT_SMALL) for action in self._actions)
        caps = max(key_cap_width(theme, action.cap) for action in self._actions)
        groups = len(dict.fromkeys(action.group for action in self._actions))
        height = len(self._actions) * theme.px(BAR_ROW) + (groups - 1) * theme.px(GROUP_GAP) + theme.px(PADDING)
        return labels + caps + theme.px(CAP_GAP) + 2 * theme.px(PADDING), height


def _draw_button(
    surface: pygame.Surface, theme: Theme, action: EditorAction, row: pygame.Rect, editor: EditorScreen
) -> None:
    palette, available, chosen = theme.palette, action.available(editor), action.chosen(editor)
    colour: Colour = palette.text if available else palette.line
    if chosen:
        pygame.draw.rect(surface, palette.accent, row, border_radius=theme.px(CORNER // 2))
        colour = palette.on_accent
    elif available and editor.hovered is action:
        pygame.draw.rect(surface, palette.line, row, border_radius=theme.px(CORNER // 2))
    text = theme.text(_(action.label), TEXT_SMALL, colour)
    surface.blit(text, text.get_rect(midleft=(row.x + theme.px(PADDING) - theme.px(4), row.centery)))
    cap = key_cap_width(theme, action.cap)
    draw_key_cap(surface, theme, action.cap, row.right - cap - theme.px(2), row.centery)


class FactsPanel:
    """Name, figures, problems and medals of the circuit."""

    def __init__(self) -> None:
        self.area = pygame.Rect(0, 0, 0, 0)

    def draw(
        self, surface: pygame.Surface, theme: Theme, editor: EditorScreen, area: pygame.Rect, fills: bool = False
    ) -> None:
        """Draw at the top right of an area. fills: take the whole width of the area."""
        rows = _rows(theme, editor)
        if fills:
            theme = theme.fitting(lambda each: _facts_height(each, len(rows)) <= MAX_FACTS_HEIGHT * area.height)
        else:
            theme = theme.fitting(lambda each: each.px(FACTS_WIDTH) <= MAX_FACTS_SHARE * area.width)
        pad = theme.px(PADDING)
        name = editor.document.draft.name or _("Unnamed circuit")
        size = TEXT
        width = area.width if fills else min(theme.px(FACTS_WIDTH), area.width)
        smaller = theme.fitting(lambda each: each.width(name, size) <= width - 2 * pad, 0.6)
        name = smaller.truncate(name, width - 2 * pad, size)
        height = _facts_height(theme, len(rows))
        self.area = pygame.Rect(area.right - width, area.y, width, height)
        surface.blit(theme.panel(width, height), self.area)
        x, y, right = self.area.x + pad, self.area.y + pad, self.area.right - pad
        surface.blit(smaller.text(name, size), (x, y))
        y += theme.line_height(size) + theme.px(8)
        for label, value, colour in rows:
            _draw_row(surface, theme, label, value, colour, pygame.Rect(x, y, right - x, theme.px(FACTS_ROW)))
            y += theme.px(FACTS_ROW)


def _facts_height(theme: Theme, rows: int) -> int:
    """Return the height of the facts with so many rows [px]."""
    return theme.line_height(TEXT) + theme.px(8) + rows * theme.px(FACTS_ROW) + 2 * theme.px(PADDING)


def _draw_row(surface: pygame.Surface, theme: Theme, label: str, value: str, colour: Colour, row: pygame.Rect) -> None:
    """Draw a label at the left and a value at the right, in smaller letters where they do not fit."""
    gap = theme.px(8)

    def fits(smaller: Theme) -> bool:
        return smaller.width(label, TEXT_SMALL) + smaller.width(value, TEXT_SMALL) + gap <= row.width

    smaller = theme.fitting(fits)
    left = smaller.text(label, TEXT_SMALL, theme.palette.faint)
    surface.blit(left, left.get_rect(midleft=row.midleft))
    right = smaller.text(value, TEXT_SMALL, colour)
    surface.blit(right, right.get_rect(midright=row.midright) if label else right.get_rect(midleft=row.midleft))


Row = tuple[str, str, Colour]
"""Label, value and colour of the value."""


def _rows(theme: Theme, editor: EditorScreen) -> Sequence[Row]:
    """Return the facts that are known now."""
    document, palette = editor.document, theme.palette
    facts = document.preview.facts
    rows: list[Row] = [(_("Points"), str(len(document.points)), palette.text)]
    if facts is not None:
        rows += [
            (_("Length"), _("{length:,.0f} units").format(length=facts.length), palette.text),
            (_("Tightest corner"), _("{length:,.0f} units").format(length=facts.tightest_radius), palette.text),
            (_("Road width"), f"{facts.narrowest:.0f} – {facts.widest:.0f}", palette.text),
        ]
    rows += _selection_rows(document, theme)
    rows.append(("", *_state(document, theme)))
    rows += editor.trial_rows()
    medals = medals_of(document.draft.to_circuit()) if document.drivable else None
    if medals is not None:
        rows += [(_("Author"), f"{medals.author:.2f} s", MEDALS["author"])] if medals.author else []
        rows.append((_("Gold"), f"{medals.gold:.2f} s", MEDALS["gold"]))
        rows.append((_("Silver"), f"{medals.silver:.2f} s", MEDALS["silver"]))
        rows.append((_("Bronze"), f"{medals.bronze:.2f} s", MEDALS["bronze"]))
    return rows


def _selection_rows(document: CircuitDocument, theme: Theme) -> list[Row]:
    palette, chosen = theme.palette, sorted(document.selected)
    if not chosen:
        return []
    if len(chosen) > 1:
        text = ngettext("{count} point", "{count} points", len(chosen)).format(count=len(chosen))
        return [(_("Selected"), text, palette.accent)]
    point = document.points[chosen[0]]
    return [
        (_("Selected"), _("{x:.0f}, {y:.0f}, {width:.0f} wide").format(
            x=point.x, y=point.y, width=2.0 * point.half_width), palette.accent)
    ]  # fmt: skip


def _state(document: CircuitDocument, theme: Theme) -> tuple[str, Colour]:
    """Return whether the circuit can be driven."""
    count = len(document.problems)
    if not document.points:
        return _("Nothing drawn yet"), theme.palette.faint
    if count:
        return ngettext("{count} problem", "{count} problems", count).format(count=count), theme.palette.bad
    if not document.is_checked:
        return _("Checking"), theme.palette.faint
    return _("Can be driven"), theme.palette.good
