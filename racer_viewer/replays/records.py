"""Records: the best drives on every circuit, in an SQLite database that survives kills, other processes and damage.

A record is a replay; it is re-simulated before it is entered.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from racer_env.errors import RacerError
from racer_viewer.replays.replay import ENGINE_VERSION, Replay
from racer_viewer.replays.replay_file import replay_from_bytes, replay_to_bytes
from racer_viewer.replays.trace import Trace, trace_replay

if TYPE_CHECKING:
    from racer_env.engine import Circuit, Track

T = TypeVar("T")

BUSY_TIMEOUT = 5.0
"""Time to wait for another process that writes [s]."""
DAMAGE_ERRORS = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
"""Error codes of a damaged database; SQLITE_ERROR means that its tables have another schema."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE record (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            circuit_id TEXT NOT NULL,
            fingerprint TEXT NOT NULL,
            circuit_name TEXT NOT NULL,
            driver TEXT NOT NULL,
            best_lap INTEGER NOT NULL,
            laps INTEGER NOT NULL,
            clean INTEGER NOT NULL,
            date TEXT NOT NULL,
            engine INTEGER NOT NULL,
            digest TEXT NOT NULL UNIQUE,
            replay BLOB NOT NULL
        )""",
        "CREATE INDEX ranking ON record (engine, circuit_id, fingerprint, best_lap, date, number)",
    ),
)
"""Statements that migrate a database from each schema version (`user_version`) to the next, from an empty one."""


class RecordError(RacerError):
    """A record cannot be entered or read; the text says why."""


class DamagedError(Exception):
    """The database is damaged."""


MAX_FORMAT_VERSION = 2
"""Latest version of SQLite's file format: 1 with a rollback journal, 2 with a write-ahead log."""


class RecordDatabase:
    """Database file, created on the first write. Every operation opens it anew, so any thread may use it.

    notice: message to show if the file was damaged and replaced; else None.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notice: str | None = None
        self._checked = False

    @property
    def exists(self) -> bool:
        return os.path.exists(self.path)

    def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run an operation. A damaged database is renamed first, and the operation runs on a new one."""
        file = _identity(self.path)
        try:
            return self._attempt(work)
        except DamagedError:
            if _identity(self.path) == file:
                self._rename_damaged()
        try:
            return self._attempt(work)
        except DamagedError as error:
            raise RecordError(f"records in {self.path}: {error}") from None

    def _attempt(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=BUSY_TIMEOUT, isolation_level=None)) as database:
                self._prepare(database)
                return work(database)
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGE_ERRORS:
                raise DamagedError(str(error)) from None
            raise RecordError(f"records in {self.path}: {error}") from None
        except UnicodeDecodeError:  # the text of the error itself is from the damaged part
            raise DamagedError("its tables cannot be read") from None
        except OSError as error:
            raise RecordError(f"records in {self.path}: {error.strerror or error}") from None

    def _prepare(self, database: sqlite3.Connection) -> None:
        """Make commits durable, check the whole file once, and migrate the schema."""
        database.text_factory = lambda text: text.decode(errors="replace")
        database.execute("PRAGMA synchronous = EXTRA")
        if not self._checked:
            found = database.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if found != "ok":
                raise DamagedError(found)
            if max(_format_versions(self.path), default=0) > MAX_FORMAT_VERSION:
                raise DamagedError("its header names a format that does not exist")
            self._checked = True
        if _version(database) != len(MIGRATIONS):
            with database:
                database.execute("BEGIN IMMEDIATE")
                self._migrate(database)

    def _migrate(self, database: sqlite3.Connection) -> None:
        version = _version(database)
        if version > len(MIGRATIONS):
            raise RecordError(
                f"records in {self.path}: written by a newer racer-viewer (version {version}, this one knows"
                f" {len(MIGRATIONS)})"
            )
        for statement in chain.from_iterable(MIGRATIONS[version:]):
            database.execute(statement)
        database.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    def _rename_damaged(self) -> None:
        """Rename a damaged database and its journal."""
        aside = _free_name(self.path)
        try:
            self.path.rename(aside)
            journal = _journal(self.path)
            if journal.exists():
                journal.rename(_journal(aside))
        except OSError as error:
            raise RecordError(
                f"records in {self.path}: damaged, and cannot be renamed: {error.strerror or error}"
            ) from None
        self._checked = False
        self.notice = f"The records were damaged. The damaged file is now {aside.name}; a new one was started."


