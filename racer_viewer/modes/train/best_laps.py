"""The best laps of a run in words: on different circuits, times say nothing about each other.

The fastest lap of all cars is not that of the policy that is kept as the best, which has to be clean first.
"""

from __future__ import annotations

import numpy as np

from racer_viewer.curves import Curves
from racer_viewer.modes.train.shown_policy import steps_in_words


def lap_words(curves: Curves, circuit: str) -> str:
    """On a circuit, whose name is said where there are others: the fastest lap, and that of the best policy."""
    fastest, kept = curves.best_lap(circuit), _lap_of_best(curves, circuit)
    where = f" on {circuit}" if len(curves.circuits) > 1 else ""
    if fastest is None:
        return f"no lap yet{where}"
    return f"fastest lap {fastest:.2f} s{where}" + (f", best policy {kept:.2f} s" if kept is not None else "")


def fastest_laps(curves: Curves) -> str:
    """Of all cars, on every circuit that has one; empty if there is none."""
    if len(curves.circuits) < 2:
        return lap_words(Curves(laps=curves.laps), "") if len(curves.laps) else ""
    laps = curves.best_laps()
    return f"fastest {'lap' if len(laps) == 1 else 'laps'} {_listed(laps)}" if laps else ""


def best_policy(curves: Curves) -> str:
    """The one that is kept as the best: since when, and its laps as far as they are known; empty if there is none."""
    steps = best_steps(curves)
    if steps is None:
        return ""
    words = f"best policy after {steps_in_words(steps)} steps"
    found = ((circuit, _lap_of_best(curves, circuit)) for circuit in curves.circuits or ("",))
    laps = {circuit: lap for circuit, lap in found if lap is not None}
    if not laps:
        return words
    return f"{words}: {_listed(laps) if len(curves.circuits) > 1 else f'{min(laps.values()):.2f} s'}"


def best_steps(curves: Curves) -> int | None:
    """That the policy which is kept as the best had learned for; None as long as none has driven cleanly."""
    return next((event.steps for event in reversed(curves.events) if event.kind == "best"), None)


def _lap_of_best(curves: Curves, circuit: str) -> float | None:
    """By which it was found to be the best [s]: as the learner logged it, else the fastest lap of that moment."""
    steps = best_steps(curves)
    if steps is None:
        return None
    logged = curves.values.get(f"eval/lap_{circuit}", np.full(len(curves.steps), np.nan))[curves.steps == steps]
    laps = curves.laps_on(circuit)
    there = logged[np.isfinite(logged)] if np.isfinite(logged).any() else laps[laps[:, 0] == steps, 1]
    return float(there.min()) if len(there) else None


def _listed(laps: dict[str, float]) -> str:
    return ", ".join(f"{lap:.2f} s on {circuit}" for circuit, lap in laps.items())
