"""The circuits that can be chosen: those that come with the app, the user's own files, and random ones."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from racer_env.engine import Circuit, circuits, load_circuit
from racer_env.errors import CircuitError, RacerError
from racer_viewer.settings import Settings

RANDOM = "random:"

_own_circuits: dict[str, Circuit] = {}
"""The user's, by the paths of their files: those that were given since the program began."""


def remember_circuit(path: Path) -> Circuit:
    """From now on this file is among the circuits to choose from, if it can be driven."""
    circuit = load_circuit(path).circuit
    assert circuit is not None, "a track from a file has its circuit"
    _own_circuits[str(path)] = circuit
    return circuit


def fixed_circuits(also: str) -> dict[str, Circuit]:
    """Bundled ones and the user's, by what they are found by; also that of the settings if it is a file's path."""
    if also.lower().endswith(".json") and also not in _own_circuits:
        with suppress(RacerError, OSError):
            remember_circuit(Path(also))
    own = {path: circuit for path, circuit in _own_circuits.items() if Path(path).is_file()}
    return {circuit.id: circuit for circuit in circuits()} | own


def circuit_of(settings: Settings) -> str:
    """What the settings' circuit is found by; the first of all where that is gone."""
    wanted = settings.circuit
    fixed = fixed_circuits(wanted)
    return wanted if wanted in fixed or is_random(wanted) else next(iter(fixed))


def is_random(name: str) -> bool:
    """Whether it names a random circuit that there is."""
    try:
        return name.startswith(RANDOM) and load_circuit(name) is not None
    except CircuitError:
        return False
