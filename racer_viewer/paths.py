"""Paths of the user's data (runs, records, replays, settings), and safe writing of files."""

import errno
import os
import platform
import re
import secrets
import shutil
import stat
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from platformdirs import user_data_path

DATA_VARIABLE = "RACER_DATA_DIR"
"""Environment variable that sets the user's data folder."""
_NO_WAIT, _BINARY = getattr(os, "O_NONBLOCK", 0), getattr(os, "O_BINARY", 0)
"""Flags to open files with: do not wait for the other end of a pipe; bytes on Windows."""


def data_folder(chosen: Path | None = None) -> Path:
    """Return the user's data folder: `chosen`, else RACER_DATA_DIR, else the platform's default."""
    if chosen is not None:
        return chosen
    override = os.environ.get(DATA_VARIABLE)
    return Path(override) if override else user_data_path("racer-viewer", appauthor=False)


def free_path(path: Path) -> Path:
    """Return the path, with a number appended to its name if it exists already."""
    free, number = path, 1
    while free.exists():
        number += 1
        free = path.with_stem(f"{path.stem}-{number}")
    return free


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading; raise OSError for a pipe or a device, which may have no end or never answer."""
    handle = os.open(path, os.O_RDONLY | _NO_WAIT | _BINARY)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    raise OSError(errno.EINVAL, "it is not a regular file", os.fspath(path))


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces `path` when the block succeeds; on an error `path` stays as it was.

    The content is on the disk before it replaces the old one, so that not even a power cut leaves half of it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with temporary_path(path) as temporary:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield temporary
        temporary.chmod(0o644)
        with temporary.open("r+b") as file:
            os.fsync(file.fileno())
        temporary.replace(path)


_TEMPORARY = re.compile(r"\..*\.(?P<pid>\d{1,10})-(?P<host>[0-9a-f]{8})-[0-9a-f]{16}\.tmp(\..*)?", re.DOTALL)
"""Names of temporary files and folders: the process that writes it, and its machine."""
MAX_STEM_LENGTH = 60
"""Maximum length of the name of the file within that of its temporary file [characters]."""
FOREIGN_LIFETIME = 86_400.0
"""Age after which a temporary file of another machine counts as abandoned [s]."""
_living: set[str] = set()
"""Names of the temporary files of this process."""
_cleaned: set[Path] = set()
"""Folders whose abandoned files were removed by this process."""


@contextmanager
def temporary_path(path: Path) -> Iterator[Path]:
    """Yield a hidden path beside `path` for a temporary file or folder; remove it at the end of the block.

    Before its first use in a folder, temporary files of processes that were killed there are removed.
    """
    if path.parent not in _cleaned:
        remove_abandoned(path.parent)
        _cleaned.add(path.parent)
    words = f"{path.stem[:MAX_STEM_LENGTH]}.{os.getpid()}-{_host()}-{secrets.token_hex(8)}"
    temporary = path.with_name(f".{words}.tmp{path.suffix}")
    _living.add(temporary.name)
    try:
        yield temporary
    finally:
        _remove(temporary)
        _living.discard(temporary.name)


def remove_abandoned(folder: Path) -> None:
    """Remove temporary files and folders of processes that no longer run."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.name.startswith(".")]
    except OSError:
        return
    for name in names:
        if (found := _TEMPORARY.fullmatch(name)) and _is_abandoned(folder / name, int(found["pid"]), found["host"]):
            with suppress(OSError):
                _remove(folder / name)


def clean_data_folder(data: Path) -> None:
    """Remove temporary files of processes that no longer run from the user's data folder."""
    for folder in (data, data / "replays", data / "exports", data / "runs", data / "circuits", data / "models"):
        remove_abandoned(folder)
    try:
        runs = [Path(entry.path) for entry in os.scandir(data / "runs") if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return
    for run in runs:
        remove_abandoned(run)


def _is_abandoned(path: Path, pid: int, host: str) -> bool:
    if host == _host():
        return path.name not in _living if pid == os.getpid() else not is_running(pid)
    try:
        return time.time() - path.stat().st_mtime > FOREIGN_LIFETIME
    except OSError:
        return False


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _host() -> str:
    """Return a hash of the name of this machine; process ids of others say nothing here."""
    return f"{zlib.crc32(platform.node().encode(errors='replace')):08x}"


if sys.platform == "win32":
    import ctypes

    _QUERY_LIMITED_INFORMATION, _STILL_ACTIVE, _ACCESS_DENIED = 0x1000, 259, 5

    def is_running(pid: int) -> bool:
        """Return whether a process exists."""
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel.OpenProcess.restype = ctypes.c_void_p
        handle = kernel.OpenProcess(_QUERY_LIMITED_INFORMATION, False, ctypes.c_ulong(pid))
        if not handle:
            return bool(ctypes.get_last_error() == _ACCESS_DENIED)
        code = ctypes.c_ulong()
        known = kernel.GetExitCodeProcess(ctypes.c_void_p(handle), ctypes.byref(code))
        kernel.CloseHandle(ctypes.c_void_p(handle))
        return not known or code.value == _STILL_ACTIVE

else:

    def is_running(pid: int) -> bool:
        """Return whether a process exists."""
        try:
            os.kill(pid, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except OSError:  # it is another user's
            return True
        return True


def run_folder(run: str | Path, data: Path) -> Path:
    """Return the folder of a run, given by its name or folder."""
    from racer_env.errors import RacerError, suggestion

    for folder in (Path(run), data / "runs" / run):
        if (folder / "config.json").is_file():
            return folder
    runs = sorted(config.parent.name for config in (data / "runs").glob("*/config.json"))
    hint = f"; {suggestion(str(run), runs)}" if runs else ""
    raise RacerError(f"there is no run {run} in {data / 'runs'}{hint}")
