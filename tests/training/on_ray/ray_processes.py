"""Programs that start Ray, and whether anything of them is left."""

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

MARK = "RACER_TEST_MARK"
PATIENCE = 120.0
"""Seconds; a machine that is busy takes long to start a Ray."""


class Program:
    """`racer-viewer ARGUMENTS` with a mark that all processes it starts inherit; as a context, none outlives it."""

    def __init__(self, *arguments: object, log: Path) -> None:
        self.mark, self._log = uuid.uuid4().hex, log
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "racer_viewer", *map(str, arguments)],
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, MARK: self.mark},
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """All of it that is left is killed, by number."""
        self.process.kill()
        self.process.wait()
        for process in self.others():
            with suppress(ProcessLookupError):
                os.kill(process, 9)

    @property
    def output(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def wait(self) -> int:
        return self.process.wait(2 * PATIENCE)

    def others(self) -> list[int]:
        """Processes that live with the mark or, as Ray hides that, with an open file of the program's own Ray.

        Linux tells; elsewhere none are known.
        """
        return [int(folder.name) for folder in Path("/proc").glob("[0-9]*") if self._is_of(folder)]

    def _is_of(self, folder: Path) -> bool:
        try:
            marked = f"{MARK}={self.mark}".encode() in (folder / "environ").read_bytes()
            session = f"_{self.process.pid}/logs/"
            marked = marked or any(session in str(file.readlink()) for file in (folder / "fd").iterdir())
            return marked and (folder / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False


def wait_until(condition: Callable[[], object], what: str, limit: float = PATIENCE) -> None:
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, f"waited too long for: {what}"
        time.sleep(0.05)
