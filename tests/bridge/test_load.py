"""Load: many clients, many resets, killed processes, and a million steps."""

import json
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from racer_env.bridge.client import BridgeClient, RemoteBatch
from racer_env.bridge.interface import Scenario
from racer_env.engine import circuits, parse_config
from racer_env.errors import BridgeError
from tests.bridge.conftest import RunningBridge, StartBridge
from tests.bridge.plain_client import plain_client
from tests.bridge.raw_websocket import TEXT, frame, raw_websocket
from tests.bridge.stepping_neighbour import stepping_neighbour
from tests.bridge.watching import MEGABYTE, events, memory_of
from tests.processes import wait_for

CLIENTS = 200
RESET, STEP = b'{"type":"reset"}', b'{"type":"step","action":[0.2,0.6,0]}'


def test_two_hundred_clients_at_once(bridge: RunningBridge) -> None:
    """All clients are connected before the first one continues, and all drive at the same time."""
    together = threading.Barrier(CLIENTS)
    names = [circuit.id for circuit in circuits()]

    def drive(number: int) -> tuple[str, str]:
        name = names[number % len(names)]
        with plain_client(bridge.url) as client:
            together.wait(60)
            for _ in range(2):
                client.reset(trackId=name)
                for count in range(1, 6):
                    reply = client.step()
                    assert reply["info"]["stepCount"] == count
            return name, json.dumps(reply)

    with ThreadPoolExecutor(CLIENTS) as pool:
        results = list(pool.map(drive, range(CLIENTS)))
    assert len(set(results)) == len(names), "the same actions on the same circuit give the same replies"


def test_many_resets_at_once(bridge: RunningBridge) -> None:
    requests = [
        json.dumps(
            {"type": "reset", "trackId": circuit.id, "seed": seed, "config": {"episode": {"maxSteps": seed + 1}}}
        )
        for seed in range(12)
        for circuit in circuits()
    ]

    def storm(number: int) -> None:
        with raw_websocket(bridge.port) as raw:
            raw.send(*(frame(TEXT, request.encode()) for request in requests[number:] + requests[:number]))
            for _ in requests:
                assert raw.receive_text().startswith('{"type":"reset_result"')
            raw.send(frame(TEXT, STEP))
            assert json.loads(raw.receive_text())["info"]["stepCount"] == 1

    with stepping_neighbour(bridge.url), ThreadPoolExecutor(4) as pool:
        list(pool.map(storm, range(4)))


DRIVE_FOREVER = """
import sys, websocket
client = websocket.create_connection(sys.argv[1])
client.send('{"type":"reset"}')
client.recv()
print("driving", flush=True)
while True:
    client.send('{"type":"step","action":[0,1,0]}')
    client.recv()
"""


def test_a_client_killed_during_a_step_does_not_disturb_others(bridge: RunningBridge) -> None:
    def lost() -> int:
        return sum(line["why"] == "connection lost" for line in events(bridge.log, "closed"))

    before = lost()
    with stepping_neighbour(bridge.url):
        for _ in range(3):
            command = [sys.executable, "-c", DRIVE_FOREVER, bridge.url]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
                assert driver.stdout is not None
                assert driver.stdout.readline() == "driving\n"
                driver.kill()
        wait_for(lambda: lost() == before + 3, "all three connections are closed")


def drive_for_seconds(client: BridgeClient, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        client.step([0.0, 1.0, 0.0])


def test_a_client_notices_at_once_that_its_server_was_killed(start_bridge: StartBridge) -> None:
    with start_bridge() as bridge:
        client, batch = BridgeClient(bridge.url), RemoteBatch(64, bridge.url)
        client.reset()
        batch.reset()
        threading.Timer(0.2, bridge.process.kill).start()
        begin = time.monotonic()
        with pytest.raises(BridgeError, match=re.escape(f"lost the connection to {bridge.url}")):
            drive_for_seconds(client, 20.0)
        with pytest.raises(BridgeError, match="lost the connection"):
            batch.step(np.zeros((64, 3)))
        assert time.monotonic() - begin < 10.0, "the reply timeout is 30 s"
        with pytest.raises(BridgeError, match="closed: connect again"):
            client.step([0.0, 1.0, 0.0])


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="processes cannot be frozen here")
def test_a_step_on_a_frozen_server_times_out(bridge: RunningBridge) -> None:
    client = BridgeClient(bridge.url, reply_timeout=1.0)
    client.reset()
    begin = time.monotonic()
    bridge.process.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(BridgeError, match=r"no reply within 1 s"):
            client.step([0.0, 1.0, 0.0])
    finally:
        bridge.process.send_signal(signal.SIGCONT)
    assert time.monotonic() - begin < 10.0


JSON_STEPS = 300_000
BATCH_STEPS, CARS = 11_000, 64


@pytest.mark.slow
@pytest.mark.timing
def test_a_million_steps_take_no_memory(bridge: RunningBridge) -> None:
    """Steps are ticks of one car: 300,000 requested in JSON, 500 sent ahead at a time, and 704,000 by 11,000 batch
    messages for 64 cars. Episodes end and restart all the time."""
    memory: list[int] = []

    def json_steps(number: int) -> int:
        done = 0
        with raw_websocket(bridge.port) as raw:
            raw.send(frame(TEXT, RESET))
            assert "reset_result" in raw.receive_text()
            for _ in range(number // 500):
                raw.send(frame(TEXT, STEP) * 500)
                for _ in range(500):
                    assert raw.receive().payload.startswith(b'{"type":"step_result"')
                    done += 1
                if done % 25_000 == 0:
                    memory.append(memory_of(bridge.process.pid))
                    raw.send(frame(TEXT, RESET))
                    assert "reset_result" in raw.receive_text()
        return done

    def batch_steps(number: int) -> int:
        done = 0
        batch = RemoteBatch(CARS, bridge.url)
        batch.reset(Scenario(config=parse_config({"episode": {"maxSteps": 700}})), seeds=0)
        actions = np.random.default_rng(0).uniform([-1.0, 0.2, 0.0], [1.0, 1.0, 0.3], (100, CARS, 3))
        for count in range(number):
            done += len(batch.step(actions[count % 100]).rewards)
        batch.close()
        return done

    with ThreadPoolExecutor(2) as pool:
        counts = [pool.submit(json_steps, JSON_STEPS), pool.submit(batch_steps, BATCH_STEPS)]
        assert sum(count.result() for count in counts) >= 1_000_000
    settled = memory[2]
    assert max(memory[3:]) < settled + 8 * MEGABYTE, [size // MEGABYTE for size in memory]
    wait_for(lambda: memory_of(bridge.process.pid) < settled + 8 * MEGABYTE, "the memory is as it was")
    assert events(bridge.log, "internal error") == []