def _version(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def _format_versions(path: Path) -> bytes:
    """Return the write and read versions in the file header; SQLite treats an unknown one as a read-only file."""
    with path.open("rb") as file:
        return file.read(20)[18:]


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the identity of a file independent of its name; None if it does not exist."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _journal(path: Path) -> Path:
    return path.with_name(f"{path.name}-journal")


def _free_name(path: Path) -> Path:
    return path.with_name(f"{path.stem}-damaged-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}{path.suffix}")


Medal = Literal["gold", "silver", "bronze"]

MAX_RECORDS = 20
"""Maximum number of records of one circuit."""
_COLUMNS = "number, circuit_id, fingerprint, circuit_name, driver, best_lap, laps, clean, date"
_OF_CIRCUIT = "engine = ? AND circuit_id = ? AND fingerprint = ?"
_RANKING = "ORDER BY best_lap, date, number"
_SAME = "number = ? AND date = ?"
"""Condition for one record; in a new file another record may have the same number."""


@dataclass(frozen=True)
class CircuitKey:
    """Identity of a circuit; changed control points or gates make another circuit."""

    id: str
    fingerprint: str


@dataclass(frozen=True)
class RecordEntry:
    """A record.

    number: key in the database.
    best_lap: time of the best lap [ticks].
    clean: True if no wall was touched and the road never left in the best lap.
    """

    number: int
    circuit: CircuitKey
    circuit_name: str
    driver: str
    best_lap: int
    laps: int
    clean: bool
    date: datetime


class Records:
    """Records in a database file, created with the first record. Several processes and threads may use one file.

    Only records of this engine version are listed; those of older versions stay in the file.

    kept: maximum number of records of one circuit.
    """

    def __init__(self, path: Path, kept: int = MAX_RECORDS) -> None:
        self._database = RecordDatabase(path)
        self._kept = kept

    @property
    def notice(self) -> str | None:
        """Message to show if the file was damaged and replaced; else None."""
        return self._database.notice

    def enter(self, replay: Replay, track: Track | None = None) -> RecordEntry | None:
        """Re-simulate a replay and enter it; return None if it is not fast enough. The same replay counts once.

        track: track of its circuit, if built already.

        Raises RecordError if the replay does not match its re-simulation, is of another engine version, has another
        start than the standing one or no finished lap.
        """
        trace = _checked_trace(replay, track)
        data = replay_to_bytes(replay)
        return self._database.run(lambda database: self._enter(database, trace, data))

    def best(self, circuit: Circuit | CircuitKey) -> RecordEntry | None:
        """Return the fastest record of a circuit, if there is one."""
        return next(iter(self.top(circuit, 1)), None)

    def top(self, circuit: Circuit | CircuitKey, limit: int = 10) -> tuple[RecordEntry, ...]:
        """Return the records of a circuit, fastest lap first, the older of equals first."""
        query = f"SELECT {_COLUMNS} FROM record WHERE {_OF_CIRCUIT} {_RANKING} LIMIT ?"
        return self._read(query, (*_key_values(circuit), limit), _entry)

    def circuits(self) -> tuple[CircuitKey, ...]:
        """Return the circuits that have a record."""
        query = "SELECT DISTINCT circuit_id, fingerprint FROM record WHERE engine = ? ORDER BY circuit_id, fingerprint"
        return self._read(query, (ENGINE_VERSION,), lambda row: CircuitKey(*row))

    def replay_of(self, entry: RecordEntry) -> Replay:
        """Return the replay of a record."""
        query = f"SELECT CAST(replay AS BLOB) FROM record WHERE {_SAME}"
        found: tuple[bytes, ...] = self._read(query, _same(entry), lambda row: row[0])
        if not found:
            raise RecordError("this record no longer exists")
        return replay_from_bytes(found[0])

    def delete(self, entry: RecordEntry) -> None:
        """Delete a record, if it exists."""
        if self._database.exists:
            self._database.run(lambda database: database.execute(f"DELETE FROM record WHERE {_SAME}", _same(entry)))

    def _read(self, query: str, values: tuple[Any, ...], make: Callable[[Any], T]) -> tuple[T, ...]:
        """Convert every row of a query; return nothing, and create no file, if there is no database."""
        if not self._database.exists:
            return ()
        return self._database.run(lambda database: tuple(map(make, database.execute(query, values).fetchall())))

    def _enter(self, database: sqlite3.Connection, trace: Trace, data: bytes) -> RecordEntry | None:
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
    """Return the id of a circuit and a fingerprint of its geometry."""
    numbers = [number for point in circuit.control_points for number in point]
    content = struct.pack(f"<q{len(numbers)}d", circuit.gates, *numbers)
    return CircuitKey(circuit.id, hashlib.sha256(content).hexdigest()[:16])


def medal_for(circuit: Circuit, ticks: int) -> Medal | None:
    """Return the medal for a lap time [ticks] on a circuit, if any."""
    from racer_env.engine import TICKS_PER_SECOND

    if circuit.medals is None:
        return None
    seconds = ticks / TICKS_PER_SECOND
    medals: tuple[Medal, ...] = ("gold", "silver", "bronze")
    return next((medal for medal in medals if seconds <= getattr(circuit.medals, medal)), None)


def _checked_trace(replay: Replay, track: Track | None) -> Trace:
    """Return the trace of a replay that can be a record. Raises RecordError."""
    from racer_env.engine import Start

    if replay.engine_warning is not None:
        raise RecordError(f"not a record: {replay.engine_warning}")
    if replay.start != Start():
        raise RecordError("not a record: it did not start at rest on the start line")
    trace = trace_replay(replay, track)
    if trace.mismatch is not None:
        raise RecordError(f"not a record: {trace.mismatch}")
    if not trace.laps:
        raise RecordError("not a record: no lap was finished")
    return trace


def _values(trace: Trace) -> dict[str, Any]:
    replay, best = trace.replay, trace.best_lap
    assert best is not None, "_checked_trace refuses replays without a lap"
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


def _entry(row: Any) -> RecordEntry:
    number, circuit_id, fingerprint, circuit_name, driver, best_lap, laps, clean, date = row
    try:
        when = datetime.fromisoformat(date)
    except (TypeError, ValueError) as error:
        raise DamagedError(str(error)) from None
    return RecordEntry(
        number, CircuitKey(circuit_id, fingerprint), circuit_name, driver, best_lap, laps, bool(clean), when
    )


def _date(date: datetime) -> str:
    """Return a date as text that sorts by date."""
    return date.astimezone(UTC).isoformat(timespec="microseconds")


def _same(entry: RecordEntry) -> tuple[int, str]:
    return entry.number, _date(entry.date)


def _key_values(circuit: Circuit | CircuitKey) -> tuple[int, str, str]:
    key = circuit if isinstance(circuit, CircuitKey) else circuit_key(circuit)
    return ENGINE_VERSION, key.id, key.fingerprint
