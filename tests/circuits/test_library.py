"""Library of own circuits: files in the data folder that people and killed processes change too."""

import os
from pathlib import Path

import pytest

from racer_env.engine import Medals, circuit_name, circuits, load_circuit
from racer_env.errors import CircuitError
from racer_viewer.circuits.draft import Draft, Point, move_points, reverse, set_gates, set_medals, set_text
from racer_viewer.circuits.library import TRASH_DAYS, CircuitLibrary, resolve_circuit, write_circuit
from racer_viewer.paths import clean_data_folder
from racer_viewer.replays.records import circuit_key

OVAL = set_text(Draft.from_circuit(circuits()[0]), name="Oval")
CROSSED = Draft("Knot", points=tuple(Point(float(x), float(y), 20.0) for x, y in ((0, 0), (300, 300), (300, 0),
                                                                                  (0, 300))))  # fmt: skip


@pytest.fixture
def library(tmp_path: Path) -> CircuitLibrary:
    return CircuitLibrary(tmp_path)


def test_a_library_is_empty_before_the_first_circuit(library: CircuitLibrary) -> None:
    assert library.entries() == ()
    assert library.find("anything") is None


def test_a_saved_circuit_is_exactly_what_was_drawn(library: CircuitLibrary) -> None:
    draft = set_medals(set_gates(move_points(OVAL, [0, 3], 0.37, -12.21), 17), Medals(7.0, 8.0, 9.0, author=6.5))
    entry = library.save(draft)
    assert (entry.id, entry.key, entry.name, entry.drivable) == ("oval", "own:oval", "Oval", True)
    assert entry.draft() == draft
    assert library.entries() == (entry,)
    track = load_circuit(entry.path)
    assert track.circuit == entry.circuit
    assert (track.circuit.id, circuit_name(str(entry.path))) == ("oval", "Oval")


def test_an_exported_circuit_is_the_circuit_of_any_other_file(library: CircuitLibrary, tmp_path: Path) -> None:
    for circuit in circuits():
        write_circuit(circuit, tmp_path / f"{circuit.id}.json")
        again = load_circuit(tmp_path / f"{circuit.id}.json").circuit
        assert again == circuit


def test_a_circuit_that_cannot_be_driven_is_a_draft_until_it_can(library: CircuitLibrary) -> None:
    entry = library.save(CROSSED)
    assert (entry.is_draft, entry.drivable, entry.draft()) == (True, False, CROSSED)
    with pytest.raises(CircuitError, match="cross"):
        load_circuit(entry.path)
    right = library.save(set_text(OVAL, name="Knot"), entry.id)
    assert (right.id, right.is_draft) == (entry.id, False)
    assert library.entries() == (right,)
    assert library.save(CROSSED, entry.id).is_draft
    assert [each.is_draft for each in library.entries()] == [True]
    assert library.save(Draft("Nothing yet")).draft() == Draft("Nothing yet")


def test_a_save_that_was_killed_leaves_the_newer_circuit(library: CircuitLibrary) -> None:
    draft = library.save(CROSSED)
    write_circuit(OVAL.to_circuit(), library.folder / "knot.json")
    os.utime(draft.path, (1.0, 1.0))
    assert [entry.is_draft for entry in library.entries()] == [False]


def test_names_and_ids_are_free(library: CircuitLibrary) -> None:
    entries = [library.save(OVAL) for _ in range(3)]
    assert [entry.name for entry in entries] == ["Oval", "Oval 2", "Oval 3"]
    assert [entry.id for entry in entries] == ["oval", "oval-2", "oval-3"]
    assert library.copy_of(circuits()[0]).name == "Meadow Ring 2"
    for name, circuit_id in {"Nürburg / Süd": "nurburg-sud", "CON": "con-circuit", "🏁": "circuit", "..": "circuit-2",
                             "Track 01": "track-01-2", "": "circuit-3"}.items():  # fmt: skip
        assert library.save(set_text(OVAL, name=name)).id == circuit_id
    assert {entry.path.parent for entry in library.entries()} == {library.folder}


