"""Limits of a server: requests beyond them are refused with a message, and no client can fill its memory."""

import json
import random
import select
import socket
import string
import time
from collections.abc import Iterator

import pytest
import websocket

from racer_env.bridge.track_cache import TrackCache, TrackNotBuiltError
from racer_env.engine import circuits
from racer_env.errors import BridgeError, CircuitError
from tests.bridge.conftest import RunningBridge, running_bridge
from tests.bridge.plain_client import PlainClient, plain_client
from tests.bridge.raw_websocket import BINARY, CLOSE, CONTINUATION, PING, TEXT, RawWebSocket, frame, raw_websocket
from tests.bridge.watching import MEGABYTE, events, logged, memory_of
from tests.processes import wait_for

LARGEST_MESSAGE = 65536
RESET, STEP = b'{"type":"reset"}', b'{"type":"step","action":[0,1,0]}'


def padded(size: int) -> str:
    """Return a reset request of a given size [bytes]."""
    return json.dumps({"type": "reset"}).ljust(size)


def test_a_message_of_64_kib_is_answered(bridge: RunningBridge) -> None:
    with plain_client(bridge.url) as client:
        assert client.ask(padded(LARGEST_MESSAGE))["type"] == "reset_result"


def test_a_larger_message_is_refused(bridge: RunningBridge) -> None:
    with raw_websocket(bridge.port) as raw:
        raw.send(frame(TEXT, padded(LARGEST_MESSAGE + 1).encode()))
        received = raw.receive()
        assert received.close_code == 1009
        assert "exceeding" in received.close_reason


def test_a_frame_that_announces_too_much_is_refused_before_it_has_arrived(bridge: RunningBridge) -> None:
    with raw_websocket(bridge.port) as raw:
        raw.send(b"\x82\xff" + (10 * MEGABYTE).to_bytes(8, "big") + bytes(4))
        assert raw.receive().close_code == 1009


def test_a_message_that_grows_too_large_in_parts_is_refused(bridge: RunningBridge) -> None:
    with raw_websocket(bridge.port) as raw:
        raw.send(frame(TEXT, b" " * 40000, fin=False), frame(CONTINUATION, b" " * 40000, fin=False))
        received = raw.receive()
        assert received.close_code == 1009
        assert "65536 bytes" in received.close_reason


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBridge]:
    """Server for few clients with few cars each."""
    with running_bridge(
        tmp_path_factory.mktemp("small"), "--max-clients", "5", "--max-cars", "8", "--verbose"
    ) as running:
        yield running


def test_the_number_of_cars_is_limited(small: RunningBridge) -> None:
    with plain_client(small.url) as client:
        assert "from 1 to 8" in client.refusal({"type": "batch_reset", "numCars": 9})
        assert client.ask({"type": "describe"})["limits"]["cars"] == 8


def test_the_number_of_clients_is_limited(small: RunningBridge) -> None:
    wait_for(lambda: connected(small) == 0, "earlier clients have left")
    first, *others = [PlainClient(small.url) for _ in range(5)]
    with pytest.raises(websocket.WebSocketBadStatusException) as refusal:
        PlainClient(small.url)
    assert refusal.value.status_code == 503
    assert b"5 clients are connected, which is the limit" in refusal.value.resp_body
    first.reset()
    first.close()
    wait_for(lambda: connected(small) == 4, "one has left")
    with plain_client(small.url) as next_one:
        for client in (*others, next_one):
            client.reset()
    for client in others:
        client.close()


def connected(bridge: RunningBridge) -> int:
    """Return the number of a server's clients, from its log."""
    return len(events(bridge.log, "connected")) - len(events(bridge.log, "closed"))


