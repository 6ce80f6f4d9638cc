"""Replay files, `.racer`: an npz archive of two arrays that nothing in is executed.

`actions.npy` has the driver's actions, (T, 3), in single precision if that loses nothing, else in double;
`about.npy` has everything else as JSON text in UTF-8.


The replay files in a folder and what is in each, read little by little while a window goes on."""

from __future__ import annotations

import io
import os
import re
import struct
import time
import zipfile
import zlib
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from racer_env.errors import RacerError
from racer_viewer.paths import atomic_write
from racer_viewer.replays.replay import MOST_TICKS, Floats, Replay, ReplayError

SUFFIX = ".racer"
KIND = "racer-replay"
FORMAT = 1
"""Of the file. A reader takes this one and those before."""

ABOUT, ACTIONS = "about", "actions"
MOST_ABOUT_BYTES = 2**18
NPY_HEADER_BYTES = 2**10
"""More than the header of either array takes."""
LIMITS = {f"{ABOUT}.npy": MOST_ABOUT_BYTES + NPY_HEADER_BYTES, f"{ACTIONS}.npy": MOST_TICKS * 24 + NPY_HEADER_BYTES}
"""Unpacked size of each member [bytes]."""
MOST_FILE_BYTES = sum(LIMITS.values()) + 2**16
LONGEST_WORDS = 50
"""Characters of a file's name before the date."""
LONGEST_REASON = 300
"""Characters of a message."""
PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

_NPY_START = b"\x93NUMPY\x01\x00"
_NPY_HEADER = re.compile(
    rb"\{'descr': '(?P<type>\|u1|<f4|<f8)', 'fortran_order': False, 'shape': \((?P<shape>\d{1,9}(?:,|, 3))\), \} *\n"
)
_ZIP_ERRORS = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, LookupError, OverflowError,
    NotImplementedError, RuntimeError,
)  # fmt: skip
_UNSAFE_IN_NAMES = re.compile(r"[^\w.+-]+")


class _Kind(msgspec.Struct, rename="camel"):
    """The part of the text that every format has."""

    kind: str
    format: int


