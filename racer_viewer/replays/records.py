"""Records: the best drives on every circuit, in an SQLite database that survives kills, other processes and damage.

A record is a replay; it is re-simulated before it is entered.
"""

from __future__ import annotations

import hashlib
import math
import os
import sqlite3
import struct
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from racer_env.errors import RacerError, os_reason
from racer_viewer.replays.replay import ENGINE_VERSION, Replay
from racer_viewer.replays.replay_file import replay_from_bytes, replay_to_bytes
from racer_viewer.replays.trace import Trace, trace_replay

if TYPE_CHECKING:
    from racer_env.engine import Circuit, Medals, Start, Track

T = TypeVar("T")

BUSY_TIMEOUT = 5.0
"""Time to wait for another process that writes [s]."""
DAMAGE_ERRORS = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_TOOBIG)
"""Error codes of a damaged database; SQLITE_ERROR means that its tables have another schema."""
MAX_FILE_SIZE = 128 * 2**20
"""Maximum size of a database [bytes]; a record takes some kilobytes."""
MAX_VALUE_SIZE = 8 * 2**20
"""Maximum size of a value or row in the database [bytes]."""
MAX_TEXT_SIZE = 1024
"""Size at which a text from the database is cut [bytes]; names of circuits and drivers are shorter."""
TIME_LIMIT = 2.0
"""Maximum processor time of one operation [s]."""
CHECK_TIME = 0.5
"""Processor time after which no further record of an earlier version is re-simulated [s]; the next query continues."""
INSTRUCTIONS_PER_CHECK = 10_000
"""Instructions of SQLite between two looks at the time limit."""

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
    (
        # The best lap is the fastest clean one; records whose fastest lap was not clean are re-simulated once.
        "ALTER TABLE record ADD COLUMN checked INTEGER NOT NULL DEFAULT 0",
        "UPDATE record SET checked = 1 WHERE clean = 1",
        "DROP INDEX ranking",
        "CREATE INDEX ranking ON record (engine, circuit_id, fingerprint, clean DESC, best_lap, date, number)",
    ),
    ("CREATE TABLE event (id TEXT PRIMARY KEY, driver TEXT NOT NULL, date TEXT NOT NULL)",),
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
            if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_INTERRUPT:
                raise RecordError(f"records in {self.path}: reading took more than {TIME_LIMIT:g} s") from None
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGE_ERRORS:
                raise DamagedError(str(error)) from None
            raise RecordError(f"records in {self.path}: {error}") from None
        except UnicodeDecodeError:  # the text of the error itself is from the damaged part
            raise DamagedError("its tables cannot be read") from None
        except OSError as error:
            raise RecordError(f"records in {self.path}: {os_reason(error)}") from None

    def _prepare(self, database: sqlite3.Connection) -> None:
        """Limit size and time, make commits durable, check the whole file once, and migrate the schema."""
        if os.path.getsize(self.path) > MAX_FILE_SIZE:
            raise DamagedError(f"larger than {MAX_FILE_SIZE // 2**20} MiB")
        deadline = time.thread_time() + TIME_LIMIT
        database.set_progress_handler(lambda: time.thread_time() > deadline, INSTRUCTIONS_PER_CHECK)
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_SIZE)
        database.text_factory = lambda text: text[:MAX_TEXT_SIZE].decode(errors="replace")
        database.execute("PRAGMA trusted_schema = OFF")
        database.execute("PRAGMA synchronous = EXTRA")
        if not self._checked:
            self._check_schema(database)
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

    def _check_schema(self, database: sqlite3.Connection) -> None:
        """Raise DamagedError unless the file has exactly the tables of its version, and no views or triggers."""
        version = _version(database)
        if version <= len(MIGRATIONS) and _schema(database) != _schema_of(version):
            raise DamagedError("its tables are not those of racer-viewer")

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
            raise RecordError(f"records in {self.path}: damaged, and cannot be renamed: {os_reason(error)}") from None
        self._checked = False
        self.notice = f"The records were damaged. The damaged file is now {aside.name}; a new one was started."


