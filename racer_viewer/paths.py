"""Where the user's own files live: runs, records, replays and settings, in one folder."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from platformdirs import user_data_path

DATA_VARIABLE = "RACER_DATA_DIR"


def data_folder(chosen: Path | None = None) -> Path:
    """The user's folder: the one that was chosen, that of RACER_DATA_DIR, or the platform's."""
    if chosen is not None:
        return chosen
    override = os.environ.get(DATA_VARIABLE)
    return Path(override) if override else user_data_path("racer-viewer", appauthor=False)


def free_path(path: Path) -> Path:
    """The path, or if there is something already, the first that is free with a number behind its name."""
    free, number = path, 1
    while free.exists():
        number += 1
        free = path.with_stem(f"{path.stem}-{number}")
    return free


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A path to write to; when all went well it replaces the real one at once, else the real one stays as it was."""
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
    """Of a run by its name or folder."""
    from racer_env.errors import RacerError

    for folder in (Path(run), data / "runs" / run):
        if (folder / "config.json").is_file():
            return folder
    raise RacerError(f"there is no run {run} in {data / 'runs'}")
