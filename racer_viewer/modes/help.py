"""Help: a list of all keys, and explanations of the panels and charts that are shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pygame

from racer_viewer.modes.screen import AppContext, Screen
from racer_viewer.translation import _, mark
from racer_viewer.ui.bindings import BINDING_LABELS, Bindings, key_name
from racer_viewer.ui.intents import OVERLAY_COMMANDS, Click, Command, Intent
from racer_viewer.ui.item_list import ROW_GAP, ROW_HEIGHT, Button, ItemList
from racer_viewer.ui.paint import FOOTER_HEIGHT, draw_footer, draw_heading, draw_key_cap, key_cap_width, shade
from racer_viewer.ui.theme import MARGIN, TEXT, Theme
from racer_viewer.ui.views import Key

if TYPE_CHECKING:
    from racer_viewer.render.explanations import Explanation

DRIVING = (
    "steer_left",
    "steer_right",
    "throttle",
    "brake",
    Command.RESTART,
    Command.PUT_BACK,
    Command.CAMERA,
)
LEARNING = (Command.CORRECT, Command.UNDO_CORRECTION, Command.COMPARE, Command.LAYOUT)
EVERYWHERE: tuple[Key, ...] = (
    ("F1 or H", mark("Help")),
    ("?", mark("Explain the panels")),
    ("F10", mark("Start / stop a film")),
    ("F11", mark("Full screen")),
    ("F12", mark("Screenshot")),
    ("Up Down", mark("Choose")),
    ("Left Right", mark("Change, or mark")),
    ("Enter or Space", mark("Accept")),
    ("Esc", mark("Back, or menu")),
    ("Delete", mark("Delete from a list")),
)
GAMEPAD: tuple[Key, ...] = (
    ("Stick", mark("Steer, choose")),
    ("RT LT", mark("Throttle, brake")),
    ("A", mark("Accept")),
    ("B or Start", mark("Back, menu")),
    ("X", mark("Restart")),
    ("Y", mark("Camera")),
    ("LB RB Back", mark("Put back, rays, help")),
)
MAX_KEYS = 2
"""Maximum number of keys listed for a command."""
MAX_STACKED = 12
"""Maximum number of keys in a column of a screen's own groups."""
MAX_ACTIONS = 3
"""Maximum number of actions below the keys."""
ROW, TITLE_ROW, GROUP_GAP = 30, 34, 22
"""Heights at scale 1 [px]."""
CAP_GAP, MIN_COLUMN_GAP, MAX_COLUMN_GAP = 10, 22, 72
"""Widths at scale 1 [px]."""
SHRINK_STEP, MIN_SHRINK = 0.95, 0.25
"""Factor by which text shrinks until everything fits, and its lower limit."""