class _About(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    kind: str
    format: int
    engine_version: int
    circuit: msgspec.Raw
    config: msgspec.Raw
    start: dict[str, tuple[float, float]]
    seed: int
    driver: str
    date: datetime
    laps: tuple[int, ...]
    reward: float


def save_replay(replay: Replay, path: Path) -> None:
    """Write a replay file; one that is there already is replaced as a whole or stays as it was."""
    data = replay_to_bytes(replay)
    try:
        with atomic_write(path) as temporary:
            temporary.write_bytes(data)
    except OSError as error:
        raise ReplayError(f"cannot write {path}: {error.strerror or error}") from None


def load_replay(path: Path) -> Replay:
    """Read and check a replay file. One of another engine version is read too: see `Replay.engine_warning`."""
    try:
        return replay_from_bytes(_read(path))
    except ReplayError as error:
        raise ReplayError(f"{path}: {error}") from None


def replay_to_bytes(replay: Replay) -> bytes:
    """The content of a replay file; the same for the same replay."""
    about = _about(replay)
    if len(about) > MOST_ABOUT_BYTES:
        raise ReplayError(f"the circuit's description is too long for a replay: {len(about)} bytes")
    file = io.BytesIO()
    arrays: dict[str, NDArray[Any]] = {ABOUT: np.frombuffer(about, np.uint8), ACTIONS: _as_stored(replay.actions)}
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()


def replay_from_bytes(data: bytes) -> Replay:
    """The replay in the content of a file, checked."""
    if len(data) > MOST_FILE_BYTES:
        raise ReplayError(f"is larger than {MOST_FILE_BYTES // 2**20} MiB: not a replay")
    members = _unpack(data)
    about = _parse(_array(members[f"{ABOUT}.npy"], "u1").tobytes())
    return _replay(about, _array(members[f"{ACTIONS}.npy"], "f4", "f8"))


def file_name(replay: Replay) -> str:
    """A name for its file that every system takes, as `track-01-Anna-20260102-030405.racer`."""
    words = f"{replay.circuit.id or replay.circuit.name}-{replay.driver or 'nobody'}"
    return f"{_UNSAFE_IN_NAMES.sub('-', words)[:LONGEST_WORDS]}-{replay.date:%Y%m%d-%H%M%S}{SUFFIX}"


def _read(path: Path) -> bytes:
    try:
        if not os.path.isfile(path):
            raise ReplayError("is a folder, not a file" if os.path.isdir(path) else "there is no such file")
        with path.open("rb") as file:
            return file.read(MOST_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        raise ReplayError(f"cannot be read: {error}") from None


def _as_stored(actions: Floats) -> NDArray[Any]:
    with np.errstate(over="ignore"):
        single = actions.astype("<f4")
    return single if (single == actions).all() else actions.astype("<f8")


def _about(replay: Replay) -> bytes:
    try:
        return msgspec.json.encode(
            _About(
                KIND,
                FORMAT,
                replay.engine_version,
                msgspec.Raw(msgspec.json.encode(replay.circuit)),
                msgspec.Raw(msgspec.json.encode(replay.config)),
                asdict(replay.start),
                replay.seed,
                replay.driver,
                replay.date,
                replay.laps,
                replay.reward,
            )
        )
    except UnicodeEncodeError:
        raise ReplayError("the circuit's name or id has characters that no file can keep") from None


def _unpack(data: bytes) -> dict[str, bytes]:
    """The members, each measured before it is unpacked."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if sorted(member.filename for member in members) != sorted(LIMITS):
                raise ReplayError("is not a replay")
            for member in members:
                if member.file_size > LIMITS[member.filename] or member.compress_type not in PACKINGS:
                    raise ReplayError("is not a replay: it is packed in a way that no replay is")
            return {member.filename: archive.read(member) for member in members}
    except _ZIP_ERRORS:
        raise ReplayError("is damaged or truncated" if data[:2] == b"PK" else "is not a replay") from None


def _array(member: bytes, *types: str) -> NDArray[Any]:
    """The array of a member, if it is of one of these types. A header that claims more than is there makes nothing."""
    size = int.from_bytes(member[len(_NPY_START) : len(_NPY_START) + 2], "little")
    start = len(_NPY_START) + 2 + size
    header = _NPY_HEADER.fullmatch(member[len(_NPY_START) + 2 : start])
    if not member.startswith(_NPY_START) or header is None or header["type"].decode()[1:] not in types:
        raise ReplayError("is not a replay: it has arrays of another kind")
    shape = tuple(int(number) for number in header["shape"].split(b",") if number)
    try:
        return np.frombuffer(member[start:], header["type"].decode()).reshape(shape)
    except ValueError:
        raise ReplayError("is damaged: an array is shorter or longer than it says") from None


def _parse(text: bytes) -> _About:
    try:
        kind = msgspec.json.decode(text, type=_Kind)
        if kind.kind != KIND:
            raise ReplayError("is not a replay")
        if kind.format > FORMAT:
            raise ReplayError(
                f"was written by a newer racer-viewer (file format {kind.format}, this one reads up to {FORMAT})"
            )
        return msgspec.json.decode(text, type=_About)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ReplayError(f"is damaged, or not a replay: {_in_a_line(error)}") from None


def _replay(about: _About, actions: NDArray[Any]) -> Replay:
    from racer_env.engine import Circuit, parse_config, parse_start

    try:
        return Replay(
            msgspec.json.decode(about.circuit, type=Circuit),
            parse_config(bytes(about.config)),
            parse_start(about.start),
            about.seed,
            actions,
            about.driver,
            about.date,
            about.laps,
            about.reward,
            about.engine_version,
        )
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ReplayError(f"is damaged: circuit: {_in_a_line(error)}") from None
    except RacerError as error:
        raise ReplayError(f"is damaged: {_in_a_line(error)}") from None


def _in_a_line(error: Exception) -> str:
    """What was wrong; words out of the file may be in it."""
    return "".join(letter if letter.isprintable() else " " for letter in str(error)[:LONGEST_REASON])


@dataclass(frozen=True)
class ReplayFacts:
    """What a list shows of a replay; times in ticks. A list of many keeps these, not the replays."""

    circuit: str
    driver: str
    best_lap: int | None
    laps: int
    ticks: int
    date: datetime
    engine_warning: str | None
    """As `Replay.engine_warning`."""


@dataclass(frozen=True)
class _File:
    """A file as it was when the folder was looked through. One that was written since is another."""

    path: Path
    written: int
    """[ns]"""
    size: int


class ReplayFolder:
    """Looked through when it is made and on `refresh`. A folder that is not there has no files.

    paths: newest first.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[Path, _File] = {}
        self._read: dict[_File, ReplayFacts | str] = {}
        self._unread: list[_File] = []
        self.refresh()

    @property
    def paths(self) -> list[Path]:
        return list(self._files)

    def refresh(self) -> None:
        """Look through the folder again; what was read and is still the same is not read again."""
        found = (_file(path) for path in self.folder.glob(f"*{SUFFIX}") if not path.name.startswith("."))
        files = sorted(filter(None, found), key=lambda file: (-file.written, file.path.name))
        self._files = {file.path: file for file in files}
        self._read = {file: self._read[file] for file in files if file in self._read}
        self._unread = [file for file in reversed(files) if file not in self._read]

    def read_some(self, seconds: float) -> list[Path]:
        """Read on, the newest first, at least one file and then until so much time has passed; those that were read."""
        end = time.perf_counter() + seconds
        paths: list[Path] = []
        while self._unread and (not paths or time.perf_counter() < end):
            file = self._unread.pop()
            self._read[file] = _facts_or_problem(file.path)
            paths.append(file.path)
        return paths

    def facts(self, path: Path) -> ReplayFacts | str | None:
        """Of one of `paths`: what is in it, or what is wrong with it; None as long as it was not read."""
        return self._read.get(self._files[path])


def _file(path: Path) -> _File | None:
    """None if it went away meanwhile."""
    try:
        status = path.stat()
    except OSError:
        return None
    return _File(path, status.st_mtime_ns, status.st_size)


def _facts_or_problem(path: Path) -> ReplayFacts | str:
    try:
        return _facts(load_replay(path))
    except ReplayError as error:
        return str(error).removeprefix(f"{path}: ")


def _facts(replay: Replay) -> ReplayFacts:
    return ReplayFacts(
        replay.circuit.name,
        replay.driver,
        min(replay.laps, default=None),
        len(replay.laps),
        replay.ticks,
        replay.date,
        replay.engine_warning,
    )
