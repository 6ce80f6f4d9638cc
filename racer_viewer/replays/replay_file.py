"""Replay files, `.racer`, and folders of them.

A replay file is an npz archive of two arrays; nothing in it is executed. `actions.npy` contains the actions, (T, 3), in
single precision if that is exact, else in double; `about.npy` contains everything else as JSON text in UTF-8.
"""

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
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from racer_env.errors import RacerError, os_reason
from racer_viewer.paths import atomic_write
from racer_viewer.replays.replay import MAX_TICKS, Floats, Replay, ReplayError

if TYPE_CHECKING:
    from racer_env.engine import Circuit

SUFFIX = ".racer"
KIND = "racer-replay"
FORMAT = 3
"""Version of the file format; files up to this version are read. Version 2 has `putBack`, version 3 reward terms in its
config; the lowest version that a replay needs is written."""

ABOUT, ACTIONS = "about", "actions"
MAX_ABOUT_BYTES = 2**18
NPY_HEADER_BYTES = 2**10
"""Upper bound of the header of either array [bytes]."""
MEMBER_LIMITS = {
    f"{ABOUT}.npy": MAX_ABOUT_BYTES + NPY_HEADER_BYTES,
    f"{ACTIONS}.npy": MAX_TICKS * 24 + NPY_HEADER_BYTES,
}
"""Maximum unpacked size of each member [bytes]."""
MAX_FILE_BYTES = sum(MEMBER_LIMITS.values()) + 2**16
MAX_NAME_PREFIX = 50
"""Maximum length of a file name before the date [characters]."""
MAX_REASON_LENGTH = 300
"""Maximum length of an error message [characters]."""
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
    """Fields of every format version."""

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
    put_back: tuple[int, ...] | msgspec.UnsetType = msgspec.UNSET


def save_replay(replay: Replay, path: Path) -> None:
    """Write a replay file atomically. Raises ReplayError."""
    data = replay_to_bytes(replay)
    try:
        with atomic_write(path) as temporary:
            temporary.write_bytes(data)
    except OSError as error:
        raise ReplayError(f"cannot write {path}: {os_reason(error)}") from None


def load_replay(path: Path) -> Replay:
    """Read and check a replay file. Other engine versions are accepted; see `Replay.engine_warning`."""
    try:
        return replay_from_bytes(_read(path))
    except ReplayError as error:
        raise ReplayError(f"{path}: {error}") from None


def replay_to_bytes(replay: Replay) -> bytes:
    """Return the content of a replay file, which is the same for the same replay."""
    about = _about(replay)
    if len(about) > MAX_ABOUT_BYTES:
        raise ReplayError(f"the circuit's definition is too long for a replay: {len(about)} bytes")
    file = io.BytesIO()
    arrays: dict[str, NDArray[Any]] = {ABOUT: np.frombuffer(about, np.uint8), ACTIONS: _as_stored(replay.actions)}
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()


def replay_from_bytes(data: bytes) -> Replay:
    """Return the replay in the content of a file. Raises ReplayError."""
    if len(data) > MAX_FILE_BYTES:
        raise ReplayError(f"is larger than {MAX_FILE_BYTES // 2**20} MiB: not a replay")
    members = _unpack(data)
    about = _parse(_array(members[f"{ABOUT}.npy"], "u1").tobytes())
    return _replay(about, _array(members[f"{ACTIONS}.npy"], "f4", "f8"))


def file_name(replay: Replay) -> str:
    """Return a file name that is valid on every system, like `track-01-Anna-20260102-030405.racer`."""
    words = f"{replay.circuit.id or replay.circuit.name}-{replay.driver or 'unknown'}"
    return f"{_UNSAFE_IN_NAMES.sub('-', words)[:MAX_NAME_PREFIX]}-{replay.date:%Y%m%d-%H%M%S}{SUFFIX}"


def _read(path: Path) -> bytes:
    try:
        if not os.path.isfile(path):
            raise ReplayError("is a folder, not a file" if os.path.isdir(path) else "there is no such file")
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        raise ReplayError(f"cannot be read: {os_reason(error)}") from None


def _as_stored(actions: Floats) -> NDArray[Any]:
    with np.errstate(over="ignore"):
        single = actions.astype("<f4")
    return single if (single == actions).all() else actions.astype("<f8")


