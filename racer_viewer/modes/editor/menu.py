"""Screens over the editor: its menu, the name of the circuit, and the question before changes are lost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from racer_viewer.circuits.draft import GATE_COUNTS, set_gates
from racer_viewer.circuits.library import MAX_NAME_LENGTH
from racer_viewer.modes.editor.actions import ACTIONS, DRIVE, FILE, EditorAction
from racer_viewer.modes.screen import AppContext, Screen
from racer_viewer.modes.settings_screen import SettingsScreen
from racer_viewer.translation import _, mark
from racer_viewer.ui.intents import Click, Intent, KeyPress, TextInput
from racer_viewer.ui.item_list import Button, Item, Slider, toggle
from racer_viewer.ui.views import ListView, MessageView

if TYPE_CHECKING:
    from racer_viewer.modes.editor.screen import EditorScreen

GATE_STEP = 1


class EditorMenu(Screen):
    """All commands of the editor as a list, for the keyboard and for a gamepad."""

    def __init__(self, app: AppContext, editor: EditorScreen) -> None:
        super().__init__(app, ListView(_("Editor"), darkness=150))
        self._editor = editor
        gates = editor.document.draft.gates
        self._gates = Slider(
            _("Gates"), _("Gates count progress; all must be crossed in order"), low=GATE_COUNTS[0], high=100,
            step=GATE_STEP, number=gates, on_change=self._set_gates,
        )  # fmt: skip
        self.list.items = [
            Button(_("Resume"), on_press=app.pop),
            *(self._item(action) for action in sorted(ACTIONS, key=_menu_order) if action.name != "move"),
            self._gates,
            Button(_("Settings"), on_press=lambda: app.push(SettingsScreen(app))),
            Button(_("Leave"), _("Asks first if something was not saved"), on_press=self._leave),
        ]

    def _item(self, action: EditorAction) -> Item:
        press = partial(self._run, action)
        return Button(_(action.label), _(action.hint), action.available(self._editor), press, action.cap)

    def _run(self, action: EditorAction) -> None:
        self.app.pop()
        self._editor.run(action)

    def _set_gates(self, count: float) -> None:
        document = self._editor.document
        document.do(set_gates(document.draft, round(count)), mark("gates"), "gates")

    def _leave(self) -> None:
        self.app.pop()
        self._editor.leave()


def _menu_order(action: EditorAction) -> int:
    """Return 0 for commands that come first in the menu, else 1."""
    return 0 if action.group in (FILE, DRIVE) else 1


class NameCircuitScreen(Screen):
    """Input of a name: Enter accepts it, Esc keeps the old one. accept: called with the new name."""

    typing = True

    def __init__(self, app: AppContext, name: str, accept: Callable[[str], None]) -> None:
        self._message = MessageView(_("Name of the circuit"), "", [Button(_("OK"), on_press=self._accept)])
        super().__init__(app, self._message)
        self._name, self._take = name, accept
        self._untouched = bool(name)
        """True until the first key; the first letter then replaces the name."""
        self._update_text()

    def handle(self, intent: Intent) -> None:
        match intent:
            case TextInput(text):
                before = "" if self._untouched else self._name
                self._name = (before + "".join(each for each in text if each.isprintable()))[:MAX_NAME_LENGTH]
                self._untouched = False
            case KeyPress("backspace"):
                self._name, self._untouched = self._name[:-1], False
            case KeyPress("escape"):
                self.app.pop()
            case KeyPress("return" | "enter") | Click():
                self._accept()
            case _:
                return
        self._update_text()

    def _update_text(self) -> None:
        typed = _("[{name}]  type a new name").format(name=self._name) if self._untouched else f"{self._name}|"
        self._message.text = typed

    def _accept(self) -> None:
        self.app.pop()
        if self._name.strip():
            self._take(self._name.strip())


class LeaveEditorScreen(Screen):
    """Question before changes are lost, or a run is stopped. then: leaves the editor."""

    def __init__(self, app: AppContext, editor: EditorScreen, then: Callable[[], None]) -> None:
        self._editor, self._then = editor, then
        name = editor.document.draft.name or _("The circuit")
        lines = [_("{name} has changes that were not saved.").format(name=name)] if editor.dirty else []
        buttons: list[Item] = [Button(_("Leave"), on_press=self._go)]
        if editor.dirty:
            lost = Button(_("Leave without saving"), _("The changes are lost"), on_press=self._go)
            buttons = [Button(_("Save and leave"), on_press=self._save), lost]
        if editor.learns:
            lines.append(_("The agent that learns here is stopped and saved, unless it learns on in the background."))
            buttons.append(toggle(_("Learn on in the background"), False, editor.keep_learning))
        buttons.append(Button(_("Keep editing"), on_press=app.pop))
        super().__init__(app, MessageView(_("Leave the editor?"), "\n".join(lines), buttons))

    def _save(self) -> None:
        self.app.pop()
        self._editor.save(self._then)

    def _go(self) -> None:
        self.app.pop()
        self._then()
