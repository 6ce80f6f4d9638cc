"""Paths of the user's data (runs, records, replays, settings), and safe writing of files."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from platformdirs import user_data_path

DATA_VARIABLE = "RACER_DATA_DIR"
"""Environment variable that sets the user's data folder."""


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


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces `path` when the block succeeds; on an error `path` stays as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def run_folder(run: str | Path, data: Path) -> Path:
    """Return the folder of a run, given by its name or folder."""
    from racer_env.errors import RacerError

    for folder in (Path(run), data / "runs" / run):
        if (folder / "config.json").is_file():
            return folder
    raise RacerError(f"there is no run {run} in {data / 'runs'}")
