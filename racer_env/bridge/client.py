"""The client side of the racer bridge: one car, or a batch of them, on a server.

Every reply is held to the contract before anything of it is used. After a time-out, a lost connection or a broken
contract the connection is closed: nothing is tried again behind the caller's back.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

import numpy as np
import orjson
import websocket
from numpy.typing import ArrayLike

from racer_env.bridge.batch_format import decode_result, encode_step
from racer_env.bridge.contract import BatchContract, RacerContract, field, number, short
from racer_env.bridge.interface import BatchStep, Bools, Info, Observations, Scenario, Step
from racer_env.bridge.quick_socket import QuickSocket
from racer_env.bridge.telemetry import TELEMETRY_KEYS, car_of
from racer_env.engine import Start, Track, build_track
from racer_env.engine.circuits import named_circuit
from racer_env.errors import ActionError, BridgeError, CircuitError, ContractError, RacerError

CONNECT_TIMEOUT, REPLY_TIMEOUT = 10.0, 30.0
"""Seconds."""
LARGEST_REPLY = 64 * 1024 * 1024
"""Bytes. No server has a reason to send more."""
TOKEN_VARIABLE = "RACER_BRIDGE_TOKEN"
DEFAULT_PORT = 9876
DEFAULT_URL = f"ws://localhost:{DEFAULT_PORT}"

OPCODE_TEXT, OPCODE_BINARY = websocket.ABNF.OPCODE_TEXT, websocket.ABNF.OPCODE_BINARY

Reply = dict[str, Any]
Result = TypeVar("Result")


class Connection:
    """A WebSocket to a bridge: requests and replies, one for one."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        token: str | None = None,
        connect_timeout: float = CONNECT_TIMEOUT,
        reply_timeout: float = REPLY_TIMEOUT,
    ) -> None:
        self.url = url
        self._reply_timeout = reply_timeout
        self._socket = _connect(url, token or os.environ.get(TOKEN_VARIABLE), connect_timeout)
        self._socket.settimeout(reply_timeout)
        try:
            self.description = self._describe()
        except BaseException:
            self.abort()
            raise

    @property
    def capabilities(self) -> frozenset[str]:
        """What the server can do beyond reset, step and close. Existing servers: nothing."""
        return frozenset(self.description.get("capabilities", ()))

    def require(self, capability: str, purpose: str) -> None:
        if capability not in self.capabilities:
            raise BridgeError(f"the bridge at {self.url} knows no {capability}: {purpose} needs one that does")

    def request(
        self,
        message: Mapping[str, Any],
        expected: str,
        judge: Callable[[Reply], Result],
        glance: Callable[[bytes], Result | None] = lambda content: None,
    ) -> Result:
        """Send a JSON message and return what is made of the reply of the expected type by who judges it.

        Whoever glances at it first, as it came, may spare the judge the work.
        """
        result: Result = self._guarded(self._exchange_json, orjson.dumps(message), expected, judge, glance)
        return result

    def request_batch(
        self, message: bytes | Mapping[str, Any], num_cars: int, judge: Callable[[BatchStep], BatchStep]
    ) -> BatchStep:
        """Send a step or a batch_reset and return the binary reply, if it is right by who judges it."""
        if isinstance(message, bytes):
            return self._guarded(self._exchange_batch, message, OPCODE_BINARY, num_cars, judge)
        return self._guarded(self._exchange_batch, orjson.dumps(message), OPCODE_TEXT, num_cars, judge)

    def close(self) -> None:
        """Say goodbye, if there is still someone, and close."""
        if self._socket.connected:
            try:
                self._socket.settimeout(1.0)
                self.request({"type": "close"}, "close_result", dict)
            except BridgeError:
                pass
            self._socket.close(timeout=1)

    def abort(self) -> None:
        """Close at once."""
        self._socket.shutdown()  # type: ignore[no-untyped-call]

    def _guarded(self, exchange: Callable[..., Result], *arguments: Any) -> Result:
        if not self._socket.connected:
            raise BridgeError(f"the connection to {self.url} is closed: connect again")
        try:
            return exchange(*arguments)
        except _RefusedError as refusal:
            raise BridgeError(f"the bridge at {self.url} says: {refusal}") from None
        except (websocket.WebSocketTimeoutException, TimeoutError, BlockingIOError):
            self.abort()
            raise BridgeError(f"{self.url} gave no reply within {self._reply_timeout:g} s; it is now closed") from None
        except (websocket.WebSocketException, OSError) as error:
            self.abort()
            raise BridgeError(f"lost the connection to {self.url}: {error}") from None
        except BaseException:  # a broken contract, or Ctrl-C between request and reply: the two are out of step now
            self.abort()
            raise

    def _exchange(self, message: bytes, opcode: int) -> tuple[int, bytes]:
        self._socket.send(message, opcode)
        opcode, reply = self._socket.recv_data()
        if opcode == websocket.ABNF.OPCODE_CLOSE:
            raise websocket.WebSocketConnectionClosedException(_farewell(reply))
        if len(reply) > LARGEST_REPLY:
            raise ContractError(f"a reply of {len(reply)} bytes: at most {LARGEST_REPLY} expected")
        return opcode, reply

    def _exchange_json(
        self,
        message: bytes,
        expected: str,
        judge: Callable[[Reply], Result],
        glance: Callable[[bytes], Result | None],
    ) -> Result:
        opcode, content = self._exchange(message, OPCODE_TEXT)
        result = glance(content) if opcode == OPCODE_TEXT else None
        return judge(_json_reply(opcode, content, expected)) if result is None else result

    def _exchange_batch(
        self, message: bytes, opcode: int, num_cars: int, judge: Callable[[BatchStep], BatchStep]
    ) -> BatchStep:
        opcode, reply = self._exchange(message, opcode)
        if opcode != OPCODE_BINARY:
            _json_reply(opcode, reply, "a binary result")
        return judge(decode_result(reply, num_cars))

    def _describe(self) -> dict[str, Any]:
        """What the server says of itself. Existing servers know no such request and answer with an error."""
        try:
            return self.request({"type": "describe"}, "describe_result", dict)
        except ContractError:
            raise
        except BridgeError:
            if not self._socket.connected:
                raise
            return {}


