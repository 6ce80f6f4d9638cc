"""One client's conversation with a bridge server: bytes in, bytes out. Knows the protocol, but no sockets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import orjson
from msgspec import UNSET

from racer_env.bridge.batch_format import ACTION_BYTES, HEADER, MAGIC, decode_step, encode_result
from racer_env.bridge.embedded import EmbeddedBatch, EmbeddedBridge
from racer_env.bridge.interface import (
    ACTION_HIGH,
    ACTION_LOW,
    COMPONENT_KEYS,
    OBSERVATION_HIGH,
    OBSERVATION_LOW,
    RESET_KEYS,
    STEP_KEYS,
    Bools,
    Scenario,
)
from racer_env.bridge.messages import (
    CAPABILITIES,
    TELEMETRY_KEYS,
    BatchResetRequest,
    BoxDescription,
    CircuitName,
    CloseReply,
    CloseRequest,
    DescribeReply,
    DescribeRequest,
    ErrorReply,
    ResetRequest,
    ScenarioRequest,
    StepRequest,
    TrackRequest,
    decode_request,
    encode,
    telemetry_of,
)
from racer_env.bridge.track_cache import TrackCache
from racer_env.engine import Config, Track, circuits, parse_config, parse_start
from racer_env.engine.config import UnknownKey
from racer_env.errors import BridgeError, RacerError, short

PROTOCOL_VERSION = 1
MAX_WARNINGS = 20
"""Maximum number of unknown config keys that a connection's warnings name."""
JSON_WHITESPACE = b" \t\r\n"


@dataclass(frozen=True)
class ServerLimits:
    """Limits of a server. A request beyond one of them is refused with a message.

    message_bytes: maximum size of a text message.
    connections: maximum number of connections.
    cars: maximum number of cars in a batch.
    tracks: maximum number of circuits in a reset.
    idle_seconds: time after which a silent connection is closed [s].
    """

    message_bytes: int = 64 * 1024
    connections: int = 256
    cars: int = 1024
    tracks: int = 64
    idle_seconds: float = 3600.0

    @property
    def frame_bytes(self) -> int:
        """Size of the largest valid message, text or binary."""
        return max(self.message_bytes, HEADER.size + ACTION_BYTES * self.cars)


@dataclass
class SessionCounts:
    """Requests that a session has answered, for the log."""

    steps: int = 0
    car_steps: int = 0
    resets: int = 0
    errors: int = 0


