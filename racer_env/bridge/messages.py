"""Schemas of the bridge's JSON messages: one msgspec struct for each request and reply.

Client and server encode and decode messages with them. Only the server's replies with arrays (observations, tracks)
are written by orjson from plain dicts, because it writes arrays quickly.
`EpisodeContract` holds the rules that a schema cannot express. Binary messages are in `batch_format`.
"""

from __future__ import annotations

from functools import lru_cache
from types import GenericAlias
from typing import Annotated, Any, TypeVar, cast

import msgspec
import numpy as np
import orjson

from racer_env.bridge.interface import (
    COMPONENT_KEYS,
    OBSERVATION_HIGH,
    OBSERVATION_LOW,
    RESET_KEYS,
    STEP_KEYS,
    CarRow,
    CarStep,
    Info,
    Observations,
)
from racer_env.bridge.validation import explain
from racer_env.engine import CAR, Track
from racer_env.engine.car import GRIP, MAX_SPEED
from racer_env.engine.circuit_check import MAX_CONTROL_POINTS
from racer_env.engine.rays import RAY_COUNT
from racer_env.errors import BridgeError, ContractError, short

SPEED_LIMIT = MAX_SPEED * (1.0 + 1e-9)
"""Maximum speed that passes validation [units/s]; a server may round."""
CAPABILITIES = ["autoReset", "batch", "seed", "start", "telemetry", "terms", "track", "trackIds"]
"""Requests and fields beyond reset, step and close."""
MAX_LIST, MAX_TEXT = 1000, 200
"""Maximum number of values in a list or object of a describe reply, and maximum length of each text [characters]."""
MAX_REPLY_SIZE = 256 * 1024
"""Maximum size of a JSON reply [bytes]; replies to steps have less than 2 KiB."""
MAX_ERROR_LENGTH = 1000
"""Maximum length of a server's error message [characters]; the rest is left out."""
MAX_COORDINATE = 1e6
"""Maximum absolute value of a position, speed or angle in telemetry."""


def _between(low: float, high: float) -> Any:
    """Return the schema of a number in a range. JSON has no infinite numbers, so any decoded float is finite."""
    return Annotated[float, msgspec.Meta(ge=low, le=high)]


def _rounding_to(bound: np.float32, towards: float) -> float:
    """Return the outermost number that float32 rounds to a bound."""
    return (float(bound) + float(np.nextafter(bound, np.float32(towards)))) / 2.0


Observation = GenericAlias(
    tuple,
    tuple(
        _between(_rounding_to(low, -np.inf), _rounding_to(high, np.inf))
        for low, high in zip(OBSERVATION_LOW, OBSERVATION_HIGH, strict=True)
    ),
)
Counter = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Coordinate = Annotated[float, msgspec.Meta(ge=-MAX_COORDINATE, le=MAX_COORDINATE)]
Point = tuple[float, float]
Gate = tuple[float, float, float, float, float, float, float, float, float]


# Requests: the order of fields is the order on the wire.


class StepRequest(msgspec.Struct, tag="step", tag_field="type", frozen=True):
    """Advance the car by one tick with steer, throttle and brake."""

    action: tuple[float, float, float]


class ScenarioRequest(msgspec.Struct, tag_field="type", rename="camel", omit_defaults=True, frozen=True):
    """Fields that both kinds of reset have. All are optional and have these defaults, whatever earlier resets said.

    track_id, track_ids: circuits, the server's default circuit if both are left out.
    config: content of an ai-config.json, validated by `parse_config`.
    start: ranges, validated by `parse_start`.
    """

    track_id: str | list[str] | None = None
    config: Any = None
    track_ids: str | list[str] | None = None
    redraw: bool = True
    start: Any = None
    seed: int | None = None


class ResetRequest(ScenarioRequest, tag="reset", frozen=True):
    """Start an episode of one car."""

    telemetry: bool = False


