"""Programs that start Ray, and the processes they leave."""

import os
import subprocess
import sys
import uuid
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Self

from tests import processes

MARK = "RACER_TEST_MARK"
TIMEOUT = 120.0
"""Default timeout [s]; a busy machine takes long to start Ray."""
wait_for = partial(processes.wait_for, timeout=TIMEOUT)


class Program:
    """Process of `racer-viewer ARGUMENTS`, with a marker that its children inherit; the context kills all of them."""

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
        """Kill all remaining processes by their number."""
        self.process.kill()
        self.process.wait()
        for process in self.others():
            with suppress(ProcessLookupError):
                os.kill(process, 9)

    @property
    def output(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def wait(self) -> int:
        return self.process.wait(2 * TIMEOUT)

    def others(self) -> list[int]:
        """Return living processes with the marker, or with an open file of the program's Ray session, which hides it.

        Only Linux shows them; elsewhere the list is empty.
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
