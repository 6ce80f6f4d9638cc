"""The figures of a run from before there were stories, in its progress.csv.

Reading a run's story, as it grows or as a whole."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from racer_viewer.run_history import UNKNOWN, Floats, RunEvent, RunHistory
from racer_viewer.timing import SECTORS

RUN_LOG_FILE = "live.jsonl"

UPDATE, LAPS, EVENT, NETWORK, POLICY = "update", "laps", "event", "network", "policy"
"""What a line tells:

update: `steps`, `seconds`, and `values`, the figures of one update of the policy by name.
laps: `laps`, rows of steps and time [s]; `sectors`, rows of steps and the times of the thirds [s], null if not whole.
    Each row ends with the number of its circuit among those of the run, where that is known.
event: `steps`, `seconds`, `kind` and `text`; a begin has the names of its `circuits`, an end has an `outcome`, new
    weights are the whole ai-config `rewards`.
network: how the records of the policies that follow are laid out: see `policies.Layout`.
policy: `steps`, and the `offset` of its record in the file of policies.
"""

SPEED = "time/steps_per_second"
"""Name of the figure that says how fast it went since the update before."""

FINISHED, STOPPED = "finished", "stopped"
"""Outcomes of a run that ended in good order."""

_SUFFIX = re.compile(r"progress(?:_(\d+))?\.csv")


def read_progress(folder: Path) -> RunHistory:
    """Figures by steps; a run that was gone on with has a file for each time, which begins where it says."""
    files = [(int(match[1] or 0), path) for path in folder.glob("*.csv") if (match := _SUFFIX.fullmatch(path.name))]
    rows: dict[int, dict[str, float]] = {}
    seconds: dict[int, float] = {}
    before = 0.0
    for begin, path in sorted(files):
        rows = {steps: row for steps, row in rows.items() if steps <= begin}
        before = max((seconds[steps] for steps in rows), default=0.0)
        for row in _read_csv(path):
            steps = int(row.get("time/total_timesteps", -1))
            if steps < 0:
                continue
            rows[steps] = {**rows.get(steps, {}), **row}
            seconds[steps] = before + row.get("time/time_elapsed", 0.0)
    names = dict.fromkeys(name for row in rows.values() for name in row)
    order = sorted(rows)
    return RunHistory(
        name=folder.name,
        steps=np.array(order, np.float64),
        seconds=np.array([seconds[steps] for steps in order]),
        values={name: np.array([rows[steps].get(name, np.nan) for steps in order]) for name in names},
    )


def _read_csv(path: Path) -> list[dict[str, float]]:
    """Its rows; what is no number is left out."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return [_numbers(row) for row in csv.DictReader(file)]
    except (OSError, ValueError, csv.Error):
        return []


def _numbers(row: Mapping[str | None, Any]) -> dict[str, float]:
    numbers = {}
    for name, text in row.items():
        try:
            numbers[str(name)] = float(text)
        except (TypeError, ValueError):
            continue
    return numbers


CHUNK = 2**20
"""Bytes that are read at once: other threads of a window shall not wait for long."""


class GrowingRows:
    """Rows of numbers to append to. A view that was given out before never changes."""

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

    def extend(self, rows: Floats) -> None:
        for row in rows:
            self.append(row)

    def keep(self, count: int) -> None:
        """Only the first so many."""
        self._rows, self.count = self._rows.copy(), min(count, self.count)

    def replace_last(self, row: Sequence[float] | float) -> None:
        self._rows = self._rows.copy()
        self._rows[self.count - 1] = row


