"""The best runs on every circuit. A record is its replay: it is driven again before it gets in."""

from __future__ import annotations

import hashlib
import sqlite3
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from racer_viewer.replays.record_database import DamagedError, RecordDatabase
from racer_viewer.replays.record_database import RecordError as RecordError
from racer_viewer.replays.replay import ENGINE_VERSION, Replay
from racer_viewer.replays.replay_file import replay_from_bytes, replay_to_bytes
from racer_viewer.replays.trace import Trace, trace_replay

if TYPE_CHECKING:
    from racer_env.engine import Circuit, Track

T = TypeVar("T")
Medal = Literal["gold", "silver", "bronze"]

KEPT = 20
"""Records of one circuit."""
_COLUMNS = "number, circuit_id, fingerprint, circuit_name, driver, best_lap, laps, clean, date"
_OF_CIRCUIT = "engine = ? AND circuit_id = ? AND fingerprint = ?"
_RANKING = "ORDER BY best_lap, date, number"
_SAME = "number = ? AND date = ?"
"""A number alone could be that of another record, in a file that was begun anew."""


@dataclass(frozen=True)
class CircuitKey:
    """Which circuit a record is of: one whose control points or gates were changed is another circuit."""

    id: str
    fingerprint: str


@dataclass(frozen=True)
class Entry:
    """A record. `number` names it in its database; times are in ticks."""

    number: int
    circuit: CircuitKey
    circuit_name: str
    driver: str
    best_lap: int
    laps: int
    clean: bool
    """Of the best lap: no wall touched, never off the road."""
    date: datetime


class Records:
    """The records in one database file, which is made with the first record.

    Several processes and threads may use the same file. Only runs of this engine version are listed: what an older
    engine made of its physics stays in the file, but is no record any more.

    kept: so many of a circuit are kept, the best.
    """

    def __init__(self, path: Path, kept: int = KEPT) -> None:
        self._database = RecordDatabase(path)
        self._kept = kept

    @property
    def notice(self) -> str | None:
        """A line for the screen if the file was damaged, and set aside, and a new one begun; else None."""
        return self._database.notice

    def enter(self, replay: Replay, track: Track | None = None) -> Entry | None:
        """Drive a replay again and enter it. None if it is not among the best that are kept.

        track: that of its circuit, if it is built already.

        A run that the physics does not give, of another engine version, from another than the standing start or
        without a finished lap is a RecordError. The same replay twice is one record.
        """
        trace = _driven_again(replay, track)
        data = replay_to_bytes(replay)
        return self._database.run(lambda database: self._enter(database, trace, data))

    def best(self, circuit: Circuit | CircuitKey) -> Entry | None:
        """The fastest record of a circuit, if there is one."""
        return next(iter(self.top(circuit, 1)), None)

    def top(self, circuit: Circuit | CircuitKey, limit: int = 10) -> tuple[Entry, ...]:
        """The records of a circuit, fastest best lap first; of equals, the older first."""
        query = f"SELECT {_COLUMNS} FROM record WHERE {_OF_CIRCUIT} {_RANKING} LIMIT ?"
        return self._read(query, (*_key_values(circuit), limit), _entry)

    def circuits(self) -> tuple[CircuitKey, ...]:
        """The circuits that have a record."""
        query = "SELECT DISTINCT circuit_id, fingerprint FROM record WHERE engine = ? ORDER BY circuit_id, fingerprint"
        return self._read(query, (ENGINE_VERSION,), lambda row: CircuitKey(*row))

    def replay_of(self, entry: Entry) -> Replay:
        """The replay that a record is."""
        query = f"SELECT CAST(replay AS BLOB) FROM record WHERE {_SAME}"
        found: tuple[bytes, ...] = self._read(query, _same(entry), lambda row: row[0])
        if not found:
            raise RecordError("this record is no longer there")
        return replay_from_bytes(found[0])

    def delete(self, entry: Entry) -> None:
        """Take a record out; one that is not there is no error."""
        if self._database.exists:
            self._database.run(lambda database: database.execute(f"DELETE FROM record WHERE {_SAME}", _same(entry)))

    def _read(self, query: str, values: tuple[Any, ...], make: Callable[[Any], T]) -> tuple[T, ...]:
        """Something of every row; nothing where nothing was ever entered, and no file is made for that."""
        if not self._database.exists:
            return ()
        return self._database.run(lambda database: tuple(map(make, database.execute(query, values).fetchall())))

    def _enter(self, database: sqlite3.Connection, trace: Trace, data: bytes) -> Entry | None:
        digest = hashlib.sha256(data).hexdigest()
        row = {**_values(trace), "engine": ENGINE_VERSION, "digest": digest, "replay": data}
        circuit = (row["engine"], row["circuit_id"], row["fingerprint"])
        with database:
            database.execute("BEGIN IMMEDIATE")
            database.execute(
                f"INSERT OR IGNORE INTO record ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",
                tuple(row.values()),
            )
            database.execute(
                f"DELETE FROM record WHERE {_OF_CIRCUIT} AND number NOT IN"
                f" (SELECT number FROM record WHERE {_OF_CIRCUIT} {_RANKING} LIMIT ?)",
                (*circuit, *circuit, self._kept),
            )
            entered = database.execute(f"SELECT {_COLUMNS} FROM record WHERE digest = ?", (digest,)).fetchone()
        return None if entered is None else _entry(entered)