def test_a_renamed_circuit_keeps_its_id_and_its_records(library: CircuitLibrary) -> None:
    before = library.save(OVAL)
    after = library.rename(before, "  Monza\n")
    assert (after.name, after.id, after.path) == ("Monza", "oval", before.path)
    assert circuit_key(after.circuit) == circuit_key(before.circuit)
    assert circuit_name(str(after.path)) == "Monza"
    other = library.save(OVAL)
    for name in ("monza", "", "  "):
        with pytest.raises(CircuitError, match=r"already|needs a name"):
            library.rename(other, name)
    assert library.rename(after, "MONZA").name == "MONZA"


def test_a_copy_is_a_circuit_of_its_own(library: CircuitLibrary) -> None:
    first = library.save(OVAL)
    copy = library.duplicate(first)
    library.save(reverse(copy.draft()), copy.id)
    assert library.find("oval").draft() == OVAL
    assert library.find("Oval 2").draft().points == reverse(OVAL).points


def test_a_deleted_circuit_can_be_brought_back(library: CircuitLibrary) -> None:
    entry, draft = library.save(OVAL), library.save(CROSSED)
    deleted = [library.delete(entry), library.delete(draft)]
    assert library.entries() == ()
    assert [library.restore(each).draft() for each in deleted] == [OVAL, CROSSED]
    again = library.delete(library.find("oval"))
    library.save(OVAL)
    restored = library.restore(again)
    assert (restored.id, restored.draft()) == ("oval-2", OVAL)
    with pytest.raises(CircuitError, match="circuits in"):
        library.restore(again)


def test_the_trash_is_emptied_after_a_month(library: CircuitLibrary) -> None:
    old, new = (library.delete(library.save(OVAL)) for _ in range(2))
    os.utime(old.path, (1.0, new.path.stat().st_mtime - (TRASH_DAYS + 1.0) * 86_400.0))
    library.delete(library.save(OVAL))
    assert (old.path.exists(), new.path.exists()) == (False, True)


def test_damaged_files_are_listed_and_nothing_else_is(library: CircuitLibrary, tmp_path: Path) -> None:
    library.save(OVAL)
    for name, content in {"bad.json": "{", "big.json": " " * 300_000, "notes.txt": "x", ".hidden.json": "{}",
                          "\u202eevil.json": "[1]"}.items():  # fmt: skip
        (library.folder / name).write_text(content)
    (library.folder / "folder.json").mkdir()
    found = {entry.id: entry for entry in library.entries()}
    assert found.keys() == {"oval", "bad", "big", "\u202eevil"}
    assert not any(entry.drivable for name, entry in found.items() if name != "oval")
    assert "is not JSON" in found["bad"].problem
    assert "\u202e" not in found["\u202eevil"].problem
    with pytest.raises(CircuitError, match="is not JSON"):
        library.duplicate(found["bad"])
    library.restore(library.delete(found["bad"]))
    clean_data_folder(tmp_path)
    assert (library.folder / "bad.json").read_text() == "{"


def test_a_circuit_that_no_reader_would_accept_is_not_written(library: CircuitLibrary) -> None:
    entry = library.save(OVAL)
    points = tuple(Point(i + 0.25, -i - 0.25, 12.25) for i in range(20_000))
    with pytest.raises(CircuitError, match="too many control points"):
        library.save(Draft("Oval", points=points), entry.id)
    assert library.find("oval").draft() == OVAL


def test_circuits_are_named_by_id_name_or_path(library: CircuitLibrary, tmp_path: Path) -> None:
    entry = library.save(OVAL)
    for text in ("own:oval", "oval", "Oval", "OVAL", "own:Oval"):
        assert resolve_circuit(text, tmp_path) == str(entry.path)
    other = tmp_path / "elsewhere.json"
    write_circuit(OVAL.to_circuit(), other)
    for text in ("track-01", "random:1:hard", str(other), "missing.json", "unknown"):
        assert resolve_circuit(text, tmp_path) == text
    with pytest.raises(CircuitError, match="did you mean own:oval"):
        resolve_circuit("own:ovel", tmp_path)
    with pytest.raises(CircuitError, match="no circuits of your own yet"):
        resolve_circuit("own:oval", tmp_path / "empty")


def test_an_own_circuit_does_not_hide_a_bundled_one(library: CircuitLibrary, tmp_path: Path) -> None:
    write_circuit(OVAL.to_circuit(), library.folder / "track-02.json")
    assert resolve_circuit("track-02", tmp_path) == "track-02"
    assert resolve_circuit("own:track-02", tmp_path).endswith("track-02.json")