class Session:
    """The environment of one connection: one car, or a batch of cars.

    strict: refuse configs with unknown keys, which are ignored otherwise.
    warn: callback for each unknown key that is ignored for the first time.
    """

    def __init__(
        self,
        tracks: TrackCache,
        limits: ServerLimits,
        strict: bool = False,
        warn: Callable[[str], None] = lambda problem: None,
    ) -> None:
        self.counts = SessionCounts()
        self._tracks = tracks
        self._limits = limits
        self._strict = strict
        self._warn = warn
        self._ignored: set[UnknownKey] = set()
        self._bridge: EmbeddedBridge | None = None
        self._batch: EmbeddedBatch | None = None
        self._scenario = self._batch_scenario = Scenario()
        self._telemetry = False
        self._handlers: dict[type, Callable[[Any], bytes]] = {
            StepRequest: self._step,
            ResetRequest: self._reset,
            BatchResetRequest: self._batch_reset,
            DescribeRequest: self._describe,
            TrackRequest: self._track,
            CloseRequest: self._close,
        }

    def answer_text(self, message: bytes) -> bytes:
        """Return the reply to a JSON message.

        Raises TrackNotBuiltError if tracks must be built first; then the same message must be answered again.
        """
        try:
            if len(message) > self._limits.message_bytes:
                raise BridgeError(f"a message must have at most {self._limits.message_bytes} bytes, not {len(message)}")
            request = decode_request(message)
            return self._handlers[type(request)](request)
        except RacerError as error:
            return self.refusal(str(error))

    def answer_binary(self, message: bytes) -> bytes:
        """Return the reply to a batch step, binary or a JSON error; a JSON message is answered as if it were text."""
        if not message.startswith(MAGIC) and message.lstrip(JSON_WHITESPACE).startswith(b"{"):
            return self.answer_text(message)
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
        """Return an error reply, and count it."""
        self.counts.errors += 1
        return encode(ErrorReply(problem))

    def close(self) -> None:
        """Release the environment, and with it its tracks."""
        self._bridge = self._batch = None
        self._scenario = self._batch_scenario = Scenario()
        self._telemetry = False

    def _step(self, request: StepRequest) -> bytes:
        if self._bridge is None:
            raise BridgeError("step before reset: send reset first")
        step = self._bridge.step(request.action)
        self.counts.steps += 1
        self.counts.car_steps += 1
        reply = {
            "type": "step_result",
            "observation": self._bridge.exact_observation(),
            "reward": step.reward,
            "terminated": step.terminated,
            "truncated": step.truncated,
            "info": step.info,
        }
        return self._encode(reply, self._bridge)

    def _reset(self, request: ResetRequest) -> bytes:
        scenario = self._requested_scenario(request, Scenario())
        self._tracks.ready(scenario.tracks)
        bridge = self._bridge or EmbeddedBridge(self._ready_track)
        _, info = bridge.reset(scenario, request.seed)
        self._bridge, self._scenario, self._telemetry = bridge, scenario, request.telemetry
        self.counts.resets += 1
        reply = {"type": "reset_result", "observation": bridge.exact_observation(), "info": info}
        return self._encode(reply, bridge)

    def _encode(self, reply: dict[str, Any], bridge: EmbeddedBridge) -> bytes:
        """Return a reply with an observation as JSON, with telemetry if the client asked for it."""
        if self._telemetry:
            reply["telemetry"] = telemetry_of(bridge.car, bridge.track)
        return orjson.dumps(reply, option=orjson.OPT_SERIALIZE_NUMPY)

    def _batch_reset(self, request: BatchResetRequest) -> bytes:
        continued = self._batch if request.mask is not None else None
        scenario = self._requested_scenario(request, self._batch_scenario if continued else Scenario())
        cars = request.num_cars
        if cars is UNSET:
            cars = continued.num_cars if continued else 1
        if not 1 <= cars <= self._limits.cars:
            raise BridgeError(f"numCars must be a whole number from 1 to {self._limits.cars}, not {short(cars)}")
        if request.seeds is not None and len(request.seeds) != cars:
            raise BridgeError(f"seeds must be one whole number or null for each of {cars} cars")
        auto_reset = request.auto_reset
        if auto_reset is UNSET:
            auto_reset = continued.auto_reset if continued else True
        batch = self._batch
        if batch is not None and (batch.num_cars, batch.auto_reset) != (cars, auto_reset):
            batch = None
        mask = _mask(request.mask, cars)
        if mask is not None and (batch is None or scenario != self._batch_scenario):
            raise BridgeError("mask: other cars, tracks, starts or configs need a reset of all cars")
        self._tracks.ready(scenario.tracks)
        if batch is None:
            batch = EmbeddedBatch(cars, find_track=self._ready_track, auto_reset=auto_reset)
        result = batch.reset(scenario, request.seed if request.seeds is None else request.seeds, mask)
        self._batch, self._scenario, self._batch_scenario = batch, scenario, scenario
        self.counts.resets += 1
        return encode_result(result)

    def _close(self, request: CloseRequest) -> bytes:
        self.close()
        return encode(CloseReply())

    def _describe(self, request: DescribeRequest) -> bytes:
        return encode(
            DescribeReply(
                protocol=PROTOCOL_VERSION,
                server="racer-viewer",
                observation=_box(OBSERVATION_LOW, OBSERVATION_HIGH),
                action=_box(ACTION_LOW, ACTION_HIGH),
                reward_keys=[*COMPONENT_KEYS],
                reset_info_keys=[*RESET_KEYS],
                step_info_keys=[*STEP_KEYS],
                telemetry_keys=[*TELEMETRY_KEYS],
                tracks=[
                    *(CircuitName(circuit.id, circuit.name) for circuit in circuits()),
                    *(CircuitName(name, circuit.name) for name, circuit in self._tracks.own.items()),
                ],
                capabilities=CAPABILITIES,
                limits=asdict(self._limits),
            )
        )

    def _track(self, request: TrackRequest) -> bytes:
        name = self._scenario.tracks[0] if request.track_id is None else request.track_id
        track = self._ready_track(name)
        geometry = {
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
        }
        return orjson.dumps({"type": "track_result", "track": geometry}, option=orjson.OPT_SERIALIZE_NUMPY)

    def _requested_scenario(self, request: ScenarioRequest, default: Scenario) -> Scenario:
        """Return the scenario of a reset; fields left out are those of `default`."""
        tracks, redraw = default.tracks, default.redraw
        requested = request.track_id if request.track_ids is None else request.track_ids
        if requested is not None:
            tracks = (requested,) if isinstance(requested, str) else tuple(requested)
            if not 1 <= len(tracks) <= self._limits.tracks:
                raise BridgeError(f"trackIds must be 1 to {self._limits.tracks} circuits, not {len(tracks)}")
            redraw = len(tracks) > 1 and request.redraw
        return Scenario(
            tracks,
            default.config if request.config is None else self._requested_config(request.config),
            default.start if request.start is None else parse_start(request.start),
            redraw,
        )

    def _requested_config(self, content: Any) -> Config:
        """Return the config of a reset. Unknown keys are ignored with a warning, unless the server is strict."""
        if self._strict:
            return parse_config(content)
        unknown: list[UnknownKey] = []
        config = parse_config(content, unknown)
        for key in unknown:
            if len(self._ignored) == MAX_WARNINGS:
                break
            if key not in self._ignored:
                self._ignored.add(key)
                self._warn(str(key))
                if len(self._ignored) == MAX_WARNINGS:
                    self._warn("further unknown keys of this connection are not logged")
        return config

    def _ready_track(self, name: str) -> Track:
        return self._tracks.ready((name,))[0]


def _box(low: np.ndarray[Any, Any], high: np.ndarray[Any, Any]) -> BoxDescription:
    return BoxDescription(shape=[*low.shape], dtype=str(low.dtype), low=low.tolist(), high=high.tolist())


def _mask(value: list[bool] | None, cars: int) -> Bools | None:
    if value is None:
        return None
    if len(value) != cars:
        raise BridgeError(f"mask must be true or false for each of {cars} cars")
    return np.array(value, np.bool_)
