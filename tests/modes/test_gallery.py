"""The gallery of circuits in the real app: what it shows, and everything that can be done with a circuit."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pygame
import pytest

from racer_env.engine import load_circuit
from racer_viewer.agents import load_agent
from racer_viewer.agents.load import bundled_authors
from racer_viewer.circuits.draft import Draft, Point, set_text
from racer_viewer.circuits.library import CircuitLibrary, OwnCircuit
from racer_viewer.modes.choose import PlaySetupScreen, WatchSetupScreen
from racer_viewer.modes.editor import EditorScreen
from racer_viewer.modes.editor.menu import NameCircuitScreen
from racer_viewer.modes.file_browser import FileBrowser
from racer_viewer.modes.gallery.actions import CircuitScreen
from racer_viewer.modes.gallery.dial import RandomDialScreen
from racer_viewer.modes.gallery.screen import GalleryScreen
from racer_viewer.modes.ladder import agent_drive
from racer_viewer.modes.play import PlayScreen
from racer_viewer.modes.screen import MessageScreen
from racer_viewer.modes.train.setup import TrainSetupScreen
from racer_viewer.timing import lap_time
from racer_viewer.ui.tile_grid import Tile
from tests.modes.person import Person

BUNDLED = "Meadow Ring"
"""Name of the first bundled circuit."""
KNOT = Draft("Knot", points=tuple(Point(float(x), float(y), 20.0) for x, y in ((0, 0), (300, 300), (300, 0), (0, 300))))


def own_circuit(data: Path, name: str = "My Coast", source: str = "track-05") -> OwnCircuit:
    circuit = load_circuit(source).circuit
    assert circuit is not None
    return CircuitLibrary(data).save(set_text(Draft.from_circuit(circuit), name=name))


def gallery(person: Person) -> GalleryScreen:
    """Open the gallery from the main menu."""
    person.choose("Circuits")
    return person.until_top(GalleryScreen)


def tile(person: Person, label: str) -> Tile:
    """Go to a tile with the arrow keys; return it."""
    grid = person.top(GalleryScreen).grid
    assert label in [each.label for each in grid.tiles]
    while grid.tile is None or grid.tile.label != label:
        person.press("right")
    return grid.tile


def open_tile(person: Person, label: str) -> CircuitScreen:
    """Open a circuit as soon as it is known."""
    screen = person.top(GalleryScreen)
    tile(person, label)
    person.until(lambda: screen.chosen is not None and screen.chosen.source in screen.loader.facts, "its facts")
    person.press("return")
    return person.top(CircuitScreen)


def labels(screen: GalleryScreen) -> list[str]:
    return [each.label for each in screen.grid.tiles]


def test_the_gallery_shows_figures_medals_records_and_the_best_agent(person: Person) -> None:
    track = load_circuit("track-01")
    assert track.circuit is not None
    person.app.context.records.enter(agent_drive(load_agent("champion"), track, enough=600))
    screen = gallery(person)
    assert screen.grid.sections[0].note, "a hint in place of own circuits"
    tile(person, BUNDLED)
    person.until(lambda: len(screen.grid.tile.lines) == 3, "the facts")  # type: ignore[union-attr]
    length, record, agent = screen.grid.tile.lines  # type: ignore[union-attr]
    assert length.startswith("1,184 units · tightest corner 6")
    best = person.app.context.records.best(track.circuit)
    assert best is not None
    assert record == f"{lap_time(best.best_lap)} s by champion"
    assert agent == f"best agent: {bundled_authors()['track-01'].stem}, {track.circuit.medals.author:.2f} s"  # type: ignore[union-attr]
    assert [hollow for _colour, hollow in screen.grid.tile.dots] == [False], "a medal"  # type: ignore[union-attr]
    size = screen.grid.rect_of(BUNDLED)
    assert size is not None
    person.frames(2)
    picture = person.picture().subsurface(size)
    assert len({tuple(picture.get_at((x, y))) for x in range(20, 180, 3) for y in range(20, 100, 3)}) > 5


def test_drafts_and_damaged_files_are_shown_as_such(person: Person) -> None:
    library = CircuitLibrary(person.data)
    library.save(KNOT)
    (library.folder / "broken.json").write_text("{", encoding="utf-8")
    screen = gallery(person)
    assert tile(person, "Knot").badge == "draft"
    assert tile(person, "broken").badge == "damaged"
    person.until(lambda: all(each.source in screen.loader.facts for each in screen.circuits["own"]), "all facts")
    person.frames(2)
    assert "cross" in tile(person, "Knot").hint
    assert "JSON" in tile(person, "broken").hint
    assert [item.label for item in open_tile(person, "broken").list.items] == ["Delete", "Back"]
    person.press("escape")
    assert "Play" not in [item.label for item in open_tile(person, "Knot").list.items]


def test_a_circuit_is_duplicated_renamed_deleted_and_restored(person: Person) -> None:
    own_circuit(person.data)
    screen = gallery(person)
    open_tile(person, "My Coast")
    person.choose("Duplicate")
    assert person.top(GalleryScreen) is screen
    assert {"My Coast", "My Coast 2"} <= {*labels(screen)}
    open_tile(person, "My Coast 2")
    person.choose("Rename")
    person.top(NameCircuitScreen)
    person.write("Shore")
    person.press("return")
    assert {"My Coast", "Shore"} <= {*labels(screen)}
    open_tile(person, "Shore")
    person.choose("Rename")
    person.write("my coast")
    person.press("return")
    assert "already" in person.app.context.notice
    tile(person, "Shore")
    person.press("delete")
    person.top(MessageScreen)
    person.press("return")
    assert "Shore" in labels(screen), "the first button cancels"
    person.press("delete")
    person.choose("Delete")
    assert "Shore" not in labels(screen)
    tile(person, "Restore Shore")
    person.press("return")
    assert "Shore" in labels(screen)
    assert "Restore Shore" not in labels(screen)
    tile(person, BUNDLED)
    person.press("delete")
    assert person.top(GalleryScreen) is screen, "bundled circuits stay"


def test_a_shared_circuit_is_a_file_that_others_can_drive_and_a_card(person: Person) -> None:
    own_circuit(person.data, "My Coast / North")
    gallery(person)
    open_tile(person, "My Coast / North")
    person.choose("Share")
    files = sorted((person.data / "exports").iterdir())
    assert [file.name for file in files] == ["My-Coast-North.json", "My-Coast-North.png"]
    assert load_circuit(files[0]).length == pytest.approx(load_circuit("track-05").length)
    card = pygame.image.load(files[1])
    assert card.get_size() == (1200, 675)
    assert len({tuple(card.get_at((x, y))) for x in range(0, 1200, 7) for y in range(0, 675, 7)}) > 20


@pytest.mark.parametrize(
    ("button", "kind"), [("Play", PlaySetupScreen), ("Watch", WatchSetupScreen), ("Train", TrainSetupScreen)]
)
def test_own_circuits_are_driven_from_the_gallery(person: Person, button: str, kind: type) -> None:
    entry = own_circuit(person.data)
    gallery(person)
    open_tile(person, "My Coast")
    person.choose(button)
    setup = person.until_top(kind)
    assert setup.picker.circuit_id == entry.source
    assert setup.picker.item.value == "My Coast"
    person.press("escape", "escape")
    person.top(GalleryScreen)


def test_own_circuits_are_in_the_list_of_circuits_and_in_the_settings(person: Person) -> None:
    entry = own_circuit(person.data)
    person.app.context.change(circuit="track-06")
    person.choose("Play")
    setup = person.until_top(PlaySetupScreen)
    person.go_to("Circuit")
    person.press("right")
    assert setup.picker.circuit_id == entry.source
    again = Person(person.data)
    assert again.app.context.settings.circuit == entry.source
    again.app.close()
    person.choose("Start")
    assert person.until_top(PlayScreen).live.setup.circuit == entry.source
    person.app.context.pop_to_menu()
    CircuitLibrary(person.data).delete(entry)
    person.choose("Play")
    assert person.until_top(PlaySetupScreen).picker.circuit_id == "track-01"


def test_a_bundled_circuit_is_edited_as_a_copy_and_a_new_one_begins_empty(person: Person) -> None:
    gallery(person)
    tile(person, "New circuit")
    person.press("return")
    editor = person.until_top(EditorScreen)
    assert editor.document.draft.points == ()
    editor.leave()
    person.until_top(GalleryScreen)
    open_tile(person, BUNDLED)
    person.choose("Edit a copy")
    draft = person.until_top(EditorScreen).document.draft
    assert draft.name == f"{BUNDLED} 2"
    assert [point[:2] for point in draft.points] == [
        tuple(row) for row in load_circuit("track-01").control_points[:, :2].tolist()
    ]


def test_a_dropped_file_is_imported_and_chosen(person: Person, tmp_path: Path) -> None:
    angles = [index / 20.0 for index in range(126)]
    (tmp_path / "big_bowl.csv").write_text("\n".join(f"{800 * math.cos(a)},{400 * math.sin(a)}" for a in angles))
    (tmp_path / "knot.csv").write_text("0,0\n300,300\n300,0\n0,300\n")
    (tmp_path / "wrong.svg").write_text("no drawing")
    screen = gallery(person)
    pygame.event.post(pygame.event.Event(pygame.DROPFILE, file=str(tmp_path / "big_bowl.csv")))
    person.until(lambda: "Big Bowl" in labels(screen) and person.app.context.top is screen, "the import")
    (entry,) = CircuitLibrary(person.data).entries()
    assert person.app.context.settings.circuit == entry.source
    assert "imported" in person.app.context.notice
    for file, words in (("knot.csv", "saved as a draft"), ("wrong.svg", "expected a drawing")):
        pygame.event.post(pygame.event.Event(pygame.DROPFILE, file=str(tmp_path / file)))
        person.frames()
        assert words in person.until_top(MessageScreen).text
        person.press("escape")
    assert "Knot" in labels(screen)
    tile(person, "Open file...")
    person.press("return")
    person.top(FileBrowser)


def test_the_dial_changes_the_circuit_and_its_id_gives_it_again(person: Person) -> None:
    gallery(person)
    tile(person, "Roll the dice")
    person.press("return")
    dial = person.top(RandomDialScreen)
    person.until(lambda: dial.rolled is not None and dial.rolled.id == dial.circuit_id, "a circuit")
    first = dial.circuit_id
    assert first == f"random:{dial.seed}:length=2000:twist=0.5:width=40"
    person.go_to("Length")
    person.press("right", "right")
    assert dial.circuit_id == first.replace("2000", "2200")
    person.until(lambda: dial.rolled is not None and dial.rolled.id == dial.circuit_id, "the longer one")
    assert dial.rolled is not None
    assert dial.rolled.facts.length == pytest.approx(2200.0, rel=0.02)
    assert load_circuit(dial.circuit_id).length == dial.rolled.facts.length
    person.choose("Dice")
    assert dial.circuit_id.endswith(":length=2200:twist=0.5:width=40")
    chosen = dial.circuit_id
    person.choose("Play")
    assert person.until_top(PlaySetupScreen).picker.circuit_id == chosen
    person.press("escape")
    person.choose("Edit a copy")
    editor = person.until_top(EditorScreen)
    track = load_circuit(chosen)
    rows = [tuple(row) for row in track.control_points[:, :2].tolist()]
    assert [point[:2] for point in editor.document.draft.points] == rows
    person.app.context.pop_to(GalleryScreen)
    screen = person.top(GalleryScreen)
    assert any(each.source == chosen for each in screen.circuits["random"]), "the chosen one is in the gallery"


def test_the_gallery_is_used_with_the_mouse_and_with_a_gamepad(person: Person) -> None:
    own_circuit(person.data)
    screen = gallery(person)
    person.frames(2)
    place = screen.grid.rect_of("My Coast")
    assert place is not None
    person.point(*place.center)
    assert screen.grid.tile is not None
    assert screen.grid.tile.label == "My Coast"
    person.click(*place.center)
    person.top(CircuitScreen)
    person.pad(pygame.CONTROLLER_BUTTON_B)
    person.pad(pygame.CONTROLLER_BUTTON_DPAD_LEFT)
    assert screen.grid.tile.label == "Open file..."
    person.pad(pygame.CONTROLLER_BUTTON_DPAD_DOWN)
    assert screen.grid.tile.label in [each.label for each in screen.grid.sections[1].tiles]
    person.scroll(-3, 400, 400)
    person.pad(pygame.CONTROLLER_BUTTON_A)
    person.top(CircuitScreen)


def test_a_damaged_own_circuit_does_not_stop_anything(person: Person) -> None:
    entry = own_circuit(person.data)
    person.app.context.change(circuit=entry.source)
    crossed = json.loads(entry.path.read_text(encoding="utf-8"))
    crossed["control_points"] = [[0, 0, 20], [300, 300, 20], [300, 0, 20], [0, 300, 20]]
    entry.path.write_text(json.dumps(crossed), encoding="utf-8")
    screen = gallery(person)
    tile(person, "My Coast")
    person.until(lambda: screen.grid.tile.badge == "damaged", "its problem")  # type: ignore[union-attr]
    assert "walls cross" in screen.grid.tile.hint  # type: ignore[union-attr]
    person.press("escape")
    person.choose("Play")
    person.until_top(PlaySetupScreen)
    person.frames(30)