def _about(replay: Replay) -> bytes:
    try:
        return msgspec.json.encode(
            _About(
                KIND,
                FORMAT if replay.config.formulas else 2 if replay.put_back else 1,
                replay.engine_version,
                msgspec.Raw(msgspec.json.encode(_without_author(replay.circuit))),
                msgspec.Raw(msgspec.json.encode(replay.config)),
                asdict(replay.start),
                replay.seed,
                replay.driver,
                replay.date,
                replay.laps,
                replay.reward,
                replay.put_back or msgspec.UNSET,
            )
        )
    except UnicodeEncodeError:
        raise ReplayError("the circuit's name or id has characters that cannot be encoded") from None


def _without_author(circuit: Circuit) -> Circuit:
    """Return a circuit as readers of format 1 know it."""
    medals = circuit.medals
    if medals is None or medals.author is None:
        return circuit
    return msgspec.structs.replace(circuit, medals=msgspec.structs.replace(medals, author=None))


def _with_author(circuit: Circuit) -> Circuit:
    """Return a bundled circuit with the author medal that `_without_author` has left out; others as they are."""
    from racer_env.engine import circuits

    return next((each for each in circuits() if _without_author(each) == circuit), circuit)


def _unpack(data: bytes) -> dict[str, bytes]:
    """Unpack the members after checking their size."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if sorted(member.filename for member in members) != sorted(MEMBER_LIMITS):
                raise ReplayError("is not a replay")
            for member in members:
                if member.file_size > MEMBER_LIMITS[member.filename] or member.compress_type not in PACKINGS:
                    raise ReplayError("is not a replay: it is packed in a way that replays are not")
            return {member.filename: archive.read(member) for member in members}
    except _ZIP_ERRORS:
        raise ReplayError("is damaged or truncated" if data[:2] == b"PK" else "is not a replay") from None


def _array(member: bytes, *types: str) -> NDArray[Any]:
    """Return the array of a member if it has one of these types. A header with a wrong size allocates nothing."""
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
            _with_author(msgspec.json.decode(about.circuit, type=Circuit)),
            parse_config(bytes(about.config)),
            parse_start(about.start),
            about.seed,
            actions,
            about.driver,
            about.date,
            about.laps,
            about.reward,
            about.engine_version,
            about.put_back or (),
        )
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ReplayError(f"is damaged: circuit: {_in_a_line(error)}") from None
    except RacerError as error:
        raise ReplayError(f"is damaged: {_in_a_line(error)}") from None


def _in_a_line(error: Exception) -> str:
    """Return an error message in one line; it may contain text from the file."""
    return "".join(letter if letter.isprintable() else " " for letter in str(error)[:MAX_REASON_LENGTH])


@dataclass(frozen=True)
class ReplayFacts:
    """Summary of a replay for lists; times in ticks."""

    circuit: str
    driver: str
    best_lap: int | None
    laps: int
    ticks: int
    date: datetime
    engine_warning: str | None


@dataclass(frozen=True)
class _FileVersion:
    """Version of a file. A file that was written again is another version."""

    path: Path
    written: int
    """Modification time [ns]."""
    size: int


class ReplayFolder:
    """Replay files of a folder, read in small portions while a window stays responsive."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[Path, _FileVersion] = {}
        self._read: dict[_FileVersion, ReplayFacts | str] = {}
        self._unread: list[_FileVersion] = []
        self.refresh()

    @property
    def paths(self) -> list[Path]:
        """Paths of the files, newest first; empty if the folder does not exist."""
        return list(self._files)

    def refresh(self) -> None:
        """List the folder again; unchanged files are not read again."""
        found = (_file_version(path) for path in self.folder.glob(f"*{SUFFIX}") if not path.name.startswith("."))
        files = sorted(filter(None, found), key=lambda file: (-file.written, file.path.name))
        self._files = {file.path: file for file in files}
        self._read = {file: self._read[file] for file in files if file in self._read}
        self._unread = [file for file in reversed(files) if file not in self._read]

    def read_some(self, seconds: float) -> list[Path]:
        """Read at least one more file, newest first, until the time is over [s]; return the paths that were read."""
        end = time.perf_counter() + seconds
        paths: list[Path] = []
        while self._unread and (not paths or time.perf_counter() < end):
            file = self._unread.pop()
            self._read[file] = _facts_or_problem(file.path)
            paths.append(file.path)
        return paths

    def facts(self, path: Path) -> ReplayFacts | str | None:
        """Return the summary of one of `paths`, or what is wrong with it; None if it was not read yet."""
        return self._read.get(self._files[path])


def _file_version(path: Path) -> _FileVersion | None:
    """Return the version of a file; None if it no longer exists."""
    try:
        status = path.stat()
    except OSError:
        return None
    return _FileVersion(path, status.st_mtime_ns, status.st_size)


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
