"""Messages between clients and a games server: JSON objects, one per line. See docs/games.md.

Each message is one msgspec struct, which the sender encodes and the receiver checks. Functions below add the rules that
a schema cannot express; fields of type Any are checked there.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec
import numpy as np
import orjson
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from racer_env.bridge.validation import explain, field
from racer_env.errors import BridgeError, ContractError, RacerError, short
from racer_env.games.worker_protocol import FRAME_SHAPE, MAX_ACTION, MIN_ACTION, Action, TickStats

ACTION_KEYS = ("steer", "gas", "brake")
OFFERS = ("GET_STATES", "GET_STATS", "frame")
"""Messages and fields beyond those that every server has; listed in the handshake."""
MAX_GAMES = 4096
"""Maximum number of games that a client accepts from a handshake."""
MAX_FRAME_SIZE = 2**24
"""Maximum size of a frame that a client accepts [bytes]."""
WHEELS = 4

Count = Annotated[int, msgspec.Meta(ge=0)]
Frame = NDArray[np.uint8]
Info = dict[str, Any]
Schema = TypeVar("Schema")


class MessageError(RacerError):
    """A client's message is invalid; the text is sent to the client."""


class RefusedActionError(MessageError):
    """A SET_ACTION is invalid; as it gets no reply, the text is sent with the next one."""


class ServerError(BridgeError):
    """The server answered with an ERROR."""


class DriveAction(msgspec.Struct, frozen=True):
    steer: float = 0.0
    gas: float = 0.0
    brake: float = 0.0


class SetAction(msgspec.Struct, frozen=True, tag="SET_ACTION", tag_field="type"):
    game_id: int = 0
    action: DriveAction = DriveAction()

    @property
    def clamped(self) -> Action:
        return clamp((self.action.steer, self.action.gas, self.action.brake))


class GetState(msgspec.Struct, frozen=True, tag="GET_STATE", tag_field="type"):
    game_id: int = 0
    frame: bool = True


class Reset(msgspec.Struct, frozen=True, tag="RESET", tag_field="type"):
    game_id: int = 0
    frame: bool = True


class GetStates(msgspec.Struct, frozen=True, tag="GET_STATES", tag_field="type"):
    """Requests the states of several games; of all games if `game_ids` is absent."""

    game_ids: list[Any] | UnsetType = UNSET
    frame: bool = True


class GetStats(msgspec.Struct, frozen=True, tag="GET_STATS", tag_field="type"):
    """Requests tick statistics."""


class CloseSession(msgspec.Struct, frozen=True, tag="CLOSE", tag_field="type"):
    """Ends the session."""


Request = SetAction | GetState | Reset | GetStates | GetStats | CloseSession
REQUESTS: dict[Any, type[Request]] = {
    "SET_ACTION": SetAction,
    "GET_STATE": GetState,
    "RESET": Reset,
    "GET_STATES": GetStates,
    "GET_STATS": GetStats,
    "CLOSE": CloseSession,
}
"""Maps the type of a message to its schema; converting to one struct is ten times as fast as to a union."""


class HandshakeMessage(msgspec.Struct, frozen=True, tag="HANDSHAKE", tag_field="type"):
    """First message of a server; other servers send `num_games` only."""

    num_games: Annotated[int, msgspec.Meta(ge=1, le=MAX_GAMES)]
    game: str | UnsetType = UNSET
    hz: Annotated[float, msgspec.Meta(gt=0.0)] | UnsetType = UNSET
    frames: bool | UnsetType = UNSET
    offers: tuple[str, ...] = ()


class StateMessage(msgspec.Struct, frozen=True, kw_only=True, tag="STATE", tag_field="type"):
    """State of a game as one client sees it; see docs/games.md. Other servers send no field after `info`."""

    game_id: Count
    telemetry: dict[str, Any]
    frame: Any
    frame_shape: Any = FRAME_SHAPE
    reward: float
    done: bool
    info: Info
    truncated: bool | UnsetType = UNSET
    episode: Count | UnsetType = UNSET
    reward_since: float | UnsetType = UNSET
    ended: Count | UnsetType = UNSET
    human: bool | UnsetType = UNSET
    action_error: str | UnsetType = UNSET


class StatesMessage(msgspec.Struct, frozen=True, tag="STATES", tag_field="type"):
    states: list[StateMessage]


