"""Helper processes to talk to, and what becomes of them."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from racer_env.stdio import Expected, StdioClient, client
from racer_env.stdio.process import Helper

HERE = Path(__file__).parent
HOST = [sys.executable, "-P", "-m", "racer_env.stdio"]
ODD_ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join((str(HERE), str(HERE.parent.parent)))}
"""In which `odd_envs` can be imported."""
EXPECTED = Expected((3,), "float32", n_actions=2, obs_low=-1, obs_high=1)
"""Of a `hostile_helper`."""


class Talk:
    """A host as another program talks to it."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process

    def send(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.endswith(b"\n")
        assert not line.endswith(b"\r\n")
        reply = json.loads(line, parse_constant=_no_json)
        assert type(reply["ok"]) is bool
        return reply

    def ask(self, **request: Any) -> dict[str, Any]:
        self.send(json.dumps(request).encode() + b"\n")
        return self.receive()

    def finish(self, last: bytes = b"") -> tuple[int, bytes, str]:
        """The exit code, the rest of stdout and all of stderr, after the end of its input."""
        out, err = self.process.communicate(last, timeout=60)
        return self.process.returncode, out, err.decode()


def _no_json(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


@contextmanager
def hosting(env_id: str, *arguments: str) -> Iterator[Talk]:
    """A host process, ended afterwards. Environments of `odd_envs` are there as `odd_envs:NAME`."""
    with subprocess.Popen(
        [*HOST, "--env-id", env_id, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ODD_ENVIRONMENT,
    ) as process:
        try:
            yield Talk(process)
        finally:
            if process.poll() is None:
                process.kill()


def hostile(**plan: Any) -> list[str]:
    """The command of a helper that breaks the protocol as planned."""
    return [sys.executable, "-I", "-S", str(HERE / "hostile_helper.py"), json.dumps(plan)]


def is_gone(pid: int) -> bool:
    if sys.platform == "win32":
        listed = subprocess.run(["tasklist", "/FI", f"PID eq {pid}"], capture_output=True, text=True, check=True)
        return str(pid) not in listed.stdout
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def wait_until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def has_helper_threads() -> bool:
    return any(thread.name.startswith("helper") for thread in threading.enumerate())


def drive(command: list[str], expected: Expected | None = EXPECTED, **options: Any) -> None:
    """Reset and two steps; whatever happens, the process is gone afterwards."""
    pids = []
    try:
        with StdioClient(command, expected, **options) as helper:
            pids.append(helper.pid)
            helper.reset(seed=3)
            helper.step(0)
            helper.step(1)
    finally:
        assert all(map(is_gone, pids))
        wait_until(lambda: not has_helper_threads())


def watch_starts(monkeypatch: pytest.MonkeyPatch) -> list[Helper]:
    """Collects every helper that is started."""
    started: list[Helper] = []

    def start(*arguments: Any) -> Helper:
        started.append(Helper(*arguments))
        return started[-1]

    monkeypatch.setattr(client, "Helper", start)
    return started
