"""Log of a server: one line per connection, and with --verbose one per message."""

import struct
from collections.abc import Iterator

import pytest

from tests.bridge.conftest import RunningBridge, running_bridge
from tests.bridge.plain_client import GENTLY, plain_client
from tests.bridge.raw_websocket import CLOSE, TEXT, frame, raw_websocket
from tests.bridge.watching import events, logged


@pytest.fixture(scope="module")
def verbose(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBridge]:
    """Server that logs every message."""
    with running_bridge(tmp_path_factory.mktemp("verbose"), "--verbose") as running:
        yield running


def test_a_connection_leaves_one_line_with_counts_and_latency(verbose: RunningBridge) -> None:
    with plain_client(verbose.url) as client:
        client.reset()
        client.reset(trackId="track-02")
        for _ in range(50):
            client.step()
        client.refusal("what?")
        client.send({"type": "batch_reset", "numCars": 4})
        client.socket.recv()
        client.send(struct.pack("<4sHHII", b"RCRB", 1, 1, 4, 0) + struct.pack("<12d", *[0.0] * 12))
        client.socket.recv()
    (line,) = logged(verbose.log, "closed")
    counted = {key: line[key] for key in ("why", "steps", "car_steps", "resets", "errors")}
    assert counted == {"why": "client closed", "steps": 51, "car_steps": 54, "resets": 3, "errors": 1}
    assert line["peer"].startswith("127.0.0.1:")
    assert 0.0 < line["seconds"] < 60.0
    assert 0.0 < line["p50_us"] <= line["p99_us"] <= line["max_us"]
    assert line["mean_us"] <= line["max_us"]


def test_the_line_says_why_a_connection_ended(verbose: RunningBridge) -> None:
    with raw_websocket(verbose.port) as raw:
        raw.send(frame(TEXT, b"hello", masked=False))
        assert raw.receive().opcode == CLOSE
    assert "un-masked frame" in logged(verbose.log, "closed", 2)[-1]["why"]
    with raw_websocket(verbose.port) as raw:
        raw.send(frame(TEXT, b"hello", reserved=1))
        assert raw.receive().opcode == CLOSE
    assert "reserved bits" in logged(verbose.log, "closed", 3)[-1]["why"]
    with raw_websocket(verbose.port):
        pass
    assert logged(verbose.log, "closed", 4)[-1]["why"] == "connection lost"
    lines = [line for line in verbose.log.read_text().splitlines() if not line.startswith("Preparing the engine")]
    assert all(line.startswith("20") and '{"event":"' in line for line in lines)


def test_verbose_servers_log_every_message(verbose: RunningBridge) -> None:
    before, closed = (len(events(verbose.log, event)) for event in ("message", "closed"))
    with plain_client(verbose.url) as client:
        client.ask({"type": "reset"})
        client.ask({"type": "step", "action": GENTLY})
        client.ask("\x00\r\n{" * 1000)
        client.send({"type": "batch_reset", "numCars": 4})
        client.socket.recv()
    logged(verbose.log, "closed", closed + 1)
    messages = events(verbose.log, "message")[before:]
    assert len(messages) == 4
    assert messages[0]["request"] == '{"type": "reset"}'
    assert messages[0]["reply"].startswith('{"type":"reset_result"')
    assert messages[1]["reply"].startswith('{"type":"step_result"')
    assert len(messages[2]["request"]) <= 500
    assert messages[3]["reply"].startswith("binary, ")
    assert len(events(verbose.log, "connected")) == closed + 1
