"""What a bridge answers to one client. Knows the protocol and no socket: bytes in, bytes out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import msgspec
import numpy as np
import orjson

from racer_env.bridge.batch_format import ACTION_BYTES, HEADER, decode_step, encode_result
from racer_env.bridge.embedded import EmbeddedBatch, EmbeddedBridge
from racer_env.bridge.interface import (
    ACTION_HIGH,
    ACTION_LOW,
    COMPONENT_KEYS,
    DEFAULT_TRACK,
    OBSERVATION_HIGH,
    OBSERVATION_LOW,
    RESET_KEYS,
    STEP_KEYS,
    Scenario,
)
from racer_env.bridge.messages import TELEMETRY_KEYS, telemetry_of
from racer_env.bridge.track_cache import TrackShelf
from racer_env.bridge.validation import short
from racer_env.engine import Track, circuits, parse_config, parse_start
from racer_env.errors import ActionError, BridgeError, RacerError

PROTOCOL_VERSION = 1
CAPABILITIES = ("batch", "seed", "start", "telemetry", "track", "trackIds")
_NUMBERS = (float, int)


class _PlainStep(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["step"]
    action: tuple[float, float, float]


_PLAIN_STEP = msgspec.json.Decoder(_PlainStep)

Request = dict[str, Any]
Reply = dict[str, Any]


@dataclass(frozen=True)
class Limits:
    """What a server allows; more is refused with a message that says so.

    message_bytes: of one text message, or one with binary data if that is larger.
    connections: at the same time.
    cars: of one connection's batch.
    tracks: that one connection drives on.
    idle_seconds: after which a silent connection is closed.
    """

    message_bytes: int = 64 * 1024
    connections: int = 256
    cars: int = 1024
    tracks: int = 64
    idle_seconds: float = 3600.0

    @property
    def frame_bytes(self) -> int:
        """Of the largest message that can be right."""
        return max(self.message_bytes, HEADER.size + ACTION_BYTES * self.cars)


@dataclass
class Counts:
    """What a session has done."""

    steps: int = 0
    car_steps: int = 0
    resets: int = 0
    errors: int = 0


class Session:
    """The environment of one connection: one car, or a batch of them."""

    def __init__(self, tracks: TrackShelf, limits: Limits) -> None:
        self.counts = Counts()
        self._tracks = tracks
        self._limits = limits
        self._bridge: EmbeddedBridge | None = None
        self._batch: EmbeddedBatch | None = None
        self._scenario = Scenario()
        self._telemetry = False
        self._answers: dict[str, Callable[[Request], Reply | bytes]] = {
            "step": self._step,
            "reset": self._reset,
            "batch_reset": self._batch_reset,
            "describe": self._describe,
            "track": self._track,
            "close": self._close,
        }

    def answer_text(self, message: bytes) -> bytes:
        """The reply to a JSON message. Raises TrackNotBuiltError if it should be asked again when tracks are built."""
        try:
            reply = self._answer(message)
        except RacerError as error:
            return self.refusal(str(error))
        return reply if isinstance(reply, bytes) else orjson.dumps(reply, option=orjson.OPT_SERIALIZE_NUMPY)

    def answer_binary(self, message: bytes) -> bytes:
        """The reply to a batch step: binary, or JSON if it is an error."""
        try:
            if self._batch is None:
                raise BridgeError("a batch step before batch_reset: send batch_reset first")
            result = self._batch.step(decode_step(message, self._batch.num_cars))
        except RacerError as error:
            return self.refusal(str(error))
        self.counts.steps += 1
        self.counts.car_steps += self._batch.num_cars
        return encode_result(result)

    def refusal(self, problem: str) -> bytes:
        self.counts.errors += 1
        return orjson.dumps({"type": "error", "message": problem})

    def _answer(self, message: bytes) -> Reply | bytes:
        if len(message) > self._limits.message_bytes:
            raise BridgeError(f"a message may have {self._limits.message_bytes} bytes, this has {len(message)}")
        action = _plain_action(message)
        if action is not None:
            return self._drive(action)
        try:
            request = orjson.loads(message)
        except orjson.JSONDecodeError as error:
            raise BridgeError(f"not JSON: {error}") from None
        if not isinstance(request, dict):
            raise BridgeError("a message must be a JSON object with a type")
        kind = request.get("type")
        answer = self._answers.get(kind) if isinstance(kind, str) else None
        if answer is None:
            raise BridgeError(f"unknown message type {short(kind)}; known: {', '.join(self._answers)}")
        return answer(request)

    def _step(self, request: Request) -> Reply:
        self._started()
        action = request.get("action")
        if not isinstance(action, list) or len(action) != 3 or not all(type(value) in _NUMBERS for value in action):
            raise ActionError(f"action must be 3 finite numbers: steer, throttle, brake; not {short(action)}")
        if not all(map(math.isfinite, action)):
            raise ActionError("action must be 3 finite numbers")
        return self._drive(action)

    def _drive(self, action: Sequence[float]) -> Reply:
        step = self._started().step(action)
        self.counts.steps += 1
        self.counts.car_steps += 1
        reply = {
            "type": "step_result",
            "observation": step.observation,
            "reward": step.reward,
            "terminated": step.terminated,
            "truncated": step.truncated,
            "info": step.info,
        }
        return self._with_telemetry(reply) if self._telemetry else reply

    def _reset(self, request: Request) -> Reply:
        scenario = self._requested(request)
        seed = _seed(request.get("seed"))
        telemetry = request.get("telemetry", self._telemetry)
        if not isinstance(telemetry, bool):
            raise BridgeError(f"telemetry must be true or false, not {short(telemetry)}")
        self._tracks.ready(scenario.tracks)
        bridge = self._bridge or EmbeddedBridge(self._ready_track)
        observation, info = bridge.reset(scenario, seed)
        self._bridge, self._scenario, self._telemetry = bridge, scenario, telemetry
        self.counts.resets += 1
        return self._with_telemetry({"type": "reset_result", "observation": observation, "info": info})

    def _batch_reset(self, request: Request) -> bytes:
        scenario = self._requested(request)
        cars = request.get("numCars", self._batch.num_cars if self._batch else 1)
        if type(cars) is not int or not 1 <= cars <= self._limits.cars:
            raise BridgeError(f"numCars must be a whole number from 1 to {self._limits.cars}, not {short(cars)}")
        seeds = request.get("seeds")
        if seeds is None:
            seeds = _seed(request.get("seed"))
        elif not isinstance(seeds, list) or len(seeds) != cars:
            raise BridgeError(f"seeds must be one whole number or null for each of {cars} cars")
        else:
            seeds = [_seed(seed) for seed in seeds]
        batch = self._batch if self._batch and self._batch.num_cars == cars else None
        mask = _mask(request.get("mask"), cars)
        if mask is not None and (batch is None or scenario != self._scenario):
            raise BridgeError("mask: other cars, tracks, starts or configs need a reset of all cars")
        self._tracks.ready(scenario.tracks)
        if batch is None:
            batch = EmbeddedBatch(cars, find_track=self._ready_track)
        result = batch.reset(scenario, seeds, mask)
        self._batch, self._scenario = batch, scenario
        self.counts.resets += 1
        return encode_result(result)

    def close(self) -> None:
        """Let go of the environment, and so of its tracks."""
        self._bridge = self._batch = None
        self._scenario, self._telemetry = Scenario(), False

    def _close(self, request: Request) -> Reply:
        self.close()
        return {"type": "close_result"}

    def _describe(self, request: Request) -> Reply:
        return {
            "type": "describe_result",
            "protocol": PROTOCOL_VERSION,
            "server": "racer-viewer",
            "observation": {"shape": [14], "dtype": "float32", "low": OBSERVATION_LOW, "high": OBSERVATION_HIGH},
            "action": {"shape": [3], "dtype": "float32", "low": ACTION_LOW, "high": ACTION_HIGH},
            "rewardKeys": COMPONENT_KEYS,
            "resetInfoKeys": RESET_KEYS,
            "stepInfoKeys": STEP_KEYS,
            "telemetryKeys": TELEMETRY_KEYS,
            "tracks": [{"id": circuit.id, "name": circuit.name} for circuit in circuits()],
            "capabilities": CAPABILITIES,
            "limits": asdict(self._limits),
        }

    def _track(self, request: Request) -> Reply:
        name = _track_id(request.get("trackId", self._scenario.tracks[0]))
        track = self._ready_track(name)
        return {
            "type": "track_result",
            "track": {
                "id": name,
                "name": track.circuit.name if track.circuit else name,
                "length": track.length,
                "start": track.start,
                "controlPoints": track.control_points,
                "gates": track.gates,
                "inner": track.inner,
                "outer": track.outer,
                "innerRoad": track.inner_road,
                "outerRoad": track.outer_road,
            },
        }

    def _requested(self, request: Request) -> Scenario:
        """The scenario that a reset asks for; what it leaves out stays as it was."""
        tracks, redraw = self._scenario.tracks, self._scenario.redraw
        wanted = request.get("trackIds", request.get("trackId"))
        if wanted is not None:
            names = wanted if isinstance(wanted, list) else [wanted]
            if not 1 <= len(names) <= self._limits.tracks:
                raise BridgeError(f"trackIds must be 1 to {self._limits.tracks} circuits, not {len(names)}")
            tracks, redraw = tuple(map(_track_id, names)), len(names) > 1 and request.get("redraw", True) is True
        config, start = request.get("config"), request.get("start")
        return Scenario(
            tracks,
            self._scenario.config if config is None else parse_config(config),
            self._scenario.start if start is None else parse_start(start),
            redraw,
        )

    def _started(self) -> EmbeddedBridge:
        if self._bridge is None:
            raise BridgeError("step before reset: send reset first")
        return self._bridge

    def _ready_track(self, name: str) -> Track:
        return self._tracks.ready((name,))[0]

    def _with_telemetry(self, reply: Reply) -> Reply:
        if self._telemetry and self._bridge is not None:
            reply["telemetry"] = telemetry_of(self._bridge.car, self._bridge.track)
        return reply


def _plain_action(message: bytes) -> tuple[float, float, float] | None:
    """The action of a step as nearly all are sent. Any other message must be looked at more closely."""
    try:
        return _PLAIN_STEP.decode(message).action
    except ValueError:
        return None


def _track_id(value: Any) -> str:
    if not isinstance(value, str):
        raise BridgeError(f"trackId must be the id of a circuit, as {DEFAULT_TRACK!r}; not {short(value)}")
    return value


def _seed(value: Any) -> int | None:
    if value is not None and type(value) is not int:
        raise BridgeError(f"seed must be a whole number, not {short(value)}")
    return value


def _mask(value: Any, cars: int) -> np.ndarray[Any, np.dtype[np.bool_]] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != cars or not all(isinstance(each, bool) for each in value):
        raise BridgeError(f"mask must be true or false for each of {cars} cars")
    return np.array(value, np.bool_)
