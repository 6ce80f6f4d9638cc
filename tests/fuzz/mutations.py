"""Mutations of valid files and messages: of bytes, of the values in JSON, and of the members of zip files."""

import copy
import json
import random
import re
import struct
import zipfile
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from tests.agents.zips import pack, unpack

Mutate = Callable[[bytes, random.Random], bytes]

NUMBERS: tuple[Any, ...] = (
    0, 1, -1, 2, 3, 13, 255, 256, 4095, 65535, 65536, 10**5, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**63 - 1,
    2**63, 2**64, -(2**31), -(2**63), 10**30, 10**400, 0.5, -0.0, 1e-320, 1e-30, 1e9, 1e38, 1e300, 1e308, -1e308,
    float("nan"), float("inf"), float("-inf"),
)  # fmt: skip
TEXTS = (
    "", "0", "a", "\0", "\x1b[2J", "‮", "\ud800", "🏁" * 40, "x" * 3000, "nan", "..", "../../etc/passwd", "/dev/zero",
    "track-01", "random:1", "random:" + "9" * 40, "__class__", "%s%n", "1e999", "2026-01-01", "<f8", "|O", "<i4", "PPO",
)  # fmt: skip
DEPTHS = (30, 200, 1100, 5000, 100_000)
WORDS = tuple(struct.pack(code, number) for code, number in (
    ("<B", 0), ("<B", 127), ("<B", 128), ("<B", 255), ("<H", 0), ("<H", 65535), ("<I", 0), ("<I", 1), ("<I", 2**31 - 1),
    ("<I", 2**31), ("<I", 2**32 - 1), (">I", 2**31), (">I", 65536), ("<Q", 2**31), ("<Q", 2**40), ("<Q", 2**63),
    ("<Q", 2**64 - 1), ("<d", float("nan")), ("<d", float("inf")), ("<d", 1e308), ("<f", float("nan")),
))  # fmt: skip
TOKENS = (
    b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\u", b"\\ud800", b"-", b"e999", b"NaN", b"Infinity", b"null", b"\xff",
    b"\n", b"\0", b"PK\x01\x02", b"PK\x05\x06", b"\x80\x04", b".", b"(", b"]", b"}", b"R", b"c", b"\x93", b"t",
    b"u", b"b", b"\x94", b"h\x00", b"j\xff\xff\xff\x7f", b"\x8d\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"\xff\xff\xff\xff\x0f",
)  # fmt: skip
"""Parts with a meaning in JSON, zip files, pickles or protocol buffers."""


