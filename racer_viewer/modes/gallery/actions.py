"""Screen of one circuit of the gallery: drive on it, edit, copy, rename, share and delete it; and the import of one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from racer_env.errors import RacerError, in_one_line
from racer_viewer.circuits.imports import import_circuit
from racer_viewer.circuits.library import CircuitLibrary, DeletedCircuit, OwnCircuit
from racer_viewer.circuits.preview import preview
from racer_viewer.modes.choose import PlaySetupScreen, WatchSetupScreen
from racer_viewer.modes.circuits import CircuitCard
from racer_viewer.modes.gallery.facts import GalleryCircuit, GalleryFacts
from racer_viewer.modes.gallery.share import share_circuit
from racer_viewer.modes.screen import AppContext, MessageScreen, Screen
from racer_viewer.modes.waiting import SHORT_WAIT, BackgroundTask, WaitingScreen, open_when_loaded, open_when_ready
from racer_viewer.translation import _
from racer_viewer.ui.item_list import Button, Item
from racer_viewer.ui.views import ListView

if TYPE_CHECKING:
    import pygame

Deleted = Callable[[str, DeletedCircuit], None]
"""Callback that receives the name of a deleted circuit, and what restores it."""


class CircuitScreen(Screen):
    """A circuit with its card, and a list of what can be done with it.

    deleted: called if it was deleted.
    """

    def __init__(self, app: AppContext, circuit: GalleryCircuit, facts: GalleryFacts | None, deleted: Deleted) -> None:
        self.circuit, self.facts, self._deleted = circuit, facts or GalleryFacts(), deleted
        self._card = CircuitCard()
        detail = self.facts.problem or (circuit.source if circuit.kind == "random" else "")
        subtitle = f"{circuit.name}: {detail}" if detail else circuit.name
        view = ListView(_("Circuit"), subtitle=subtitle, width=420, draw_beside=self._draw_card)
        super().__init__(app, view)
        self.list.items = self._items()

    def translate(self) -> None:
        self.list.items = self._items()

    def _items(self) -> list[Item]:
        own, items = self.circuit.own, list[Item]()
        if self.circuit.drivable and not self.facts.problem:
            items += drive_items(self.app, self.circuit.source)
        if not self.circuit.damaged:
            if own is not None:
                items.append(Button(_("Edit"), _("Open it in the editor"), on_press=self._edit))
                items.append(Button(_("Duplicate"), _("Save a copy under another name"), on_press=self._duplicate))
                items.append(Button(_("Rename"), _("Its records stay"), on_press=self._rename))
            else:
                items.append(Button(_("Edit a copy"), _("The copy is a circuit of your own"), on_press=self._edit))
            hint = _("Save its file, and a picture with its record, in the folder of exports")
            items.append(Button(_("Share"), hint, on_press=self._share))
        if own is not None:
            delete = partial(ask_to_delete, self.app, own, self._take_deleted)
            items.append(Button(_("Delete"), _("Asks first; it can be restored"), on_press=delete))
        return [*items, Button(_("Back"), on_press=self.back)]

    def _draw_card(self, surface: pygame.Surface, area: pygame.Rect) -> None:
        circuit = self.facts.circuit
        if circuit is not None and self.circuit.drivable and not self.facts.problem:
            from msgspec.structs import replace

            shown = replace(circuit, id=self.circuit.source)
            self._card.draw(surface, self.app.theme, shown, area, self.facts.record)

    def _edit(self) -> None:
        from racer_viewer.modes.editor import open_editor

        def opened() -> None:
            own = self.circuit.own
            if own is not None:
                open_editor(self.app, own.draft(), own.id)
            else:
                circuit = self.circuit.draft().to_circuit()
                open_editor(self.app, CircuitLibrary(self.app.data).copy_of(circuit))

        self.app.pop()
        self._try(opened)

    def _duplicate(self) -> None:
        def duplicate() -> None:
            assert self.circuit.own is not None
            copy = CircuitLibrary(self.app.data).duplicate(self.circuit.own)
            self.app.notify(_("Saved as {name}").format(name=copy.name))

        self._try(duplicate)
        self.app.pop()

    def _rename(self) -> None:
        from racer_viewer.modes.editor.menu import NameCircuitScreen

        def rename(name: str) -> None:
            assert self.circuit.own is not None
            own = self.circuit.own
            self._try(lambda: CircuitLibrary(self.app.data).rename(own, name))
            self.app.pop()

        self.app.push(NameCircuitScreen(self.app, self.circuit.name, rename))

    def _share(self) -> None:
        def share() -> None:
            paths = share_circuit(self.app, self.circuit, self.facts)
            self.app.notify(_("Saved as {path}").format(path=", ".join(map(str, paths))))

        self._try(share)

    def _take_deleted(self, name: str, deleted: DeletedCircuit) -> None:
        self.app.pop()
        self._deleted(name, deleted)

    def _try(self, work: Callable[[], object]) -> None:
        """Do something; a reason why it cannot be done is shown as a notice."""
        try:
            work()
        except (RacerError, OSError) as error:
            self.app.notify(in_one_line(error))


def drive_items(app: AppContext, source: str) -> list[Item]:
    """Return the items that play, watch and train on a circuit."""
    from racer_viewer.modes.train.setup import TrainSetupScreen

    def choose(open_it: Callable[[], None]) -> None:
        app.change(circuit=source)
        open_it()

    play = partial(open_when_loaded, app, lambda: PlaySetupScreen(app))
    watch = partial(open_when_ready, app, lambda: WatchSetupScreen(app))
    train = partial(open_when_ready, app, lambda: TrainSetupScreen(app))
    return [
        Button(_("Play"), _("Drive against the clock, your ghost or agents"), on_press=partial(choose, play)),
        Button(_("Watch"), _("Watch trained agents drive, and see what they see"), on_press=partial(choose, watch)),
        Button(_("Train"), _("Train an agent to drive"), on_press=partial(choose, train)),
    ]


def ask_to_delete(app: AppContext, own: OwnCircuit, deleted: Deleted) -> None:
    """Ask, then move a circuit to the trash."""

    def delete() -> None:
        app.pop()
        try:
            found = CircuitLibrary(app.data).delete(own)
        except (RacerError, OSError) as error:
            app.notify(in_one_line(error))
        else:
            deleted(own.name, found)

    text = _("{name} can be restored from the gallery until you leave it.\nIts records are kept.").format(name=own.name)
    buttons = [Button(_("Cancel"), on_press=app.pop), Button(_("Delete"), on_press=delete)]
    app.push(MessageScreen(app, _("Delete this circuit?"), text, buttons))


def restore(app: AppContext, library: CircuitLibrary, deleted: DeletedCircuit, name: str) -> None:
    """Bring a deleted circuit back."""
    try:
        library.restore(deleted)
    except (RacerError, OSError) as error:
        app.notify(in_one_line(error))
    else:
        app.notify(_("{name} is back").format(name=name))


def import_file(app: AppContext, path: Path) -> None:
    """Import a circuit into the library and choose it; a draft is kept too, and the reason shown."""

    def load() -> tuple[OwnCircuit, str]:
        draft = import_circuit(path)
        entry = CircuitLibrary(app.data).save(draft)
        problems = preview(draft).problems
        return entry, problems[0].reason if problems else ""

    def finish() -> None:
        try:
            entry, problem = task.result()
        except (RacerError, OSError) as error:
            app.push(MessageScreen(app, _("Cannot open this file"), in_one_line(error)))
            return
        if not entry.drivable:
            _show_draft(app, entry, problem)
            return
        app.change(circuit=entry.source)
        app.notify(_("Circuit {name} imported and chosen").format(name=entry.name))
        if app.top is not None:
            app.top.refresh()

    task = BackgroundTask(load, "racer-import")
    app.push(WaitingScreen(app, _("Importing the circuit"), lambda: task.done, finish, delay=SHORT_WAIT))


def _show_draft(app: AppContext, entry: OwnCircuit, problem: str) -> None:
    """Show why an imported circuit cannot be driven, and offer the editor."""

    def edit() -> None:
        from racer_viewer.modes.editor import open_editor

        app.pop()
        open_editor(app, entry.draft(), entry.id)

    text = _("{name} was saved as a draft: it cannot be driven yet.\n{problem}").format(
        name=entry.name, problem=problem
    )
    buttons = [Button(_("Edit"), on_press=edit), Button(_("OK"), on_press=app.pop)]
    app.push(MessageScreen(app, _("Saved as a draft"), text, buttons))
