"""Hostile messages: invalid in many ways, reproducible by seed."""

import copy
import json
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

from tests.bridge.raw_websocket import BINARY, TEXT

LARGEST_MESSAGE = 65536

Message = tuple[int, bytes]
"""Opcode and payload."""

CONFIG = {
    "weights": {
        "progress": 1.0, "speedBonus": 0.1, "wallPenalty": -1.0, "offTrackPenalty": -0.5, "backwardPenalty": -1.0,
        "stillnessPenalty": -0.1, "stillnessSpeedThreshold": 2.0,
    },
    "episode": {"maxSteps": 50, "stillnessTimeoutTicks": 20},
}  # fmt: skip
START = {"arc": [0.0, 1.0], "offset": [-0.5, 0.5], "heading": [-0.2, 0.2], "speed": [0.0, 90.0]}
VALID: list[dict[str, Any]] = [
    {"type": "step", "action": [0.5, 1.0, 0.0]},
    {"type": "reset", "trackId": "track-01", "config": CONFIG, "start": START, "seed": 5, "telemetry": True},
    {"type": "reset", "trackIds": ["track-01", "track-02"], "redraw": True, "seed": 2},
    {
        "type": "batch_reset",
        "numCars": 3,
        "trackIds": ["track-03"],
        "config": CONFIG,
        "start": START,
        "seeds": [1, None, 3],
    },
    {"type": "batch_reset", "numCars": 3, "mask": [True, False, True], "seed": 9},
    {"type": "describe"},
    {"type": "track", "trackId": "track-01"},
    {"type": "close"},
]
STEP_OF_3 = struct.pack("<4sHHII9d", b"RCRB", 1, 1, 3, 0, *[0.5] * 9)

NASTY: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3.5, -0.0, 1e-320, 1e308, -1e308, 1e300, 2**31, 2**53 + 1, 2**63 - 1, 2**63,
    2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**400, float("nan"), float("inf"), float("-inf"),
    "", "a", "\0", "🏁" * 50, "\ud800", "x" * 5000, "NaN", "1", "step", "reset", "__class__", "${jndi:x}", "%s%n",
    "track-01", "track-99", "../track-01", "/etc/passwd", "random:", "random:x", "random:-1", "random:" + "9" * 30,
    "random:1:easy", "random:1:eazy", [], [[]], [0.0] * 3, [0.0] * 4000, [None] * 3, ["track-01"] * 64,
    ["track-01"] * 65, [True] * 3, [1e308] * 2, [-1e308, 1e308], [float("nan")] * 3, [[0.0] * 3] * 3,
    {}, {"": 0}, {"x": {}}, {"type": "step"},
]  # fmt: skip


def hostile_messages(seed: int, number: int) -> Iterator[Message]:
    """Yield messages of every kind; some are valid, so that there is an environment to break."""
    draw = random.Random(seed)
    kinds, weights = zip(*KINDS.items(), strict=True)
    for kind in draw.choices(kinds, weights, k=number):
        yield kind(draw)


def is_too_large(message: Message) -> bool:
    return len(message[1]) > LARGEST_MESSAGE


def _text(value: Any) -> Message:
    return TEXT, json.dumps(value).encode()


def _valid(draw: random.Random) -> Message:
    """Return a valid message; half of them are steps, in JSON or binary."""
    return draw.choice([_text(draw.choice(VALID)), _text(VALID[0]), (BINARY, STEP_OF_3)])


def _wrong_field(draw: random.Random) -> Message:
    """Return a valid message with one wrong value."""
    message = copy.deepcopy(draw.choice(VALID))
    place: Any = message
    while True:
        key = draw.choice(list(place) if isinstance(place, dict) else range(len(place)))
        if not isinstance(place[key], (dict, list)) or not place[key] or draw.random() < 0.3:
            break
        place = place[key]
    place[key] = draw.choice(NASTY)
    return _text(message)


def _odd_fields(draw: random.Random) -> Message:
    """Return a message with a missing field, a surplus field, or duplicate fields."""
    message = copy.deepcopy(draw.choice(VALID))
    del message[draw.choice(list(message))]
    message[draw.choice(["action", "trackId", "config", "seed", "x", "", "numCars", "mask"])] = draw.choice(NASTY)
    text = json.dumps(message)
    if draw.random() < 0.5:
        text = text[:-1] + ', "type": "step", "action": [0, 0, 0]}'
    return TEXT, text.encode()


def _mutated(draw: random.Random) -> Message:
    """Return a valid message with some bytes changed, deleted, repeated or inserted, or truncated."""
    opcode, payload = _valid(draw)
    content = bytearray(payload)
    for _ in range(draw.randint(1, 5)):
        at = draw.randrange(len(content)) if content else 0
        change = draw.randrange(5)
        if change == 0:
            content[at : at + 1] = draw.randbytes(1)
        elif change == 1:
            del content[at : at + draw.randint(1, 8)]
        elif change == 2:
            content[at:at] = content[at : at + draw.randint(1, 20)]
        elif change == 3:
            content[at:at] = draw.choice(
                [b'"', b"{", b"]", b",", b"\\u", b"\xff", b"e999", b"-", b"0", b"NaN", b"null"]
            )
        else:
            del content[at:]
    return draw.choice([opcode, opcode, opcode, TEXT, BINARY]), bytes(content)


