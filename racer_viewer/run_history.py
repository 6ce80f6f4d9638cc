"""History of a training run as plain data: the arrays that charts draw, and the cars of one tick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from racer_viewer.timing import SECTORS

Floats = NDArray[np.float64]

UNKNOWN = -1.0
"""Circuit index of a lap whose circuit is not known."""
REPLACED = -2.0
"""Circuit index of a lap on a circuit that was exchanged for another one since."""


@dataclass(frozen=True)
class RunEvent:
    """An event of a run.

    steps: total environment steps of all cars at the event.
    seconds: learning time since the start of the run, without pauses [s].
    kind: "begin", "first gate", "first lap", "best", "checkpoint", "clone", "weights", "circuit", "paused", "resumed",
        "problem" or "end".
    """

    steps: int
    seconds: float
    kind: str
    text: str


@dataclass(frozen=True, eq=False)
class RunHistory:
    """Everything logged by a run so far.

    name: name of the run.
    steps, seconds: (n,) steps and learning time [s] of each policy update, ascending.
    values: metrics by the learner's names ("rollout/ep_rew_mean", "reward/progress", "train/approx_kl", ...), (n,), NaN
        for updates without the metric.
    laps: (m, 2) steps and time [s] of each finished lap, of learning cars and of evaluations.
    sectors: (k, 1 + SECTORS) steps and sector times [s] of laps.
    policies: (p,) steps of the logged policies.
    circuits: names of the run's circuits, each once; empty if not known.
    lap_circuits, sector_circuits: (m,) and (k,) index into `circuits` of each row, UNKNOWN or REPLACED.
    damaged: number of lines of the log that cannot be read.
    """

    name: str = ""
    steps: Floats = field(default_factory=lambda: np.zeros(0))
    seconds: Floats = field(default_factory=lambda: np.zeros(0))
    values: Mapping[str, Floats] = field(default_factory=dict)
    laps: Floats = field(default_factory=lambda: np.zeros((0, 2)))
    sectors: Floats = field(default_factory=lambda: np.zeros((0, 1 + SECTORS)))
    events: tuple[RunEvent, ...] = ()
    policies: Floats = field(default_factory=lambda: np.zeros(0))
    circuits: tuple[str, ...] = ()
    lap_circuits: Floats = field(default_factory=lambda: np.zeros(0))
    sector_circuits: Floats = field(default_factory=lambda: np.zeros(0))
    damaged: int = 0

    @property
    def last_steps(self) -> int:
        """Total environment steps at the last update or event."""
        return int(max((*self.steps[-1:], *(event.steps for event in self.events[-1:])), default=0))

    def laps_on(self, circuit: str) -> Floats:
        """Return the rows of `laps` on one circuit; times on different circuits cannot be compared."""
        return self._rows_on(circuit, self.laps, self.lap_circuits)

    def sectors_on(self, circuit: str) -> Floats:
        """Return the rows of `sectors` on one circuit."""
        return self._rows_on(circuit, self.sectors, self.sector_circuits)

    def best_lap(self, circuit: str) -> float | None:
        """Return the fastest lap on a circuit [s]."""
        laps = self.laps_on(circuit)
        return float(laps[:, 1].min()) if len(laps) else None

    def best_laps(self) -> dict[str, float]:
        """Return the fastest lap [s] of each circuit that has one."""
        bests = ((circuit, self.best_lap(circuit)) for circuit in self.circuits)
        return {circuit: best for circuit, best in bests if best is not None}

    def _rows_on(self, circuit: str, rows: Floats, indices: Floats) -> Floats:
        """Select the rows of one circuit; all rows if the run has one circuit or its circuits are not known.

        Rows of a circuit that was exchanged since are left out.
        """
        if len(self.circuits) < 2:
            kept = indices != REPLACED
            return rows if kept.all() else rows[kept]
        if circuit not in self.circuits:
            return rows[:0]
        selected: Floats = rows[indices == self.circuits.index(circuit)]
        return selected


SWARM_CAR = np.dtype([
    ("x", "f4"), ("y", "f4"), ("heading", "f4"), ("speed", "f4"),
    ("quality", "f4"), ("episode", "i4"), ("lap", "i4"), ("track", "i4"), ("wall_contact", "i4"),
])  # fmt: skip
"""Drawn state of one learning car.

quality: recent reward from 0 to 1, relative to the usual range in this run.
episode: number of the car's episodes; when it changes, one ended at the car's previous position.
track: index of the circuit in the run.
wall_contact: 1 if the car touches a wall, else 0.
"""


@dataclass(frozen=True, eq=False)
class Swarm:
    """All learning cars at one tick.

    tick: tick of the run.
    cars: (N,) of `SWARM_CAR`.
    """

    tick: int
    cars: NDArray[np.void]
