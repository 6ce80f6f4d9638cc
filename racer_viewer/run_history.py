"""The story of a training run in figures: what its charts are drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from racer_viewer.timing import SECTORS

Floats = NDArray[np.float64]

UNKNOWN = -1.0
"""Number of a circuit that was not told."""


@dataclass(frozen=True)
class RunEvent:
    """Something that happened.

    steps: that all cars together had made. seconds: since the run began, without pauses.
    kind: "begin", "first gate", "first lap", "best", "checkpoint", "weights", "paused", "resumed", "problem" or "end".
    """

    steps: int
    seconds: float
    kind: str
    text: str


@dataclass(frozen=True, eq=False)
class RunHistory:
    """A run as far as it is.

    name: of the run.
    steps, seconds: (n,) of each update of the policy, rising.
    values: by the learner's own names ("rollout/ep_rew_mean", "reward/progress", "train/approx_kl", ...), (n,), NaN
        where an update has no such figure.
    laps: (m, 2) of each finished lap, of learning cars and of evaluations: steps and time [s].
    sectors: (m, 1 + SECTORS): steps, and the times of the thirds of a lap [s].
    policies: (p,) steps at which a policy was kept, to drive again.
    circuits: names of those that it learns on, each once; none in a story from before they were told.
    lap_circuits, sector_circuits: (m,) of each row the number of its circuit among them, or UNKNOWN.
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

    @property
    def last_steps(self) -> int:
        """That all cars together had made when something was last told."""
        return int(max((*self.steps[-1:], *(event.steps for event in self.events[-1:])), default=0))

    def laps_on(self, circuit: str) -> Floats:
        """Rows of `laps` that were driven there: on different circuits, times say nothing about each other."""
        return self._rows_on(circuit, self.laps, self.lap_circuits)

    def sectors_on(self, circuit: str) -> Floats:
        """The same of `sectors`."""
        return self._rows_on(circuit, self.sectors, self.sector_circuits)

    def best_lap(self, circuit: str) -> float | None:
        """The shortest lap there [s]."""
        laps = self.laps_on(circuit)
        return float(laps[:, 1].min()) if len(laps) else None

    def best_laps(self) -> dict[str, float]:
        """The shortest lap [s] on each circuit that has one."""
        bests = ((circuit, self.best_lap(circuit)) for circuit in self.circuits)
        return {circuit: best for circuit, best in bests if best is not None}

    def _rows_on(self, circuit: str, rows: Floats, numbers: Floats) -> Floats:
        """Where there is only one circuit, or none was told, all are of it."""
        if len(self.circuits) < 2:
            return rows
        if circuit not in self.circuits:
            return rows[:0]
        there: Floats = rows[numbers == self.circuits.index(circuit)]
        return there


SWARM_CAR = np.dtype([
    ("x", "f4"), ("y", "f4"), ("heading", "f4"), ("speed", "f4"),
    ("quality", "f4"), ("episode", "i4"), ("lap", "i4"), ("track", "i4"),
])  # fmt: skip
"""A car that learns, as much of it as is shown.

quality: 0 to 1, how well it does: its reward in the last seconds among what is usual in this run.
episode: counts the car's episodes; when it changes, one ended where the car was before.
track: number of the circuit among those of the run.
"""


@dataclass(frozen=True, eq=False)
class Swarm:
    """All cars that learn, at one tick. tick: counts all ticks of the run; cars: (N,) of `SWARM_CAR`."""

    tick: int
    cars: NDArray[np.void]