def test_sockets_that_never_ask_for_a_websocket_do_not_count_as_clients(small: RunningBridge) -> None:
    wait_for(lambda: connected(small) == 0, "earlier clients have left")
    idle = [RawWebSocket(small.port, upgrade=False) for _ in range(50)]
    for number, raw in enumerate(idle):
        raw.send(b"GET / HTTP/1.1\r\nHost: x\r\n"[: number // 2])
    with plain_client(small.url) as client:
        client.reset()
        client.step()
    for raw in idle:
        raw.close()


@pytest.mark.slow
def test_sockets_that_never_ask_for_a_websocket_are_closed_after_a_while(bridge: RunningBridge) -> None:
    idle = [RawWebSocket(bridge.port, upgrade=False) for _ in range(20)]
    for number, raw in enumerate(idle):
        raw.send(b"GET / HTTP/1.1\r\n"[:number])
    begin = time.monotonic()
    for raw in idle:
        assert raw.is_closed_by_server()
        raw.close()
    assert 1.0 < time.monotonic() - begin < 20.0


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBridge]:
    """Server with a short idle timeout, and with batches larger than its text messages."""
    with running_bridge(tmp_path_factory.mktemp("impatient"), "--idle-timeout", "0.6", "--max-cars", "4000") as running:
        yield running


def test_a_limit_for_larger_batches_does_not_apply_to_text(impatient: RunningBridge) -> None:
    with plain_client(impatient.url) as client:
        assert "65536 bytes" in client.refusal(padded(LARGEST_MESSAGE + 1))
        client.send({"type": "batch_reset", "numCars": 4000})
        assert isinstance(client.socket.recv(), bytes)
        client.reset()


def test_a_silent_client_gets_a_close_frame(impatient: RunningBridge) -> None:
    with raw_websocket(impatient.port) as raw:
        received = raw.receive()
        assert received.close_code == 1001
        assert received.close_reason == "silent for 0.6 s"
        raw.send(frame(CLOSE, received.payload))
        assert raw.is_closed_by_server()


def test_a_client_that_says_something_now_and_then_is_not_silent(impatient: RunningBridge) -> None:
    with raw_websocket(impatient.port) as raw:
        until = time.monotonic() + 1.2
        while time.monotonic() < until:
            raw.send(frame(PING))
            assert raw.receive().opcode != CLOSE
        raw.send(frame(TEXT, RESET))
        assert "reset_result" in raw.receive_text()


def test_a_client_that_waits_for_its_circuits_is_not_silent(impatient: RunningBridge) -> None:
    with plain_client(impatient.url) as client:
        for number in (6, 12, 24, 48):
            begin = time.monotonic()
            client.reset(trackIds=[f"random:{number}{seed}" for seed in range(number)])
            if time.monotonic() - begin > 0.7:
                break
        else:
            pytest.skip("circuits are built too fast here for a client to wait")
        client.step()


@pytest.mark.parametrize("last", [b"", frame(3), frame(CLOSE)], ids=["silence", "a broken frame", "a close frame"])
def test_a_client_that_never_reads_is_disconnected_in_the_end(impatient: RunningBridge, last: bytes) -> None:
    before = len(logged(impatient.log, "closed", 0))
    with raw_websocket(impatient.port, receive_buffer=4096) as raw:
        raw.socket.setblocking(False)
        send_all_it_takes(raw.socket, frame(TEXT, b'{"type":"track"}') * 20 + last)
        wait_for(lambda: len(logged(impatient.log, "closed", 0)) > before, "the connection is closed")


def test_other_clients_are_served_while_one_is_closed(impatient: RunningBridge) -> None:
    with plain_client(impatient.url) as client:
        client.reset()
        client.step()


def send_all_it_takes(sender: socket.socket, data: bytes, timeout: float = 0.3) -> int:
    """Send data repeatedly until the receiver takes no more for a while; return the number of bytes sent."""
    sent, last = 0, time.monotonic()
    while time.monotonic() - last < timeout:
        try:
            sent += sender.send(data[sent % len(data) :])
            last = time.monotonic()
        except BlockingIOError:
            select.select([], [sender], [], 0.01)
        except ConnectionError:
            break
    return sent


@pytest.mark.parametrize(
    "message",
    [frame(TEXT, STEP), frame(TEXT, b'{"type":"track"}'), frame(PING, b"?" * 125)],
    ids=["steps", "tracks", "pings"],
)
def test_a_client_that_sends_and_never_reads_fills_no_memory(bridge: RunningBridge, message: bytes) -> None:
    with plain_client(bridge.url) as neighbour, raw_websocket(bridge.port, receive_buffer=4096) as raw:
        neighbour.reset()
        raw.send(frame(TEXT, RESET))
        before = memory_of(bridge.process.pid)
        raw.socket.setblocking(False)
        sent = send_all_it_takes(raw.socket, message * 1000)
        assert memory_of(bridge.process.pid) < before + 24 * MEGABYTE
        assert 0 < sent < 64 * MEGABYTE, "it must not read on either"
        neighbour.step()


def test_a_client_that_reads_late_gets_every_reply_in_order(bridge: RunningBridge) -> None:
    with raw_websocket(bridge.port, receive_buffer=4096) as raw:
        raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        raw.send(frame(TEXT, RESET))
        raw.socket.setblocking(False)
        sent = send_all_it_takes(raw.socket, frame(TEXT, STEP) * 1000)
        raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, MEGABYTE)
        raw.socket.settimeout(30.0)
        assert "reset_result" in raw.receive_text()
        for number in range(1, sent // len(frame(TEXT, STEP)) + 1):
            assert json.loads(raw.receive_text())["info"]["stepCount"] == number
        assert number > 1000, "else it has not been late"


def test_many_tiny_parts_of_a_message_cost_no_more_than_their_number(bridge: RunningBridge) -> None:
    with raw_websocket(bridge.port) as raw:
        parts = frame(CONTINUATION, b" ", fin=False) * 60000
        begin = time.monotonic()
        raw.send(frame(TEXT, b"", fin=False) + parts + frame(CONTINUATION, RESET))
        assert "reset_result" in raw.receive_text()
        assert time.monotonic() - begin < 5.0


def test_circuits_in_use_are_limited_and_those_out_of_use_make_room() -> None:
    cache = TrackCache(kept=1, limit=2)
    names = "random:6:easy", "random:12:easy", "random:46:easy"
    held = [cache.build(name) for name in names[:2]]
    assert cache.ready(names[:2]) == held
    with pytest.raises(BridgeError, match="holds 2 circuits already"):
        cache.build(names[2])
    held.pop(0)
    assert cache.build(names[2])
    with pytest.raises(TrackNotBuiltError) as missing:
        cache.ready(names)
    assert names[0] in missing.value.names


def test_an_unknown_circuit_is_compared_with_few_own_ones() -> None:
    """Comparing it with all 900 would take a tenth of a second, in which no other client is served."""
    draw = random.Random(1)
    own = ["own:" + "".join(draw.choices(string.ascii_lowercase, k=60)) for _ in range(900)]
    cache = TrackCache(dict.fromkeys(own, circuits()[0]))
    with pytest.raises(CircuitError, match=f"did you mean {own[0]}"):
        cache.ready((own[0] + "x",))
    with pytest.raises(CircuitError, match="known: track-01"):
        cache.ready((own[-1] + "x",))


def test_bundled_circuits_do_not_count_against_the_limit() -> None:
    cache = TrackCache(kept=1, limit=1)
    held = [cache.build(name) for name in ("track-01", "random:6:easy", "track-02")]
    assert cache.ready(("track-01", "random:6:easy", "track-02")) == held
    with pytest.raises(BridgeError, match="holds 1 circuits already"):
        cache.build("random:12:easy")


def test_clients_that_come_and_go_leave_no_memory_in_use(bridge: RunningBridge) -> None:
    def come_and_go() -> None:
        with raw_websocket(bridge.port) as raw:
            raw.send(frame(TEXT, b'{"type":"batch_reset","numCars":1024}'))
            assert raw.receive().opcode == BINARY

    for _ in range(20):
        come_and_go()
    before = memory_of(bridge.process.pid)
    for _ in range(80):
        come_and_go()
    wait_for(lambda: memory_of(bridge.process.pid) < before + 10 * MEGABYTE, "the memory is free again")
