"""Requests of clients are checked."""

import json
from typing import Any

import pytest

from racer_env.games.protocol import (
    GetState,
    GetStates,
    MessageError,
    RefusedActionError,
    Reset,
    SetAction,
    parse_request,
)

NUM_GAMES = 3


def parse(message: Any) -> Any:
    return parse_request(json.dumps(message).encode() + b"\n", NUM_GAMES)


def action(**changes: Any) -> dict[str, Any]:
    values = {"steer": 0.5, "gas": 1, "brake": 0.25, **changes}
    return {"type": "SET_ACTION", "game_id": 2, "action": values}


def test_valid_requests() -> None:
    request = parse(action())
    assert isinstance(request, SetAction)
    assert (request.game_id, request.clamped) == (2, (0.5, 1.0, 0.25))
    assert parse({"type": "GET_STATE", "game_id": 0}) == GetState(0, frame=True)
    assert parse({"type": "GET_STATE", "game_id": 0, "frame": False}) == GetState(0, frame=False)
    assert parse({"type": "RESET", "game_id": 1, "more": "ignored"}) == Reset(1, frame=True)
    assert parse({"type": "GET_STATES"}) == GetStates(frame=True)
    assert parse({"type": "GET_STATES", "game_ids": [2, 0], "frame": False}) == GetStates([2, 0], frame=False)


def test_actions_are_clamped() -> None:
    assert parse(action(steer=-7, gas=1e300, brake=-0.1)).clamped == (-1.0, 1.0, 0.0)


@pytest.mark.parametrize("value", [None, "1", True, [1], {}])
def test_an_action_is_three_numbers(value: Any) -> None:
    for key in ("steer", "gas", "brake"):
        with pytest.raises(RefusedActionError, match=rf"action\.{key}: a finite number expected"):
            parse(action(**{key: value}))


@pytest.mark.parametrize("value", [None, "1", True, [1], 0.5])
def test_an_action_is_an_object(value: Any) -> None:
    with pytest.raises(RefusedActionError, match="action: an object"):
        parse({"type": "SET_ACTION", "game_id": 0, "action": value})


def test_infinite_numbers_are_refused() -> None:
    for number in (b"NaN", b"Infinity", b"-Infinity", b"1e999"):
        line = b'{"type":"SET_ACTION","game_id":0,"action":{"steer":%s,"gas":0,"brake":0}}\n' % number
        with pytest.raises(RefusedActionError, match=r"not JSON|finite number"):
            parse_request(line, NUM_GAMES)


@pytest.mark.parametrize("game_id", [3, -1, 10**30, True, 0.0, "0", None, [0]])
@pytest.mark.parametrize("kind", ["GET_STATE", "RESET", "SET_ACTION", "GET_STATES"])
def test_an_unknown_game_is_refused(kind: str, game_id: Any) -> None:
    message = {**action(), "type": kind, "game_id": game_id, "game_ids": [0, game_id]}
    with pytest.raises(MessageError, match="game_id: a whole number from 0 to 2 expected"):
        parse(message)


def test_a_missing_game_is_the_first_and_missing_values_are_zero() -> None:
    assert parse({"type": "GET_STATE"}) == GetState(0)
    assert parse({"type": "RESET"}) == Reset(0)
    first = parse({"type": "SET_ACTION", "action": {"steer": 0.5, "brake": 1}})
    assert (first.game_id, first.clamped) == (0, (0.5, 0.0, 1.0))
    for message in ({"action": {}}, {"action": {"throttle": 1}}, {}):
        found = parse({"type": "SET_ACTION", "game_id": 1, **message})
        assert (found.game_id, found.clamped) == (1, (0.0, 0.0, 0.0))


def test_only_an_invalid_action_is_left_without_an_error() -> None:
    for message in ({"type": "GET_STATE", "game_id": 3}, {"type": "RESET", "frame": 1}, {"type": "FLY"}):
        with pytest.raises(MessageError) as raised:
            parse({**message, "comment": "SET_ACTION"})
        assert type(raised.value) is MessageError


@pytest.mark.parametrize("message", [[], 1, None, "GET_STATE", {}, {"type": None}, {"type": "get_state"}, {"type": []}])
def test_other_json_is_refused(message: Any) -> None:
    with pytest.raises(MessageError, match=r"a JSON object, not|type: one of"):
        parse(message)


@pytest.mark.parametrize("line", [b"\n", b"{\n", b"\xff\xfe\n", b'{"type":"GET_STATE","game_id":0}}\n', b"[" * 5000])
def test_invalid_json_is_refused(line: bytes) -> None:
    with pytest.raises(MessageError, match="not JSON"):
        parse_request(line, NUM_GAMES)


def test_deep_nesting_is_refused() -> None:
    for depth in (100, 500, 990, 1020):
        line = b'{"type":' + b"[" * depth + b"]" * depth + b"}\n"
        with pytest.raises(MessageError):
            parse_request(line, NUM_GAMES)


def test_a_game_named_twice_is_refused() -> None:
    with pytest.raises(MessageError, match="each game can be requested once"):
        parse({"type": "GET_STATES", "game_ids": [1, 1]})
