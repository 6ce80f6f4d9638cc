"""The gallery of circuits: a grid of pictures with lengths, corners, medals, records and agents."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from racer_viewer.circuits.draft import Draft
from racer_viewer.circuits.imports import IMPORT_SUFFIXES
from racer_viewer.circuits.library import CircuitLibrary, DeletedCircuit
from racer_viewer.modes.circuits import MEDALS
from racer_viewer.modes.file_browser import FileBrowser
from racer_viewer.modes.gallery.actions import CircuitScreen, ask_to_delete, import_file, restore
from racer_viewer.modes.gallery.dial import RandomDialScreen
from racer_viewer.modes.gallery.facts import GalleryCircuit, GalleryLoader, Kind, gallery_circuits, record_words
from racer_viewer.modes.screen import AppContext, Screen
from racer_viewer.replays.records import medal_for, medals_of
from racer_viewer.translation import _, mark
from racer_viewer.ui.intents import Command, Controls, Intent
from racer_viewer.ui.paint import FOOTER_HEIGHT, draw_heading, shade
from racer_viewer.ui.theme import MARGIN, TEXT
from racer_viewer.ui.tile_grid import Tile, TileGrid, TileSection
from racer_viewer.ui.views import Key, draw_hint, draw_keys, translated

if TYPE_CHECKING:
    import pygame

GALLERY_KEYS: tuple[Key, ...] = (
    ("Up Down Left Right", mark("choose")),
    ("Enter", mark("open")),
    ("Delete", mark("delete")),
    ("Esc", mark("back")),
    ("F1", mark("help")),
)
TITLES: dict[Kind, str] = {
    "own": mark("Your circuits"),
    "bundled": mark("Bundled circuits"),
    "random": mark("Random circuits"),
}
NO_OWN = mark("None yet: draw one, open a file, or edit a copy of another circuit")


class GalleryScreen(Screen):
    """All circuits: the user's own, bundled and random ones. Enter or a click opens what can be done with one.

    deleted: circuit that was deleted last and can be restored; None without one.
    """

    return_label = mark("Circuits")

    def __init__(self, app: AppContext) -> None:
        super().__init__(app)
        self.grid = TileGrid()
        self.loader = GalleryLoader(app)
        self.circuits: dict[Kind, list[GalleryCircuit]] = {}
        self.deleted: tuple[str, DeletedCircuit] | None = None
        self._seen_changes = -1

    @property
    def see_through(self) -> bool:
        return True

    def keys(self) -> Sequence[Key]:
        return translated(GALLERY_KEYS)

    def refresh(self) -> None:
        self.circuits = gallery_circuits(self.app)
        self.loader.refresh()
        self._fill()

    def translate(self) -> None:
        self._fill()

    def tick(self, controls: Controls) -> None:
        self.loader.tick()
        if self._seen_changes != self.loader.changes:
            self._fill()

    def handle(self, intent: Intent) -> None:
        if intent == Command.BACK:
            self.app.sound.play("back")
            self.back()
        elif intent == Command.DELETE:
            chosen = self.chosen
            if chosen is not None and chosen.own is not None:
                ask_to_delete(self.app, chosen.own, self.take_deleted)
            elif chosen is not None:
                self.app.notify(_("Only circuits of your own can be deleted"))
        else:
            if isinstance(intent, Command):
                self.app.sound.play("accept" if intent == Command.ACCEPT else "move")
            self.grid.handle(intent)

    def repeats(self, direction: Command) -> bool:
        return self.grid.repeats(direction)

    @property
    def chosen(self) -> GalleryCircuit | None:
        """Chosen circuit; None on a tile that does something else."""
        tile = self.grid.tile
        return next((each for each, made in self._tiles.items() if made is tile), None)

    def take_deleted(self, name: str, deleted: DeletedCircuit) -> None:
        """Offer to restore a circuit that was deleted."""
        self.deleted = name, deleted
        self.app.notify(_("{name} was deleted; it can be restored here").format(name=name))
        self.refresh()

    def draw(self, surface: pygame.Surface, share: float) -> None:
        theme = self.app.theme
        surface.blit(shade(surface.get_size(), 218), (0, 0))
        top = draw_heading(surface, theme, _("Circuits"))
        area = surface.get_rect()
        area.x, area.y = theme.px(MARGIN * 3), top - theme.px(6)
        area.width -= 2 * area.x
        area.height = surface.get_height() - area.y - theme.px(FOOTER_HEIGHT + 2.4 * TEXT)
        self.grid.draw(surface, theme, area)
        tile = self.grid.tile
        draw_hint(surface, theme, tile.hint if tile is not None else "", area.x)
        draw_keys(surface, theme, self.keys())

    def _fill(self) -> None:
        """Show the tiles with what is known so far."""
        self._seen_changes = self.loader.changes
        self._tiles = {each: self._tile(each) for kind in self.circuits.values() for each in kind}
        before: list[Tile] = [
            Tile(_("New circuit"), _("Draw a circuit on an empty canvas"), self._new, sign="+"),
            Tile(_("Open file..."), _("Import a circuit: {kinds}; or drop the file on the window").format(
                kinds=", ".join(IMPORT_SUFFIXES)), self._browse, sign="…"),
        ]  # fmt: skip
        if self.deleted is not None:
            label = _("Restore {name}").format(name=self.deleted[0])
            before.append(Tile(label, _("Bring back the circuit that was deleted last"), self._restore, sign="<"))
        dial = Tile(_("Roll the dice"), _("Choose length, twistiness and width"), self._open_dial, sign="?")
        extra: dict[Kind, list[Tile]] = {"own": before, "bundled": [], "random": [dial]}
        notes = {"own": "" if self.circuits.get("own") else _(NO_OWN)}
        order: tuple[Kind, ...] = ("own", "bundled", "random")
        self.grid.fill(
            [
                TileSection(
                    _(TITLES[kind]),
                    [*extra[kind], *(self._tiles[each] for each in self.circuits.get(kind, ()))],
                    notes.get(kind, ""),
                )
                for kind in order
            ]
        )

    def _tile(self, circuit: GalleryCircuit) -> Tile:
        known = self.loader.facts.get(circuit.source)
        tile = Tile(circuit.name, _(circuit.description), partial(self._open, circuit))
        tile.picture = partial(self.loader.picture, circuit)
        if circuit.own is not None and not circuit.own.drivable:
            tile.badge = _("damaged") if circuit.damaged else _("draft")
        if known is None:
            return tile
        lines = []
        if known.facts is not None:
            lines.append(
                _("{length:,.0f} units · tightest corner {radius:.0f}").format(
                    length=known.facts.length, radius=known.facts.tightest_radius
                )
            )
        if known.problem:
            lines.append(known.problem)
            tile.hint = known.problem
            tile.badge = tile.badge or _("damaged")
        elif circuit.drivable:
            lines.append(record_words(known) or _("no record yet"))
            if known.agent is not None:
                lines.append(
                    _("best agent: {name}, {seconds:.2f} s").format(name=known.agent[0], seconds=known.agent[1])
                )
        tile.lines = tuple(lines)
        if known.circuit is not None and medals_of(known.circuit) is not None:
            won = medal_for(known.circuit, known.record.best_lap) if known.record is not None else None
            if won is not None:
                tile.dots = ((MEDALS[won], False),)
        if tile.badge and known.circuit is None:
            tile.sign = "!"
        return tile

    def _open(self, circuit: GalleryCircuit) -> None:
        self.app.push(CircuitScreen(self.app, circuit, self.loader.facts.get(circuit.source), self.take_deleted))

    def _new(self) -> None:
        from racer_viewer.modes.editor import open_editor

        open_editor(self.app, Draft())

    def _browse(self) -> None:
        self.app.push(FileBrowser(self.app, _("Import a circuit"), IMPORT_SUFFIXES, partial(import_file, self.app)))

    def _open_dial(self) -> None:
        self.app.push(RandomDialScreen(self.app))

    def _restore(self) -> None:
        if self.deleted is not None:
            name, deleted = self.deleted
            self.deleted = None
            restore(self.app, CircuitLibrary(self.app.data), deleted, name)
            self.refresh()
            self.grid.select(name)