class GameTelemetry(msgspec.Struct, frozen=True):
    """GameTelemetry values that a client checks; games may send more."""

    car_x: float | UnsetType = UNSET
    car_y: float | UnsetType = UNSET
    car_vx: float | UnsetType = UNSET
    car_vy: float | UnsetType = UNSET
    car_angle: float | UnsetType = UNSET
    car_angular_vel: float | UnsetType = UNSET
    speed: float | UnsetType = UNSET
    total_reward: float | UnsetType = UNSET
    tiles_visited: Count | UnsetType = UNSET
    total_tiles: Count | UnsetType = UNSET
    steps: Count | UnsetType = UNSET
    wheel_speeds: Annotated[list[float], msgspec.Meta(min_length=WHEELS, max_length=WHEELS)] | UnsetType = UNSET


class _TelemetryFields(msgspec.Struct, frozen=True):
    telemetry: GameTelemetry


class LateMs(msgspec.Struct, frozen=True):
    p50: float
    p99: float
    max: float


class GameStats(msgspec.Struct, frozen=True):
    game_id: Count
    rate: float
    ticks: Count
    skipped: Count
    late_ms: LateMs


class StatsMessage(msgspec.Struct, frozen=True, kw_only=True, tag="STATS", tag_field="type"):
    """Tick statistics of the started games."""

    game: str | UnsetType = UNSET
    hz: float
    clients: Count
    keeps_up: bool
    games: list[GameStats]


class ErrorMessage(msgspec.Struct, frozen=True, tag="ERROR", tag_field="type"):
    message: str


Reply = HandshakeMessage | StateMessage | StatesMessage | StatsMessage | ErrorMessage


def encode(message: Reply) -> bytes:
    """Return a message as a line. orjson encodes frames faster than msgspec."""
    return orjson.dumps(msgspec.to_builtins(message), option=orjson.OPT_APPEND_NEWLINE)


def stats_message(game: str, hz: float, clients: int, stats: list[TickStats]) -> StatsMessage:
    games = [
        GameStats(
            each.game_id,
            round(each.rate, 2),
            each.ticks,
            each.skipped,
            LateMs(*(round(late, 3) for late in (each.late_p50, each.late_p99, each.late_max))),
        )
        for each in stats
    ]
    keeps_up = all(each.keeps_up for each in stats)
    return StatsMessage(game=game, hz=hz, clients=clients, keeps_up=keeps_up, games=games)


def add_action_error(reply: Reply, error: str) -> Reply | None:
    """Return a reply that also reports a refused SET_ACTION; None if this kind of reply cannot."""
    match reply:
        case StateMessage():
            return msgspec.structs.replace(reply, action_error=error)
        case StatesMessage(states=[first, *others]):
            return StatesMessage([msgspec.structs.replace(first, action_error=error), *others])
        case ErrorMessage(message):
            return ErrorMessage(f"{message}; before that, SET_ACTION was refused: {error}")
        case _:
            return None


def parse_request(line: bytes, num_games: int) -> Request:
    """Return a client's message, checked; raise MessageError if it is invalid, RefusedActionError if a SET_ACTION is.

    Text that is not JSON counts as a SET_ACTION if it contains that type, such as an action with NaN.
    """
    try:
        message = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        refusal = RefusedActionError if b'"SET_ACTION"' in line else MessageError
        raise refusal(f"not JSON: {error}") from None
    if type(message) is not dict:
        raise MessageError(f"a message is a JSON object, not {short(message)}")
    kind = message.get("type")
    if not isinstance(kind, str) or kind not in REQUESTS:
        raise MessageError(f"type: one of {', '.join(REQUESTS)} expected, got {short(kind)}")
    schema = REQUESTS[kind]
    refusal = RefusedActionError if schema is SetAction else MessageError
    if "game_id" in message and "game_id" in schema.__struct_fields__:
        _check_game_id(message["game_id"], num_games, refusal)
    request = _convert(message, schema, refusal)
    if isinstance(request, GetStates) and isinstance(request.game_ids, list):
        for game_id in request.game_ids:
            _check_game_id(game_id, num_games, MessageError)
        if len(set(request.game_ids)) != len(request.game_ids):
            raise MessageError("game_ids: each game can be requested once")
    return request


def _check_game_id(value: Any, num_games: int, refusal: type[MessageError]) -> None:
    if type(value) is not int or not 0 <= value < num_games:
        raise refusal(f"game_id: a whole number from 0 to {num_games - 1} expected, got {short(value)}")


def clamp(action: Action) -> Action:
    """Limit an action to the valid range."""
    steer, gas, brake = (
        min(high, max(low, value)) for value, low, high in zip(action, MIN_ACTION, MAX_ACTION, strict=True)
    )
    return steer, gas, brake


class _PlainState(NamedTuple):
    telemetry: dict[str, Any]
    frame: Frame | None
    reward: float
    done: bool
    info: Info


