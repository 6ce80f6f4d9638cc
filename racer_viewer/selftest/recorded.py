"""The engine of this machine against recorded runs of the racer that existing models were trained on."""

import numpy as np
from numpy.typing import NDArray

from racer_env.assets import assets_folder
from racer_env.engine import Simulation, load_circuit

Floats = NDArray[np.float64]

COLUMNS = ("x", "y", "heading", "vx", "vy", "speed", "yaw_rate", "slip_angle", "lap", "checkpoint", "reward")
TOLERANCE = 1e-5
"""Of a check-sum: a run of 500 ticks adds up 500 differences of some 1e-11, weighted by up to 500."""


def check_sums(rows: Floats) -> Floats:
    """Of each column: its sum, and its sum weighted by the tick's number, so that the order counts too."""
    ticks = np.arange(1.0, len(rows) + 1.0)
    return np.concatenate([rows.sum(axis=0), ticks @ rows])


def compare() -> tuple[int, float]:
    """Drive every kept run again; how many there are, and the largest difference of a check-sum."""
    with np.load(assets_folder() / "recorded_runs.npz", allow_pickle=False) as kept:
        runs = {name.removesuffix("/actions"): kept[name] for name in kept.files if name.endswith("/actions")}
        worst = max(
            float(np.abs(check_sums(_drive(name, actions)) - kept[f"{name}/sums"]).max())
            for name, actions in runs.items()
        )
    return len(runs), worst


def _drive(name: str, actions: Floats) -> Floats:
    """The columns after each tick of a run from the line."""
    simulation = Simulation(load_circuit(name.split("/")[0]))
    rows = np.empty((len(actions), len(COLUMNS)))
    for row, action in zip(rows, actions, strict=True):
        simulation.step([action])
        car = simulation.cars[0]
        row[:] = [float(car[column]) for column in COLUMNS]
    return rows
