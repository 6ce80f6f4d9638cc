"""All commands of the editor in one table: keys, tool bar, menu and help read it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from racer_viewer.modes.editor.document import CircuitDocument
from racer_viewer.modes.editor.mouse import EditorMouse, Tool
from racer_viewer.translation import _, mark
from racer_viewer.ui.intents import KeyPress


class Editor(Protocol):
    """Parts of the screen that the commands use. shift_held: Shift was held with the key that was pressed last."""

    document: CircuitDocument
    mouse: EditorMouse
    grid: bool
    shift_held: bool

    def undo(self) -> None: ...
    def redo(self) -> None: ...
    def toggle_grid(self) -> None: ...
    def toggle_snap(self) -> None: ...
    def move_start(self) -> None: ...
    def show_all(self) -> None: ...
    def show_next_problem(self) -> None: ...
    def name(self) -> None: ...
    def save(self) -> None: ...
    def test_drive(self, from_cursor: bool) -> None: ...
    def toggle_champion(self) -> None: ...
    def toggle_training(self) -> None: ...
    def open_training(self) -> None: ...
    @property
    def champion_drives(self) -> bool: ...
    @property
    def trains(self) -> bool: ...


Run = Callable[[Editor], None]


@dataclass(frozen=True)
class EditorAction:
    """A command of the editor.

    keys: keys as `KeyPress` names them, with `ctrl+` or `shift+` before them.
    cap: keys as they are shown on screen.
    hint: explanation of one or two sentences.
    group: group in tool bar and help.
    in_bar: it has a button in the tool bar.
    """

    name: str
    keys: tuple[str, ...]
    cap: str
    label: str
    hint: str
    group: str
    run: Run
    in_bar: bool = True
    available: Callable[[Editor], bool] = lambda editor: True
    chosen: Callable[[Editor], bool] = lambda editor: False


def _edit(change: Callable[[CircuitDocument], object]) -> Run:
    """Return a command that changes the circuit, as an edit of its own unless it merges."""
    return lambda editor: (change(editor.document), None)[1]


def _tool(name: str, keys: str, tool: Tool, label: str, hint: str) -> EditorAction:
    return EditorAction(
        name, (keys,), keys.upper(), label, hint, TOOLS, lambda editor: editor.mouse.use(tool),
        chosen=lambda editor: editor.mouse.tool is tool,
    )  # fmt: skip


def _has_points(editor: Editor) -> bool:
    return bool(editor.document.points)


def _drivable(editor: Editor) -> bool:
    return editor.document.drivable


def _is_closed(editor: Editor) -> bool:
    return editor.document.is_closed


TOOLS, EDIT, SHAPE, VIEW, DRIVE, FILE = (
    mark("Tools"), mark("Edit"), mark("Shape"), mark("View"), mark("Drive"), mark("Circuit"),
)  # fmt: skip

ACTIONS: tuple[EditorAction, ...] = (
    _tool("edit", "e", Tool.EDIT, mark("Edit points"), mark(
        "Drag points, or pull new ones out of the line. Shift adds to the selection; drag on the grass to select"
        " several.")),
    _tool("freehand", "f", Tool.FREEHAND, mark("Freehand"), mark(
        "Hold the left button and draw a whole lap: it becomes a smooth circuit with few points.")),
    _tool("points", "p", Tool.POINTS, mark("Add points"), mark(
        "Each click adds a point. A click on the first point, or E, ends it.")),
    EditorAction(
        "undo", ("ctrl+z", "u"), "U", mark("Undo"), mark("Take back the last edit, without limit."), EDIT,
        lambda editor: editor.undo(), available=lambda editor: editor.document.history.can_undo),
    EditorAction(
        "redo", ("ctrl+y", "ctrl+shift+z", "shift+u"), "Shift U", mark("Redo"), mark(
            "Repeat the edit that was taken back."), EDIT,
        lambda editor: editor.redo(), available=lambda editor: editor.document.history.can_redo),
    EditorAction(
        "delete", ("delete", "backspace"), "Delete", mark("Delete points"), mark(
            "Delete the selected points; a right click deletes the one below the mouse."), EDIT,
        _edit(CircuitDocument.delete), available=lambda editor: bool(editor.document.selected)),
    EditorAction(
        "insert", ("i", "insert"), "I", mark("Insert a point"), mark(
            "Insert a point after the selected one; a click on the line inserts one there."), EDIT,
        _edit(CircuitDocument.insert_after), available=_is_closed),
    EditorAction(
        "wider", ("+", "=", "[+]"), "+", mark("Wider"), mark(
            "Make the road wider at the selected points, or everywhere. The wheel over a point and the squares at the"
            " edges of the road do the same."), SHAPE,
        _edit(lambda document: document.widen(1.0)), in_bar=False, available=_has_points),
    EditorAction(
        "narrower", ("-", "[-]"), "-", mark("Narrower"), mark(
            "Make the road narrower at the selected points, or everywhere."), SHAPE,
        _edit(lambda document: document.widen(-1.0)), in_bar=False, available=_has_points),
    EditorAction(
        "start", ("s",), "S", mark("Start line here"), mark(
            "Move the start line to the selected point or, without one, to the place below the mouse."), EDIT,
        lambda editor: editor.move_start(), available=_is_closed),
    EditorAction(
        "reverse", ("r",), "R", mark("Reverse"), mark("Drive in the other direction."), EDIT,
        _edit(CircuitDocument.reverse), available=_is_closed),
    EditorAction(
        "smooth", ("o",), "O", mark("Smooth"), mark("Smooth the line at the selected points, or everywhere."), SHAPE,
        _edit(CircuitDocument.smooth), available=_is_closed),
    EditorAction(
        "mirror x", ("x",), "X", mark("Mirror left / right"), mark(
            "Mirror the selected points, or all, left to right."), SHAPE,
        _edit(lambda document: document.mirror("x")), in_bar=False, available=_has_points),
    EditorAction(
        "mirror y", ("y",), "Y", mark("Mirror up / down"), mark(
            "Mirror the selected points, or all, top to bottom."), SHAPE,
        _edit(lambda document: document.mirror("y")), in_bar=False, available=_has_points),
    EditorAction(
        "left", (",",), ",", mark("Rotate left"), mark("Rotate the selected points, or all, by five degrees."), SHAPE,
        _edit(lambda document: document.rotate(1)), in_bar=False, available=_has_points),
    EditorAction(
        "right", (".",), ".", mark("Rotate right"), mark("Rotate the selected points, or all, by five degrees."), SHAPE,
        _edit(lambda document: document.rotate(-1)), in_bar=False, available=_has_points),
    EditorAction(
        "larger", ("page up",), "PgUp", mark("Larger"), mark(
            "Scale the selected points, or all, by five percent."), SHAPE,
        _edit(lambda document: document.scale(1)), in_bar=False, available=_has_points),
    EditorAction(
        "smaller", ("page down",), "PgDn", mark("Smaller"), mark("Scale the selected points, or all, by five percent."),
        SHAPE, _edit(lambda document: document.scale(-1)), in_bar=False, available=_has_points),
    EditorAction(
        "all", ("ctrl+a", "a"), "A", mark("Select all"), mark("Select all points."), EDIT,
        _edit(CircuitDocument.select_all), in_bar=False, available=_has_points),
    EditorAction(
        "next", ("tab",), "Tab", mark("Next point"), mark("Select the next point; with Shift, the one before."), EDIT,
        lambda editor: editor.document.select_next(-1 if editor.shift_held else 1), in_bar=False,
        available=_has_points),
    EditorAction(
        "move", (), "Left Right Up Down", mark("Move"), mark(
            "Move the selected points by ten units, with Shift by one; without any, the view."), EDIT,
        lambda editor: None, in_bar=False),
    EditorAction(
        "grid", ("q",), "Q", mark("Grid"), mark("Show a grid; its finest lines are ten units apart."), VIEW,
        lambda editor: editor.toggle_grid(), chosen=lambda editor: editor.grid),
    EditorAction(
        "snap", ("v",), "V", mark("Snap"), mark(
            "Points snap to the grid. Ctrl does the opposite while you drag."), VIEW,
        lambda editor: editor.toggle_snap(), chosen=lambda editor: editor.document.snaps),
    EditorAction(
        "whole", ("home", "c"), "C", mark("Whole circuit"), mark(
            "Show the whole circuit. The wheel zooms; the right or the middle button, or Space, moves the view."), VIEW,
        lambda editor: editor.show_all()),
    EditorAction(
        "problem", ("j",), "J", mark("Next problem"), mark("Show the next place where something is wrong."), VIEW,
        lambda editor: editor.show_next_problem(), in_bar=False,
        available=lambda editor: bool(editor.document.problems)),
    EditorAction(
        "test", ("t",), "T", mark("Test drive"), mark(
            "Drive the circuit from the start line, saved or not; T or Esc comes back. Shift T starts at the mouse."),
        DRIVE, lambda editor: editor.test_drive(from_cursor=False), available=_drivable),
    EditorAction(
        "test here", ("shift+t",), "Shift T", mark("Test drive from the mouse"), mark(
            "Drive from the place on the road that is nearest to the mouse."), DRIVE,
        lambda editor: editor.test_drive(from_cursor=True), in_bar=False, available=_drivable),
    EditorAction(
        "champion", ("w",), "W", mark("Champion"), mark(
            "Let the champion drive beside the canvas, and measure its lap: is it clean, and how fast? Medals are"
            " proposed from it."), DRIVE,
        lambda editor: editor.toggle_champion(), available=lambda editor: _drivable(editor) or editor.champion_drives,
        chosen=lambda editor: editor.champion_drives),
    EditorAction(
        "train", ("g",), "G", mark("Train"), mark(
            "Train a new agent on the circuit. Its cars drive on the canvas, and change to the edited circuit at their"
            " next start. G again stops and saves the run."), DRIVE,
        lambda editor: editor.toggle_training(), available=lambda editor: _drivable(editor) or editor.trains,
        chosen=lambda editor: editor.trains),
    EditorAction(
        "open training", ("shift+g",), "Shift G", mark("Whole training screen"), mark(
            "Show the run that learns here with all its charts; it goes on learning."), DRIVE,
        lambda editor: editor.open_training(), in_bar=False, available=lambda editor: editor.trains),
    EditorAction(
        "name", ("n",), "N", mark("Name"), mark("Name the circuit."), FILE, lambda editor: editor.name()),
    EditorAction(
        "save", ("ctrl+s", "k"), "K", mark("Save"), mark(
            "Save the circuit among your own. With problems it is saved as a draft, which cannot be driven yet."), FILE,
        lambda editor: editor.save(), available=_has_points),
)  # fmt: skip
"""Commands in the order in which they are listed."""

_BY_KEY = {key: action for action in ACTIONS for key in action.keys}


def action_named(name: str) -> EditorAction:
    """Return an action by its name."""
    return next(action for action in ACTIONS if action.name == name)


def action_of(press: KeyPress) -> EditorAction | None:
    """Return the command of a key; with Shift alone, also that of the key without it."""
    held = ("ctrl+" if press.modifiers.ctrl else "") + ("shift+" if press.modifiers.shift else "")
    found = _BY_KEY.get(held + press.key)
    return found if found is not None or press.modifiers.ctrl else _BY_KEY.get(press.key)


def hint_of(action: EditorAction) -> str:
    """Return the explanation of a command in the user's language."""
    return _(action.hint) if action.hint else ""
