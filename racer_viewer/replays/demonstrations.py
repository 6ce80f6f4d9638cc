"""Demonstrations: the steps of a drive as data to learn from, re-simulated from its replay.

Every reader of a drive's observations, actions and rewards uses this: cloning, corrections, and exports for others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from racer_viewer.replays.replay import ReplayError
from racer_viewer.replays.replay_file import load_replay
from racer_viewer.replays.trace import ReplayLap, Trace, trace_replay

Floats = NDArray[np.float64]

ACTION_LOW = (-1.0, 0.0, 0.0)
"""Minimum of steer, throttle and brake; the maximum of each is 1. The engine clips actions to these limits."""


@dataclass(frozen=True, eq=False)
class Demonstration:
    """Consecutive steps of a drive: what an agent would have seen, what the driver did, and what it earned.

    source: name of the driver and the circuit, to show.
    observations: (T + 1, 14); row t is what was seen before action t, and the last row what was seen at the end.
    actions: (T, 3) steer, throttle and brake within their limits, as an agent would return them.
    rewards: (T,) with the config of the replay.
    terminated, truncated: True for steps that ended the episode by its rules, or by its maximum length (T,). The drive
        of a person may go on after either.
    """

    source: str
    observations: NDArray[np.float32]
    actions: NDArray[np.float32]
    rewards: Floats
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]

    @property
    def steps(self) -> int:
        return len(self.actions)


def demonstrated_drive(trace: Trace) -> Demonstration:
    """Return all steps of a drive."""
    return _part(trace, 0, trace.ticks)


def demonstrated_lap(trace: Trace, lap: ReplayLap) -> Demonstration:
    """Return the steps of a lap, from line to line."""
    return _part(trace, lap.first, lap.last)


def clean_laps(trace: Trace) -> tuple[ReplayLap, ...]:
    """Return the clean laps of a drive. Raises ReplayError if there is none, or if it drives differently here."""
    if trace.mismatch is not None:
        raise ReplayError(trace.replay.engine_warning or f"it does not re-simulate as recorded: {trace.mismatch}")
    if not trace.laps:
        raise ReplayError("it has no finished lap to learn from")
    laps = tuple(lap for lap in trace.laps if lap.clean)
    if not laps:
        raise ReplayError(f"it has no clean lap to learn from: {trace.laps[0].fault}")
    return laps


def load_lessons(replays: Sequence[str]) -> tuple[Trace, ...]:
    """Re-simulate replay files. Raises ReplayError, with the file's name, for one that nothing can be learned from."""
    return tuple(_load_lesson(Path(name)) for name in replays)


def _load_lesson(path: Path) -> Trace:
    replay = load_replay(path)
    try:
        trace = trace_replay(replay)
        clean_laps(trace)
    except ReplayError as error:
        raise ReplayError(f"{path}: {error}") from None
    return trace


def _part(trace: Trace, first: int, last: int) -> Demonstration:
    """Return the steps between two rows of a trace."""
    rows, replay = trace.rows[first + 1 : last + 1], trace.replay
    actions = np.clip(replay.actions[first:last], ACTION_LOW, 1.0).astype(np.float32)
    return Demonstration(
        f"{replay.driver or 'unnamed driver'} on {replay.circuit.name}",
        trace.observations[first : last + 1],
        actions,
        rows["reward"].copy(),
        rows["terminated"].astype(np.bool_),
        rows["truncated"].astype(np.bool_),
    )
