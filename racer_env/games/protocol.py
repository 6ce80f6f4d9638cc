"""The messages of clients and to clients: JSON objects, each ended by a newline. See docs/games.md.

What a games server may send: every value is checked here, once, before anybody relies on it."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from racer_env.bridge.validation import Contract, field, number, short
from racer_env.errors import BridgeError, ContractError, RacerError
from racer_env.games.worker_protocol import FRAME_SHAPE, HIGHEST, LOWEST, Action, ClockReport, Moment

ACTION_KEYS = ("steer", "gas", "brake")
OFFERS = ("GET_STATES", "GET_STATS", "frame")
"""What there is beyond the messages that every server knows; told in the handshake."""


class MessageError(RacerError):
    """A client's message cannot be followed; the text is for the client."""


@dataclass(frozen=True)
class SetAction:
    game_id: int
    action: Action


@dataclass(frozen=True)
class GetState:
    game_id: int
    frame: bool


@dataclass(frozen=True)
class GetStates:
    """Of several games at once."""

    game_ids: tuple[int, ...]
    frame: bool


@dataclass(frozen=True)
class Reset:
    game_id: int
    frame: bool


@dataclass(frozen=True)
class GetStats:
    """How steadily the games run."""


@dataclass(frozen=True)
class CloseRequest:
    """The client goes."""


Request = SetAction | GetState | GetStates | Reset | GetStats | CloseRequest


def parse_request(line: bytes, num_games: int) -> Request:
    """A client's message, checked; raises MessageError."""
    try:
        message = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise MessageError(f"not JSON: {error}") from None
    if type(message) is not dict:
        raise MessageError(f"a message is a JSON object, not {short(message)}")
    kind = message.get("type")
    if kind == "SET_ACTION":
        return SetAction(_game_id(message, num_games), _action(message))
    if kind == "GET_STATE":
        return GetState(_game_id(message, num_games), _frame(message))
    if kind == "RESET":
        return Reset(_game_id(message, num_games), _frame(message))
    if kind == "GET_STATES":
        return GetStates(_game_ids(message, num_games), _frame(message))
    if kind == "GET_STATS":
        return GetStats()
    if kind == "CLOSE":
        return CloseRequest()
    known = "SET_ACTION, GET_STATE, RESET, GET_STATES, GET_STATS, CLOSE"
    raise MessageError(f"type: one of {known} expected, got {short(kind)}")


def handshake(game: str, num_games: int, hz: float, frames: bool) -> bytes:
    return _line(
        {"type": "HANDSHAKE", "num_games": num_games, "game": game, "hz": hz, "frames": frames, "offers": OFFERS}
    )


@dataclass(frozen=True)
class State:
    """What a client is told of a game. See docs/games.md for `reward_since`, `ended` and `truncated`."""

    moment: Moment
    frame: str | None
    done: bool
    truncated: bool
    reward_since: float
    ended: int
    human: bool
    info: dict[str, Any]

    def fields(self) -> dict[str, Any]:
        moment = self.moment
        return {
            "type": "STATE",
            "game_id": moment.game_id,
            "telemetry": moment.telemetry,
            "frame": self.frame,
            "frame_shape": FRAME_SHAPE,
            "reward": moment.reward,
            "done": self.done,
            "info": self.info,
            "truncated": self.truncated,
            "episode": moment.episode,
            "reward_since": self.reward_since,
            "ended": self.ended,
            "human": self.human,
        }


def state_message(state: State) -> bytes:
    return _line(state.fields())


def states_message(states: list[State]) -> bytes:
    return _line({"type": "STATES", "states": [state.fields() for state in states]})


def stats_message(game: str, hz: float, clients: int, clocks: list[ClockReport]) -> bytes:
    """Of the games that have started."""
    games = [
        {
            "game_id": clock.game_id,
            "rate": round(clock.rate, 2),
            "ticks": clock.ticks,
            "skipped": clock.skipped,
            "late_ms": {
                "p50": round(clock.late_p50, 3),
                "p99": round(clock.late_p99, 3),
                "max": round(clock.late_max, 3),
            },
        }
        for clock in clocks
    ]
    keeps_up = all(clock.keeps_up for clock in clocks)
    return _line({"type": "STATS", "game": game, "hz": hz, "clients": clients, "keeps_up": keeps_up, "games": games})


def error_message(text: str) -> bytes:
    return _line({"type": "ERROR", "message": text})


def _line(message: dict[str, Any]) -> bytes:
    return orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE)