class BatchResetRequest(ScenarioRequest, tag="batch_reset", frozen=True):
    """Start an episode of N cars, or of those in the mask; the reply is binary.

    A mask continues the batch: only then, fields left out keep their values.

    auto_reset: whether a car whose episode ends starts the next one within the same step; True by default.
    """

    num_cars: int | msgspec.UnsetType = msgspec.UNSET
    seeds: list[int | None] | None = None
    mask: list[bool] | None = None
    auto_reset: bool | msgspec.UnsetType = msgspec.UNSET


class DescribeRequest(msgspec.Struct, tag="describe", tag_field="type", frozen=True):
    """Return the protocol version, spaces, keys, circuits, capabilities and limits."""


class TrackRequest(msgspec.Struct, tag="track", tag_field="type", rename="camel", omit_defaults=True, frozen=True):
    """Return the geometry of a track; by default that of the current episode."""

    track_id: str | None = None


class CloseRequest(msgspec.Struct, tag="close", tag_field="type", frozen=True):
    """Release the environment."""


Request = StepRequest | ResetRequest | BatchResetRequest | DescribeRequest | TrackRequest | CloseRequest

REQUEST_TYPES = ("step", "reset", "batch_reset", "describe", "track", "close")


# Replies


class Telemetry(msgspec.Struct, rename="camel", frozen=True):
    """State of the car after a reset or step. All fields but the first are columns of `racer_env.engine.CAR`."""

    track_id: str
    x: Coordinate
    y: Coordinate
    heading: Coordinate
    vx: Coordinate
    vy: Coordinate
    speed: Coordinate
    yaw_rate: Coordinate
    surface: Annotated[int, msgspec.Meta(ge=0, le=len(GRIP) - 1)]
    steer: Coordinate
    throttle: Coordinate
    brake: Coordinate
    slip_angle: Coordinate
    lap: Counter
    checkpoint: Counter
    lap_ticks: Counter
    step_count: Counter
    wall_contact: bool
    stillness: Counter
    arc: Coordinate
    centre_distance: Coordinate
    last_lap_ticks: Counter
    best_lap_ticks: Counter
    rays: Annotated[list[float], msgspec.Meta(min_length=RAY_COUNT, max_length=RAY_COUNT)]

    def row(self) -> CarRow:
        """Return the car's row. Columns that telemetry does not carry are 0."""
        row: CarRow = np.zeros(1, CAR)[0]
        for column in TELEMETRY_COLUMNS:
            row[column] = getattr(self, column)
        return row


TELEMETRY_COLUMNS = Telemetry.__struct_fields__[1:]
TELEMETRY_KEYS = Telemetry.__struct_encode_fields__
_TELEMETRY_INDICES = tuple((CAR.names or ()).index(column) for column in TELEMETRY_COLUMNS)

_INFO_KINDS = {
    **dict.fromkeys(COMPONENT_KEYS, float),
    **dict.fromkeys(("tick", "lap", "checkpoint", "stepCount", "stillnessCounter"), Counter),
    "rawSpeed": _between(0.0, SPEED_LIMIT),
    "wallContact": bool,
}
ResetInfo = msgspec.defstruct(
    "ResetInfo",
    [(key, _INFO_KINDS["rawSpeed" if key == "speed" else key]) for key in RESET_KEYS],
    forbid_unknown_fields=True,
)
StepInfo = msgspec.defstruct("StepInfo", [(key, _INFO_KINDS[key]) for key in STEP_KEYS], forbid_unknown_fields=True)


class ResetReply(msgspec.Struct, tag="reset_result", tag_field="type"):
    """First observation of an episode."""

    observation: Observation  # type: ignore[valid-type]
    info: ResetInfo  # type: ignore[valid-type]
    telemetry: Telemetry | None = None


class StepReply(msgspec.Struct, tag="step_result", tag_field="type"):
    """Result of one tick."""

    observation: Observation  # type: ignore[valid-type]
    reward: float
    terminated: bool
    truncated: bool
    info: StepInfo  # type: ignore[valid-type]
    telemetry: Telemetry | None = None


Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]
Texts = Annotated[list[Text], msgspec.Meta(max_length=MAX_LIST)]
Numbers = Annotated[list[float], msgspec.Meta(max_length=MAX_LIST)]


