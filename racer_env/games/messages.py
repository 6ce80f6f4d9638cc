"""The messages of clients and to clients: JSON objects, each ended by a newline. See docs/games.md."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import orjson

from racer_env.bridge.contract import short
from racer_env.errors import RacerError
from racer_env.games.moments import FRAME_SHAPE, HIGHEST, LOWEST, Action, ClockReport, Moment

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