class RunLogReader:
    """Reads live.jsonl from where it was left, and makes curves of it.

    begins: how often the run was begun or gone on with; paused: whether it is, as far as is told; outcome: how it
    ended, if it did; rewards: the ai-config of the last change of weights since it was gone on with; policies: for each
    that was kept the layout of its record, its steps, and where it begins.

    What a run learned before there were stories comes from its progress.csv.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self._path, self._position, self._rest = folder, folder / RUN_LOG_FILE, 0, b""
        self._told: set[str] = set()
        self.begins, self.paused, self.outcome = 0, False, ""
        self.rewards: Mapping[str, Any] | None = None
        self.policies: list[tuple[Mapping[str, Any], int, int]] = []
        self._layout: Mapping[str, Any] = {}
        self._steps, self._seconds = GrowingRows(), GrowingRows()
        self._values: dict[str, GrowingRows] = {}
        self._laps, self._sectors = GrowingRows(2), GrowingRows(1 + SECTORS)
        self._circuits: tuple[str, ...] = ()
        self._lap_circuits, self._sector_circuits = GrowingRows(), GrowingRows()
        self._kept, self._events = GrowingRows(), list[RunEvent]()
        self.history = RunHistory(folder.name)

    def read_all(self) -> RunHistory:
        while self.advance():
            pass
        if not self._position:
            self._take_progress()
            self.history = self._make_curves()
        return self.history

    def advance(self) -> bool:
        """Read what is new, but not too much at once; whether there was something."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._position)
                data = file.read(CHUNK)
        except OSError:
            return False
        if not data:
            return False
        self._position += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line)
        self.history = self._make_curves()
        return True

    def seconds_at(self, steps: int) -> float:
        """How long the run had taken when it was there."""
        told = (event.seconds for event in self._events if event.steps <= steps)
        return float(max([0.0, *self._seconds.view[self._steps.view <= steps], *told])) if steps else 0.0

    def add_event(self, event: RunEvent) -> None:
        """That was told in another way, since the file could not be written; it may be there later."""
        self._told.add(event.text)
        self._events.append(event)
        self.history = self._make_curves()

    def _take(self, line: bytes) -> None:
        """A line; one that is damaged, where a disk was full or a learner was killed, is passed over."""
        try:
            content = orjson.loads(line)
            _TAKERS[content["what"]](self, content)
        except (ValueError, KeyError, TypeError, IndexError):
            return

    def _take_update(self, content: Mapping[str, Any]) -> None:
        steps = float(content["steps"])
        again = bool(self._steps.count) and self._steps.view[-1] == steps  # SAC tells more than once in a tick
        if not again:
            self._steps.append(steps)
            self._seconds.append(float(content["seconds"]))
            for column in self._values.values():
                column.append(np.nan)
        for name, value in content["values"].items():
            self._column(name).replace_last(float(value)) if again else self._set_last(name, float(value))

    def _column(self, name: str) -> GrowingRows:
        if name not in self._values:
            column = self._values[name] = GrowingRows()
            for _ in range(self._steps.count):
                column.append(np.nan)
        return self._values[name]

    def _set_last(self, name: str, value: float) -> None:
        """Of a row that nobody has seen yet."""
        self._column(name).view[-1] = value

    def _take_laps(self, content: Mapping[str, Any]) -> None:
        for steps, time, *circuit in content["laps"]:
            self._laps.append([steps, time])
            self._lap_circuits.append(circuit[0] if circuit else UNKNOWN)
        for row in content["sectors"]:
            steps, *times = row[: 1 + SECTORS]
            self._sectors.append([steps, *(np.nan if time is None else time for time in times)])
            self._sector_circuits.append(row[1 + SECTORS] if len(row) > 1 + SECTORS else UNKNOWN)

    def _take_event(self, content: Mapping[str, Any]) -> None:
        event = RunEvent(int(content["steps"]), float(content["seconds"]), str(content["kind"]), str(content["text"]))
        if event.kind == "begin":
            self._take_begin(content, event.steps)
        elif event.kind in ("paused", "resumed"):
            self.paused = event.kind == "paused"
        elif event.kind == "weights":
            self.rewards = content.get("rewards")
        elif event.kind == "end":
            self.outcome = str(content.get("outcome", ""))
        if event.kind != "problem" or event.text not in self._told:
            self._events.append(event)

    def _take_begin(self, content: Mapping[str, Any], steps: int) -> None:
        if not self.begins and steps:
            self._take_progress()
        self.begins += 1
        self.paused, self.outcome, self.rewards = False, "", None
        self._circuits = tuple(map(str, content.get("circuits", self._circuits)))
        self._take_back(steps)

    def _take_progress(self) -> None:
        """The figures that are there instead of a story, or of the time before it begins."""
        if self._steps.count:
            return
        before = read_progress(self.folder)
        self._steps.extend(before.steps)
        self._seconds.extend(before.seconds)
        for name, values in before.values.items():
            self._values[name] = GrowingRows()
            self._values[name].extend(values)

    def _take_policy(self, content: Mapping[str, Any]) -> None:
        self.policies.append((self._layout, int(content["steps"]), int(content["offset"])))
        self._kept.append(float(content["steps"]))

    def _take_network(self, content: Mapping[str, Any]) -> None:
        self._layout = content

    def _take_back(self, steps: int) -> None:
        """What came after the checkpoint that a run goes on from never was."""
        count = int(np.searchsorted(self._steps.view, steps, "right"))
        for column in (self._steps, self._seconds, *self._values.values()):
            column.keep(count)
        for rows, circuits in ((self._laps, self._lap_circuits), (self._sectors, self._sector_circuits)):
            count = int(np.searchsorted(rows.view[:, 0], steps, "right"))
            rows.keep(count)
            circuits.keep(count)
        self._kept.keep(int(np.searchsorted(self._kept.view, steps, "right")))
        del self.policies[self._kept.count :]
        self._events = [event for event in self._events if event.steps <= steps]

    def _make_curves(self) -> RunHistory:
        return RunHistory(
            name=self._path.parent.name,
            steps=self._steps.view,
            seconds=self._seconds.view,
            values={name: column.view for name, column in self._values.items()},
            laps=self._laps.view,
            sectors=self._sectors.view,
            events=tuple(self._events),
            policies=self._kept.view,
            circuits=self._circuits,
            lap_circuits=self._lap_circuits.view,
            sector_circuits=self._sector_circuits.view,
        )


_TAKERS = {
    UPDATE: RunLogReader._take_update,
    LAPS: RunLogReader._take_laps,
    EVENT: RunLogReader._take_event,
    POLICY: RunLogReader._take_policy,
    NETWORK: RunLogReader._take_network,
}


def load_history(folder: Path) -> RunHistory:
    """The curves of a run, from its story; of one from before there were stories, from its progress.csv."""
    return RunLogReader(folder).read_all()
