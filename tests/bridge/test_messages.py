"""Schemas of JSON messages: what passes is right, and everything else is refused with its place and value."""

import random
from copy import deepcopy
from typing import Any

import msgspec
import numpy as np
import orjson
import pytest

from racer_env.bridge.interface import COMPONENT_KEYS, STEP_KEYS
from racer_env.bridge.messages import EpisodeContract, ResetReply, StepReply, Telemetry, decode_reply
from racer_env.bridge.session import ServerLimits, Session
from racer_env.bridge.track_cache import TrackCache
from racer_env.engine import CAR
from racer_env.errors import ContractError

STRANGE: list[Any] = [
    None, True, False, 0, 1, -1, 2, 0.0, -0.0, 0.5, 1.0, 1.0 + 1e-9, 1.1, -1.0 - 1e-9, -0.5, 3.0,
    160.0, 160.00000001, 161.0, 1e308, -1e308, 2**53, 2**64 - 1, -(2**63),
    "", "1", "step_result", [], [0.5], [[]], {}, {"lap": 1},
]  # fmt: skip
COUNTERS = ("tick", "lap", "checkpoint", "stepCount", "stillnessCounter")


@pytest.fixture(scope="module")
def tracks() -> TrackCache:
    cache = TrackCache()
    cache.build("track-01")
    return cache


@pytest.fixture
def session(tracks: TrackCache) -> Session:
    opened = Session(tracks, ServerLimits())
    opened.answer_text(b'{"type":"reset","trackId":"track-01"}')
    return opened


def reset_reply(session: Session) -> ResetReply:
    return decode_reply(session.answer_text(b'{"type":"reset"}'), ResetReply)


def step_request(*action: float, **more: Any) -> bytes:
    return orjson.dumps({"type": "step", "action": action, **more})


def test_a_decoded_step_has_the_values_and_types_of_the_reply(session: Session) -> None:
    contract = EpisodeContract()
    contract.reset(reset_reply(session))
    draw = random.Random(0)
    for _ in range(500):
        content = session.answer_text(step_request(draw.uniform(-1, 1), draw.random(), 0.3 * draw.random()))
        step, reply = contract.step(decode_reply(content, StepReply)), orjson.loads(content)
        assert step.observation.dtype == np.float32
        assert step.observation.tobytes() == np.array(reply["observation"], np.float32).tobytes()
        assert step[1:4] == (reply["reward"], reply["terminated"], reply["truncated"])
        assert step.info == reply["info"]
        assert tuple(step.info) == STEP_KEYS
        assert [type(value) for value in step.info.values()] == [type(value) for value in reply["info"].values()]


def test_whole_numbers_are_read_as_floats_where_floats_are_due(session: Session) -> None:
    contract = EpisodeContract()
    contract.reset(reset_reply(session))
    reply = orjson.loads(session.answer_text(step_request(0.0, 0.0, 0.0)))
    reply.update(observation=[0] * 14, reward=0)
    reply["info"].update(progress=0, rawSpeed=0)
    step = contract.step(decode_reply(orjson.dumps(reply), StepReply))
    assert (type(step.reward), type(step.info["rawSpeed"])) == (float, float)


def test_exactly_the_replies_that_the_protocol_allows_pass(session: Session) -> None:
    first = reset_reply(session)
    right = orjson.loads(session.answer_text(step_request(0.3, 1.0, 0.0)))
    draw = random.Random(1)
    passed = refused = 0
    for _ in range(20_000):
        reply = broken(right, draw)
        contract = EpisodeContract()
        contract.reset(first)
        try:
            step = contract.step(decode_reply(orjson.dumps(reply), StepReply))
        except ContractError:
            assert not is_right(reply), reply
            refused += 1
        else:
            assert is_right(reply), reply
            assert step.info == {key: type(step.info[key])(value) for key, value in reply["info"].items()}
            passed += 1
    assert passed > 500
    assert refused > 5_000