class BridgeClient:
    """One car on a bridge server.

    telemetry: ask for the car's state in every reply, for `car`. `has_telemetry` says whether the server gives it;
    existing servers do not (see `FollowedCar`).
    """

    def __init__(
        self, url: str = DEFAULT_URL, token: str | None = None, telemetry: bool = False, **timeouts: float
    ) -> None:
        self.connection = Connection(url, token, **timeouts)
        self.has_telemetry = "telemetry" in self.connection.capabilities
        self._telemetry = telemetry
        self._contract = RacerContract()
        self._scenario: Scenario | None = None
        self._state: dict[str, Any] | None = None
        self._track_id = ""
        self._built: dict[str, Track] = {}

    @property
    def description(self) -> Mapping[str, Any]:
        """What the server said of itself; empty from an existing server."""
        return self.connection.description

    @property
    def track(self) -> Track:
        if self._track_id not in self._built:
            self._built[self._track_id] = self._fetch_track(self._track_id)
        return self._built[self._track_id]

    @property
    def car(self) -> Mapping[str, Any]:
        if self._state is None:
            why = "it was not asked for" if self.has_telemetry else "the server sends none; a FollowedCar can stand in"
            raise BridgeError(f"no telemetry from {self.connection.url}: {why}")
        return self._state

    def reset(self, scenario: Scenario | None = None, seed: int | None = None) -> tuple[Observations, Info]:
        scenario = scenario or self._scenario or Scenario()
        request = self._reset_request(scenario, seed)
        return self.connection.request(request, "reset_result", lambda reply: self._judge_reset(reply, scenario))

    def step(self, action: ArrayLike) -> Step:
        if self._scenario is None:
            raise RacerError("step before reset: reset the environment first")
        request = {"type": "step", "action": _action(action)}
        if self._telemetry and self.has_telemetry:
            return self.connection.request(request, "step_result", self._judge_step)
        return self.connection.request(
            request, "step_result", self._contract.step_result, glance=self._contract.plain_step
        )

    def close(self) -> None:
        self.connection.close()

    def _reset_request(self, scenario: Scenario, seed: int | None) -> dict[str, Any]:
        """Existing servers get only what they know: on them every episode is the standing start, seed or not."""
        request: dict[str, Any] = {
            "type": "reset",
            "trackId": scenario.tracks[0],
            "config": scenario.config.to_json(),
        }
        if len(scenario.tracks) > 1:
            self.connection.require("trackIds", "drawing from several circuits")
            request["trackIds"] = scenario.tracks
        if scenario.start != Start():
            self.connection.require("start", "a start elsewhere than on the line")
        if "start" in self.connection.capabilities:
            request["start"] = asdict(scenario.start)
        if seed is not None and "seed" in self.connection.capabilities:
            request["seed"] = seed
        if self.has_telemetry:
            request["telemetry"] = self._telemetry
        return request

    def _judge_reset(self, reply: Reply, scenario: Scenario) -> tuple[Observations, Info]:
        result = self._contract.reset_result(reply)
        self._scenario, self._track_id = scenario, scenario.tracks[0]
        self._take_telemetry(reply)
        return result

    def _judge_step(self, reply: Reply) -> Step:
        step = self._contract.step_result(reply)
        self._take_telemetry(reply)
        return step

    def _take_telemetry(self, reply: Reply) -> None:
        if self._telemetry and self.has_telemetry:
            telemetry = _checked_telemetry(field(reply, "telemetry"))
            self._state, self._track_id = car_of(telemetry), telemetry["trackId"]

    def _fetch_track(self, track_id: str) -> Track:
        if "track" not in self.connection.capabilities:
            return named_circuit(track_id)
        request = {"type": "track", "trackId": track_id}
        return self.connection.request(request, "track_result", lambda reply: _checked_track(field(reply, "track")))


