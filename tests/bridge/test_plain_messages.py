"""Plain messages take a short way: it leads to the same place, and nothing passes there that does not elsewhere."""

import random
from copy import deepcopy
from typing import Any

import numpy as np
import orjson
import pytest

from racer_env.bridge.interface import STEP_KEYS, Step
from racer_env.bridge.messages import RacerContract, decode_plain_step
from racer_env.bridge.session import Limits, Session
from racer_env.bridge.track_cache import TrackShelf
from racer_env.errors import ContractError

STRANGE: list[Any] = [
    None, True, False, 0, 1, -1, 2, 0.0, -0.0, 0.5, 1.0, 1.0 + 1e-9, 1.1, -1.0 - 1e-9, -0.5, 3.0,
    160.0, 160.00000001, 161.0, 1e308, -1e308, 2**53, 2**64 - 1, -(2**63),
    "", "1", "step_result", [], [0.5], [[]], {}, {"lap": 1},
]  # fmt: skip


@pytest.fixture(scope="module")
def tracks() -> TrackShelf:
    shelf = TrackShelf()
    shelf.build("track-01")
    return shelf


@pytest.fixture
def session(tracks: TrackShelf) -> Session:
    opened = Session(tracks, Limits())
    opened.answer_text(b'{"type":"reset","trackId":"track-01"}')
    return opened


def begun(session: Session) -> RacerContract:
    contract = RacerContract()
    contract.reset_result(orjson.loads(session.answer_text(b'{"type":"reset"}')))
    return contract


def step_request(*action: float, **more: Any) -> bytes:
    return orjson.dumps({"type": "step", "action": action, **more})


def same(one: Step, other: Step) -> bool:
    return one.observation.tobytes() == other.observation.tobytes() and one[1:] == other[1:]


def test_a_plain_reply_is_read_as_any_other(session: Session) -> None:
    quick, thorough = begun(session), begun(session)
    draw = random.Random(0)
    for _ in range(500):
        reply = session.answer_text(step_request(draw.uniform(-1, 1), draw.random(), 0.3 * draw.random()))
        step = quick.plain_step(reply)
        assert step is not None
        assert same(step, thorough.step_result(orjson.loads(reply)))
        assert step.observation.dtype == np.float32
        assert tuple(step.info) == STEP_KEYS


def test_whole_numbers_where_there_may_be_others_are_plain_too(session: Session) -> None:
    contract = begun(session)
    reply = orjson.loads(session.answer_text(step_request(0.0, 0.0, 0.0)))
    reply.update(observation=[0] * 14, reward=0)
    reply["info"].update(progress=0, rawSpeed=0)
    step = contract.plain_step(orjson.dumps(reply))
    assert step is not None
    assert (type(step.reward), type(step.info["rawSpeed"])) == (float, float)


def test_nothing_passes_the_short_way_that_the_contract_refuses(session: Session) -> None:
    contract = begun(session)
    right = orjson.loads(session.answer_text(step_request(0.3, 1.0, 0.0)))
    draw = random.Random(1)
    passed = refused = 0
    for _ in range(20_000):
        reply = broken(right, draw)
        content, start = orjson.dumps(reply), dict(contract._last)
        try:
            expected = contract.step_result(reply) if reply.get("type") == "step_result" else None
        except ContractError:
            expected = None
        contract._last = dict(start)
        try:
            step = contract.plain_step(content)
        except ContractError:
            step = None
        contract._last = dict(start)
        if step is not None:
            assert expected is not None, content
            assert same(step, expected)
        passed, refused = passed + (step is not None), refused + (expected is None)
    assert passed > 500
    assert refused > 5_000


def broken(right: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """A reply with something else in one or two places; with luck it is still right."""
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


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b'{"type":"\xff"}', b'{"\xff":1}', b"[" * 100_000, b"\x00"]
)
def test_what_is_no_json_is_not_plain(content: bytes) -> None:
    assert decode_plain_step(content) is None


def test_a_step_is_answered_alike_whichever_way_it_takes(tracks: TrackShelf) -> None:
    plain, unusual = Session(tracks, Limits()), Session(tracks, Limits())
    for each in (plain, unusual):
        each.answer_text(b'{"type":"reset"}')
    draw = random.Random(2)
    for _ in range(300):
        action = draw.uniform(-2, 2), draw.choice((0, 1, draw.random())), draw.random() * 0.2
        assert plain.answer_text(step_request(*action)) == unusual.answer_text(step_request(*action, extra=[{}]))


def test_a_strange_step_is_refused_as_ever(session: Session) -> None:
    for action in ([0, 0], [0, 0, 0, 0], [0, 0, None], [0, 0, True], ["0", 0, 0], None, {}, [[0, 0, 0]]):
        reply = orjson.loads(session.answer_text(orjson.dumps({"type": "step", "action": action})))
        assert reply["type"] == "error"
        assert "3 finite numbers" in reply["message"]
    for message in (b'{"type":"step","action":[0,0,NaN]}', b'{"type":"step","action":[0,0,1e999]}'):
        assert orjson.loads(session.answer_text(message))["type"] == "error"
