"""Run log format and reader: what a run writes to live.jsonl while it learns, read as it grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from racer_viewer.run_history import UNKNOWN, Floats, RunEvent, RunHistory
from racer_viewer.timing import SECTORS

RUN_LOG_FILE = "live.jsonl"
"""Append-only event log of a run: one JSON object per line, whose key `what` is one of the kinds below."""

UPDATE, LAPS, EVENT, NETWORK, POLICY = "update", "laps", "event", "network", "policy"
"""Kinds of log entries:

update: `steps`, `seconds`, and `values`, the metrics of one policy update by name.
laps: `laps`, rows of steps and lap time [s]; `sectors`, rows of steps and sector times [s], null if a sector is
    incomplete. The last number of a row is the index of its circuit, if known.
event: `steps`, `seconds`, `kind` and `text`; "begin" also has the names of the `circuits`, "end" has an `outcome`,
    "weights" has the whole ai-config as `rewards`.
network: layout of the policy records that follow; see `policy_log.PolicyLayout`.
policy: `steps`, and the `offset` of its record in the policy file.
"""

SPEED = "time/steps_per_second"
"""Name of the metric for the learning speed since the previous update."""

FINISHED, STOPPED = "finished", "stopped"
"""Outcomes of a run that ended normally."""

CHUNK_SIZE = 2**20
"""Maximum number of bytes parsed per `advance`; parsing more would delay the other threads of a window."""


class GrowingRows:
    """Appendable rows of numbers. Views returned earlier never change."""

    def __init__(self, *shape: int) -> None:
        self._rows, self.count = np.zeros((64, *shape)), 0

    @property
    def view(self) -> Floats:
        return self._rows[: self.count]

    def append(self, row: Sequence[float] | float) -> None:
        if self.count == len(self._rows):
            more = np.zeros((2 * len(self._rows), *self._rows.shape[1:]))
            more[: self.count] = self._rows
            self._rows = more
        self._rows[self.count] = row
        self.count += 1

    def truncate(self, count: int) -> None:
        """Keep only the first `count` rows."""
        self._rows, self.count = self._rows.copy(), min(count, self.count)

    def replace_last(self, row: Sequence[float] | float) -> None:
        self._rows = self._rows.copy()
        self._rows[self.count - 1] = row


class RunLogReader:
    """Incremental reader of a run log.

    history: everything read so far.
    starts: number of times the run was started or resumed.
    paused: last known pause state.
    outcome: FINISHED or STOPPED once the run has ended, else "".
    rewards: ai-config of the last change of reward weights since the last start.
    policies: (layout, steps, offset) of each logged policy.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self._path, self._position, self._rest = folder, folder / RUN_LOG_FILE, 0, b""
        self._reported: set[str] = set()
        self.starts, self.paused, self.outcome = 0, False, ""
        self.rewards: Mapping[str, Any] | None = None
        self.policies: list[tuple[Mapping[str, Any], int, int]] = []
        self._layout: Mapping[str, Any] = {}
        self._steps, self._seconds = GrowingRows(), GrowingRows()
        self._values: dict[str, GrowingRows] = {}
        self._laps, self._sectors = GrowingRows(2), GrowingRows(1 + SECTORS)
        self._circuits: tuple[str, ...] = ()
        self._lap_circuits, self._sector_circuits = GrowingRows(), GrowingRows()
        self._policy_steps, self._events = GrowingRows(), list[RunEvent]()
        self.history = RunHistory(folder.name)

    def read_all(self) -> RunHistory:
        while self.advance():
            pass
        return self.history

    def advance(self) -> bool:
        """Read up to CHUNK_SIZE new bytes; return False if there were none."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._position)
                data = file.read(CHUNK_SIZE)
        except OSError:
            return False
        if not data:
            return False
        self._position += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._read_line(line)
        self.history = self._make_history()
        return True

    def seconds_at(self, steps: int) -> float:
        """Return the learning time [s] up to the given number of steps."""
        events = (event.seconds for event in self._events if event.steps <= steps)
        return float(max([0.0, *self._seconds.view[self._steps.view <= steps], *events])) if steps else 0.0

    def add_event(self, event: RunEvent) -> None:
        """Add an event received over the control socket; the same event is skipped if the log contains it later."""
        self._reported.add(event.text)
        self._events.append(event)
        self.history = self._make_history()

    def _read_line(self, line: bytes) -> None:
        """Apply one log line; skip lines damaged by a full disk or a killed learner."""
        try:
            content = orjson.loads(line)
            _HANDLERS[content["what"]](self, content)
        except (ValueError, KeyError, TypeError, IndexError):
            return

    def _read_update(self, content: Mapping[str, Any]) -> None:
        steps = float(content["steps"])
        is_same_update = bool(self._steps.count) and self._steps.view[-1] == steps  # SAC logs several times per tick
        if not is_same_update:
            self._steps.append(steps)
            self._seconds.append(float(content["seconds"]))
            for column in self._values.values():
                column.append(np.nan)
        for name, value in content["values"].items():
            column = self._column(name)
            if is_same_update:
                column.replace_last(float(value))
            else:
                column.view[-1] = float(value)  # no returned view contains this row yet

    def _column(self, name: str) -> GrowingRows:
        if name not in self._values:
            column = self._values[name] = GrowingRows()
            for _ in range(self._steps.count):
                column.append(np.nan)
        return self._values[name]

    def _read_laps(self, content: Mapping[str, Any]) -> None:
        for steps, time, *circuit in content["laps"]:
            self._laps.append([steps, time])
            self._lap_circuits.append(circuit[0] if circuit else UNKNOWN)
        for row in content["sectors"]:
            steps, *times = row[: 1 + SECTORS]
            self._sectors.append([steps, *(np.nan if time is None else time for time in times)])
            self._sector_circuits.append(row[1 + SECTORS] if len(row) > 1 + SECTORS else UNKNOWN)

    def _read_event(self, content: Mapping[str, Any]) -> None:
        event = RunEvent(int(content["steps"]), float(content["seconds"]), str(content["kind"]), str(content["text"]))
        if event.kind == "begin":
            self._read_start(content, event.steps)
        elif event.kind in ("paused", "resumed"):
            self.paused = event.kind == "paused"
        elif event.kind == "weights":
            self.rewards = content.get("rewards")
        elif event.kind == "end":
            self.outcome = str(content.get("outcome", ""))
        if event.kind != "problem" or event.text not in self._reported:
            self._events.append(event)

    def _read_start(self, content: Mapping[str, Any], steps: int) -> None:
        self.starts += 1
        self.paused, self.outcome, self.rewards = False, "", None
        self._circuits = tuple(map(str, content.get("circuits", self._circuits)))
        self._discard_after(steps)

    def _read_policy(self, content: Mapping[str, Any]) -> None:
        self.policies.append((self._layout, int(content["steps"]), int(content["offset"])))
        self._policy_steps.append(float(content["steps"]))

    def _read_network(self, content: Mapping[str, Any]) -> None:
        self._layout = content

    def _discard_after(self, steps: int) -> None:
        """Drop everything after the checkpoint that the run resumed from."""
        count = int(np.searchsorted(self._steps.view, steps, "right"))
        for column in (self._steps, self._seconds, *self._values.values()):
            column.truncate(count)
        for rows, circuits in ((self._laps, self._lap_circuits), (self._sectors, self._sector_circuits)):
            count = int(np.searchsorted(rows.view[:, 0], steps, "right"))
            rows.truncate(count)
            circuits.truncate(count)
        self._policy_steps.truncate(int(np.searchsorted(self._policy_steps.view, steps, "right")))
        del self.policies[self._policy_steps.count :]
        self._events = [event for event in self._events if event.steps <= steps]

    def _make_history(self) -> RunHistory:
        return RunHistory(
            name=self.folder.name,
            steps=self._steps.view,
            seconds=self._seconds.view,
            values={name: column.view for name, column in self._values.items()},
            laps=self._laps.view,
            sectors=self._sectors.view,
            events=tuple(self._events),
            policies=self._policy_steps.view,
            circuits=self._circuits,
            lap_circuits=self._lap_circuits.view,
            sector_circuits=self._sector_circuits.view,
        )


_HANDLERS = {
    UPDATE: RunLogReader._read_update,
    LAPS: RunLogReader._read_laps,
    EVENT: RunLogReader._read_event,
    POLICY: RunLogReader._read_policy,
    NETWORK: RunLogReader._read_network,
}


def load_history(folder: Path) -> RunHistory:
    """Read the whole log of a run."""
    return RunLogReader(folder).read_all()