class RemoteBatch:
    """N cars on a bridge server, one round trip for a step of all of them."""

    def __init__(self, num_cars: int, url: str = DEFAULT_URL, token: str | None = None, **timeouts: float) -> None:
        self.num_cars = num_cars
        self.connection = Connection(url, token, **timeouts)
        try:
            self.connection.require("batch", "a vector environment")
        except BridgeError:
            self.connection.close()
            raise
        self._contract = BatchContract()
        self._scenario: Scenario | None = None

    def reset(
        self,
        scenario: Scenario | None = None,
        seeds: int | Sequence[int | None] | None = None,
        mask: Bools | None = None,
    ) -> BatchStep:
        scenario = scenario or self._scenario or Scenario()
        request: dict[str, Any] = {
            "type": "batch_reset",
            "numCars": self.num_cars,
            "trackIds": scenario.tracks,
            "redraw": scenario.redraw,
            "config": scenario.config.to_json(),
            "start": asdict(scenario.start),
        }
        if isinstance(seeds, int):
            request["seed"] = seeds
        elif seeds is not None:
            request["seeds"] = list(seeds)
        if mask is not None:
            request["mask"] = np.asarray(mask, np.bool_).tolist()
        result = self.connection.request_batch(
            request, self.num_cars, lambda step: self._contract.reset_result(step, mask)
        )
        self._scenario = scenario
        return result

    def step(self, actions: ArrayLike) -> BatchStep:
        if self._scenario is None:
            raise RacerError("step before reset: reset the environment first")
        try:
            rows = np.asarray(actions, np.float64)
        except (TypeError, ValueError) as error:
            raise ActionError(f"actions must be {self.num_cars} rows of 3 finite numbers: {error}") from None
        if rows.shape != (self.num_cars, 3) or not np.isfinite(rows).all():
            raise ActionError(f"actions must be {self.num_cars} rows of steer, throttle, brake as finite numbers")
        return self.connection.request_batch(encode_step(rows), self.num_cars, self._contract.step_result)

    def close(self) -> None:
        self.connection.close()


