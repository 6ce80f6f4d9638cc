"""Helpers with invalid descriptions and replies: the error names the field, and the process is gone."""

import json
import math
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from racer_env.bridge.validation import Contract
from racer_env.errors import BridgeError, ContractError, RacerError
from racer_env.stdio import Expected, StdioClient
from racer_env.stdio.client import ReplyParser, parse_reply
from racer_env.stdio.schema import Bounds, check_description
from tests.processes import process_exists
from tests.stdio import hostile_helper
from tests.stdio.helpers import EXPECTED, collect_helpers, drive, hostile

DESCRIPTIONS = [
    ({"n_actions": 3}, "n_actions: 2 expected, got 3"),
    ({"n_actions": 0}, "n_actions: a whole number from 1"),
    ({"n_actions": True}, "n_actions: a whole number from 1"),
    ({"n_actions": None}, "n_actions: a whole number from 1"),
    ({"n_actions": None, "action_shape": [2]}, "n_actions: 2 expected, got None"),
    ({"obs_shape": [4]}, r"obs_shape: \(3,\) expected, got \(4,\)"),
    ({"obs_shape": 3}, "obs_shape: a list of whole numbers"),
    ({"obs_shape": [-3]}, "obs_shape: a list of whole numbers"),
    ({"obs_shape": [10**9, 10**9]}, "obs_shape: at most"),
    ({"obs_dtype": "float64"}, "obs_dtype: float32 expected, got float64"),
    ({"obs_dtype": "object"}, "obs_dtype: one of bool"),
    ({"obs_dtype": ["f4"]}, "obs_dtype: one of bool"),
    ({"obs_low": -2}, r"obs_low: \[-1.0, -1.0, -1.0\] expected, got \[-2.0"),
    ({"obs_low": 2, "obs_high": 1}, "obs_low: at most obs_high"),
    ({"obs_high": [1, 1]}, r"obs_high: a float32, or float32s of shape \(3,\), expected, got \[1, 1\]"),
    ({"obs_high": [1, "1", 1]}, "obs_high"),
    ({"obs_high": [1, [1], 1]}, "obs_high"),
    ({"obs_high": math.nan}, "obs_high"),
]
HANDSHAKES = [
    DESCRIPTIONS[0],
    ({"ok": False, "error": "Error: no"}, "refused the request: Error: no"),
    ({"ok": 1}, "ok: true or false expected, got 1"),
    ({"ok": False, "error": 3}, "error: a text expected"),
]
REPLIES = [
    ({"obs": [0.0, 0.5]}, r"observation: shape \(3,\) expected, got \(2,\)"),
    ({"obs": [[0.0, 0.5, 1.0]]}, "observation: shape"),
    ({"obs": [0.0, [0.5], 1.0]}, r"observation: numbers of shape \(3,\) expected"),
    ({"obs": "abc"}, "observation: numbers"),
    ({"obs": [0, True, 0.5]}, "observation: numbers"),
    ({"obs": ["0", "1", "0"]}, "observation: numbers"),
    ({"obs": [0, None, 0]}, "observation: numbers"),
    ({"obs": [0.0, 0.0, 1.5]}, r"observation\[2\]: -1 to 1 expected, got 1.5"),
    ({"obs": [0.0, math.nan, 0.0]}, r"observation\[1\]: -1 to 1 expected, got nan"),
    ({"obs": [0.0, math.inf, 0.0]}, r"observation\[1\]: -1 to 1 expected, got inf"),
    ({"reward": "1"}, "reward: a finite number expected, got '1'"),
    ({"reward": None}, "reward: a finite number"),
    ({"reward": True}, "reward: a finite number expected, got True"),
    ({"reward": math.inf}, "reward: a finite number expected, got inf"),
    ({"terminated": 0}, "terminated: true or false expected, got 0"),
    ({"truncated": "false"}, "truncated: true or false expected, got 'false'"),
    ({"info": []}, r"info: an object expected, got \[\]"),
    ({"info": {"a": math.nan}}, "reply: a JSON object expected"),
    ({"ok": None}, "ok: true or false expected, got None"),
]
RAW = [
    (b"\n", "reply: a JSON object expected"),
    (b"hello\n", "reply: a JSON object expected, got b'hello"),
    (b"[1]\n", "reply: a JSON object expected"),
    (b"\xff\xfe\n", "reply: a JSON object expected"),
    (b"[" * 5_000 + b"\n", "reply: a JSON object expected"),
]


