"""Clients that send invalid messages, and a well-behaved client beside them."""

import json
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from racer_env.games import RacingGameClient
from tests.bridge.hostile_messages import NASTY
from tests.games.plain_player import plain_player
from tests.processes import wait_for

VALID: list[dict[str, Any]] = [
    {"type": "SET_ACTION", "game_id": 0, "action": {"steer": 0.1, "gas": 0.5, "brake": 0.0}},
    {"type": "GET_STATE", "game_id": 1, "frame": False},
    {"type": "GET_STATES", "game_ids": [0, 2], "frame": False},
    {"type": "GET_STATS"},
    {"type": "GET_STATE", "game_id": 0},
    {"type": "RESET", "game_id": 3, "frame": False},
]
FENCE = b'{"type":"FENCE"}\n'
NEIGHBOUR_INTERVAL = 0.02
"""Time between two rounds of the well-behaved client [s]."""


@contextmanager
def busy_neighbour(port: int) -> Iterator[None]:
    """Run a client that queries and drives during the block; raise if it gets any error."""
    stopped = threading.Event()
    problems: list[BaseException] = []
    rounds = 0

    def keep_driving() -> None:
        nonlocal rounds
        try:
            with RacingGameClient(port=port, frames=False) as client:
                while not stopped.wait(NEIGHBOUR_INTERVAL):
                    client.set_action((0.0, 0.3, 0.0), 1)
                    assert len(client.states()) == 4
                    rounds += 1
        except BaseException as problem:
            problems.append(problem)

    thread = threading.Thread(target=keep_driving)
    thread.start()
    try:
        yield
        wait_for(lambda: rounds > 3 or problems, "the neighbour to drive")
    finally:
        stopped.set()
        thread.join()
    assert not problems


def hostile_lines(seed: int, number: int) -> Iterator[bytes]:
    """Yield valid messages with one random defect each, and random bytes."""
    draw = random.Random(seed)
    for _ in range(number):
        message = json.loads(json.dumps(draw.choice(VALID[:4] if draw.random() < 0.98 else VALID)))
        kind = draw.randrange(5)
        if kind == 0:
            message[draw.choice([*message, "game_id", "action", "frame", "x"])] = draw.choice(NASTY)
        elif kind == 1 and "action" in message:
            message["action"][draw.choice(["steer", "gas", "brake", "x"])] = draw.choice(NASTY)
        elif kind == 2:
            del message[draw.choice(list(message))]
        line = json.dumps(message).encode()
        if kind == 3:
            at = draw.randrange(len(line))
            line = line[:at] + draw.randbytes(draw.randint(0, 4)).replace(b"\n", b"") + line[at + draw.randint(0, 3) :]
        elif kind == 4:
            line = draw.randbytes(draw.randint(0, 300)).replace(b"\n", b"")
        yield line + b"\n"


def send_all(port: int, lines: list[bytes]) -> None:
    """Send all lines without waiting; a FENCE after each line marks the end of its reply."""
    with plain_player(port) as player:
        lines = [line for line in lines if b'"CLOSE"' not in line]
        sender = threading.Thread(target=player.send, args=(b"".join(line + FENCE for line in lines),))
        sender.start()
        fences = 0
        while fences < len(lines):
            reply = player.read()
            assert reply["type"] in ("STATE", "STATES", "STATS", "ERROR")
            assert "internal" not in reply.get("message", reply.get("action_error", "")), reply
            if reply["type"] == "ERROR":
                fences += "'FENCE'" in reply["message"]
        sender.join()
