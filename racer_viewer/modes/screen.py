"""Screens, the stack that they form, and the state that all screens share. Nothing here needs a window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from racer_viewer.settings import Settings, SettingsFile
from racer_viewer.translation import _, mark
from racer_viewer.ui.bindings import FIXED_BINDINGS, PAD_LABELS, key_name
from racer_viewer.ui.intents import Command, Controls, Intent
from racer_viewer.ui.item_list import Button, Item, ItemList
from racer_viewer.ui.theme import COLOUR_BLIND, ORDINARY, REFERENCE_HEIGHT, Theme, fitting_scale
from racer_viewer.ui.views import Key, ListView, MessageView, translated

if TYPE_CHECKING:
    import pygame

    from racer_viewer.modes.race_view import RaceView
    from racer_viewer.render.explanations import Explanation
    from racer_viewer.replays.records import Records
    from racer_viewer.sound import Effect, SoundPlayer
    from racer_viewer.warmup import EngineWarmup

NOTICE_TICKS = 240
"""Time that a notice stays on screen [ticks]."""
MENU_KEYS: tuple[Key, ...] = (
    ("Up Down", mark("choose")),
    ("Left Right", mark("change")),
    ("Enter", mark("accept")),
    ("Esc", mark("back")),
    ("F1", mark("help")),
)
"""Keys of a screen with a list."""
COMMAND_SOUNDS: dict[Command, Effect] = {
    Command.UP: "move",
    Command.DOWN: "move",
    Command.LEFT: "move",
    Command.RIGHT: "move",
    Command.ACCEPT: "accept",
    Command.BACK: "back",
}


@dataclass(frozen=True)
class BridgeAddress:
    """A server that simulates the cars; `token` is for servers that require one."""

    url: str
    token: str | None = None


class Screen:
    """One entry of the screen stack.

    A screen with a list or message as its `content` shows that over the screen below and passes intents on to it;
    other screens override `draw` and `handle`.
    """

    typing = False
    """True while keys are text, so that they give no commands."""
    uses_right_button = False
    """True if the screen handles clicks and drags with the right mouse button; otherwise a click there goes back."""
    is_main_menu = False
    """True for the screen that `AppContext.pop_to_menu` returns to."""
    return_label = ""
    """Label of the button that leaves a race and returns to this screen; empty if races return to a lower one."""

    view: RaceView | None = None
    """Picture of a race, if the screen shows one; it can be recorded, and its cars are heard while it is on top."""

    def __init__(self, app: AppContext, content: ListView | MessageView | None = None) -> None:
        self.app, self.content = app, content

    @property
    def list(self) -> ItemList:
        """List of items in the content."""
        assert self.content is not None
        return self.content.list

    @property
    def see_through(self) -> bool:
        """True if the screen below has to be drawn first."""
        return self.content is not None

    def keys(self) -> Sequence[Key]:
        """Return the keys for the line at the bottom."""
        return () if self.content is None else translated(MENU_KEYS)

    def space_below_keys(self) -> int:
        """Return the height of what is below the line of keys, where notices are shown too [px]."""
        return 0

    def handle(self, intent: Intent) -> None:
        """Handle an intent while this screen is on top."""
        if self.content is None:
            return
        if isinstance(intent, Command) and intent in COMMAND_SOUNDS:
            self.app.sound.play(COMMAND_SOUNDS[intent])
        if intent == Command.BACK:
            self.back()
        else:
            self.content.list.handle(intent)

    def repeats(self, direction: Command) -> bool:
        """Return whether a direction that is held is given again and again."""
        return self.content is not None and self.content.list.repeats(direction)

    def back(self) -> None:
        """Leave the screen, as the Esc key does."""
        self.app.pop()

    def tick(self, controls: Controls) -> None:
        """Advance by one tick of 1/60 s."""

    def draw(self, surface: pygame.Surface, share: float) -> None:
        """Draw the screen; `share` is the part of the next tick that has passed."""
        if self.content is not None:
            self.content.draw(surface, self.app.theme, self.keys())

    def draw_ahead(self) -> bool:
        """Use spare time before the next frame to prepare something for it; return False if nothing is left to do."""
        return False

    def refresh(self) -> None:
        """Read settings and files again: the screen is shown, or a file was dropped on the window."""

    def translate(self) -> None:
        """Write texts anew that are made once, after the language was changed."""

    def add_model(self, path: Path) -> bool:
        """Take a model that was dropped on the window; return False if the screen has no use for it."""
        return False

    def key_groups(self) -> Sequence[tuple[str, Sequence[Key]]]:
        """Return titled groups of keys that the help shows instead of those for driving and watching."""
        return ()

    def explanations(self) -> Sequence[Explanation]:
        """Return the explanations of the panels and charts that are shown."""
        return () if self.view is None else self.view.explanations()

    def confirm_close(self, then: Callable[[], None]) -> Screen | None:
        """Return a screen that asks before the window closes and calls `then` to close it; None to close at once."""
        return None

    def on_show(self) -> None:
        """Handle that the screen is on top now, for the first time or again."""
        self.refresh()
        if self.view is not None:
            self.app.sound.resume()

    def on_cover(self) -> None:
        """Handle that another screen was pushed on top."""
        if self.view is not None:
            self.app.sound.pause()

    def on_close(self) -> None:
        """Handle that the screen was removed from the stack."""
        if self.view is not None:
            self.app.sound.pause()


class HintLayer(Protocol):
    """A layer over all screens, such as the hints of the guided tour."""

    def handle(self, intent: Intent) -> bool:
        """Handle an intent before the screen on top; return True if the screen must not get it."""
        ...

    def tick(self) -> None:
        """Advance by one tick, after the screen on top."""
        ...

    def draw(self, surface: pygame.Surface) -> None: ...


@dataclass
class AppContext:
    """State that all screens share, and the stack of screens. The app ends when the stack is empty."""

    settings_file: SettingsFile
    settings: Settings
    data: Path
    """The user's data folder."""
    warmup: EngineWarmup
    sound: SoundPlayer
    bridge: BridgeAddress | None = None
    """Address of the bridge that simulates races; None simulates in this process."""
    renderer: str = "software"
    """Way in which pictures reach the window; "software" or "gpu"."""
    theme: Theme = field(default_factory=Theme)
    sign_width: int = 0
    """Width that the line of keys leaves free for a sign at its right end, at scale 1 [px]."""
    height: int = REFERENCE_HEIGHT
    """Height of the window [px]."""
    screens: list[Screen] = field(default_factory=list)
    notice: str = ""
    """Text of the last notice."""
    notice_ticks: int = 0
    """Remaining time of the notice [ticks]."""
    layer: HintLayer | None = None
    """Layer over all screens; None without one."""
    start_tour: Callable[[], None] | None = None
    """Starts the guided tour over the main menu; None without a main menu."""
    teach: Callable[[Path], None] | None = None
    """Opens Train over the main menu with a replay to learn from; None without a main menu."""
    gamepad: bool = False
    """True if the input device used last is a gamepad."""
    browsed: Path | None = None
    """Folder shown last in the file browser; None before."""
    on_settings_change: list[Callable[[Settings], None]] = field(default_factory=list)
    """Callbacks that receive changed settings."""
    _records: Records | None = None

    @property
    def top(self) -> Screen | None:
        return self.screens[-1] if self.screens else None

    @property
    def lowest(self) -> int:
        """Index of the lowest visible screen."""
        return max((number for number, screen in enumerate(self.screens) if not screen.see_through), default=0)

    def push(self, screen: Screen) -> None:
        if self.top is not None:
            self.top.on_cover()
        self.screens.append(screen)
        screen.on_show()

    def pop(self) -> None:
        if self.screens:
            self.screens.pop().on_close()
        if self.top is not None:
            self.top.on_show()

    def pop_to(self, kind: type[Screen]) -> None:
        """Close screens until one of this class is on top."""
        self._close_until(lambda screen: isinstance(screen, kind))

    def pop_to_menu(self) -> None:
        """Close screens until the main menu is on top."""
        self._close_until(lambda screen: screen.is_main_menu)

    @property
    def leave_label(self) -> str:
        """Label of the button that leaves a race: the `return_label` of the screen that `leave_race` returns to."""
        return _(next((screen.return_label for screen in reversed(self.screens) if screen.return_label), mark("Leave")))

    def leave_race(self) -> None:
        """Close screens until one with a `return_label` is on top."""
        self._close_until(lambda screen: bool(screen.return_label))

    def _close_until(self, stays: Callable[[Screen], bool]) -> None:
        while self.screens and not stays(self.screens[-1]):
            self.screens.pop().on_close()
        if self.top is not None:
            self.top.on_show()

    def ask_to_quit(self) -> None:
        """Quit, unless a screen wants confirmation. A second request while its question is shown changes nothing."""
        for screen in reversed(self.screens):
            question = screen.confirm_close(self.quit)
            if question is not None:
                if type(self.top) is not type(question):
                    self.push(question)
                return
        self.quit()

    def quit(self) -> None:
        while self.screens:
            self.screens.pop().on_close()

    def notify(self, text: str) -> None:
        """Show a notice over the current screen for a few seconds."""
        self.notice, self.notice_ticks = text, NOTICE_TICKS

    def change(self, **values: object) -> None:
        """Change settings and save them."""
        self.settings = self.settings.changed(**values)
        self.settings_file.save(self.settings)
        if self.settings_file.problem:
            self.notify(self.settings_file.problem)
            self.settings_file.problem = ""
        for callback in self.on_settings_change:
            callback(self.settings)

    @property
    def records(self) -> Records:
        """Database of best laps, opened on first use."""
        if self._records is None:
            from racer_viewer.replays.records import Records

            self._records = Records(self.data / "records.sqlite")
        return self._records

    def fit(self, size: tuple[int, int]) -> None:
        """Adapt the theme to a window of this size and to the settings."""
        self.height = size[1]
        scale = fitting_scale(size, self.settings.ui_scale)
        palette = COLOUR_BLIND if self.settings.colour_blind else ORDINARY
        if (scale, palette) != (self.theme.scale, self.theme.palette):
            self.theme = Theme(scale, palette)

    def key_label(self, command: str) -> str:
        """Return the first key that gives a command, as it is shown on screen."""
        keys = self.settings.bindings.get(command, ())
        return key_name(keys[0]) if keys else "–"

    def input_label(self, *names: str) -> str:
        """Return what to press for controls or commands on the device used last, as `draw_key_cap` takes it."""
        if self.gamepad:
            labels = [PAD_LABELS[name] for name in names if name in PAD_LABELS]
        else:
            bindings = {**FIXED_BINDINGS, **self.settings.bindings}
            labels = [key_name(bindings[name][0]).replace(" ", "") for name in names if bindings.get(name)]
        return " ".join(dict.fromkeys(labels)) or "–"


class MessageScreen(Screen):
    """A message with buttons; by default an OK button that goes back.

    on_back: replaces what Esc and the OK button do.
    """

    def __init__(
        self,
        app: AppContext,
        title: str,
        text: str,
        items: Sequence[Item] = (),
        on_back: Callable[[], None] | None = None,
    ) -> None:
        self.title, self.text, self._on_back = title, text, on_back
        super().__init__(app, MessageView(title, text, items or [Button(_("OK"), on_press=self.back)]))

    def back(self) -> None:
        if self._on_back is None:
            self.app.pop()
        else:
            self._on_back()
