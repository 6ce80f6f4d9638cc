"""Start and end of a server, and the errors of a failed start."""

import json
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.bridge.conftest import RunningBridge, StartBridge
from tests.bridge.plain_client import plain_client
from tests.bridge.raw_websocket import CLOSE, TEXT, RawWebSocket, frame
from tests.bridge.watching import events, logged

MAX_SHUTDOWN = 3.0
"""Maximum duration of a shutdown [s]; one second is promised, but the machine is busy."""


def crowd(bridge: RunningBridge) -> tuple[list[RawWebSocket], list[RawWebSocket]]:
    """Connect clients of all kinds; return those that read, and those that do not."""
    stepping, silent, waiting, mute, deaf = (RawWebSocket(bridge.port) for _ in range(5))
    half_open, half_asked = RawWebSocket(bridge.port, upgrade=False), RawWebSocket(bridge.port, upgrade=False)
    half_asked.send(b"GET / HTTP/1.1\r\nHost")
    mute.send(frame(TEXT, b'{"type":"res', fin=False))
    for raw in (stepping, deaf):
        raw.send(frame(TEXT, b'{"type":"reset"}'))
        assert "reset_result" in raw.receive_text()
    many = ",".join(f'"random:{seed}:hard"' for seed in range(60))
    waiting.send(frame(TEXT, f'{{"type":"reset","trackIds":[{many}]}}'.encode()))
    deaf.socket.setblocking(False)
    try:
        for _ in range(100):
            deaf.send(frame(TEXT, b'{"type":"track"}') * 1000)
    except BlockingIOError:
        deaf.socket.settimeout(30.0)
    stepping.send(frame(TEXT, b'{"type":"step","action":[0,1,0]}'))
    assert "step_result" in stepping.receive_text()
    return [stepping, silent, waiting, mute], [deaf, half_open, half_asked]


@pytest.mark.parametrize(
    ("how", "loop"),
    [
        (signal.SIGINT, "asyncio"),
        (signal.SIGTERM, "uvloop"),
        pytest.param(signal.SIGTERM, "asyncio", marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, "uvloop", marks=pytest.mark.slow),
    ],
)
def test_a_signal_closes_all_connections_and_ends_the_server(
    start_bridge: StartBridge, how: signal.Signals, loop: str
) -> None:
    if loop == "uvloop":
        pytest.importorskip("uvloop")
    with start_bridge(*["--uvloop"] * (loop == "uvloop")) as bridge:
        listening, others = crowd(bridge)
        begin = time.monotonic()
        bridge.process.send_signal(how)
        for raw in listening:
            received = raw.receive()
            assert (received.close_code, received.close_reason) == (1001, "the bridge is shutting down")
            raw.send(frame(CLOSE, received.payload))
            assert raw.is_closed_by_server()
        assert bridge.process.wait(10) == 0
        assert time.monotonic() - begin < MAX_SHUTDOWN
        for raw in others:
            assert raw.is_closed_by_server()
        reasons = [line["why"] for line in events(bridge.log, "closed")]
        assert reasons == ["the bridge is shutting down"] * 5
        assert "Traceback" not in bridge.log.read_text()
        for raw in listening + others:
            raw.close()


@pytest.mark.slow
def test_clients_that_do_not_answer_and_repeated_signals_do_not_delay_the_end(
    start_bridge: StartBridge,
) -> None:
    with start_bridge() as bridge:
        listening, others = crowd(bridge)
        begin = time.monotonic()
        while bridge.process.poll() is None:
            bridge.process.send_signal(signal.SIGINT)
            bridge.process.send_signal(signal.SIGTERM)
            assert time.monotonic() - begin < MAX_SHUTDOWN
            with suppress(subprocess.TimeoutExpired):
                bridge.process.wait(0.01)
        assert bridge.process.returncode == 0
        assert "Traceback" not in bridge.log.read_text()
        for raw in listening + others:
            raw.close()


ATTEMPTS = """
import contextlib, io, json, sys
from racer_viewer.cli import main

def attempt(arguments):
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        try:
            code = main(["bridge", *arguments])
        except SystemExit as end:
            code = end.code
    return code, said.getvalue()

sys.modules["uvloop"] = None  # as if it were not installed
print(json.dumps([attempt(arguments) for arguments in json.loads(sys.argv[1])]))
"""


def failed_starts(*attempts: list[str]) -> list[str]:
    """Return the error output of the command for each list of arguments; the exit code must be 2."""
    run = subprocess.run(
        [sys.executable, "-c", ATTEMPTS, json.dumps(attempts)], capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    results = json.loads(run.stdout)
    assert [code for code, _ in results] == [2] * len(attempts), results
    return [said for _, said in results]


@pytest.mark.slow
def test_the_error_of_a_taken_port_suggests_a_free_one_that_works(start_bridge: StartBridge) -> None:
    with socket.create_server(("127.0.0.1", 0)) as somebody:
        port = somebody.getsockname()[1]
        (said,) = failed_starts(["--port", str(port)])
        found = re.fullmatch(rf"racer-viewer: port {port} on 127.0.0.1 is taken; (\d+) is free: --port \1\n", said)
        assert found, said
        with start_bridge("--port", found[1]) as bridge, plain_client(bridge.url) as client:
            assert bridge.port == int(found[1])
            client.reset()


def test_an_address_that_cannot_be_used_gives_an_error_of_one_line(tmp_path: Path) -> None:
    path = tmp_path / "token.txt"
    path.write_text("x")
    path.chmod(0o600)
    token = ("--token-file", str(path))
    cases = {
        ("--host", "no.such.host.invalid", *token): "cannot listen on no.such.host.invalid:9876",
        ("--host", "192.0.2.1", *token): "cannot listen on 192.0.2.1:9876",
        ("--host", "a..b", *token): "cannot listen on a..b:9876",
        ("--host", "0.0.0.0"): "0.0.0.0 can be reached from other machines: set a token with --token-file FILE",
        ("--host", "::", "--token", ""): ":: can be reached from other machines",
        ("--host", "example.org"): "example.org can be reached from other machines",
        ("--port", "0", "--uvloop"): "pip install uvloop",
        ("--port", "65535"): " is free: --port ",
    }
    with suppress(OSError), socket.create_server(("127.0.0.1", 65535)):
        for said, reason in zip(failed_starts(*map(list, cases)), cases.values(), strict=True):
            assert reason in said
            assert said.count("\n") == 1, said


def test_an_invalid_port_is_refused() -> None:
    ports = ["70000", "-1", "x", "1.5"]
    for port, said in zip(ports, failed_starts(*(["--port", port] for port in ports)), strict=True):
        assert f"a port is a number from 0 to 65535, not '{port}'" in said


@pytest.mark.slow
def test_a_server_listens_on_ipv6_too(start_bridge: StartBridge) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("there is no IPv6 here")
    with start_bridge("--host", "::1") as bridge:
        assert bridge.url.startswith("ws://[::1]:")
        with plain_client(bridge.url) as client:
            client.reset()
        assert logged(bridge.log, "closed")[0]["peer"].startswith("::1")
