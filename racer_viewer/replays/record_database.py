"""The file that records are kept in: a sqlite database that survives a kill, a second process and its own damage."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TypeVar

from racer_env.errors import RacerError

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