def _game_id(message: dict[str, Any], num_games: int) -> int:
    if "game_id" not in message:
        raise MessageError("game_id: missing")
    return _checked_game_id(message["game_id"], num_games)


def _checked_game_id(value: Any, num_games: int) -> int:
    if type(value) is not int or not 0 <= value < num_games:
        raise MessageError(f"game_id: a whole number from 0 to {num_games - 1} expected, got {short(value)}")
    return value


def _game_ids(message: dict[str, Any], num_games: int) -> tuple[int, ...]:
    """All games if none are named; each once."""
    if "game_ids" not in message:
        return tuple(range(num_games))
    values = message["game_ids"]
    if type(values) is not list:
        raise MessageError(f"game_ids: a list expected, got {short(values)}")
    game_ids = tuple(_checked_game_id(value, num_games) for value in values)
    if len(set(game_ids)) != len(game_ids):
        raise MessageError("game_ids: each game can be asked for once")
    return game_ids


def _frame(message: dict[str, Any]) -> bool:
    """Whether a picture is wanted, which it is unless somebody says no."""
    value = message.get("frame", True)
    if type(value) is not bool:
        raise MessageError(f"frame: true or false expected, got {short(value)}")
    return value


def _action(message: dict[str, Any]) -> Action:
    if "action" not in message:
        raise MessageError("action: missing")
    action = message["action"]
    if type(action) is not dict:
        raise MessageError(f"action: an object with steer, gas and brake expected, got {short(action)}")
    steer, gas, brake = (_number(action, key) for key in ACTION_KEYS)
    return clamped((steer, gas, brake))


def clamped(action: Action) -> Action:
    """Within what a car can do."""
    steer, gas, brake = (min(high, max(low, value)) for value, low, high in zip(action, LOWEST, HIGHEST, strict=True))
    return steer, gas, brake


def _number(action: dict[str, Any], key: str) -> float:
    if key not in action:
        raise MessageError(f"action.{key}: missing")
    value = action[key]
    if type(value) not in (int, float) or not math.isfinite(value):
        raise MessageError(f"action.{key}: a finite number expected, got {short(value)}")
    return float(value)


PLAUSIBLE_GAMES = 4096
"""What is more is no number of games, whatever server says so."""
LARGEST_FRAME = 2**24
"""Bytes that a frame can have."""
COUNTS = ("tiles_visited", "total_tiles", "steps")
NUMBERS = ("car_x", "car_y", "car_vx", "car_vy", "car_angle", "car_angular_vel", "speed", "total_reward")
WHEELS = 4

Frame = NDArray[np.uint8]
Info = dict[str, Any]


class _PlainState(NamedTuple):
    telemetry: dict[str, Any]
    frame: Frame | None
    reward: float
    done: bool
    info: Info


class GameState(_PlainState):
    """What `get_state` and `reset` return: telemetry, frame, reward, done and info.

    frame: (height, width, 3); None if the server or the caller wants none.

    What comes besides is not unpacked. Servers that do not tell it leave it at None:
    truncated: whether the episode was stopped, by its length or by a RESET.
    ended: how many episodes have ended since the last state of this game.
    episode: its number. reward_since: the sum since the last state of this game, within the episode.
    human: whether a person drives.
    """

    truncated: bool | None = None
    ended: int | None = None
    episode: int | None = None
    reward_since: float | None = None
    human: bool | None = None


class ServerError(BridgeError):
    """The server answered with an ERROR."""


def parse_line(line: bytes) -> dict[str, Any]:
    """A message; raises ServerError with what the server says if that is an ERROR."""
    try:
        message = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ContractError(f"a JSON object expected, got {short(line)} ({error})") from None
    if type(message) is not dict:
        raise ContractError(f"a JSON object expected, got {short(message)}")
    if message.get("type") == "ERROR":
        raise ServerError(str(message.get("message", "the server gave no reason")))
    return message


def expect(kind: str, message: Mapping[str, Any]) -> None:
    if message.get("type") != kind:
        raise ContractError(f"type: {kind} expected, got {short(message.get('type'))}")


def handshake_of(message: Mapping[str, Any]) -> dict[str, Any]:
    """A HANDSHAKE, checked. All but `num_games` is there on servers only that know of it."""
    expect("HANDSHAKE", message)
    count = field(message, "num_games")
    if type(count) is not int or not 1 <= count <= PLAUSIBLE_GAMES:
        raise ContractError(f"num_games: a whole number from 1 to {PLAUSIBLE_GAMES} expected, got {short(count)}")
    offers = message.get("offers", [])
    if type(offers) is not list or not all(type(each) is str for each in offers):
        raise ContractError(f"offers: a list of names expected, got {short(offers)}")
    if type(message.get("game", "")) is not str:
        raise ContractError(f"game: a name expected, got {short(message['game'])}")
    if "hz" in message and number("hz", message["hz"]) <= 0.0:
        raise ContractError(f"hz: a number above 0 expected, got {short(message['hz'])}")
    Contract.flag("frames", message.get("frames", True))
    return dict(message)


