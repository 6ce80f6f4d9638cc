"""An existing server: protocol 1 without extensions, independent of this project's code.

It writes WebSocket frames by hand, uses the JSON module of the standard library, and simulates the tests' oracle car.
"""

import base64
import hashlib
import json
import math
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.engine.oracle import OracleCar, OracleTrack

CIRCUITS = json.loads((Path(__file__).parents[1] / "data/reference_circuits.json").read_text())
COMPONENTS = ("progress", "speed", "wall", "offTrack", "backward", "stillness")
Distortion = Callable[[dict[str, Any]], dict[str, Any] | bytes]


class OldServer:
    """Server of one connection after another. `distort` may change a reply before it is sent."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"ws://127.0.0.1:{self._listener.getsockname()[1]}"
        self.distort: Distortion = lambda reply: reply
        self.requests: list[dict[str, Any]] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                peer, _ = self._listener.accept()
                with peer, suppress(OSError, EOFError):
                    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self.shake_hands(peer)
                    self._talk(peer)

    def shake_hands(self, peer: socket.socket) -> None:
        request = b""
        while b"\r\n\r\n" not in request:
            request += peer.recv(4096)
        lines = [line.split(": ", 1) for line in request.decode().split("\r\n") if ": " in line]
        key = {name.lower(): value for name, value in lines}["sec-websocket-key"]
        digest = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
        peer.sendall(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + base64.b64encode(digest) + b"\r\n\r\n"
        )

    def _talk(self, peer: socket.socket) -> None:
        environment = OldEnvironment()
        while True:
            opcode, payload = receive_frame(peer)
            if opcode == 8:
                peer.sendall(frame(8, payload[:2]))
                return
            request = json.loads(payload)
            self.requests.append(request)
            reply = self.distort(environment.answer(request))
            peer.sendall(frame(1, reply if isinstance(reply, bytes) else json.dumps(reply).encode()))


class OldEnvironment:
    """Environment of one connection to an existing server."""

    def __init__(self) -> None:
        self._car: OracleCar | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        kind = request.get("type")
        if kind == "reset":
            return self._reset(request)
        if kind == "step":
            return self._step(request)
        if kind == "close":
            self._car = None
            return {"type": "close_result"}
        return {"type": "error", "message": f"Unknown message type: {kind}"}

    def _reset(self, request: dict[str, Any]) -> dict[str, Any]:
        unknown = set(request) - {"type", "trackId", "config"}
        assert not unknown, f"an existing server knows no {unknown}"
        track = request.get("trackId", "track-01")
        if track not in CIRCUITS:
            return {"type": "error", "message": f"Unknown track: {track}. Available: {', '.join(CIRCUITS)}"}
        circuit = CIRCUITS[track]
        self._car = OracleCar(OracleTrack(circuit["control_points"], circuit["gates"]), request.get("config"))
        info = {"tick": 0, "speed": 0, "lap": 1, "checkpoint": 0, "stepCount": 0}
        return {"type": "reset_result", "observation": self._car.observation.tolist(), "info": info}

    def _step(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._car is None:
            return {"type": "error", "message": "Environment not initialized. Call reset first."}
        action = request["action"]
        if len(action) != 3 or not all(math.isfinite(value) for value in action):
            return {"type": "error", "message": "Action must be 3 finite numbers"}
        car = self._car
        car.step(action)
        info = {
            **dict(zip(COMPONENTS, car.components, strict=True)),
            "tick": car.steps,
            "rawSpeed": car.speed,
            "lap": car.lap,
            "checkpoint": car.checkpoint,
            "stepCount": car.steps,
            "wallContact": car.wall_contact,
            "stillnessCounter": car.still_ticks,
        }
        return {
            "type": "step_result",
            "observation": car.observation.tolist(),
            "reward": car.reward,
            "terminated": car.terminated,
            "truncated": car.truncated,
            "info": info,
        }


def receive_frame(peer: socket.socket) -> tuple[int, bytes]:
    """Return opcode and payload of one masked frame."""
    first, second = receive(peer, 2)
    size = second & 0x7F
    if size == 126:
        (size,) = struct.unpack(">H", receive(peer, 2))
    elif size == 127:
        (size,) = struct.unpack(">Q", receive(peer, 8))
    mask, payload = receive(peer, 4), receive(peer, size)
    return first & 0xF, bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))


def frame(opcode: int, payload: bytes) -> bytes:
    """Return a whole message as a server sends it."""
    size = len(payload)
    header = bytes([0x80 | opcode, size]) if size < 126 else struct.pack(">BBH", 0x80 | opcode, 126, size)
    return header + payload


def receive(peer: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        part = peer.recv(size - len(received))
        if not part:
            raise EOFError
        received += part
    return received


@contextmanager
def old_server() -> Iterator[OldServer]:
    server = OldServer()
    try:
        yield server
    finally:
        server.close()