class BoxDescription(msgspec.Struct):
    """A Gymnasium Box."""

    shape: Annotated[list[Counter], msgspec.Meta(max_length=MAX_LIST)]
    dtype: Text
    low: Numbers
    high: Numbers


class CircuitName(msgspec.Struct):
    """Id and name of a circuit that clients may use."""

    id: Text
    name: Text


class DescribeReply(msgspec.Struct, tag="describe_result", tag_field="type", rename="camel"):
    """Description of a server. Servers without `describe` reply with an error and have no capabilities."""

    protocol: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
    server: Text
    observation: BoxDescription
    action: BoxDescription
    reward_keys: Texts
    reset_info_keys: Texts
    step_info_keys: Texts
    telemetry_keys: Texts
    tracks: Annotated[list[CircuitName], msgspec.Meta(max_length=MAX_LIST)]
    capabilities: Texts
    limits: Annotated[dict[str, float], msgspec.Meta(max_length=MAX_LIST)]


class TrackGeometry(msgspec.Struct, rename="camel"):
    """Geometry of a track, by the names of `racer_env.engine.Track`."""

    id: str
    name: str
    length: float
    start: tuple[float, float, float]
    control_points: Annotated[list[tuple[float, float, float]], msgspec.Meta(max_length=MAX_CONTROL_POINTS)]
    gates: Annotated[list[Gate], msgspec.Meta(max_length=MAX_LIST)]
    inner: list[Point]
    outer: list[Point]
    inner_road: list[Point]
    outer_road: list[Point]


class TrackReply(msgspec.Struct, tag="track_result", tag_field="type"):
    """Reply to a track request."""

    track: TrackGeometry


class CloseReply(msgspec.Struct, tag="close_result", tag_field="type"):
    """Confirmation of a close request."""


class ErrorReply(msgspec.Struct, tag="error", tag_field="type"):
    """Refusal of a request: what is wrong with it."""

    message: str


Reply = TypeVar("Reply", ResetReply, StepReply, DescribeReply, TrackReply, CloseReply)


MAX_REPLY_SIZES: dict[type, int] = {TrackReply: 4 * 1024 * 1024}
"""Maximum sizes of replies [bytes] that differ from MAX_REPLY_SIZE."""


class RefusedError(BridgeError):
    """A server replied with an error; the connection stays usable."""


_ENCODER = msgspec.json.Encoder()
_REQUEST_DECODER: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)


