"""The main menu. Importing it loads nothing heavy, so that it is shown at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import pygame

from racer_viewer.modes.help import HelpScreen
from racer_viewer.modes.screen import AppContext, MessageScreen, Screen
from racer_viewer.modes.settings_screen import SettingsScreen
from racer_viewer.modes.waiting import open_when_loaded, open_when_ready, when_ready
from racer_viewer.translation import _, mark
from racer_viewer.ui.intents import Controls
from racer_viewer.ui.item_list import ROW_GAP, ROW_HEIGHT, Button, Item
from racer_viewer.ui.paint import FOOTER_HEIGHT, draw_footer, side_shade
from racer_viewer.ui.theme import MARGIN, TEXT, TEXT_HUGE, TEXT_LARGE, Theme
from racer_viewer.ui.views import Key, ListView, MessageView, draw_hint

if TYPE_CHECKING:
    from pathlib import Path

    from racer_viewer.app.backdrop import MenuBackdrop, MenuCards

NIGHT, ROAD, LINE = (20, 26, 30), (38, 42, 48), (232, 230, 222)
"""Colours of the background until the engine is ready: a road at night."""
WARMUP_STEPS = (
    mark("Compiling the engine"),
    mark("Compiling the engine: walls are compiled"),
    mark("Compiling the engine: ticks are compiled"),
    mark("Compiling the engine: walls are ready"),
    mark("Compiling the engine: ticks are ready"),
)
"""Texts of the engine's warm-up, collected here for translation."""
MENU_WIDTH = 300
"""Width of the list at scale 1 [px]."""
FADE_TICKS = 45
"""Time in which the backdrop fades in [ticks]."""