def circuit_key(circuit: Circuit) -> CircuitKey:
    """The id of a circuit, and a fingerprint of what is driven there."""
    numbers = [number for point in circuit.control_points for number in point]
    content = struct.pack(f"<q{len(numbers)}d", circuit.gates, *numbers)
    return CircuitKey(circuit.id, hashlib.sha256(content).hexdigest()[:16])


def medal_for(circuit: Circuit, ticks: int) -> Medal | None:
    """The medal that a best lap of so many ticks earns on a circuit, if it has medals."""
    from racer_env.engine import TICKS_PER_SECOND

    if circuit.medals is None:
        return None
    seconds = ticks / TICKS_PER_SECOND
    medals: tuple[Medal, ...] = ("gold", "silver", "bronze")
    return next((medal for medal in medals if seconds <= getattr(circuit.medals, medal)), None)


def _driven_again(replay: Replay, track: Track | None) -> Trace:
    """The trace of a replay that can be a record."""
    from racer_env.engine import Start

    if replay.other_engine is not None:
        raise RecordError(f"not a record: {replay.other_engine}")
    if replay.start != Start():
        raise RecordError("not a record: it did not begin at rest on the start line")
    trace = trace_replay(replay, track)
    if trace.disagreement is not None:
        raise RecordError(f"not a record: {trace.disagreement}")
    if not trace.laps:
        raise RecordError("not a record: no lap was finished")
    return trace


def _values(trace: Trace) -> dict[str, Any]:
    replay, best = trace.replay, trace.best_lap
    assert best is not None, "only runs with a lap are entered"
    key = circuit_key(replay.circuit)
    return {
        "circuit_id": key.id,
        "fingerprint": key.fingerprint,
        "circuit_name": replay.circuit.name,
        "driver": replay.driver,
        "best_lap": best.ticks,
        "laps": len(trace.laps),
        "clean": best.clean,
        "date": _date(replay.date),
    }


def _entry(row: Any) -> Entry:
    number, circuit_id, fingerprint, circuit_name, driver, best_lap, laps, clean, date = row
    try:
        when = datetime.fromisoformat(date)
    except (TypeError, ValueError) as error:
        raise DamagedError(str(error)) from None
    return Entry(number, CircuitKey(circuit_id, fingerprint), circuit_name, driver, best_lap, laps, bool(clean), when)


def _date(date: datetime) -> str:
    """As it is kept: so the texts are in the order of the dates."""
    return date.astimezone(UTC).isoformat(timespec="microseconds")


def _same(entry: Entry) -> tuple[int, str]:
    return entry.number, _date(entry.date)


def _key_values(circuit: Circuit | CircuitKey) -> tuple[int, str, str]:
    key = circuit if isinstance(circuit, CircuitKey) else circuit_key(circuit)
    return ENGINE_VERSION, key.id, key.fingerprint
