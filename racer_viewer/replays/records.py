"""The file that records are kept in: a sqlite database that survives a kill, a second process and its own damage.

The best runs on every circuit. A record is its replay: it is driven again before it gets in."""

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
"""How long to wait for another process that writes [s]."""
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
"""The last is what statements that never change give if the tables are not those that they were written for."""

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
"""Each brings a database from one schema version (`user_version`) to the next, beginning with an empty one."""


class RecordError(RacerError):
    """A record cannot be entered, read or kept; the text says why. Driving goes on without."""


class DamagedError(Exception):
    """The database is no database any more."""


KNOWN_FORMAT = 2
"""Of SQLite's files: 1 with a rollback journal, 2 with a write-ahead log."""


class RecordDatabase:
    """The database in one file, which is made when it is first written to. It is opened for each piece of work anew, so
    any thread may ask for one.

    notice: a line for the screen if the file was damaged and a new one was begun; else None.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notice: str | None = None
        self._sound = False

    @property
    def exists(self) -> bool:
        return os.path.exists(self.path)

    def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do something with the database. A damaged one is set aside first, and it is done with a new one."""
        file = _identity(self.path)
        try:
            return self._attempt(work)
        except DamagedError:
            if _identity(self.path) == file:
                self._set_aside()
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
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGED:
                raise DamagedError(str(error)) from None
            raise RecordError(f"records in {self.path}: {error}") from None
        except UnicodeDecodeError:  # sqlite3 cannot even say what is wrong: the words are out of the damaged part
            raise DamagedError("its tables cannot be read") from None
        except OSError as error:
            raise RecordError(f"records in {self.path}: {error.strerror or error}") from None

    def _prepare(self, database: sqlite3.Connection) -> None:
        """Every commit is on the disk when it returns. The whole file is looked through once."""
        database.text_factory = lambda text: text.decode(errors="replace")
        database.execute("PRAGMA synchronous = EXTRA")
        if not self._sound:
            found = database.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if found != "ok":
                raise DamagedError(found)
            if max(_format_versions(self.path), default=0) > KNOWN_FORMAT:
                raise DamagedError("its header names a format that does not exist")
            self._sound = True
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

    def _set_aside(self) -> None:
        """Give a damaged database another name; its journal goes with it."""
        aside = _free_name(self.path)
        try:
            self.path.rename(aside)
            journal = _journal(self.path)
            if journal.exists():
                journal.rename(_journal(aside))
        except OSError as error:
            raise RecordError(
                f"records in {self.path}: damaged, and cannot be set aside: {error.strerror or error}"
            ) from None
        self._sound = False
        self.notice = f"The records were damaged; they are kept as {aside.name}, and new ones were begun."


def _version(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def _format_versions(path: Path) -> bytes:
    """For writing and for reading, as the file's header says. SQLite takes an unknown one for a file to read only."""
    with path.open("rb") as file:
        return file.read(20)[18:]


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file it is, whatever it is called; None if there is none."""
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
class RecordEntry:
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

    def enter(self, replay: Replay, track: Track | None = None) -> RecordEntry | None:
        """Drive a replay again and enter it. None if it is not among the best that are kept.

        track: that of its circuit, if it is built already.

        A run that the physics does not give, of another engine version, from another than the standing start or
        without a finished lap is a RecordError. The same replay twice is one record.
        """
        trace = _driven_again(replay, track)
        data = replay_to_bytes(replay)
        return self._database.run(lambda database: self._enter(database, trace, data))

    def best(self, circuit: Circuit | CircuitKey) -> RecordEntry | None:
        """The fastest record of a circuit, if there is one."""
        return next(iter(self.top(circuit, 1)), None)

    def top(self, circuit: Circuit | CircuitKey, limit: int = 10) -> tuple[RecordEntry, ...]:
        """The records of a circuit, fastest best lap first; of equals, the older first."""
        query = f"SELECT {_COLUMNS} FROM record WHERE {_OF_CIRCUIT} {_RANKING} LIMIT ?"
        return self._read(query, (*_key_values(circuit), limit), _entry)

    def circuits(self) -> tuple[CircuitKey, ...]:
        """The circuits that have a record."""
        query = "SELECT DISTINCT circuit_id, fingerprint FROM record WHERE engine = ? ORDER BY circuit_id, fingerprint"
        return self._read(query, (ENGINE_VERSION,), lambda row: CircuitKey(*row))

    def replay_of(self, entry: RecordEntry) -> Replay:
        """The replay that a record is."""
        query = f"SELECT CAST(replay AS BLOB) FROM record WHERE {_SAME}"
        found: tuple[bytes, ...] = self._read(query, _same(entry), lambda row: row[0])
        if not found:
            raise RecordError("this record is no longer there")
        return replay_from_bytes(found[0])

    def delete(self, entry: RecordEntry) -> None:
        """Take a record out; one that is not there is no error."""
        if self._database.exists:
            self._database.run(lambda database: database.execute(f"DELETE FROM record WHERE {_SAME}", _same(entry)))

    def _read(self, query: str, values: tuple[Any, ...], make: Callable[[Any], T]) -> tuple[T, ...]:
        """Something of every row; nothing where nothing was ever entered, and no file is made for that."""
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

    if replay.engine_warning is not None:
        raise RecordError(f"not a record: {replay.engine_warning}")
    if replay.start != Start():
        raise RecordError("not a record: it did not begin at rest on the start line")
    trace = trace_replay(replay, track)
    if trace.mismatch is not None:
        raise RecordError(f"not a record: {trace.mismatch}")
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
    """As it is kept: so the texts are in the order of the dates."""
    return date.astimezone(UTC).isoformat(timespec="microseconds")


def _same(entry: RecordEntry) -> tuple[int, str]:
    return entry.number, _date(entry.date)


def _key_values(circuit: Circuit | CircuitKey) -> tuple[int, str, str]:
    key = circuit if isinstance(circuit, CircuitKey) else circuit_key(circuit)
    return ENGINE_VERSION, key.id, key.fingerprint
