"""Connections of a server: they count from `accept`, have a time limit for their handshake, and are bounded."""

import os
import select
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import websocket

from tests.bridge.conftest import RunningBridge, StartBridge
from tests.bridge.plain_client import PlainClient, plain_client
from tests.bridge.raw_websocket import RawWebSocket, raw_websocket, upgrade_request
from tests.bridge.watching import events
from tests.processes import wait_for

resource = pytest.importorskip("resource", reason="Windows has no limit of descriptors")

CONNECTIONS, DESCRIPTORS = 2500, 1024
BUSY_SHARE = 0.3
"""Maximum share of a core that a server may use while nothing happens."""


@contextmanager
def many_descriptors() -> Iterator[None]:
    """Let this process open all connections of the attack."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = CONNECTIONS + 500
    if hard != resource.RLIM_INFINITY and hard < needed:
        pytest.skip(f"this process may open {hard} files only")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def limit_descriptors(bridge: RunningBridge) -> None:
    if not hasattr(resource, "prlimit"):
        pytest.skip("the limits of other processes can be set on Linux only")
    resource.prlimit(bridge.process.pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))


def processor_seconds(bridge: RunningBridge) -> float:
    values = Path(f"/proc/{bridge.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")


def median_step(client: PlainClient, steps: int = 200) -> float:
    """Return the median duration of a step [s]."""
    seconds = []
    for _ in range(steps):
        begin = time.perf_counter()
        client.step()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


@pytest.mark.parametrize(
    "request_begins", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["silent", "half a request"]
)
def test_thousands_of_idle_connections_neither_spin_the_server_nor_fill_its_log(
    start_bridge: StartBridge, request_begins: bool
) -> None:
    with start_bridge() as bridge, many_descriptors(), plain_client(bridge.url) as client, ExitStack() as idle:
        limit_descriptors(bridge)
        client.reset(config={"episode": {"maxSteps": 10**9}})
        before = median_step(client)
        for _ in range(CONNECTIONS):
            connection = idle.enter_context(socket.create_connection(("127.0.0.1", bridge.port), 30))
            if request_begins:
                try:
                    connection.sendall(upgrade_request(bridge.port)[:60])
                except OSError:
                    continue  # dropped already
        with plain_client(bridge.url) as newcomer:
            newcomer.reset()
        assert median_step(client) < 5 * before + 0.005
        spent, begin = processor_seconds(bridge), time.monotonic()
        assert select.select([client.socket.sock], [], [], 2.0)[0] == [], "nothing arrives, which must cost nothing"
        assert processor_seconds(bridge) - spent < BUSY_SHARE * (time.monotonic() - begin)
        log = bridge.log.read_text()
        assert len(log) < 20_000
        assert "Traceback" not in log


@pytest.mark.slow
def test_thousands_of_silent_clients_leave_the_log_short_and_time_out(start_bridge: StartBridge) -> None:
    with (
        start_bridge("--max-clients", "20", "--idle-timeout", "3") as bridge,
        many_descriptors(),
        plain_client(bridge.url) as client,
        ExitStack() as idle,
    ):
        limit_descriptors(bridge)
        client.reset()
        for _ in range(CONNECTIONS):
            connection = idle.enter_context(socket.create_connection(("127.0.0.1", bridge.port), 30))
            connection.sendall(upgrade_request(bridge.port))
            client.step()
        with pytest.raises(websocket.WebSocketBadStatusException) as refusal:
            PlainClient(bridge.url)
        assert refusal.value.status_code == 503
        assert len(events(bridge.log, "refused")) == 100, "further ones are counted only"
        assert len(bridge.log.read_text()) < 40_000

        def has_room() -> bool:
            client.step()
            try:
                with plain_client(bridge.url) as newcomer:
                    newcomer.reset()
            except websocket.WebSocketBadStatusException:
                return False
            return True

        wait_for(has_room, "the silent clients time out")


def test_a_server_with_few_descriptors_admits_fewer_clients(tmp_path: Path) -> None:
    program = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))\n"
        "from racer_env.bridge.server import BridgeServer\n"
        "from racer_env.bridge.net import ServerAddress\n"
        "BridgeServer(ServerAddress('127.0.0.1', 0))\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert '"limit":72,"reason":"limit of open files"' in result.stderr


@pytest.mark.slow
def test_a_handshake_that_trickles_in_ends_in_time(bridge: RunningBridge) -> None:
    with raw_websocket(bridge.port, upgrade=False) as raw:
        begin = time.monotonic()
        raw.socket.settimeout(0.5)
        for byte in upgrade_request(bridge.port):
            try:
                raw.send(bytes((byte,)))
                if raw.socket.recv(1) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        assert time.monotonic() - begin < 10.0


@pytest.mark.parametrize("version", ["8", "7", "0", "12", "14", "13, 8", "013", "x", "", "1" * 1000])
def test_other_websocket_versions_are_refused(bridge: RunningBridge, version: str) -> None:
    with raw_websocket(bridge.port, upgrade=False) as raw:
        raw.send(upgrade_request(bridge.port, **{"Sec-WebSocket-Version": version}))
        status, *headers = raw.until(b"\r\n\r\n").decode().lower().splitlines()
        assert " 426 " in status
        assert "sec-websocket-version: 13" in headers
        assert raw.is_closed_by_server()


def test_version_13_beside_another_one_is_refused(bridge: RunningBridge) -> None:
    with raw_websocket(bridge.port, upgrade=False) as raw:
        raw.send(upgrade_request(bridge.port)[:-2] + b"Sec-WebSocket-Version: 8\r\n\r\n")
        assert b" 426 " in raw.until(b"\r\n\r\n").splitlines()[0]


def test_connections_in_their_handshake_do_not_keep_a_server_from_stopping(start_bridge: StartBridge) -> None:
    with start_bridge() as bridge:
        idle = [RawWebSocket(bridge.port, upgrade=False) for _ in range(100)]
        with plain_client(bridge.url) as client:
            client.reset()
        assert bridge.end() == 0
        for raw in idle:
            assert raw.is_closed_by_server()
            raw.close()
