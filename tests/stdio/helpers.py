"""Host and helper processes for tests."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from racer_env.stdio import Expected, StdioClient, client
from racer_env.stdio.process import HelperProcess
from tests.processes import process_exists, wait_for

HERE = Path(__file__).parent
HOST = [sys.executable, "-P", "-m", "racer_env.stdio"]
ODD_ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join((str(HERE), str(HERE.parent.parent)))}
"""Environment variables with which `odd_envs` can be imported."""
EXPECTED = Expected((3,), "float32", n_actions=2, obs_low=-1, obs_high=1)
"""Description of a `hostile_helper`."""


class HostProcess:
    """A host process, as another program uses it."""

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
        reply = json.loads(line, parse_constant=_refuse_constant)
        assert type(reply["ok"]) is bool
        return reply

    def ask(self, **request: Any) -> dict[str, Any]:
        self.send(json.dumps(request).encode() + b"\n")
        return self.receive()

    def finish(self, last: bytes = b"") -> tuple[int, bytes, str]:
        """Close stdin; return the exit code, the rest of stdout and all of stderr."""
        out, err = self.process.communicate(last, timeout=60)
        return self.process.returncode, out, err.decode()


def _refuse_constant(name: str) -> None:
    raise AssertionError(f"{name} is not valid JSON")


@contextmanager
def hosting(env_id: str, *arguments: str) -> Iterator[HostProcess]:
    """Start a host process and end it afterwards; `odd_envs:NAME` is an environment of `odd_envs`."""
    with subprocess.Popen(
        [*HOST, "--env-id", env_id, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ODD_ENVIRONMENT,
    ) as process:
        try:
            yield HostProcess(process)
        finally:
            if process.poll() is None:
                process.kill()


def hostile(**plan: Any) -> list[str]:
    """Return the command of a helper that breaks the protocol in this way."""
    return [sys.executable, "-I", "-S", str(HERE / "hostile_helper.py"), json.dumps(plan)]


def has_helper_threads() -> bool:
    return any(thread.name.startswith("helper") for thread in threading.enumerate())


def drive(command: list[str], expected: Expected | None = EXPECTED, **options: Any) -> None:
    """Reset and take two steps; check that the process is gone afterwards, even after an error."""
    pids = []
    try:
        with StdioClient(command, expected, **options) as helper:
            pids.append(helper.pid)
            helper.reset(seed=3)
            helper.step(0)
            helper.step(1)
    finally:
        assert not any(map(process_exists, pids))
        wait_for(lambda: not has_helper_threads(), "the threads end")


def collect_helpers(monkeypatch: pytest.MonkeyPatch) -> list[HelperProcess]:
    """Return a list that collects every helper that is started."""
    started: list[HelperProcess] = []

    def start(*arguments: Any) -> HelperProcess:
        started.append(HelperProcess(*arguments))
        return started[-1]

    monkeypatch.setattr(client, "HelperProcess", start)
    return started