def mutate_bytes(data: bytes, draw: random.Random) -> bytes:
    """Change, cut, repeat, move or insert bytes at one to four places."""
    content = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        at, size = draw.randrange(len(content) + 1), draw.choice((1, 1, 2, 4, 8, 30, 300))
        kind = draw.randrange(9)
        if kind == 0 and at < len(content):
            content[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            content[at : at + size] = draw.randbytes(size)
        elif kind == 2:
            del content[at : at + size]
        elif kind == 3:
            content[at:at] = content[at : at + size] * draw.choice((1, 1, 2, 100))
        elif kind == 4:
            other = draw.randrange(len(content) + 1)
            content[at : at + size] = content[other : other + size]
        elif kind == 5:
            word = draw.choice(WORDS)
            content[at : at + len(word)] = word
        elif kind == 6:
            content[at:at] = draw.choice(TOKENS) * draw.choice((1, 1, 1, 50))
        elif kind == 7:
            token = draw.choice(TOKENS)
            content[at : at + len(token)] = token
        elif draw.random() < 0.5:
            del content[at:]
    return bytes(content)


def mutate_json(data: bytes, draw: random.Random) -> bytes:
    """Change values of the parsed tree, or sometimes bytes of its text."""
    if draw.random() < 0.2:
        return mutate_bytes(data, draw)
    tree: Any = [json.loads(data)]
    for _ in range(draw.choice((1, 1, 2, 3))):
        _change_place(tree, draw)
    text = json.dumps(tree[0])
    if DEEP in text:
        depth = draw.choice(DEPTHS)
        opening, closing = draw.choice((("[", "]"), ('{"a":', "}")))
        nested = opening * depth + "0" + closing * draw.choice((depth, depth, 0))
        text = text.replace(f'"{DEEP}"', nested, 1).replace(f'"{DEEP}"', "0")  # once: a list may repeat it 2000 times
    return text.encode()


MAX_REPEATED = 2**22
"""Maximum length of the copies of a value [characters]; larger inputs are refused by size before they are read."""
DEEP = "deeply nested"
"""Text that stands for deeply nested JSON until the tree is written."""


def _change_place(tree: Any, draw: random.Random) -> None:
    """Replace, remove, add, swap or repeat a value at a random place."""
    place, key = tree, 0
    while isinstance(place[key], (dict, list)) and place[key] and draw.random() < 0.85:
        place = place[key]
        key = draw.choice(list(place)) if isinstance(place, dict) else draw.randrange(len(place))
    kind = draw.randrange(8)
    if kind == 0 and place is not tree:
        del place[key]
    elif kind == 1 and isinstance(place, dict):
        place[draw.choice(TEXTS)] = _value(draw)
    elif kind == 2 and isinstance(place, list) and place is not tree:
        copies, size = draw.choice((1, 2, 50, 2000)), len(json.dumps(place[key]))
        place[key:key] = [copy.deepcopy(place[key])] * max(1, min(copies, MAX_REPEATED // size))
    elif kind == 3:
        place[key] = [place[key]]
    elif kind == 4 and isinstance(place[key], (int, float)):
        place[key] = draw.choice((-place[key], place[key] * 10**6, place[key] + 1, str(place[key])))
    else:
        place[key] = _value(draw)


def _value(draw: random.Random) -> Any:
    kind = draw.randrange(10)
    if kind < 5:
        return draw.choice(NUMBERS)
    if kind < 7:
        return draw.choice(TEXTS)
    return draw.choice((None, True, False, [], {}, DEEP, [0.0] * 3, [[0, 0, 5]] * 4, {"": {}}, [None] * 14))


def mutate_formula(data: bytes, draw: random.Random) -> bytes:
    """Remove, repeat, replace or nest parts of a formula; or change bytes of its text."""
    if draw.random() < 0.2:
        return mutate_bytes(data, draw)
    parts = _PARTS_OF_FORMULAS.findall(data.decode())
    for _ in range(draw.choice((1, 1, 2, 4))):
        at, kind = draw.randrange(len(parts) + 1), draw.randrange(5)
        if kind == 0:
            del parts[at : at + draw.choice((1, 1, 3))]
        elif kind == 1:
            parts[at:at] = [draw.choice(_FORMULA_WORDS)] * draw.choice((1, 1, 1, 2, 60, 5000))
        elif kind == 2 and at < len(parts):
            parts[at] = draw.choice(_FORMULA_WORDS)
        elif kind == 3:
            depth = draw.choice((1, 3, 15, 25, 4000))
            parts = [*["("] * depth, *parts, *[")"] * draw.choice((depth, depth, 0))]
        else:
            parts[at:at] = parts[: draw.choice((3, 10, 40))]
    return draw.choice((b" ", b" ", b"", b"\t")).join(part.encode() for part in parts)


_PARTS_OF_FORMULAS = re.compile(r"[A-Za-z_]\w*|[\d.]+|\*\*|[<>=!]=|\S")
_FORMULA_WORDS = (
    "speed", "slip", "heading_error", "lap_finished", "abs", "min", "clip", "exp", "log", "sqrt", "if", "else", "and",
    "or", "not", "+", "-", "*", "/", "**", "<", ">=", "==", "(", ")", ",", "0", "1e9", "1e-300", "-1", ".", "=", "[",
    "'", "lambda", "__class__", "import", "\u202e", "é",
)  # fmt: skip


def mutate_circuit(data: bytes, draw: random.Random) -> bytes:
    """Move, repeat, drop or scale control points, so that most files stay well formed; or change any value."""
    if draw.random() < 0.2:
        return mutate_json(data, draw)
    circuit = json.loads(data)
    points = [list(point) for point in circuit["control_points"]]
    for _ in range(draw.choice((1, 1, 2, 4))):
        kind, at = draw.randrange(8), draw.randrange(len(points) or 1)
        size = draw.choice((0.5, 5.0, 60.0, 400.0, 3000.0))
        if kind == 0:
            points = [[x + draw.gauss(0.0, size), y + draw.gauss(0.0, size), width] for x, y, width in points]
        elif kind == 1:
            points[at:at] = points[at : at + draw.choice((1, 3, 10))] * draw.choice((1, 5, 90, 2000))
        elif kind == 2:
            del points[at : at + draw.choice((1, 3, 1000))]
        elif kind == 3:
            factor = draw.choice((0.0, 1e-3, 0.3, 3.0, 60.0, 1e9, -1.0))
            points = [[factor * x, draw.choice((1.0, factor)) * y, width] for x, y, width in points]
        elif kind == 4:
            points = [[x, y, draw.choice((width, 0.0, 2.0, size, -size))] for x, y, width in points]
        elif kind == 5:
            draw.shuffle(points)
        elif kind == 6:
            points = [[round(number / 7) * size, size * (number % 7), 5.0] for number in range(draw.choice((50, 900)))]
        elif points:
            points[at][draw.randrange(3)] = draw.choice([each for each in NUMBERS if abs(each) < 1e300])
    return json.dumps({**circuit, "control_points": points, "gates": draw.choice((2, 30, 1000))}).encode()


def mutate_lines(data: bytes, draw: random.Random) -> bytes:
    """Change a line of JSON, or the order and number of the lines."""
    lines = data.splitlines()
    at = draw.randrange(len(lines))
    kind = draw.randrange(8)
    if kind < 5:
        lines[at] = mutate_json(lines[at], draw)
    elif kind == 5:
        lines[at:at] = [lines[at]] * draw.choice((1, 3, 3000))
    elif kind == 6:
        draw.shuffle(lines)
    else:
        return mutate_bytes(data, draw)
    return b"\n".join(lines) + b"\n"


@lru_cache(maxsize=64)
def _members(data: bytes) -> dict[str, bytes]:
    return unpack(data)


def mutate_zip(data: bytes, draw: random.Random) -> bytes:
    """Change a member, also inside a zip in the zip, with right checksums; or bytes of the file as a whole."""
    if draw.random() < 0.2:
        return mutate_bytes(data, draw)
    members = dict(_members(data))
    name = draw.choice(list(members))
    kind = draw.randrange(12)
    if kind == 0:
        del members[name]
    elif kind == 1:
        members[draw.choice((*members, "0", "extra"))] = members[name]
    elif kind == 2:
        members[name] = b" " * 10**6 + members[name] if draw.random() < 0.5 else members[name] * 20
        return pack(members, zipfile.ZIP_DEFLATED)
    else:
        members[name] = _mutator_of(members[name])(members[name], draw)
    return pack(members, draw.choice((zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_BZIP2)))


def _mutator_of(data: bytes) -> Mutate:
    if data.startswith(b"PK\x03\x04"):
        return mutate_zip
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return mutate_bytes
    return mutate_json


def mutate_protobuf(data: bytes, draw: random.Random) -> bytes:
    """Change a field at any depth of an ONNX file, with right lengths around it; or bytes of the file."""
    if draw.random() < 0.2:
        return mutate_bytes(data, draw)
    for _ in range(draw.choice((1, 1, 2, 3))):
        data = _mutate_message(data, draw)
    return data


def _mutate_message(data: bytes, draw: random.Random) -> bytes:
    fields = _parse_message(data)
    if not fields:
        return mutate_bytes(data, draw)
    at = draw.randrange(len(fields))
    parts = [number for number, (_, value) in enumerate(fields) if isinstance(value, bytes) and _parse_message(value)]
    if parts and draw.random() < 0.8:
        at = draw.choice(parts)
        fields[at] = fields[at][0], _mutate_message(bytes(fields[at][1]), draw)
        return _write_message(fields)
    key, value = fields[at]
    kind = draw.randrange(8)
    if kind == 0:
        del fields[at]
    elif kind == 1:
        fields[at:at] = [fields[at]] * draw.choice((1, 2, 40, 2000))
    elif kind == 2:
        other = draw.randrange(len(fields))
        fields[at] = key, fields[other][1]
    elif isinstance(value, int):
        number = draw.choice([each for each in NUMBERS if isinstance(each, int)])
        fields[at] = key, draw.choice((number % 2**64, value + 1, draw.randrange(40)))
    elif draw.random() < 0.5:
        name = draw.choice([each for _, each in fields if isinstance(each, bytes)])
        fields[at] = (
            key,
            draw.choice((name, *(text.encode("utf-8", "surrogatepass") for text in (*TEXTS, *OPERATIONS)))),
        )
    else:
        fields[at] = key, mutate_bytes(value, draw)
    return _write_message(fields)


def _write_message(fields: Sequence[tuple[int, int | bytes]]) -> bytes:
    return b"".join(_write_varint(key) + _write_value(key & 7, value) for key, value in fields)


OPERATIONS = ("Gemm", "Add", "Div", "Min", "Concat", "Constant", "Reshape", "Flatten", "Clip", "Elu", "Loop", "Expand")


def _parse_message(data: bytes) -> list[tuple[int, int | bytes]]:
    """Return the keys and values of a message; nothing if it is none. Values of 4 and 8 bytes stay bytes."""
    fields: list[tuple[int, int | bytes]] = []
    position = 0
    try:
        while position < len(data):
            key, position = _parse_varint(data, position)
            if key & 7 == 0:
                value, position = _parse_varint(data, position)
                fields.append((key, value))
                continue
            size = {1: 8, 5: 4}.get(key & 7)
            if size is None:
                size, position = _parse_varint(data, position)
            if key & 7 not in (1, 2, 5) or not key >> 3 or size > len(data) - position:
                return []
            fields.append((key, data[position : position + size]))
            position += size
    except IndexError:
        return []
    return fields


def _parse_varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        value |= (data[position] & 127) << shift
        position += 1
        if data[position - 1] < 128:
            return value, position
    raise IndexError


def _write_value(wire_type: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _write_varint(value)
    return value if wire_type in (1, 5) else _write_varint(len(value)) + value


def _write_varint(value: int) -> bytes:
    result = bytearray()
    while value > 127:
        result.append(value & 127 | 128)
        value >>= 7
    return bytes((*result, value))


def mutate_any(seeds: Sequence[bytes], mutate: Mutate, draw: random.Random) -> bytes:
    """Return a mutation of one of these seeds; sometimes the beginning of one and the end of another."""
    if draw.random() < 0.04:
        first, second = draw.choice(seeds), draw.choice(seeds)
        return first[: draw.randrange(len(first) + 1)] + second[draw.randrange(len(second) + 1) :]
    return mutate(draw.choice(seeds), draw)
