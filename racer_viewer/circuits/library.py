"""Library of the user's own circuits: JSON files in the data folder, which every list of circuits offers.

The id of an own circuit is the name of its file. It stays when the circuit is renamed, so that records and settings
stay too. A circuit that cannot be driven yet is a draft, in a file `ID.draft.json`.
"""

from __future__ import annotations

import json
import os
import re
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from racer_env.engine import Circuit, circuits
from racer_env.engine.circuits import MAX_FILE_BYTES, read_circuit
from racer_env.engine.random_circuits import PREFIX
from racer_env.engine.track import DEFAULT_GATES
from racer_env.errors import CircuitError, closest, os_reason, suggestion
from racer_viewer.circuits.draft import Draft, set_text
from racer_viewer.circuits.preview import preview
from racer_viewer.paths import atomic_write
from racer_viewer.plain_text import plain_line

FOLDER = "circuits"
"""Folder of own circuits in the data folder."""
OWN = "own:"
"""Prefix of an own circuit's id where bundled ones are listed too."""
SUFFIX, DRAFT_SUFFIX = ".json", ".draft.json"
TRASH = ".trash"
"""Folder of deleted circuits in that of own circuits."""
TRASH_DAYS = 30.0
"""Time after which deleted circuits are removed for good [days]."""
MAX_CIRCUITS = 1000
"""Maximum number of own circuits that are listed."""
MAX_NAME_LENGTH = 60
"""Maximum length of a name and of an id [characters]."""
DEFAULT_NAME = "Circuit"
"""Name of a circuit that was saved without one."""
_RESERVED = re.compile(r"con|prn|aux|nul|(com|lpt)[0-9]")
"""Names that Windows does not allow for files."""


@dataclass(frozen=True)
class OwnCircuit:
    """An own circuit.

    circuit: its definition; None if the file is damaged, and then `problem` says why.
    is_draft: True if it was saved as a circuit that cannot be driven yet.
    changed: time of its last change [s since the epoch].
    """

    id: str
    path: Path
    circuit: Circuit | None
    is_draft: bool = False
    problem: str = ""
    changed: float = 0.0

    @property
    def key(self) -> str:
        """Id on the command line and on a bridge."""
        return f"{OWN}{self.id}"

    @property
    def name(self) -> str:
        """Name on screen; that of the file if it is damaged."""
        return plain_line(self.circuit.name) if self.circuit is not None and self.circuit.name else self.id

    @property
    def drivable(self) -> bool:
        """True if it is offered where circuits are chosen."""
        return self.circuit is not None and not self.is_draft

    @property
    def source(self) -> str:
        """Path of the file, as `load_circuit` and the settings take it."""
        return str(self.path.absolute())

    def draft(self) -> Draft:
        """Return the circuit to edit. Raises CircuitError if the file is damaged."""
        if self.circuit is None:
            raise CircuitError(self.problem)
        return Draft.from_circuit(self.circuit)


@dataclass(frozen=True)
class DeletedCircuit:
    """A deleted circuit, which `CircuitLibrary.restore` brings back. path: its file in the trash."""

    id: str
    path: Path
    is_draft: bool