def _noise(draw: random.Random) -> Message:
    return draw.choice([TEXT, BINARY]), draw.randbytes(int(10 ** draw.uniform(0.0, 3.5)))


def _json_noise(draw: random.Random) -> Message:
    """Return random tokens of JSON."""
    pieces = ['{"type":', '"step"', '"reset"', "[", "]", "{", "}", ",", ":", "1", "-", "1e9", '"', "\\", "null", "true"]
    return TEXT, "".join(draw.choices(pieces, k=draw.randint(1, 40))).encode()


def _nested(draw: random.Random) -> Message:
    """Return JSON that is nested too deeply for a recursive parser."""
    depth = draw.choice([10, 100, 500, 900, 990, 1000, 1010, 1020, 1023, 1024, 1025, 2000, 10000, 30000])
    opening, closing = draw.choice([("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
    depth = min(depth, 60000 // len(opening + closing))
    inside = opening * depth + draw.choice(["", "0", "null"]) + closing * draw.choice([depth, depth, 0])
    field = draw.choice(
        ["type", "action", "trackId", "trackIds", "config", "start", "seed", "seeds", "mask", "x", "numCars"]
    )
    kind = draw.choice(["step", "reset", "batch_reset", "track", "describe"])
    where = draw.choice(
        [
            '{{"type": "{kind}", "{field}": {inside}}}',
            '{{"{field}": {inside}, "type": "{kind}"}}',
            '{{"type": "reset", "config": {{"weights": {{"progress": {inside}}}}}}}',
            '{{"type": "reset", "start": {{"arc": {inside}}}}}',
            "{inside}",
        ]
    )
    return TEXT, where.format(kind=kind, field=field, inside=inside).encode()


def _huge_number(draw: random.Random) -> Message:
    digits = "".join(draw.choices("0123456789", k=draw.choice([19, 20, 40, 400, 5000, 20000])))
    number = draw.choice(["", "-"]) + draw.choice([digits, f"0.{digits}", f"1e{digits}", f"1e-{digits}", f"{digits}.5"])
    where = draw.choice(['{{"type": "step", "action": [{0}, 0, {0}]}}', '{{"type": "reset", "seed": {0}}}',
                         '{{"type": "batch_reset", "numCars": {0}}}', '{{"type": {0}}}', "{0}",
                         '{{"type": "reset", "config": {{"weights": {{"progress": {0}}}}}}}',
                         '{{"type": "reset", "start": {{"heading": {0}}}}}'])  # fmt: skip
    return TEXT, where.format(number).encode()


def _large(draw: random.Random) -> Message:
    """Return a message of the maximum size."""
    room = LARGEST_MESSAGE - 100
    filling = draw.choice(['"' + "x" * room + '"', "[" + "0," * (room // 2) + "0]", "[" + "[]," * (room // 3) + "0]",
                           "{" + ",".join(f'"{i}":0' for i in range(room // 10)) + "}", " " * room + "0"])  # fmt: skip
    field = draw.choice(["type", "action", "trackId", "trackIds", "config", "start", "seed", "seeds", "mask", "x"])
    kind = draw.choice(["step", "reset", "batch_reset", "track"])
    return TEXT, f'{{"type": "{kind}", "{field}": {filling}}}'.encode()


def _too_large(draw: random.Random) -> Message:
    return draw.choice([TEXT, BINARY]), b" " * draw.choice([LARGEST_MESSAGE + 1, 100_000, 1_000_000])


def _odd_batch(draw: random.Random) -> Message:
    """Return a batch step with an inconsistent header or invalid numbers."""
    magic = draw.choice([b"RCRB", b"RCRB", b"RCRB", b"BRCR", b"\0\0\0\0"])
    version, kind = draw.choice([0, 1, 1, 1, 2, 65535]), draw.choice([0, 1, 1, 1, 2, 65535])
    cars, ended = draw.choice([0, 1, 2, 3, 3, 3, 4, 1024, 2**31, 2**32 - 1]), draw.choice([0, 0, 1, 2**32 - 1])
    numbers = [
        draw.choice([0.0, 1.0, -1e308, 5e-324, float("nan"), float("inf")]) for _ in range(draw.choice([8, 9, 9, 10]))
    ]
    body = struct.pack(f"<{len(numbers)}d", *numbers)
    return BINARY, struct.pack("<4sHHII", magic, version, kind, cars, ended) + body[
        : draw.choice([None, None, 0, 1, 71])
    ]


KINDS: dict[Callable[[random.Random], Message], float] = {
    _valid: 10, _wrong_field: 30, _odd_fields: 10, _mutated: 20, _noise: 8, _json_noise: 8, _nested: 5, _huge_number: 4,
    _large: 0.5, _too_large: 0.3, _odd_batch: 5,
}  # fmt: skip
