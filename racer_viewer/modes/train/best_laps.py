"""The best laps of a run in words: on different circuits, times say nothing about each other."""

from __future__ import annotations

from racer_viewer.curves import Curves


def best_lap(curves: Curves, circuit: str) -> str:
    """On a circuit, whose name is said where there are others."""
    best = curves.best_lap(circuit)
    where = f" on {circuit}" if len(curves.circuits) > 1 else ""
    return f"no lap yet{where}" if best is None else f"best lap {best:.2f} s{where}"


def best_laps(curves: Curves) -> str:
    """On every circuit that has one; empty if there is none."""
    if len(curves.circuits) < 2:
        return best_lap(curves, "") if len(curves.laps) else ""
    bests = [f"{best:.2f} s on {circuit}" for circuit, best in curves.best_laps().items()]
    return f"best {'lap' if len(bests) == 1 else 'laps'} {', '.join(bests)}" if bests else ""