@pytest.mark.parametrize(("change", "named"), DESCRIPTIONS)
def test_an_unexpected_description_is_refused(change: dict[str, Any], named: str) -> None:
    right = {"n_actions": 2, "obs_shape": [3], "obs_dtype": "float32", "more": "of something"}
    check_description(right, EXPECTED)
    with pytest.raises(ContractError, match=named):
        check_description({**right, **change}, EXPECTED)


@pytest.mark.parametrize(("change", "named"), HANDSHAKES)
def test_a_failed_handshake_ends_the_helper(
    change: dict[str, Any], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = collect_helpers(monkeypatch)
    with pytest.raises(BridgeError, match=named):
        StdioClient(hostile(on="describe", change=change), EXPECTED)
    assert [process_exists(each.pid) for each in started] == [False]


@pytest.mark.parametrize(("change", "named"), REPLIES)
def test_an_invalid_reply_is_refused(change: dict[str, Any], named: str) -> None:
    with pytest.raises(ContractError, match=named):
        drive(hostile(on="step", change=change))


def test_unknown_fields_are_ignored() -> None:
    for on in ("describe", "reset", "step", "close"):
        drive(hostile(on=on, change={"frame": [1, 2], "done": True}))


def test_every_number_of_an_image_is_checked() -> None:
    right = np.random.default_rng(1).integers(0, 256, (6, 5, 3), np.uint8)
    contract = Contract(np.zeros_like(right), np.full_like(right, 255), np.uint8)
    picture = contract.observation(right.tolist())
    np.testing.assert_array_equal(picture, right, strict=True)
    assert picture.flags.writeable
    wrong: list[tuple[Any, str]] = [
        (True, "numbers of shape"), ("1", "numbers of shape"), (None, "numbers of shape"), ([1], "numbers of shape"),
        (256, "values of uint8 expected"), (-1, "values of uint8 expected"), (0.5, "values of uint8 expected"),
        (2**63, "values of uint8 expected"), (2**70, "numbers of shape"), (math.nan, "values of uint8 expected"),
    ]  # fmt: skip
    for value, named in wrong:
        values = right.tolist()
        values[-1][-1][-1] = value
        with pytest.raises(ContractError, match=f"observation: {named}"):
            contract.observation(values)
    for row in ([1, 2], [1, 2, 3, 4], 3, {"0": 1, "1": 2, "2": 3}, "123"):
        values = right.tolist()
        values[-1][-1] = row
        with pytest.raises(ContractError, match="observation: numbers of shape"):
            contract.observation(values)
    with pytest.raises(ContractError, match=r"observation: shape \(6, 5, 3\) expected, got \(5, 6, 3\)"):
        contract.observation(right.reshape(5, 6, 3).tolist())
    assert contract.observation((right * 1.0).tolist()).dtype == np.uint8


WRONG_EXPECTATIONS: list[tuple[dict[str, Any], str]] = [
    ({"obs_shape": 3}, "obs_shape must be whole numbers"),
    ({"obs_shape": (-1,)}, "obs_shape must be whole numbers"),
    ({"action_shape": (1.5,)}, "action_shape must be whole numbers"),
    ({"obs_dtype": "flot32"}, "obs_dtype must be one of bool, .*, not 'flot32'"),
    ({"obs_dtype": "complex64"}, "obs_dtype must be one of"),
    ({"n_actions": 0}, "n_actions must be a whole number from 1"),
    ({"n_actions": 2.0}, "n_actions must be a whole number from 1"),
    ({"obs_low": "1"}, "obs_low must be numbers"),
    ({"obs_low": [[1], [1, 2]]}, "obs_low must be numbers"),
    ({"obs_high": math.nan}, "obs_high must be numbers"),
    ({"obs_low": [0, 0], "obs_shape": (3,)}, r"obs_low must be a int\d+, or int\d+s of shape \(3,\), not \[0, 0\]"),
    ({"obs_low": -1, "obs_dtype": "uint8"}, "obs_low must be a uint8"),
    ({"obs_high": 0.5, "obs_dtype": "int8"}, "obs_high must be a int8"),
    ({"obs_low": 2, "obs_high": 1}, "obs_low must be at most obs_high"),
    ({"obs_low": [1, 2], "obs_high": [1, 2, 3]}, "obs_low must be at most obs_high"),
]


@pytest.mark.parametrize(("wrong", "named"), WRONG_EXPECTATIONS)
def test_an_impossible_expectation_is_refused(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(RacerError, match=named):
        Expected(**wrong)


def test_expectations_can_have_any_equal_form() -> None:
    received = {"n_actions": 2, "obs_shape": [3], "obs_dtype": "float32", "obs_high": 1}
    description = check_description(received, Expected([3], np.float32, np.int64(2), obs_low=[-1, -2, -3]))
    assert description.observation.low.tolist() == [-1, -2, -3]
    for wrong, named in (
        (Expected(obs_low=2), r"obs_low: at most obs_high expected, got \[2.0, 2.0, 2.0\] and \[1.0"),
        (Expected(obs_low=[0, 0]), r"obs_low: .* expected, but observations are float32s of shape \(3,\)"),
    ):
        with pytest.raises(ContractError, match=named):
            check_description(received, wrong)
    with pytest.raises(ContractError, match=r"obs_low: .* expected, but observations are uint8s"):
        check_description({**received, "obs_dtype": "uint8"}, Expected(obs_low=-1))


@pytest.mark.parametrize(("raw", "named"), RAW)
def test_other_output_is_refused(raw: bytes, named: str) -> None:
    with pytest.raises(ContractError, match=named):
        drive(hostile(on="step", raw=raw.hex()))


@pytest.mark.parametrize(
    ("on", "field"),
    [("describe", "obs_shape"), ("describe", "n_actions"), ("reset", "obs")]
    + [("step", field) for field in ("ok", "obs", "reward", "terminated", "truncated")],
)
def test_a_missing_field_is_named(on: str, field: str) -> None:
    with pytest.raises(ContractError, match=f"{field}: (missing|a whole number)"):
        drive(hostile(on=on, remove=[field]))


NUMBERS = st.integers() | st.floats() | st.floats(-2, 2)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=6,
)

FIELDS = st.sampled_from(["obs", "reward", "terminated", "truncated", "info", "more"])
OBSERVATIONS = st.lists(NUMBERS, min_size=3, max_size=3) | st.lists(st.floats(-1, 1), min_size=3, max_size=3)


def is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and abs(value) <= sys.float_info.max


def is_valid(field: str, value: Any) -> bool:
    """Return whether a value is valid according to docs/stdio.md."""
    if field == "obs":
        numbers = type(value) is list and len(value) == 3 and all(map(is_number, value))
        with np.errstate(over="ignore"):
            return numbers and all(-1 <= np.float32(each) <= 1 for each in value)
    if field == "reward":
        return is_number(value)
    if field in ("terminated", "truncated"):
        return type(value) is bool
    return field == "more" or type(value) is dict


@given(FIELDS, VALUES | OBSERVATIONS)
@settings(max_examples=300, deadline=None)
def test_only_valid_values_of_a_field_are_accepted(field: str, value: Any) -> None:
    line = json.dumps({"ok": True, **hostile_helper.REPLIES["step"], field: value}).encode()
    parser = ReplyParser(Bounds(np.full(3, -1, np.float32), np.ones(3, np.float32)))
    if is_valid(field, value) and "NaN" not in json.dumps(value) and "Infinity" not in json.dumps(value):
        assert parse_reply(line, parser.step).observation.dtype == np.float32
    else:
        with pytest.raises(ContractError, match=r"^(observation|reply: )" if field == "obs" else f"^({field}|reply: )"):
            parse_reply(line, parser.step)