def broken(right: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """Return a reply with something else in one or two places, which may still be right by chance."""
    reply = deepcopy(right)
    for _ in range(draw.choice((1, 1, 2))):
        strange, key = draw.choice(STRANGE), draw.choice((*STEP_KEYS, "extra"))
        place = draw.choice(("observation", "info", "missing", "reply"))
        if place == "observation":
            reply["observation"][draw.randrange(14)] = strange
        elif place == "info":
            reply["info"][key] = strange
        elif place == "missing":
            reply["info"].pop(key, None)
        else:
            reply[draw.choice(("type", "reward", "terminated", "truncated", "extra"))] = strange
    if draw.random() < 0.1:
        reply[draw.choice(("observation", "info"))] = draw.choice(STRANGE)
    return reply


def is_right(reply: dict[str, Any]) -> bool:
    """Return whether a reply to the first step of an episode is as the protocol says, value by value."""
    observation, info = reply["observation"], reply["info"]
    if reply["type"] != "step_result" or not isinstance(observation, list) or len(observation) != 14:
        return False
    if not isinstance(info, dict) or info.keys() != set(STEP_KEYS):
        return False
    numbers = [*observation, reply["reward"], info["rawSpeed"], *(info[key] for key in COMPONENT_KEYS)]
    flags = [reply["terminated"], reply["truncated"], info["wallContact"]]
    if not all(type(value) in (int, float) for value in numbers) or not all(type(value) is bool for value in flags):
        return False
    if not all(type(info[key]) is int for key in COUNTERS):
        return False
    with np.errstate(over="ignore"):
        seen, low = np.array(observation, np.float32), np.zeros(14)
    low[10:12] = -1.0
    return bool(
        (low <= seen).all()
        and (seen <= 1.0).all()
        and 0.0 <= info["rawSpeed"] <= 160.0 * (1.0 + 1e-9)
        and info["tick"] == info["stepCount"] == 1
        and (info["lap"], info["checkpoint"]) in ((1, 0), (1, 1), (2, 0))
        and info["stillnessCounter"] in (0, 1)
    )


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b'{"type":"\xff"}', b'{"\xff":1}', b"[" * 100_000, b"\x00"]
)
def test_a_reply_that_is_no_json_object_is_refused(content: bytes) -> None:
    with pytest.raises(ContractError, match="step_result"):
        decode_reply(content, StepReply)


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("trackId", 3, "telemetry.trackId: a string expected, got 3"),
        ("x", "0", "telemetry.x: a finite number expected, got '0'"),
        ("y", 2e6, "telemetry.y: at most 1e\\+06 expected, got 2000000.0"),
        ("surface", 3, "telemetry.surface: at most 2 expected, got 3"),
        ("surface", True, "telemetry.surface: a whole number expected, got True"),
        ("lapTicks", -1, "telemetry.lapTicks: at least 0 expected, got -1"),
        ("bestLapTicks", 2**63, "telemetry.bestLapTicks"),
        ("wallContact", 1, "telemetry.wallContact: true or false expected, got 1"),
        ("rays", [0.0] * 8, "telemetry.rays"),
        ("rays", [*[0.0] * 8, None], r"telemetry.rays\[8\]: a finite number expected, got None"),
    ],
)
def test_wrong_telemetry_is_refused(session: Session, key: str, value: Any, problem: str) -> None:
    reply = orjson.loads(session.answer_text(b'{"type":"reset","telemetry":true}'))
    assert decode_reply(orjson.dumps(reply), ResetReply).telemetry is not None
    reply["telemetry"][key] = value
    with pytest.raises(ContractError, match=problem):
        decode_reply(orjson.dumps(reply), ResetReply)


def test_every_field_of_telemetry_is_a_column_of_a_car() -> None:
    assert {field.name for field in msgspec.structs.fields(Telemetry)} - {"track_id"} < set(CAR.names or ())


def test_unknown_fields_of_a_request_change_nothing(tracks: TrackCache) -> None:
    plain, unusual = Session(tracks, ServerLimits()), Session(tracks, ServerLimits())
    for each in (plain, unusual):
        each.answer_text(b'{"type":"reset"}')
    draw = random.Random(2)
    for _ in range(300):
        action = draw.uniform(-2, 2), draw.choice((0, 1, draw.random())), draw.random() * 0.2
        assert plain.answer_text(step_request(*action)) == unusual.answer_text(step_request(*action, extra=[{}]))


def test_a_wrong_action_is_refused(session: Session) -> None:
    for action in ([0, 0], [0, 0, 0, 0], [0, 0, None], [0, 0, True], ["0", 0, 0], None, {}, [[0, 0, 0]]):
        reply = orjson.loads(session.answer_text(orjson.dumps({"type": "step", "action": action})))
        assert reply["type"] == "error"
        assert "3 finite numbers" in reply["message"]
    for message in (b'{"type":"step","action":[0,0,NaN]}', b'{"type":"step","action":[0,0,1e999]}'):
        assert orjson.loads(session.answer_text(message))["type"] == "error"


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("seed", "1", "seed: a whole number or null expected, got '1'"),
        ("telemetry", 1, "telemetry: true or false expected, got 1"),
        ("trackId", 5, "trackId: a string or a list or null expected, got 5"),
        ("trackIds", ["track-01", 2], "trackIds[1]: a string expected, got 2"),
        ("redraw", "yes", "redraw: true or false expected, got 'yes'"),
    ],
)
def test_a_wrong_field_of_a_request_is_named(session: Session, field: str, value: Any, message: str) -> None:
    reply = orjson.loads(session.answer_text(orjson.dumps({"type": "reset", field: value})))
    assert reply == {"type": "error", "message": message}
