"""What the reply to a step looks like if nothing at all is strange about it.

Decoding and checking in one go takes a fraction of the time that a look at each value takes. What does not fit may
still be right: the contract decides then, and says what is wrong.
"""

from __future__ import annotations

import sys
from types import GenericAlias
from typing import Annotated, Any, Literal

import msgspec

from racer_env.bridge.batch_rules import SPEED_LIMIT
from racer_env.bridge.interface import COMPONENT_KEYS, OBSERVATION_HIGH, OBSERVATION_LOW, STEP_KEYS

COUNTER_KEYS = ("tick", "lap", "checkpoint", "stepCount", "stillnessCounter")
LARGEST = sys.float_info.max


def _between(low: float, high: float) -> Any:
    return Annotated[float, msgspec.Meta(ge=low, le=high)]


_Finite = _between(-LARGEST, LARGEST)
_Observation = GenericAlias(tuple, tuple(map(_between, OBSERVATION_LOW.tolist(), OBSERVATION_HIGH.tolist())))
_KINDS = {
    **dict.fromkeys(COMPONENT_KEYS, _Finite),
    **dict.fromkeys(COUNTER_KEYS, Annotated[int, msgspec.Meta(ge=0)]),
    "rawSpeed": _between(0.0, SPEED_LIMIT),
    "wallContact": bool,
}
_Info = msgspec.defstruct("Info", [(key, _KINDS[key]) for key in STEP_KEYS], forbid_unknown_fields=True)
_Step = msgspec.defstruct(
    "Step",
    [
        ("type", Literal["step_result"]),
        ("observation", _Observation),
        ("reward", _Finite),
        ("terminated", bool),
        ("truncated", bool),
        ("info", _Info),
    ],
    forbid_unknown_fields=True,
)
_DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_Step)


def decode_plain_step(content: bytes) -> Any | None:
    """The reply, with attributes named as its fields, or None if there is anything strange about it."""
    try:
        return _DECODER.decode(content)
    except ValueError:
        return None
