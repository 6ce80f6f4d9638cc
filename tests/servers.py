"""Real servers in their own processes."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass
class RunningServer:
    """Server process, its URL and the line that it printed when it was ready."""

    url: str
    process: "subprocess.Popen[str]"
    log: Path
    ready_line: str = ""

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def end(self, how: int = signal.SIGTERM, seconds: float = 20.0) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(how)
        return self.process.wait(seconds)


@contextmanager
def running_server(folder: Path, verb: str, *arguments: str) -> Iterator[RunningServer]:
    """Run `racer-viewer VERB` on a free port, and kill it afterwards."""
    log = folder / f"{verb}-{len(list(folder.iterdir()))}.log"
    command = [sys.executable, "-P", "-m", "racer_viewer", verb, "--port", "0", *arguments]
    with (
        log.open("w") as stderr,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True) as process,
    ):
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first.startswith(verb.capitalize()), log.read_text()
        try:
            yield RunningServer(next(word for word in first.split() if ":" in word), process, log, first)
        finally:
            if process.poll() is None:
                process.kill()