class MenuScreen(Screen):
    """Play, watch, train, and so on, with a bundled agent driving behind as soon as a circuit can be drawn.

    Cards at the right show the medals won, and the curve of a run that learns in the background.
    """

    see_through = False
    is_main_menu = True
    return_label = mark("Main menu")

    def __init__(self, app: AppContext) -> None:
        super().__init__(app, ListView("Racer", _items(app)))
        self.backdrop: MenuBackdrop | None = None
        self.cards: MenuCards | None = None
        self._fade = 0
        self._items_key: object = None
        app.start_tour, app.teach = partial(_start_tour, app), partial(_teach, app)

    def translate(self) -> None:
        self._items_key = None
        self._fill()

    def keys(self) -> Sequence[Key]:
        return (
            ("Up Down", _("choose")),
            ("Enter", _("accept")),
            ("F1", _("help")),
            ("F11", _("full screen")),
            ("Esc", _("quit")),
        )

    def back(self) -> None:
        """Ask before the app is left: Esc is pressed easily once too often."""
        buttons = [Button(_("Quit"), on_press=self.app.quit), Button(_("Cancel"), on_press=self.app.pop)]
        self.app.push(MessageScreen(self.app, _("Quit Racer?"), _("Training in the background continues."), buttons))

    def tick(self, controls: Controls) -> None:
        self.advance_backdrop()

    def advance_backdrop(self) -> None:
        """Advance what is behind the menu, and what its cards show, by one tick."""
        if self.backdrop is None and self.app.warmup.loaded:
            from racer_viewer.app.backdrop import MenuBackdrop

            self.backdrop = MenuBackdrop(self.app)
        if self.backdrop is not None:
            if self.app.top is self and self.app.warmup.ready:
                self._update_cards()
            self.backdrop.tick()
            self._fade = min(FADE_TICKS, self._fade + 1)

    def on_show(self) -> None:
        super().on_show()
        if self.cards is not None:
            self.cards.refresh()
        self._fill()
        if self.app.settings.tour == "new":
            self.app.push(WelcomeScreen(self.app))

    def on_cover(self) -> None:
        super().on_cover()
        if self.cards is not None:
            self.cards.stop()

    def draw_ahead(self) -> bool:
        return self.backdrop is not None and self.backdrop.draw_ahead()

    def on_close(self) -> None:
        if self.cards is not None:
            self.cards.stop()
        if self.backdrop is not None:
            self.backdrop.close()

    def _update_cards(self) -> None:
        """Read what the cards show for the first time, and offer a run that has begun or ended to learn."""
        if self.cards is None:
            from racer_viewer.app.backdrop import MenuCards

            self.cards = MenuCards(self.app)
            self.cards.refresh()
        self._fill()

    def _fill(self) -> None:
        """List the entries; the selection stays where it is."""
        run = self.cards.learning if self.cards is not None else None
        career = self.cards.career if self.cards is not None else ""
        raced = self.app.settings.raced
        circuit = self.cards.circuit_name if raced and self.cards is not None else ""
        key = raced, circuit, career, run and (run.folder, run.progress)
        if key == self._items_key:
            return
        before, is_first = self.list.item, self._items_key is None
        self._items_key = key
        extra: list[Item] = []
        if raced:
            hint = _("Race again, with the settings of the last race")
            extra.append(Button(_("Continue"), hint, on_press=self._continue, note=circuit))
        if run is not None:
            hint, show = _("Open the run that is learning in the background"), partial(_open_run, self.app, run.folder)
            extra.append(Button(_("Training run"), hint, on_press=show, note=run.progress))
        self.list.items = [*extra, *_items(self.app, career)]
        if before is not None and not is_first:
            self.list.select(before.label)

    def _continue(self) -> None:
        def race() -> None:
            from racer_viewer.modes.choose import open_last_race

            open_last_race(self.app)

        when_ready(self.app, race)

    def _draw_background(self, surface: pygame.Surface, share: float) -> None:
        """Draw the background of the menu and of the screens over it."""
        if self.backdrop is not None:
            self.backdrop.draw(surface, share, self.app.theme.px(MARGIN * 3 + MENU_WIDTH))
        if self._fade < FADE_TICKS:
            night = _night(surface.get_size())
            night.set_alpha(255 - 255 * self._fade // FADE_TICKS)
            surface.blit(night, (0, 0))

    def draw(self, surface: pygame.Surface, share: float) -> None:
        theme = self.app.theme
        self._draw_background(surface, share)
        if self.app.top is not self:
            return
        below = theme.px(FOOTER_HEIGHT + 2.5 * TEXT)
        x, y = _draw_title(surface, theme, len(self.list.items) * theme.px(ROW_HEIGHT + ROW_GAP) + below)
        area = pygame.Rect(x, y, theme.px(MENU_WIDTH), surface.get_height() - y - below)
        self.list.draw(surface, theme, area)
        cards = surface.get_rect() if self.cards is None else self.cards.draw(surface, theme, area.right)
        self._draw_status(surface, x, cards.left - theme.px(MARGIN) if cards.left else 0)
        draw_footer(surface, theme, self.keys())

    def _draw_status(self, surface: pygame.Surface, x: int, right: int) -> None:
        """Draw the hint of the selected item or, while the engine starts, the progress of its warm-up.

        It ends at `right`, or at the margin if that is 0 [px].
        """
        palette, warmup = self.app.theme.palette, self.app.warmup
        item = self.list.item
        text, colour = (item.hint if item else ""), palette.faint
        if warmup.problem:
            text, colour = warmup.problem, palette.bad
        elif not warmup.ready and warmup.done > 0.0:
            text = _("{text} ({done:.0%}), on the first run only").format(text=_(warmup.text), done=warmup.done)
        draw_hint(surface, self.app.theme, text, x, colour, right)


def _draw_title(surface: pygame.Surface, theme: Theme, needed: int) -> tuple[int, int]:
    """Draw the name of the app in large letters, or smaller ones where less than `needed` would be left below [px].

    Return the position below it [px].
    """
    surface.blit(side_shade(surface.get_size(), theme.px(MARGIN * 3 + MENU_WIDTH)), (0, 0))
    x, y = theme.px(MARGIN * 3), theme.px(MARGIN * 2.5)
    title = theme.text("RACER", TEXT_HUGE)
    roomy = y + title.get_height() + theme.px(68) + needed <= surface.get_height()
    if not roomy:
        y, title = theme.px(MARGIN), theme.text("RACER", TEXT_LARGE)
    surface.blit(title, (x, y))
    y += title.get_height()
    pygame.draw.rect(surface, theme.palette.accent, (x + theme.px(2), y, theme.px(64), theme.px(5)))
    y += theme.px(14)
    if roomy:
        surface.blit(theme.text(_("drive · watch · train"), TEXT, theme.palette.faint), (x + theme.px(2), y))
        y += theme.px(54)
    return x, y


def _items(app: AppContext, career: str = "") -> list[Item]:
    """Return the entries that are always there; `career` says how far the career has come."""

    def entry(label: str, hint: str, make: Callable[[AppContext], Screen], note: str = "") -> Button:
        return Button(label, hint, on_press=lambda: open_when_ready(app, lambda: make(app)), note=note)

    return [
        Button(
            _("Play"),
            _("Drive against the clock, your ghost or agents"),
            on_press=lambda: open_when_loaded(app, lambda: _play(app)),
        ),
        entry(_("Career"), _("Eight events to win, and the medals of all circuits"), _career, career),
        entry(_("Watch"), _("Watch trained agents drive, and see what they see"), _watch),
        entry(_("Train"), _("Train an agent to drive"), _train),
        Button(
            _("Circuits"),
            _("All circuits; draw, import and share your own"),
            on_press=lambda: open_when_loaded(app, lambda: _circuits(app)),
        ),
        entry(_("Replays"), _("Saved replays"), _replays),
        entry(_("Records"), _("Best laps on every circuit"), _records),
        Button(
            _("Settings"), _("Sound, units, sizes, colours and keys"), on_press=lambda: app.push(SettingsScreen(app))
        ),
        Button(_("Help"), _("All keys, and the guided tour"), on_press=lambda: app.push(HelpScreen(app))),
        Button(_("Quit"), on_press=app.quit),
    ]


class WelcomeScreen(Screen):
    """Offer of the guided tour, at the first start, beside the car that drives behind the main menu."""

    def __init__(self, app: AppContext) -> None:
        text = _(
            "The guided tour takes three minutes: you drive a lap, see what an agent sees, train one and race it.\n"
            "You can skip any part, and repeat it from Help."
        )
        buttons = [
            Button(_("Start the tour"), on_press=lambda: _start_tour(app)),
            Button(_("Skip the tour"), on_press=self.back),
        ]
        super().__init__(app, MessageView(_("Welcome to Racer"), text, buttons))

    def back(self) -> None:
        """Leave the tour for later."""
        self.app.change(tour="skipped")
        self.app.pop()

    def tick(self, controls: Controls) -> None:
        for screen in self.app.screens:
            if isinstance(screen, MenuScreen):
                screen.advance_backdrop()

    def draw_ahead(self) -> bool:
        return self.app.screens[0].draw_ahead()

    def draw(self, surface: pygame.Surface, share: float) -> None:
        assert isinstance(self.content, MessageView)
        theme, buttons = self.app.theme, len(self.list.items) * self.app.theme.px(ROW_HEIGHT + ROW_GAP)
        below = theme.px(FOOTER_HEIGHT + MARGIN)
        lines = [line for part in self.content.text.splitlines() for line in theme.wrapped(part, theme.px(MENU_WIDTH))]
        text_height = len(lines) * theme.px(1.4 * TEXT) + theme.px(MARGIN)
        x, y = _draw_title(surface, theme, text_height + buttons + below)
        bottom = surface.get_height() - buttons - below
        smaller = theme.fitting(lambda each: y + len(lines) * each.px(1.4 * TEXT) + each.px(MARGIN) <= bottom)
        for line in lines:
            surface.blit(smaller.text(line, TEXT), (x, y))
            y += smaller.px(1.4 * TEXT)
        y += smaller.px(MARGIN)
        self.list.draw(surface, theme, pygame.Rect(x, y, theme.px(MENU_WIDTH), buttons))
        draw_footer(surface, theme, self.keys())


def _start_tour(app: AppContext) -> None:
    def start() -> None:
        from racer_viewer.app.tour import start_tour

        start_tour(app)

    when_ready(app, start)


def _teach(app: AppContext, replay: Path) -> None:
    from racer_viewer.modes.train.setup import TrainSetupScreen

    app.pop_to_menu()
    form = TrainSetupScreen(app)
    app.push(form)
    form.teach(replay)


def _open_run(app: AppContext, folder: Path) -> None:
    from racer_viewer.modes.train.setup import open_run

    open_run(app, folder)


def _play(app: AppContext) -> Screen:
    from racer_viewer.modes.choose import PlaySetupScreen

    return PlaySetupScreen(app)


def _career(app: AppContext) -> Screen:
    from racer_viewer.modes.career import CareerScreen

    return CareerScreen(app)


def _watch(app: AppContext) -> Screen:
    from racer_viewer.modes.choose import WatchSetupScreen

    return WatchSetupScreen(app)


def _train(app: AppContext) -> Screen:
    from racer_viewer.modes.train.setup import TrainSetupScreen

    return TrainSetupScreen(app)


def _circuits(app: AppContext) -> Screen:
    from racer_viewer.modes.gallery.screen import GalleryScreen

    return GalleryScreen(app)


def _replays(app: AppContext) -> Screen:
    from racer_viewer.modes.replay_lists import ReplaysScreen

    return ReplaysScreen(app)


def _records(app: AppContext) -> Screen:
    from racer_viewer.modes.replay_lists import RecordsScreen

    return RecordsScreen(app)


@lru_cache(maxsize=2)
def _night(size: tuple[int, int]) -> pygame.Surface:
    """Draw a road at night with lines and polygons only, which takes no time."""
    width, height = size
    night = pygame.Surface(size)
    night.fill(NIGHT)
    vanish = width * 0.68, height * 0.34
    pygame.draw.polygon(night, ROAD, [vanish, (width * 0.30, height), (width * 1.25, height)])
    for foot in (0.30, 1.25):
        pygame.draw.aaline(night, LINE, vanish, (width * foot, height))
    for number in range(12):
        near, far = 0.86**number, 0.86 ** (number + 0.45)
        dash = [
            (vanish[0] + (width * (0.775 + side) - vanish[0]) * part, vanish[1] + (height - vanish[1]) * part)
            for part, side in ((near, -0.008), (near, 0.008), (far, 0.008), (far, -0.008))
        ]
        pygame.draw.polygon(night, LINE, dash)
    return night
