"""Circuits: named definitions that tracks are built from, bundled, random, or from a file."""

from __future__ import annotations

import os
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from racer_env.engine.circuit_check import check_points, check_track
from racer_env.engine.random_circuits import PREFIX, parse_random_name, random_control_points, random_name
from racer_env.engine.track import DEFAULT_GATES, Track, build_track
from racer_env.errors import CircuitError, os_reason, suggestion

_PACKAGED = Path(__file__).parents[1] / "assets"
_IN_REPOSITORY = Path(__file__).parents[2] / "assets"


def assets_folder() -> Path:
    """Return the assets folder: inside an installed package, or at the root of a checked-out repository."""
    return _PACKAGED if _PACKAGED.is_dir() else _IN_REPOSITORY


MAX_FILE_BYTES = 256 * 2**10
"""Maximum size of a circuit file [bytes]; 1,000 control points have 60 KiB."""
ControlPoint = tuple[float, float, float]
Seconds = Annotated[float, msgspec.Meta(gt=0.0)]


class Medals(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Lap times that earn each medal [s]; `author` is that of the best agent."""

    gold: Seconds
    silver: Seconds
    bronze: Seconds
    author: Seconds | None = None


class Circuit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Content of a circuit file. Control points are x, y, half road width, in driving order."""

    name: str
    control_points: tuple[ControlPoint, ...]
    description: str = ""
    gates: Annotated[int, msgspec.Meta(ge=2, le=1000)] = DEFAULT_GATES
    medals: Medals | None = None
    id: str = ""

    def build(self) -> Track:
        """Build and check the track. Raises a CircuitError that names the control point if it cannot be driven."""
        check_points(np.array(self.control_points, np.float64).reshape(-1, 3))
        track = build_track(self.control_points, self.gates, self)
        check_track(track)
        return track


def circuits() -> tuple[Circuit, ...]:
    """Return the bundled circuits, in the order of their ids."""
    return tuple(_bundled().values())


def load_circuit(name_or_path: str | Path | Circuit) -> Track:
    """Return the track of a circuit.

    name_or_path: bundled id (`track-01`), random name (`random:1234`, `random:1234:hard`), file path, or definition.
    """
    if isinstance(name_or_path, Circuit):
        return name_or_path.build()
    name = str(name_or_path)
    if is_circuit_file(name):
        status = Path(name).stat()
        return _track_of_file(name, status.st_mtime_ns, status.st_size)
    if name.endswith(".json") and name not in _bundled() and not name.startswith(PREFIX):
        raise CircuitError(f"circuit file {name} does not exist")
    return named_circuit(name)


@lru_cache(maxsize=4)
def _track_of_file(name: str, changed: int, size: int) -> Track:
    """Return the track of a circuit file, from a cache; a file that was changed is read again."""
    return read_circuit(Path(name)).build()


@lru_cache(maxsize=64)
def named_circuit(name: str) -> Track:
    """Return the track of a bundled or random circuit, from a cache."""
    return build_named(name)


def build_named(name: str) -> Track:
    """Build the track of a bundled or random circuit. The name is never used as a path."""
    if name in _bundled():
        return _bundled()[name].build()
    if name.startswith(PREFIX):
        seed, kind = parse_random_name(name)
        points = random_control_points(seed, kind)
        description = f"Random, {kind}" if isinstance(kind, str) else "Random"
        circuit = Circuit(random_name(name), points, description, id=name)
        return build_track(points, circuit.gates, circuit)
    raise CircuitError(f"unknown circuit {name!r}; {_suggestion(name)}")


def is_circuit_file(name: str) -> bool:
    """Return whether `load_circuit` reads a file for this name."""
    return name not in _bundled() and not name.startswith(PREFIX) and Path(name).is_file()


def parse_circuit(values: object) -> Circuit:
    """Return the circuit of parsed JSON. Raises a CircuitError that names the wrong value."""
    try:
        return msgspec.convert(values, Circuit)
    except (msgspec.ValidationError, RecursionError) as error:
        raise CircuitError(f"not a circuit: {error}") from None


def circuit_name(circuit_id: str) -> str:
    """Return the name of a circuit as people say it: of an id, of a random one, or of a file, which may be gone."""
    if circuit_id in _bundled():
        return _bundled()[circuit_id].name
    if circuit_id.startswith(PREFIX):
        return random_name(circuit_id)
    try:
        status = os.stat(circuit_id)
        return _name_of_file(circuit_id, status.st_mtime_ns, status.st_size) or Path(circuit_id).stem
    except (OSError, ValueError, CircuitError):
        return Path(circuit_id).stem


@lru_cache(maxsize=256)
def _name_of_file(path: str, changed: int, size: int) -> str:
    """Return the name of a circuit file, from a cache; a file that was changed is read again."""
    return " ".join(read_circuit(Path(path)).name.split())


def _suggestion(name: str) -> str:
    """Return a hint after an unknown circuit; names and ids are both compared."""
    known = {circuit.name.lower(): circuit.id for circuit in circuits()}
    if name.lower() in known:
        return f"did you mean {known[name.lower()]}?"
    ids = ", ".join(f"{circuit.id} ({circuit.name})" for circuit in circuits())
    return suggestion(name, _bundled(), f"known: {ids}, {PREFIX}SEED, or a file's path")


def read_circuit(path: Path) -> Circuit:
    """Read a circuit file. The id is the file name without its suffix."""
    try:
        if path.is_fifo():
            raise CircuitError(f"cannot read circuit {path}: it is a pipe, which may never have an end")
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise CircuitError(f"cannot read circuit {path}: {os_reason(error)}") from None
    if len(content) > MAX_FILE_BYTES:
        raise CircuitError(f"{path.name} is larger than {MAX_FILE_BYTES // 2**10} KiB: it is not a circuit")
    try:
        circuit = msgspec.json.decode(content, type=Circuit)
    except msgspec.ValidationError as error:
        raise CircuitError(f"{path.name}: {error} (control points are counted from 0)") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CircuitError(f"{path.name} is not JSON: {error}") from None
    return msgspec.structs.replace(circuit, id=path.stem)


@cache
def _bundled() -> dict[str, Circuit]:
    files = sorted((assets_folder() / "circuits").glob("[!.]*.json"))
    return {path.stem: read_circuit(path) for path in files}