class _RefusedError(Exception):
    """The server answered with an error; the connection stays usable."""


def _json_reply(opcode: int, content: bytes, expected: str) -> Reply:
    """The reply of the expected type."""
    try:
        reply = orjson.loads(content) if opcode == OPCODE_TEXT else None
    except orjson.JSONDecodeError as error:
        raise ContractError(f"reply: {expected} expected, got no JSON: {error}") from None
    if type(reply) is not dict:
        raise ContractError(f"reply: {expected} expected, got {short(content)}")
    kind = reply.get("type")
    if kind == "error":
        raise _RefusedError(str(reply.get("message")))
    if kind != expected:
        raise ContractError(f"reply: type {expected!r} expected, got {short(kind)}")
    return reply


def _connect(url: str, token: str | None, timeout: float) -> websocket.WebSocket:
    if not url.startswith(("ws://", "wss://")):
        raise BridgeError(f"a bridge's address starts with ws:// or wss://, as {DEFAULT_URL}; not {short(url)}")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        return websocket.create_connection(
            url,
            timeout=timeout,
            class_=QuickSocket,
            header=headers,
            skip_utf8_validation=True,
            suppress_origin=True,
            http_no_proxy=["*"],
        )
    except websocket.WebSocketBadStatusException as error:
        raise BridgeError(f"{url} refused the connection: {_reason(error)}") from None
    except websocket.WebSocketTimeoutException:
        raise BridgeError(f"cannot connect to {url} within {timeout:g} s: is the bridge there?") from None
    except (websocket.WebSocketException, OSError, ValueError) as error:
        raise BridgeError(
            f"cannot connect to {url}: is the bridge running? Start it with: racer-viewer bridge ({error})"
        ) from None


def _reason(error: websocket.WebSocketBadStatusException) -> str:
    body = error.resp_body
    text = body.decode(errors="replace").strip() if isinstance(body, bytes) else ""
    return text[:300] if text else f"HTTP status {error.status_code}"


def _farewell(close_frame: bytes) -> str:
    """What a close frame says: a code in two bytes, and maybe why."""
    code = int.from_bytes(close_frame[:2], "big") if len(close_frame) >= 2 else 1005
    reason = close_frame[2:].decode(errors="replace")
    return f"the server closed it with code {code}" + (f", {reason}" if reason else "")


def _action(action: Any) -> list[float]:
    """The three numbers of an action, whatever they came in."""
    try:
        values = [float(value) for value in (action.tolist() if isinstance(action, np.ndarray) else action)]
        if len(values) == 3 and all(map(math.isfinite, values)):
            return values
    except (TypeError, ValueError):
        pass
    raise ActionError(f"an action must be 3 finite numbers, steer, throttle, brake, not {short(action)}")


def _checked_telemetry(telemetry: Any) -> dict[str, Any]:
    if type(telemetry) is not dict:
        raise ContractError(f"telemetry: an object expected, got {short(telemetry)}")
    for key in TELEMETRY_KEYS:
        value = field(telemetry, key)
        if key == "trackId":
            right = isinstance(value, str)
        elif key == "wallContact":
            right = isinstance(value, bool)
        elif key == "rays":
            right = isinstance(value, list) and len(value) == 9
            for ray in value if right else ():
                number("telemetry.rays", ray)
        else:
            number(f"telemetry.{key}", value)
            right = True
        if not right:
            raise ContractError(f"telemetry.{key}: got {short(value)}")
    return telemetry


def _checked_track(track: Any) -> Track:
    """Built here from its control points, and compared with what the server built."""
    if type(track) is not dict:
        raise ContractError(f"track: an object expected, got {short(track)}")
    try:
        built = build_track(field(track, "controlPoints"), len(field(track, "gates")))
        same = np.allclose(built.inner, field(track, "inner"), atol=1e-6) and np.allclose(
            built.outer, field(track, "outer"), atol=1e-6
        )
    except (CircuitError, TypeError, ValueError) as error:
        raise ContractError(f"track: {error}") from None
    if not same:
        raise ContractError("track: the server's walls are not those of its control points")
    return built