class GameState(_PlainState):
    """Result of `get_state` and `reset`: telemetry, frame, reward, done and info.

    frame: (height, width, 3); None if the server sends none or the client wants none.

    The following attributes are not part of the tuple, and are None if the server does not send them:
    truncated: whether the step limit or a RESET ended the episode.
    ended: number of episodes that ended since the last state of this game.
    episode: episode number.
    reward_since: sum of rewards since the last state of this game, within the episode.
    human: whether a person drives.
    action_error: why the server refused an action that this client sent before.
    """

    truncated: bool | None = None
    ended: int | None = None
    episode: int | None = None
    reward_since: float | None = None
    human: bool | None = None
    action_error: str | None = None


def parse_line(line: bytes) -> dict[str, Any]:
    """Return a server's message as a dict; raise ServerError if it is an ERROR."""
    try:
        message = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ContractError(f"a JSON object expected, got {short(line)} ({error})") from None
    if type(message) is not dict:
        raise ContractError(f"a JSON object expected, got {short(message)}")
    if message.get("type") == "ERROR":
        raise ServerError(str(message.get("message", "the server gave no reason")))
    return message


def parse_handshake(message: Mapping[str, Any]) -> HandshakeMessage:
    return _parse_reply(message, HandshakeMessage)


def parse_stats(message: Mapping[str, Any], num_games: int) -> dict[str, Any]:
    """Return a STATS message as it came, checked."""
    for game in _parse_reply(message, StatsMessage).games:
        if game.game_id >= num_games:
            raise ContractError(f"game_id: a number below {num_games} expected, got {game.game_id}")
    return dict(message)


def parse_state(message: Mapping[str, Any], game_id: int, frames: bool) -> GameState:
    """Return a STATE message of this game, checked; `frames`: whether to read its frame."""
    if not frames:
        message = {**message, "frame": None}
    received = _parse_reply(message, StateMessage)
    if received.game_id != game_id:
        raise ContractError(f"game_id: {game_id} expected, got {received.game_id}")
    _convert(message, _TelemetryFields, ContractError)
    frame = None if received.frame is None else _decode_frame(received.frame, field(message, "frame_shape"))
    state = GameState(received.telemetry, frame, received.reward, received.done, received.info)
    for name in ("truncated", "ended", "episode", "reward_since", "human", "action_error"):
        if (value := getattr(received, name)) is not UNSET:
            setattr(state, name, value)
    return state


def parse_states(message: Mapping[str, Any], game_ids: range, frames: bool) -> list[GameState]:
    """Return a STATES message of these games, checked."""
    _check_type(message, StatesMessage)
    states = field(message, "states")
    if type(states) is not list or len(states) != len(game_ids):
        raise ContractError(f"states: {len(game_ids)} of them expected, got {short(states)}")
    found = []
    for game_id, state in zip(game_ids, states, strict=True):
        if type(state) is not dict:
            raise ContractError(f"states[{game_id}]: an object expected, got {short(state)}")
        found.append(parse_state(state, game_id, frames))
    return found


def _decode_frame(text: Any, shape: Any) -> Frame:
    is_shape = type(shape) is list and len(shape) == 3 and all(type(side) is int and side > 0 for side in shape)
    if not is_shape or shape[2] != 3 or shape[0] * shape[1] * 3 > MAX_FRAME_SIZE:
        raise ContractError(f"frame_shape: height, width and 3 expected, got {short(shape)}")
    try:
        content = base64.b64decode(text, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise ContractError(f"frame: base64 or null expected, got {short(text)}") from None
    if len(content) != shape[0] * shape[1] * 3:
        raise ContractError(f"frame: {shape[0] * shape[1] * 3} bytes expected, got {len(content)}")
    return np.frombuffer(content, np.uint8).reshape(shape).copy()


def _parse_reply(message: Mapping[str, Any], schema: type[Schema]) -> Schema:
    _check_type(message, schema)
    return _convert(message, schema, ContractError)


def _check_type(message: Mapping[str, Any], schema: type) -> None:
    kind = schema.__struct_config__.tag  # type: ignore[attr-defined]
    if message.get("type") != kind:
        raise ContractError(f"type: {kind} expected, got {short(message.get('type'))}")


def _convert(message: Any, schema: type[Schema], error: type[RacerError]) -> Schema:
    """Check a message against a schema; raise an error that names the field, the expected value and the actual one."""
    try:
        return msgspec.convert(message, schema)
    except msgspec.ValidationError as problem:
        raise error(explain(problem, message)) from None