def stats_of(message: Mapping[str, Any], num_games: int) -> dict[str, Any]:
    """A STATS, checked."""
    expect("STATS", message)
    number("hz", field(message, "hz"))
    _whole("clients", field(message, "clients"))
    Contract.flag("keeps_up", field(message, "keeps_up"))
    games = field(message, "games")
    if type(games) is not list:
        raise ContractError(f"games: a list expected, got {short(games)}")
    for each in games:
        game = _object("games", each)
        if _whole("game_id", field(game, "game_id")) >= num_games:
            raise ContractError(f"game_id: a number below {num_games} expected, got {short(game['game_id'])}")
        number("rate", field(game, "rate"))
        _whole("ticks", field(game, "ticks"))
        _whole("skipped", field(game, "skipped"))
        late = _object("late_ms", field(game, "late_ms"))
        for name in ("p50", "p99", "max"):
            number(f"late_ms.{name}", field(late, name))
    return dict(message)


def state_of(message: Mapping[str, Any], game_id: int, frames: bool) -> GameState:
    """A STATE of this game, checked. Without `frames`, its picture is not looked at."""
    expect("STATE", message)
    if type(message.get("game_id")) is not int or message["game_id"] != game_id:
        raise ContractError(f"game_id: {game_id} expected, got {short(message.get('game_id'))}")
    state = GameState(
        _telemetry(field(message, "telemetry")),
        _received_frame(message) if frames else None,
        Contract.reward(field(message, "reward")),
        Contract.flag("done", field(message, "done")),
        _object("info", field(message, "info")),
    )
    for name, check in BESIDES.items():
        if name in message:
            setattr(state, name, check(name, message[name]))
    return state


def states_of(message: Mapping[str, Any], game_ids: range, frames: bool) -> list[GameState]:
    expect("STATES", message)
    states = field(message, "states")
    if type(states) is not list or len(states) != len(game_ids):
        raise ContractError(f"states: {len(game_ids)} of them expected, got {short(states)}")
    found = []
    for game_id, state in zip(game_ids, states, strict=True):
        found.append(state_of(_object(f"states[{game_id}]", state), game_id, frames))
    return found


def _telemetry(value: Any) -> dict[str, Any]:
    telemetry = _object("telemetry", value)
    for name in NUMBERS:
        if name in telemetry:
            number(f"telemetry.{name}", telemetry[name])
    for name in COUNTS:
        if name in telemetry:
            _whole(f"telemetry.{name}", telemetry[name])
    if "wheel_speeds" in telemetry:
        wheels = telemetry["wheel_speeds"]
        if type(wheels) is not list or len(wheels) != WHEELS:
            raise ContractError(f"telemetry.wheel_speeds: {WHEELS} numbers expected, got {short(wheels)}")
        for speed in wheels:
            number("telemetry.wheel_speeds", speed)
    return telemetry


def _received_frame(message: Mapping[str, Any]) -> Frame | None:
    text = field(message, "frame")
    if text is None:
        return None
    shape = field(message, "frame_shape")
    is_shape = type(shape) is list and len(shape) == 3 and all(type(side) is int and side > 0 for side in shape)
    if not is_shape or shape[2] != 3 or shape[0] * shape[1] * 3 > LARGEST_FRAME:
        raise ContractError(f"frame_shape: height, width and 3 expected, got {short(shape)}")
    try:
        content = base64.b64decode(text, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise ContractError(f"frame: base64 or null expected, got {short(text)}") from None
    if len(content) != shape[0] * shape[1] * 3:
        raise ContractError(f"frame: {shape[0] * shape[1] * 3} bytes expected, got {len(content)}")
    return np.frombuffer(content, np.uint8).reshape(shape).copy()


def _object(name: str, value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise ContractError(f"{name}: an object expected, got {short(value)}")
    return value


def _whole(name: str, value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ContractError(f"{name}: a whole number from 0 expected, got {short(value)}")
    return value


BESIDES: dict[str, Callable[[str, Any], Any]] = {
    "truncated": Contract.flag,
    "ended": _whole,
    "episode": _whole,
    "reward_since": number,
    "human": Contract.flag,
}
"""How what newer servers say of a state is checked."""
