"""Run log format and reader: what a run writes to live.jsonl while it learns, read as it grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from racer_env.engine import parse_config
from racer_env.errors import ConfigError
from racer_viewer.paths import open_regular
from racer_viewer.run_history import REPLACED, UNKNOWN, Floats, RunEvent, RunHistory
from racer_viewer.timing import SECTORS
from racer_viewer.training.config import name_in_run

RUN_LOG_FILE = "live.jsonl"
"""Append-only event log of a run: one JSON object per line, whose key `what` is one of the kinds below."""

UPDATE, LAPS, EVENT, NETWORK, POLICY = "update", "laps", "event", "network", "policy"
"""Kinds of log entries:

update: `steps`, `seconds`, and `values`, the metrics of one policy update by name.
laps: `laps`, rows of steps and lap time [s]; `sectors`, rows of steps and sector times [s], null if a sector is
    incomplete. The last number of a row is the index of its circuit, if known.
event: `steps`, `seconds`, `kind` and `text`; "begin" also has the names of the `circuits`, "circuit" too, and the index
    of the one that was `replaced`; "end" has an `outcome`, "weights" has the whole ai-config as `rewards`.
network: layout of the policy records that follow; see `policy_log.PolicyLayout`.
policy: `steps`, and the `offset` of its record in the policy file.
"""

SPEED = "time/steps_per_second"
"""Name of the metric for the learning speed since the previous update."""

FINISHED, STOPPED = "finished", "stopped"
"""Outcomes of a run that ended normally."""

CHUNK_SIZE = 2**20
"""Maximum number of bytes parsed per `advance`; parsing more would delay the other threads of a window."""


MAX_LINE_SIZE = 4 * 2**20
"""Maximum size of a line [bytes]."""
MAX_METRICS, MAX_CELLS = 512, 2**23
"""Maximum number of metrics, and of values in all updates, which take 64 MiB."""
MAX_LAPS = 2**20
"""Maximum number of laps, and of rows of sector times, which take 24 and 40 MiB, and twice as much while they grow; a
run of 500 million steps has as many."""
MAX_EVENTS, MAX_STARTS = 20_000, 1000
"""Maximum number of events; and of starts and resumptions, each of which looks through all events, and of exchanged
circuits, each of which looks through all laps."""
MAX_POLICIES = 2**18
"""Maximum number of policies, which take 35 MiB; the policy file of a run has room for as many of 256 bytes each."""
MAX_TEXT_LENGTH = 500
"""Maximum length of the text of an event [characters]."""

Steps = Annotated[float, msgspec.Meta(ge=0.0, le=2.0**53)]
Seconds = Annotated[float, msgspec.Meta(ge=0.0, le=1e12)]
Number = Annotated[float, msgspec.Meta(ge=-1e38, le=1e38)]
Name = Annotated[str, msgspec.Meta(max_length=200)]
LapRow = Annotated[list[Number], msgspec.Meta(min_length=2, max_length=3)]
SectorRow = Annotated[list[Number | None], msgspec.Meta(min_length=1 + SECTORS, max_length=2 + SECTORS)]
Shape = Annotated[list[Annotated[int, msgspec.Meta(ge=0, le=2**24)]], msgspec.Meta(max_length=4)]


class UpdateEntry(msgspec.Struct, tag_field="what", tag=UPDATE):
    """Metrics of one policy update."""

    steps: Steps
    seconds: Seconds
    values: dict[Name, Number]


class LapsEntry(msgspec.Struct, tag_field="what", tag=LAPS):
    """Finished laps."""

    laps: list[LapRow]
    sectors: list[SectorRow]


class EventEntry(msgspec.Struct, tag_field="what", tag=EVENT):
    """An event."""

    steps: Steps
    seconds: Seconds
    kind: Name
    text: str
    circuits: Annotated[list[str], msgspec.Meta(max_length=4096)] | None = None
    replaced: Annotated[int, msgspec.Meta(ge=0, le=4096)] = 0
    outcome: Name = ""
    rewards: dict[str, Any] | None = None


class NetworkEntry(msgspec.Struct, tag_field="what", tag=NETWORK):
    """Layout of policies."""

    algorithm: Name
    activation: Name
    clip_obs: Number
    epsilon: Number
    tensors: Annotated[dict[Name, Shape], msgspec.Meta(max_length=256)]


class PolicyEntry(msgspec.Struct, tag_field="what", tag=POLICY):
    """Position of a policy."""

    steps: Steps
    offset: Annotated[int, msgspec.Meta(ge=0, le=2**40)]


_DECODER = msgspec.json.Decoder(UpdateEntry | LapsEntry | EventEntry | NetworkEntry | PolicyEntry)


class GrowingRows:
    """Appendable rows of numbers. Views that were published never change."""

    def __init__(self, *shape: int) -> None:
        self._rows, self.count = np.zeros((64, *shape)), 0
        self._published = 0
        """Number of rows in published views."""

    @property
    def view(self) -> Floats:
        return self._rows[: self.count]

    def publish(self) -> Floats:
        """Return a view that stays as it is."""
        self._published = self.count
        return self.view

    def append(self, row: Sequence[float] | float) -> None:
        self._reserve(1)
        self._rows[self.count] = row
        self.count += 1

    def extend(self, rows: Sequence[Any] | Floats) -> None:
        self._reserve(len(rows))
        self._rows[self.count : self.count + len(rows)] = rows
        self.count += len(rows)

    def truncate(self, count: int) -> None:
        """Keep only the first `count` rows."""
        if count < self.count:
            self._rows, self.count, self._published = self._rows[:count].copy(), count, 0

    def replace(self, values: Sequence[float], new: float) -> None:
        """Replace some values wherever they are."""
        changed = np.isin(self.view, values)
        if changed.any():
            self._rows, self._published = self._rows.copy(), 0
            self.view[changed] = new

    def replace_last(self, row: Sequence[float] | float) -> None:
        if self._published == self.count:
            self._rows, self._published = self._rows.copy(), 0
        self._rows[self.count - 1] = row

    def _reserve(self, count: int) -> None:
        """Make room for more rows."""
        needed = self.count + count
        if needed > len(self._rows):
            more = np.zeros((max(needed, 2 * len(self._rows)), *self._rows.shape[1:]))
            more[: self.count] = self.view
            self._rows, self._published = more, 0


class RunLogReader:
    """Incremental reader of a run log.

    history: everything read so far.
    starts: number of times the run was started or resumed.
    paused: last known pause state.
    outcome: FINISHED or STOPPED once the run has ended, else "".
    exchanges: number of times a circuit was exchanged.
    rewards: ai-config of the last change of reward weights since the last start.
    policies: (layout, steps, offset) of each logged policy.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self._path, self._position, self._rest = folder, folder / RUN_LOG_FILE, 0, b""
        self._damaged = 0
        self._reported: set[str] = set()
        self.starts, self.exchanges, self.paused, self.outcome = 0, 0, False, ""
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
            with open_regular(self._path) as file:
                file.seek(self._position)
                data = file.read(CHUNK_SIZE)
        except OSError:
            return False
        if not data:
            return False
        self._position += len(data)
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[: MAX_LINE_SIZE + 1]
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
        """Apply one log line; count and skip lines damaged by a full disk, a killed learner or another program."""
        if not line:
            return
        try:
            if len(line) > MAX_LINE_SIZE:
                raise ValueError("a line is too long")
            self._apply(_DECODER.decode(line))
        except (msgspec.DecodeError, ValueError, RecursionError, ConfigError):
            self._damaged += 1

    def _apply(self, entry: UpdateEntry | LapsEntry | EventEntry | NetworkEntry | PolicyEntry) -> None:
        if isinstance(entry, UpdateEntry):
            self._read_update(entry)
        elif isinstance(entry, LapsEntry):
            self._read_laps(entry)
        elif isinstance(entry, EventEntry):
            self._read_event(entry)
        elif isinstance(entry, PolicyEntry):
            if len(self.policies) >= MAX_POLICIES:
                raise ValueError("there are too many policies")
            self.policies.append((self._layout, int(entry.steps), entry.offset))
            self._policy_steps.append(entry.steps)
        else:
            self._layout = msgspec.to_builtins(entry)

    def _read_update(self, entry: UpdateEntry) -> None:
        metrics = len(self._values.keys() | entry.values.keys())
        columns = metrics + 2  # with steps and seconds
        if metrics > MAX_METRICS or columns * (self._steps.count + 1) > MAX_CELLS:
            raise ValueError("there are too many metrics")
        is_same_update = bool(self._steps.count) and self._steps.view[-1] == entry.steps  # SAC logs several per tick
        if not is_same_update:
            self._steps.append(entry.steps)
            self._seconds.append(entry.seconds)
            for column in self._values.values():
                column.append(np.nan)
        for name, value in entry.values.items():
            column = self._column(name)
            if is_same_update:
                column.replace_last(value)
            else:
                column.view[-1] = value  # no returned view contains this row yet

    def _column(self, name: str) -> GrowingRows:
        if name not in self._values:
            column = self._values[name] = GrowingRows()
            column.extend(np.full(self._steps.count, np.nan))
        return self._values[name]

    def _read_laps(self, entry: LapsEntry) -> None:
        if max(self._laps.count + len(entry.laps), self._sectors.count + len(entry.sectors)) > MAX_LAPS:
            raise ValueError("there are too many laps")
        if entry.laps:
            rows = _filled(entry.laps, 3)
            self._laps.extend(rows[:, :2])
            self._lap_circuits.extend(rows[:, 2])
        if entry.sectors:
            rows = _filled(entry.sectors, 2 + SECTORS)
            self._sectors.extend(rows[:, :-1])
            self._sector_circuits.extend(rows[:, -1])

    def _read_event(self, entry: EventEntry) -> None:
        event = RunEvent(int(entry.steps), entry.seconds, entry.kind, entry.text[:MAX_TEXT_LENGTH])
        if len(self._events) >= MAX_EVENTS:
            raise ValueError("there are too many events")
        if event.kind == "begin":
            self._read_start(entry, event.steps)
        elif event.kind in ("paused", "resumed"):
            self.paused = event.kind == "paused"
        elif event.kind == "circuit":
            self._read_exchange(entry)
        elif event.kind == "weights":
            parse_config(entry.rewards)
            self.rewards = entry.rewards
        elif event.kind == "end":
            self.outcome = entry.outcome
        if event.kind != "problem" or event.text not in self._reported:
            self._events.append(event)

    def _read_start(self, entry: EventEntry, steps: int) -> None:
        if self.starts >= MAX_STARTS:
            raise ValueError("it was started too often")
        self.starts += 1
        self.paused, self.outcome, self.rewards = False, "", None
        if entry.circuits is not None:
            self._circuits = tuple(name_in_run(name, self.folder) for name in entry.circuits)
        self._discard_after(steps)

    def _read_exchange(self, entry: EventEntry) -> None:
        """Apply the exchange of a circuit: laps on the one before no longer count."""
        if self.exchanges >= MAX_STARTS or entry.circuits is None or entry.replaced >= len(entry.circuits):
            raise ValueError("a circuit was exchanged for none, or too often")
        self.exchanges += 1
        self._circuits = tuple(name_in_run(name, self.folder) for name in entry.circuits)
        gone = (entry.replaced, UNKNOWN) if len(self._circuits) == 1 else (entry.replaced,)
        for circuits in (self._lap_circuits, self._sector_circuits):
            circuits.replace(gone, REPLACED)

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
            steps=self._steps.publish(),
            seconds=self._seconds.publish(),
            values={name: column.publish() for name, column in self._values.items()},
            laps=self._laps.publish(),
            sectors=self._sectors.publish(),
            events=tuple(self._events),
            policies=self._policy_steps.publish(),
            circuits=self._circuits,
            lap_circuits=self._lap_circuits.publish(),
            sector_circuits=self._sector_circuits.publish(),
            damaged=self._damaged,
        )


def _filled(rows: Sequence[Sequence[float | None]], width: int) -> Floats:
    """Return rows of the same width: missing values are NaN, a missing circuit is UNKNOWN."""
    if len({len(row) for row in rows}) > 1:
        rows = [[*row, UNKNOWN] if len(row) < width else row for row in rows]
    filled = np.array(rows, np.float64)
    return filled if filled.shape[1] == width else np.insert(filled, width - 1, UNKNOWN, axis=1)


def load_history(folder: Path) -> RunHistory:
    """Read the whole log of a run."""
    return RunLogReader(folder).read_all()