def _version(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def _schema(database: sqlite3.Connection) -> set[tuple[str, str, str]]:
    """Return type, name and definition of everything in a database."""
    rows = database.execute("SELECT type, name, sql FROM sqlite_schema LIMIT 100").fetchall()
    return {(kind, name, " ".join((definition or "").split())) for kind, name, definition in rows}


def _schema_of(version: int) -> set[tuple[str, str, str]]:
    with closing(sqlite3.connect(":memory:")) as empty:
        for statement in chain.from_iterable(MIGRATIONS[:version]):
            empty.execute(statement)
        return _schema(empty)


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


Medal = Literal["author", "gold", "silver", "bronze"]
MEDAL_NAMES: tuple[Medal, ...] = ("author", "gold", "silver", "bronze")
"""Medals, the best first."""

HALF_DIGIT = 0.005
"""Rounding of lap times and medal times, which have two decimals [s]."""
MAX_RECORDS = 20
"""Maximum number of records of one circuit."""
MAX_EVENTS = 100
"""Maximum number of events that are read."""
MAX_CIRCUITS = 10_000
"""Maximum number of circuits that are listed."""
_COLUMNS = "number, circuit_id, fingerprint, circuit_name, driver, best_lap, laps, clean, date"
_OF_CIRCUIT = "engine = ? AND circuit_id = ? AND fingerprint = ?"
_RANKING = "ORDER BY clean DESC, best_lap, date, number"
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
    best_lap: time of the fastest clean lap [ticks]; of the fastest lap if none is clean.
    clean: True if no wall was touched and the road never left in that lap; other records are of earlier versions, and
    count for nothing.
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
        start than from the line or a box of the starting grid, or no clean lap.
        """
        trace = _checked_trace(replay, track)
        data = replay_to_bytes(replay)
        return self._database.run(lambda database: self._enter(database, trace, data))

    def best(self, circuit: Circuit | CircuitKey) -> RecordEntry | None:
        """Return the record with the fastest clean lap of a circuit, if there is one."""
        return next((entry for entry in self.top(circuit, 1) if entry.clean), None)

    def top(self, circuit: Circuit | CircuitKey, limit: int = 10) -> tuple[RecordEntry, ...]:
        """Return the records of a circuit, clean and fastest laps first, the older of equals first."""
        self._check_old(_key_values(circuit))
        query = f"SELECT {_COLUMNS} FROM record WHERE {_OF_CIRCUIT} {_RANKING} LIMIT ?"
        return self._read(query, (*_key_values(circuit), limit), _entry)

    def circuits(self) -> tuple[CircuitKey, ...]:
        """Return the circuits that have a record."""
        query = "SELECT DISTINCT circuit_id, fingerprint FROM record WHERE engine = ? ORDER BY circuit_id, fingerprint"
        query += f" LIMIT {MAX_CIRCUITS}"
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

    def events_won(self) -> frozenset[str]:
        """Return the ids of the career's events that were won."""
        return frozenset(self._read(f"SELECT id FROM event LIMIT {MAX_EVENTS}", (), lambda row: str(row[0])))

    def win_event(self, event: str, driver: str) -> None:
        """Enter an event of the career as won; the first win stays."""
        row = event, driver, _date(datetime.now(UTC))
        self._database.run(
            lambda database: database.execute("INSERT OR IGNORE INTO event (id, driver, date) VALUES (?, ?, ?)", row)
        )

    def _check_old(self, circuit: tuple[int, str, str]) -> None:
        """Look for a clean lap in records of earlier versions whose fastest lap was not clean, once."""
        query = f"SELECT number, CAST(replay AS BLOB) FROM record WHERE {_OF_CIRCUIT} AND checked = 0 LIMIT ?"
        found: tuple[tuple[int, bytes], ...] = self._read(query, (*circuit, MAX_RECORDS), tuple)
        if not found:
            return
        deadline = time.thread_time() + CHECK_TIME
        bests = [(number, _clean_lap(data)) for number, data in found if time.thread_time() < deadline]

        def update(database: sqlite3.Connection) -> None:
            with database:
                database.execute("BEGIN IMMEDIATE")
                for number, best in bests:
                    database.execute("UPDATE record SET checked = 1 WHERE number = ?", (number,))
                    if best is not None:
                        database.execute("UPDATE record SET best_lap = ?, clean = 1 WHERE number = ?", (best, number))

        self._database.run(update)

    def _read(self, query: str, values: tuple[Any, ...], make: Callable[[Any], T]) -> tuple[T, ...]:
        """Convert every row of a query; return nothing, and create no file, if there is no database."""
        if not self._database.exists:
            return ()
        return self._database.run(lambda database: tuple(map(make, database.execute(query, values).fetchall())))

    def _enter(self, database: sqlite3.Connection, trace: Trace, data: bytes) -> RecordEntry | None:
        digest = hashlib.sha256(data).hexdigest()
        row = {**_values(trace), "engine": ENGINE_VERSION, "digest": digest, "replay": data, "checked": 1}
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
    """Return the medal for the time of a clean lap [ticks] on a circuit, if any."""
    return next((medal for medal in MEDAL_NAMES if ticks <= (medal_ticks(circuit, medal) or 0)), None)


def next_medal(circuit: Circuit, ticks: int | None) -> Medal | None:
    """Return the next better medal than that of a lap time [ticks]; None after the best, or without medals."""
    known = [medal for medal in reversed(MEDAL_NAMES) if medal_ticks(circuit, medal)]
    return next((medal for medal in known if ticks is None or ticks > (medal_ticks(circuit, medal) or 0)), None)


def medal_ticks(circuit: Circuit, medal: Medal) -> int | None:
    """Return the longest lap that earns a medal [ticks]; None if the circuit has no such medal."""
    from racer_env.engine import TICKS_PER_SECOND

    seconds = getattr(medals_of(circuit), medal, None)
    return None if seconds is None else math.floor((seconds + HALF_DIGIT) * TICKS_PER_SECOND)


_measured_medals: dict[str, Medals] = {}
"""Maps the fingerprint of a circuit without medals of its own to those that were measured."""


def medals_of(circuit: Circuit) -> Medals | None:
    """Return the medal times of a circuit, or those that were measured on it; None if there are none."""
    return circuit.medals or _measured_medals.get(circuit_key(circuit).fingerprint)


def set_measured_medals(circuit: Circuit, medals: Medals) -> None:
    """Use these medal times for a circuit that has none, until the program ends."""
    _measured_medals[circuit_key(circuit).fingerprint] = medals


def _checked_trace(replay: Replay, track: Track | None) -> Trace:
    """Return the trace of a replay that can be a record. Raises RecordError."""
    if replay.engine_warning is not None:
        raise RecordError(f"not a record: {replay.engine_warning}")
    trace = trace_replay(replay, track)
    if not _is_fair_start(replay.start, trace.track):
        raise RecordError("not a record: it did not start at rest on the start line or the starting grid")
    if trace.mismatch is not None:
        raise RecordError(f"not a record: {trace.mismatch}")
    if not trace.laps:
        raise RecordError("not a record: no lap was finished")
    if trace.best_lap is None:
        raise RecordError(f"not a record: no clean lap was finished ({trace.laps[0].fault})")
    return trace


def _is_fair_start(start: Start, track: Track) -> bool:
    from racer_env.engine import Start
    from racer_env.engine.starts import grid_starts

    return start in (Start(), *grid_starts(track.length))


def _clean_lap(data: bytes) -> int | None:
    """Return the fastest clean lap of a replay [ticks]; None if there is none or it cannot be read."""
    try:
        best = trace_replay(replay_from_bytes(data)).best_lap
    except RacerError:
        return None
    return None if best is None else best.ticks


def _values(trace: Trace) -> dict[str, Any]:
    replay, best = trace.replay, trace.best_lap
    assert best is not None, "_checked_trace refuses replays without a clean lap"
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
