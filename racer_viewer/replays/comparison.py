"""Several runs on one circuit, each from its own start at tick 0: who is how far ahead at any tick of them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from racer_viewer.replays.replay import Replay, ReplayError
from racer_viewer.replays.trace import Trace, track_of

if TYPE_CHECKING:
    from racer_env.engine import Circuit, Track

MOST_COMPARED = 8
"""Runs at a time: more cannot be told apart."""


@dataclass(frozen=True)
class Standing:
    """Who crossed the line at the end of a lap, in this order.

    runs: their numbers. ticks: of each since its start.
    """

    lap: int
    runs: tuple[int, ...]
    ticks: tuple[int, ...]


class Comparison:
    """Runs by the gates that they took: the gate of one lap is another than that of the next."""

    def __init__(self, traces: Sequence[Trace]) -> None:
        self._gates = len(traces[0].track.gates)
        self._taken = [trace.gate_rows.tolist() for trace in traces]
        self._starts = [int(trace.rows["lap"][0]) * self._gates + int(trace.rows["checkpoint"][0]) for trace in traces]
        """The last gate before the start; a lap has as many as the circuit."""

    def gaps(self, tick: int, focus: int) -> tuple[float, ...]:
        """For every run how far it is behind (+) or ahead (−) of one of them [ticks], by when both took the last gate
        that both have taken; 0 before the first, NaN if there is none since one started beyond it."""
        return tuple(self._gap(number, focus, tick) for number in range(len(self._taken)))

    def standing(self, tick: int) -> Standing | None:
        """At the end of the last lap that two runs or more have ended; None before, and where they started apart."""
        if len(set(self._starts)) > 1:
            return None
        reached = sorted(self._reached(number, tick) // self._gates for number in range(len(self._taken)))
        if len(reached) < 2 or reached[-2] < 2:
            return None
        line = reached[-2] * self._gates
        times = [(self._taken_at(number, line), number) for number in range(len(self._taken))]
        ended = sorted((when, number) for when, number in times if when is not None and when <= tick)
        if len(ended) < 2:
            return None
        return Standing(reached[-2] - 1, tuple(number for _, number in ended), tuple(when for when, _ in ended))

    def _gap(self, number: int, focus: int, tick: int) -> float:
        gate = min(self._reached(number, tick), self._reached(focus, tick))
        theirs, ours = self._taken_at(number, gate), self._taken_at(focus, gate)
        if theirs is not None and ours is not None:
            return float(theirs - ours)
        return 0.0 if self._starts[number] == self._starts[focus] else math.nan

    def _reached(self, number: int, tick: int) -> int:
        """The last gate that a run has taken."""
        return self._starts[number] + bisect_right(self._taken[number], tick)

    def _taken_at(self, number: int, gate: int) -> int | None:
        """When a run took a gate; None if it never did."""
        place, taken = gate - self._starts[number] - 1, self._taken[number]
        return taken[place] if 0 <= place < len(taken) else None


def common_track(replays: Sequence[Replay]) -> Track:
    """The track of all of them. Runs on different circuits, or too many, cannot be compared."""
    if not replays:
        raise ReplayError("there is no replay to show")
    if len(replays) > MOST_COMPARED:
        raise ReplayError(f"at most {MOST_COMPARED} replays can be compared at a time, not {len(replays)}")
    first = replays[0]
    for other in replays[1:]:
        if _driven(other.circuit) != _driven(first.circuit):
            raise ReplayError(
                f"replays of different circuits cannot be compared: {_who(first)} drove on {first.circuit.name},"
                f" {_who(other)} on {_other_name(other.circuit, first.circuit)}"
            )
    return track_of(first.circuit)


def _driven(circuit: Circuit) -> tuple[object, ...]:
    """What makes a circuit another one."""
    return circuit.control_points, circuit.gates


def _who(replay: Replay) -> str:
    return replay.driver or "nobody"


def _other_name(circuit: Circuit, known: Circuit) -> str:
    return f"another circuit of this name, {circuit.name}" if circuit.name == known.name else circuit.name