@lru_cache(maxsize=64)
def _reply_decoder(kind: type[Any]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


@lru_cache(maxsize=16)
def step_reply(terms: tuple[str, ...]) -> type[StepReply]:
    """Return the schema of the replies to steps with a config that has these terms."""
    if not terms:
        return StepReply
    kinds = {**_INFO_KINDS, **dict.fromkeys(terms, float)}
    info = msgspec.defstruct(
        "StepInfo", [(key, kinds[key]) for key in (*STEP_KEYS, *terms)], forbid_unknown_fields=True
    )
    fields: list[Any] = [
        ("observation", Observation), ("reward", float), ("terminated", bool), ("truncated", bool), ("info", info),
        ("telemetry", Telemetry | None, None),
    ]  # fmt: skip
    return cast(type[StepReply], msgspec.defstruct("StepReply", fields, tag="step_result", tag_field="type"))


def encode(message: Request | DescribeReply | CloseReply | ErrorReply) -> bytes:
    return _ENCODER.encode(message)


def decode_request(content: bytes) -> Request:
    """Decode a client's message; raise BridgeError with what is wrong with it."""
    try:
        return _REQUEST_DECODER.decode(content)
    except RecursionError:
        raise BridgeError("the message is nested too deeply") from None
    except ValueError as error:
        raise _request_error(content, error) from None


def decode_reply(content: bytes, kind: type[Reply]) -> Reply:
    """Decode a server's message; raise RefusedError if it is an error, ContractError if it breaks the schema."""
    try:
        reply: Reply = _reply_decoder(kind).decode(content)
    except (ValueError, RecursionError) as error:
        raise reply_error(content, str(kind.__struct_config__.tag), error) from None
    return reply


def reply_error(content: bytes, expected: str, error: Exception | None = None) -> BridgeError:
    """Return the error for a reply that is not of the expected type or, with `error`, does not match its schema."""
    try:
        reply = orjson.loads(content)
    except orjson.JSONDecodeError as problem:
        return ContractError(f"reply: {expected} expected, got no JSON: {problem}")
    if type(reply) is not dict:
        return ContractError(f"reply: {expected} expected, got {short(content)}")
    kind = reply.get("type")
    if kind == "error":
        return RefusedError(str(reply.get("message"))[:MAX_ERROR_LENGTH])
    if kind != expected or error is None:
        return ContractError(f"reply: type {expected!r} expected, got {short(kind)}")
    return ContractError(explain(error, reply))


def telemetry_of(car: CarRow, track: Track) -> dict[str, Any]:
    """Return the telemetry object of a car, as the server sends it."""
    values: Any = car.item()
    *scalars, rays = (values[index] for index in _TELEMETRY_INDICES)
    name = track.circuit.id if track.circuit else ""
    return dict(zip(TELEMETRY_KEYS, (name, *scalars, rays.tolist()), strict=True))


class EpisodeContract:
    """Rules between the replies of one episode: counters move only as they can in one tick."""

    def __init__(self) -> None:
        self._last: Info = {}

    def reset(self, reply: ResetReply) -> tuple[Observations, Info]:
        """Return observation and info of a reset."""
        info: Info = msgspec.structs.asdict(reply.info)
        if info["stepCount"] != 0:
            raise ContractError(f"info.stepCount: 0 expected after a reset, got {info['stepCount']}")
        self._last = {**info, "stillnessCounter": 0}
        return np.array(reply.observation, np.float32), info

    def step(self, reply: StepReply) -> CarStep:
        """Return the result of a step."""
        info: Info = msgspec.structs.asdict(reply.info)
        self._check_counters(info)
        self._last = info
        observation = np.array(reply.observation, np.float32)
        return CarStep(observation, reply.reward, reply.terminated, reply.truncated, info)

    def _check_counters(self, info: Info) -> None:
        """Raise unless every counter moved as it can in one tick."""
        last = self._last
        for key in ("tick", "stepCount"):
            if info[key] != last[key] + 1:
                raise ContractError(f"info.{key}: {last[key] + 1} expected, got {info[key]}")
        lap, checkpoint, still = info["lap"], info["checkpoint"], info["stillnessCounter"]
        if lap - last["lap"] not in (0, 1):
            raise ContractError(f"info.lap: {last['lap']} or {last['lap'] + 1} expected, got {lap}")
        if checkpoint not in (last["checkpoint"], last["checkpoint"] + 1, 0):
            raise ContractError(f"info.checkpoint: it went from {last['checkpoint']} to {checkpoint}")
        if lap != last["lap"] and checkpoint != 0:
            raise ContractError(f"info.checkpoint: 0 expected with a new lap, got {checkpoint}")
        if still not in (0, last["stillnessCounter"] + 1):
            raise ContractError(f"info.stillnessCounter: it went from {last['stillnessCounter']} to {still}")


def _request_error(content: bytes, error: ValueError) -> BridgeError:
    try:
        request = orjson.loads(content)
    except orjson.JSONDecodeError as problem:
        return BridgeError(f"not JSON: {problem}")
    if not isinstance(request, dict):
        return BridgeError("a message must be a JSON object with a type")
    kind = request.get("type")
    if kind not in REQUEST_TYPES:
        return BridgeError(f"unknown message type {short(kind)}; known: {', '.join(REQUEST_TYPES)}")
    if kind == "step":
        action = short(request.get("action"))
        return BridgeError(f"action: 3 finite numbers expected (steer, throttle, brake), got {action}")
    return BridgeError(explain(error, request))