@dataclass(frozen=True)
class KeyGroup:
    """A titled group of keys."""

    title: str
    keys: tuple[Key, ...]

    def widths(self, theme: Theme) -> tuple[int, int]:
        """Return the widths of the keys and of their descriptions [px]."""
        words = [theme.width(_(does)) for _key, does in self.keys]
        return max(key_cap_width(theme, key) for key, _does in self.keys) + theme.px(CAP_GAP), max(words)

    def width(self, theme: Theme) -> int:
        return max(sum(self.widths(theme)), theme.width(self.title))

    def height(self, theme: Theme) -> int:
        return theme.px(TITLE_ROW) + len(self.keys) * theme.px(ROW)

    def draw(self, surface: pygame.Surface, theme: Theme, x: int, y: int, caps: int) -> None:
        """Draw at (x, y), with `caps` pixels for the keys."""
        surface.blit(theme.text(self.title, TEXT, theme.palette.accent), (x, y))
        row = theme.px(ROW)
        for number, (key, does) in enumerate(self.keys):
            centre = y + theme.px(TITLE_ROW) + number * row + row // 2
            draw_key_cap(surface, theme, key, x, centre)
            text = theme.text(_(does), TEXT, theme.palette.faint)
            surface.blit(text, (x + caps, centre - text.get_height() // 2))


KeyColumn = tuple[KeyGroup, ...]


@dataclass(frozen=True)
class HelpLayout:
    """Groups with their positions and the widths of their keys [px], and the theme they fit with.

    actions: area of the list of actions, below the last column.
    """

    theme: Theme
    groups: tuple[tuple[KeyGroup, int, int, int], ...]
    actions: pygame.Rect


def columns_of(bindings: Bindings, own: Sequence[KeyGroup] = ()) -> tuple[KeyColumn, ...]:
    """Return all bindings, each once, and the fixed keys. own: groups of a screen that has its own keys."""
    everywhere = KeyGroup(_("Everywhere"), (*EVERYWHERE, *_bound(bindings, [Command.MUTE])))
    if own:
        return (*_stacked(own), (everywhere,))
    watching = [name for name in BINDING_LABELS if name not in (*DRIVING, *OVERLAY_COMMANDS, *LEARNING, Command.MUTE)]
    return (
        (KeyGroup(_("Driving"), _bound(bindings, DRIVING)), KeyGroup(_("Gamepad"), GAMEPAD)),
        (
            KeyGroup(_("Overlays"), _bound(bindings, OVERLAY_COMMANDS)),
            KeyGroup(_("Learning and comparing"), _bound(bindings, LEARNING)),
        ),
        (KeyGroup(_("Watching and replays"), _bound(bindings, watching)),),
        (everywhere,),
    )


def _stacked(groups: Sequence[KeyGroup]) -> list[KeyColumn]:
    """Return groups in columns of at most MAX_STACKED keys, in order."""
    columns: list[list[KeyGroup]] = [[]]
    for group in groups:
        if columns[-1] and sum(len(each.keys) for each in (*columns[-1], group)) > MAX_STACKED:
            columns.append([])
        columns[-1].append(group)
    return [tuple(column) for column in columns]


def _bound(bindings: Bindings, names: Iterable[str]) -> tuple[Key, ...]:
    return tuple(
        (" or ".join(key_name(key).replace(" ", "") for key in bindings[name][:MAX_KEYS]), BINDING_LABELS[name])
        for name in names
    )


class HelpScreen(Screen):
    """Columns of keys, as large as they fit, and further help."""

    see_through = True

    def __init__(self, app: AppContext) -> None:
        super().__init__(app)
        below = app.top
        self._explanations = () if below is None else tuple(below.explanations())
        groups = () if below is None else below.key_groups()
        self.own_groups = tuple(KeyGroup(title, tuple(keys)) for title, keys in groups)
        actions = [Button(_("Back"), on_press=app.pop)]
        if app.start_tour is not None:
            actions.append(Button(_("Guided tour"), on_press=app.start_tour))
        if self._explanations:
            actions.append(Button(_("Explain the panels"), on_press=self._explain))
        self._actions = ItemList(actions)
        self._layout: HelpLayout | None = None
        self._layout_key: object = None

    @property
    def list(self) -> ItemList:
        return self._actions

    def keys(self) -> Sequence[Key]:
        return (("Up Down", _("choose")), ("Enter", _("accept")), ("Esc", _("back")))

    def handle(self, intent: Intent) -> None:
        if intent in (Command.BACK, Command.HELP) or (not self._actions.handle(intent) and isinstance(intent, Click)):
            self.app.pop()

    def draw(self, surface: pygame.Surface, share: float) -> None:
        theme = self.app.theme
        surface.blit(shade(surface.get_size(), 235), (0, 0))
        top = draw_heading(surface, theme, _("Help"))
        left = theme.px(MARGIN * 3)
        right, bottom = surface.get_width() - left, surface.get_height() - theme.px(FOOTER_HEIGHT + MARGIN)
        key = (left, top, right, bottom), theme, self.app.settings.bindings, self.own_groups
        if self._layout is None or self._layout_key != key:
            self._layout, self._layout_key = lay_out(*key), key
        for group, x, y, caps in self._layout.groups:
            group.draw(surface, self._layout.theme, x, y, caps)
        self._actions.draw(surface, self._layout.theme, self._layout.actions)
        draw_footer(surface, theme, self.keys())

    def _explain(self) -> None:
        self.app.pop()
        self.app.push(ExplanationScreen(self.app, self._explanations))


def show_explanations(app: AppContext) -> None:
    """Explain what the screen on top shows; where that needs no explanation, show the keys. Called again, close it."""
    if isinstance(app.top, ExplanationScreen | HelpScreen):
        app.pop()
    elif app.top is not None:
        found = app.top.explanations()
        app.push(ExplanationScreen(app, found) if found else HelpScreen(app))


class ExplanationScreen(Screen):
    """Explanations of panels and charts in columns, with smaller text if they do not fit."""

    see_through = True

    def __init__(self, app: AppContext, explanations: Sequence[Explanation]) -> None:
        super().__init__(app)
        self.explanations_shown = tuple(explanations)
        self._picture: pygame.Surface | None = None
        self._picture_key: object = None

    def keys(self) -> Sequence[Key]:
        return (("Esc", _("back")), ("F1", _("all keys")))

    def handle(self, intent: Intent) -> None:
        if intent in (Command.BACK, Command.ACCEPT) or isinstance(intent, Click):
            self.app.pop()

    def draw(self, surface: pygame.Surface, share: float) -> None:
        theme = self.app.theme
        surface.blit(shade(surface.get_size(), 235), (0, 0))
        top = draw_heading(surface, theme, _("What the panels show"))
        left = theme.px(MARGIN * 3)
        size = surface.get_width() - 2 * left, surface.get_height() - top - theme.px(FOOTER_HEIGHT + MARGIN)
        if self._picture_key != (size, theme):
            from racer_viewer.render.explanations import explanation_columns

            self._picture, self._picture_key = explanation_columns(theme, self.explanations_shown, size), (size, theme)
        if self._picture is not None:
            surface.blit(self._picture, (left, top))
        draw_footer(surface, theme, self.keys())


def lay_out(
    area: tuple[int, int, int, int], theme: Theme, bindings: Bindings, own: Sequence[KeyGroup] = ()
) -> HelpLayout:
    """Lay out all keys within (left, top, right, bottom), with smaller text than the theme's if necessary."""
    columns = columns_of(bindings, own)
    left, top, right, bottom = area
    fitting, shrink = theme, 1.0
    while shrink > MIN_SHRINK and not _fits(fitting, columns, right - left, bottom - top):
        shrink *= SHRINK_STEP
        fitting = Theme(theme.scale * shrink, theme.palette)
    free = right - left - sum(_width(fitting, column) for column in columns)
    gap = min(fitting.px(MAX_COLUMN_GAP), free // (len(columns) - 1))
    groups, x, y = [], left, top
    for column in columns:
        end = x + _width(fitting, column)
        y = top
        for group in column:
            groups.append((group, x, y, group.widths(fitting)[0]))
            y += group.height(fitting) + fitting.px(GROUP_GAP)
        x += _width(fitting, column) + gap
    start = groups[-1][1]
    actions = pygame.Rect(start, y, end - start, MAX_ACTIONS * fitting.px(ROW_HEIGHT + ROW_GAP))
    return HelpLayout(fitting, tuple(groups), actions)


def _width(theme: Theme, column: KeyColumn) -> int:
    return max(group.width(theme) for group in column)


def _fits(theme: Theme, columns: Sequence[KeyColumn], width: int, height: int) -> bool:
    wide = sum(_width(theme, column) for column in columns) + (len(columns) - 1) * theme.px(MIN_COLUMN_GAP)
    heights = [sum(group.height(theme) + theme.px(GROUP_GAP) for group in column) for column in columns]
    heights[-1] += MAX_ACTIONS * theme.px(ROW_HEIGHT + ROW_GAP) + theme.px(GROUP_GAP)
    high = max(heights)
    return wide <= width and high - theme.px(GROUP_GAP) <= height