class CircuitLibrary:
    """The own circuits of a data folder. Several processes may use it.

    folder: where the files are; it need not exist.
    """

    def __init__(self, data: Path) -> None:
        self.folder = data / FOLDER

    def entries(self) -> tuple[OwnCircuit, ...]:
        """Return all own circuits, the last changed one first; files are read, but nothing is built."""
        found: dict[str, OwnCircuit] = {}
        for path in self._files():
            entry = _read(path)
            if entry.id not in found or found[entry.id].changed < entry.changed:  # both if a save was killed
                found[entry.id] = entry
        return tuple(sorted(found.values(), key=lambda entry: (-entry.changed, entry.id)))

    def find(self, text: str) -> OwnCircuit | None:
        """Return the circuit with this id, with or without `own:`, or with this name."""
        wanted = text.removeprefix(OWN)
        entries = self.entries()
        by_id = next((entry for entry in entries if entry.id == wanted), None)
        return by_id or next((entry for entry in entries if entry.name.casefold() == wanted.casefold()), None)

    def save(self, draft: Draft, circuit_id: str | None = None) -> OwnCircuit:
        """Write a circuit, as a draft if it cannot be driven.

        circuit_id: id of the circuit to replace; without one it becomes a new circuit, under a name that is free.
        """
        name = plain_line(draft.name).strip()[:MAX_NAME_LENGTH] or DEFAULT_NAME
        if circuit_id is None:
            draft = set_text(draft, name=self.free_name(name))
            circuit_id = self._free_id(draft.name)
        else:
            draft = set_text(draft, name=name)
        return self._write(circuit_id, draft.to_circuit(circuit_id), is_draft=not preview(draft).drivable)

    def duplicate(self, entry: OwnCircuit) -> OwnCircuit:
        """Save a copy of a circuit, under a name that is free."""
        return self.save(entry.draft())

    def rename(self, entry: OwnCircuit, name: str) -> OwnCircuit:
        """Give a circuit another name; its id stays. Raises CircuitError for an empty name, or one that is taken."""
        name = plain_line(name).strip()[:MAX_NAME_LENGTH]
        if not name:
            raise CircuitError("a circuit needs a name")
        others = [other for other in self.entries() if other.id != entry.id]
        if any(other.name.casefold() == name.casefold() for other in others):
            raise CircuitError(f"there is a circuit {name} already: choose another name")
        return self._write(entry.id, set_text(entry.draft(), name=name).to_circuit(entry.id), entry.is_draft)

    def delete(self, entry: OwnCircuit) -> DeletedCircuit:
        """Move a circuit to the trash; `restore` brings it back."""
        trash = self.folder / TRASH
        self._remove_old(trash)
        deleted = trash / f"{time.time_ns()}-{entry.path.name}"
        with self._refusals():
            trash.mkdir(parents=True, exist_ok=True)
            entry.path.replace(deleted)
            os.utime(deleted)
        return DeletedCircuit(entry.id, deleted, entry.is_draft)

    def restore(self, deleted: DeletedCircuit) -> OwnCircuit:
        """Bring a deleted circuit back; under another id if that was taken meanwhile."""
        taken = any(self._path(deleted.id, is_draft).exists() for is_draft in (False, True))
        path = self._path(self._free_id(deleted.id) if taken else deleted.id, deleted.is_draft)
        with self._refusals():
            deleted.path.replace(path)
            os.utime(path)
        return _read(path)

    def copy_of(self, circuit: Circuit) -> Draft:
        """Return a draft of a bundled, random or foreign circuit, under a name that is free."""
        draft = Draft.from_circuit(circuit)
        return set_text(draft, name=self.free_name(draft.name or DEFAULT_NAME))

    def free_name(self, name: str) -> str:
        """Return a name that no own or bundled circuit has: the name itself, or with a number."""
        taken = {entry.name.casefold() for entry in self.entries()} | {each.name.casefold() for each in circuits()}
        stem, number, free = re.sub(r" \d{1,4}$", "", name) or name, 1, name
        while free.casefold() in taken:
            number += 1
            free = f"{stem} {number}"
        return free

    def _write(self, circuit_id: str, circuit: Circuit, is_draft: bool) -> OwnCircuit:
        path, other = self._path(circuit_id, is_draft), self._path(circuit_id, not is_draft)
        with self._refusals():
            write_circuit(circuit, path)
        with suppress(OSError):
            other.unlink(missing_ok=True)
        return _read(path)

    def _path(self, circuit_id: str, is_draft: bool) -> Path:
        return self.folder / f"{circuit_id}{DRAFT_SUFFIX if is_draft else SUFFIX}"

    def _free_id(self, name: str) -> str:
        """Return an id for a name that no own circuit has, and no bundled one."""
        words = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
        stem = re.sub(r"[^a-z0-9]+", "-", words).strip("-")[:MAX_NAME_LENGTH].strip("-") or "circuit"
        stem = f"{stem}-circuit" if _RESERVED.fullmatch(stem) else stem
        taken = {circuit.id for circuit in circuits()}
        number, free = 1, stem
        while free in taken or any(self._path(free, is_draft).exists() for is_draft in (False, True)):
            number += 1
            free = f"{stem}-{number}"
        return free

    def _files(self) -> list[Path]:
        """Return the files of circuits; hidden ones are temporary or deleted."""
        found: list[Path] = []
        try:
            with os.scandir(self.folder) as files:
                for file in files:
                    if file.name.endswith(SUFFIX) and file.name[0] != "." and len(found) < MAX_CIRCUITS:
                        with suppress(OSError):
                            found += [Path(file.path)] if file.is_file() else []
        except OSError:
            return []
        return found

    def _remove_old(self, trash: Path) -> None:
        with suppress(OSError), os.scandir(trash) as files:
            for file in files:
                with suppress(OSError):
                    if file.stat().st_mtime < time.time() - TRASH_DAYS * 86_400.0:
                        os.unlink(file.path)

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Raise CircuitError if the system refuses something within the block."""
        try:
            yield
        except OSError as error:
            raise CircuitError(f"circuits in {self.folder}: {os_reason(error)}") from None


def _read(path: Path) -> OwnCircuit:
    changed = 0.0
    with suppress(OSError):
        changed = path.stat().st_mtime
    is_draft = path.name.endswith(DRAFT_SUFFIX)
    circuit_id = path.name.removesuffix(DRAFT_SUFFIX if is_draft else SUFFIX)
    entry = OwnCircuit(circuit_id, path, None, is_draft, changed=changed)
    try:
        circuit = read_circuit(path)
    except CircuitError as error:
        return replace(entry, problem=plain_line(str(error)))
    return replace(entry, circuit=Draft.from_circuit(circuit).to_circuit(circuit_id))


def write_circuit(circuit: Circuit, path: Path) -> None:
    """Write a circuit file. Raises CircuitError for a circuit that no reader would accept, and OSError."""
    content = circuit_json(circuit).encode()
    if len(content) > MAX_FILE_BYTES:
        raise CircuitError(f"{circuit.name} has too many control points for a file: delete some")
    with atomic_write(path) as temporary:
        temporary.write_bytes(content)


def circuit_json(circuit: Circuit) -> str:
    """Return the content of a circuit file, with a line for each control point and without defaults."""
    values: dict[str, object] = {"name": circuit.name}
    if circuit.description:
        values["description"] = circuit.description
    if circuit.gates != DEFAULT_GATES:
        values["gates"] = circuit.gates
    if circuit.medals is not None:
        medals = {name: getattr(circuit.medals, name) for name in ("author", "gold", "silver", "bronze")}
        values["medals"] = {name: seconds for name, seconds in medals.items() if seconds is not None}
    lines = [f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}," for key, value in values.items()]
    points = ",\n".join(f"    [{', '.join(map(_number, point))}]" for point in circuit.control_points)
    return "\n".join(["{", *lines, '  "control_points": [', points, "  ]", "}"]) + "\n"


def _number(value: float) -> str:
    return repr(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def key_of(circuit: str, data: Path) -> str | None:
    """Return `own:ID` for the path of an own circuit; None for other circuits."""
    path = Path(circuit)
    is_own = path.name.endswith(SUFFIX) and path.parent.absolute() == (data / FOLDER).absolute()
    return f"{OWN}{path.name.removesuffix(SUFFIX).removesuffix('.draft')}" if is_own else None


def resolve_circuit(text: str, data: Path) -> str:
    """Return what `load_circuit` takes for a circuit that was named on the command line.

    Ids and names of own circuits become paths; bundled and random ones, paths and unknown names stay. Raises
    CircuitError for `own:` and an unknown id, and for a name that an own circuit nearly has.
    """
    if text.startswith(PREFIX) or any(text == circuit.id for circuit in circuits()):
        return text
    if not text.startswith(OWN) and (text.endswith(SUFFIX) or os.path.exists(text)):
        return text
    library = CircuitLibrary(data)
    entry = library.find(text)
    if entry is not None:
        return entry.source
    keys = {name: own.key for own in library.entries() for name in (own.id, own.name.casefold())}
    if text.startswith(OWN):
        hint = suggestion(text, dict.fromkeys(keys.values())) if keys else "there are no circuits of your own yet"
        raise CircuitError(f"unknown circuit {text[:MAX_NAME_LENGTH]!r}; {hint}")
    bundled = [name for circuit in circuits() for name in (circuit.id, circuit.name.casefold())]
    meant = closest(text.casefold(), [*bundled, *keys])
    if meant in keys and meant not in bundled:
        raise CircuitError(f"unknown circuit {text[:MAX_NAME_LENGTH]!r}; did you mean {keys[meant]}?")
    return text
