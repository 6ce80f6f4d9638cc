"""Gates and laps: lap times, and which of them are clean, are decided here."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_env.engine.car import ROAD
from racer_env.engine.compiled import Compiled, part

PARALLEL = 1e-10
"""Minimum cross product of a move and a gate that can cross."""


@part
def count_gates(track: Compiled, car: Compiled, old_x: float, old_y: float) -> None:
    """Count the next gate if the car's move crossed it forwards; gate 0 after the last one completes a lap."""
    car.lap_ticks += 1
    car.finished_lap_ticks = 0
    gates = track.frame[0].gates
    following = (car.checkpoint + 1) % gates
    if not _crossed(track.gates[following], old_x, old_y, car.x - old_x, car.y - old_y):
        return
    car.checkpoint = following
    car.lap_gates += 1
    if following == 0:
        if car.lap_gates == gates:
            car.finished_lap_ticks = car.last_lap_ticks = car.lap_ticks
            if car.best_lap_ticks == 0 or car.lap_ticks < car.best_lap_ticks:
                car.best_lap_ticks = car.lap_ticks
        car.lap += 1
        car.lap_ticks = 0
        car.lap_gates = 0


@part
def _crossed(gate: Compiled, x: float, y: float, dx: float, dy: float) -> bool:
    """Return whether a move crosses the line between a gate's ends in the gate's direction."""
    ex, ey = gate[2] - gate[0], gate[3] - gate[1]
    cross = dx * ey - dy * ex
    if abs(cross) < PARALLEL or dx * gate[6] + dy * gate[7] <= 0.0:
        return False
    ox, oy = gate[0] - x, gate[1] - y
    along_move = (ox * ey - oy * ex) / cross
    along_gate = (ox * dy - oy * dx) / cross
    return 0.0 <= along_move <= 1.0 and 0.0 <= along_gate <= 1.0


def track_limit_faults(cars: Any) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which rows of `CAR` have wall contact and which are off the road; a lap without either is clean."""
    return cars["wall_contact"], cars["surface"] != ROAD
