"""Tracks: geometry built from a circuit, and tables for the compiled code."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from racer_env.engine.beams import add_beams
from racer_env.engine.centreline import Centreline, Floats, build_centreline
from racer_env.engine.tables import CELL_SIZE, TrackTables, add_search, build_tables, build_wall_grid
from racer_env.engine.walls import build_borders, build_gates
from racer_env.errors import CircuitError

if TYPE_CHECKING:
    from racer_env.engine.circuits import Circuit

DEFAULT_GATES = 30
MIN_CONTROL_POINTS = 4


@dataclass(frozen=True, eq=False)
class Track:
    """An immutable track. Points are in game units, y up; lines are closed by repeating their first point.

    inner, outer: the walls, (m, 2).
    inner_road, outer_road: the road edges, (m, 2).
    gates: a row each of inner end xy, outer end xy, centre xy, direction xy, arc.
    centreline: the spline, which gives the point at a distance.
    circuit: definition from which the track was built, or None.
    """

    control_points: Floats
    centreline: Centreline
    inner: Floats
    outer: Floats
    inner_road: Floats
    outer_road: Floats
    gates: Floats
    circuit: Circuit | None = None

    @property
    def length(self) -> float:
        """Length of a lap along the centreline."""
        return self.centreline.length

    @cached_property
    def start(self) -> tuple[float, float, float]:
        """Standing start: x, y and heading [rad]."""
        _, _, _, _, x, y, dx, dy, _ = self.gates[0]
        return float(x), float(y), float(np.arctan2(dy, dx))

    @cached_property
    def grid(self) -> TrackTables:
        """Tables with the walls only: quick to build, and sufficient for the check of a circuit."""
        return build_wall_grid(self.centreline, self.inner, self.outer, self.gates, CELL_SIZE)

    @cached_property
    def tables(self) -> TrackTables:
        """Tables that the compiled code reads; built on first use."""
        return add_beams(add_search(self.grid))

    def brute_force_tables(self) -> TrackTables:
        """Return tables with one cell that lists everything, without beams: same results, slow."""
        tables = build_tables(self.centreline, self.inner, self.outer, self.gates, math.inf)
        tables.seal()
        return tables


def build_track(control_points: ArrayLike, gate_count: int = DEFAULT_GATES, circuit: Circuit | None = None) -> Track:
    """Build a track from rows of x, y, half road width, in driving order.

    Only input without any geometry is refused here; `check_track` decides whether a car can drive on it.
    """
    try:
        points = np.array(control_points, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise CircuitError(f"control points must be numbers, a row of x, y, half-width each: {error}") from None
    if points.ndim != 2 or points.shape[1] != 3 or len(points) < MIN_CONTROL_POINTS:
        raise CircuitError(
            f"control points: at least {MIN_CONTROL_POINTS} rows of x, y, half-width are needed,"
            f" not an array of shape {points.shape}"
        )
    if not np.isfinite(points).all():
        raise CircuitError(f"control point {int(np.argwhere(~np.isfinite(points))[0, 0])} is not finite")
    if gate_count < 2:
        raise CircuitError(f"a circuit needs at least 2 gates, not {gate_count}")
    line = build_centreline(points)
    if not line.length > 0.0:
        raise CircuitError("all control points are the same: there is no lap to drive")
    borders = build_borders(line)
    gates = build_gates(line, borders, gate_count)
    lines = (borders.inner, borders.outer, borders.inner_road, borders.outer_road)
    for array in (points, line.cubics, line.arcs, line.half_widths, *lines, gates):
        array.flags.writeable = False
    return Track(points, line, *lines, gates, circuit)
