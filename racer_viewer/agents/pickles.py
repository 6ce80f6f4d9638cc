"""Pickles, read without running them.

A pickle is a program for a small stack machine: it names functions and calls them. This reader follows the stack but
has nothing to call: a name stays a name, a call becomes a `Record` of what would have been called. Python's own
`Unpickler`, even with a strict `find_class`, can still be made to fill the memory by ten bytes (a memo number of 2^31)
or to think for hours (a tuple of tuples of tuples as a key); here neither is possible.
"""

from __future__ import annotations

import pickletools
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any

from racer_viewer.agents.errors import AgentError, shown

MAX_PICKLE_BYTES = 16 * 2**20

_LITERALS = frozenset(
    (
        "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8",
        "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8",
    )
)  # fmt: skip
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


@dataclass(frozen=True)
class Name:
    """The name of a class or function, as `module.name`. It is never looked up."""

    text: str


@dataclass(frozen=True, eq=False)
class Reference:
    """What a pickle says of something that is stored elsewhere."""

    identity: Any


@dataclass(eq=False)
class Record:
    """What a pickle says of an object: whose call would have made it, and what would have been put into it."""

    name: str
    arguments: tuple[Any, ...]
    items: dict[Any, Any] = field(default_factory=dict)
    entries: list[Any] = field(default_factory=list)
    state: Any = None


def read_pickle(data: bytes, allowed: Container[str]) -> Any:
    """The content of a pickle as plain values and records. A name that is not allowed is refused."""
    try:
        return _Reader(allowed).read(data)
    except (ValueError, TypeError, LookupError, OverflowError) as error:
        raise AgentError(f"holds a pickle that is damaged or truncated ({shown(str(error))})") from error


class _Reader:
    """The stack, the memo, and one method for every instruction that needs more than a line."""

    def __init__(self, allowed: Container[str]) -> None:
        self._allowed = allowed
        self._stack: list[Any] = []
        self._outer_stacks: list[list[Any]] = []
        self._memo: dict[int, Any] = {}

    def read(self, data: bytes) -> Any:
        for instruction, argument, _ in pickletools.genops(data):
            if instruction.name == "STOP":
                break
            self._follow(instruction.name, argument)
        return self._stack.pop()

    def _follow(self, instruction: str, argument: Any) -> None:
        stack = self._stack
        match instruction:
            case "PROTO" | "FRAME":
                pass
            case _ if instruction in _LITERALS:
                stack.append(argument)
            case _ if instruction in _CONSTANTS:
                stack.append(_CONSTANTS[instruction])
            case "EMPTY_LIST":
                stack.append([])
            case "EMPTY_DICT":
                stack.append({})
            case "MARK":
                self._outer_stacks.append(stack)
                self._stack = []
            case "TUPLE":
                values = tuple(self._since_mark())
                self._stack.append(values)
            case _ if instruction in _TUPLES:
                stack.append(tuple(self._last(_TUPLES[instruction])))
            case "APPEND":
                self._extend(self._last(1))
            case "APPENDS":
                self._extend(self._since_mark())
            case "SETITEM":
                self._set_items(self._last(2))
            case "SETITEMS":
                self._set_items(self._since_mark())
            case "GLOBAL":
                self._push_name(*argument.split(" ", 1))
            case "STACK_GLOBAL":
                self._push_name(*self._last(2))
            case "REDUCE" | "NEWOBJ":
                self._push_record(*self._last(2))
            case "BUILD":
                self._build(stack.pop())
            case "BINPERSID":
                stack.append(Reference(stack.pop()))
            case "BINPUT" | "LONG_BINPUT":
                self._memo[argument] = stack[-1]
            case "MEMOIZE":
                self._memo[len(self._memo)] = stack[-1]
            case "BINGET" | "LONG_BINGET":
                stack.append(self._memo[argument])
            case _:
                raise AgentError(f"holds a pickle with the instruction {instruction}, which has no place there")

    def _last(self, count: int) -> list[Any]:
        if len(self._stack) < count:
            raise LookupError("the stack is empty")
        values = self._stack[-count:]
        del self._stack[-count:]
        return values

    def _since_mark(self) -> list[Any]:
        values, self._stack = self._stack, self._outer_stacks.pop()
        return values

    def _push_name(self, module: Any, name: Any) -> None:
        text = f"{module}.{name}" if isinstance(module, str) and isinstance(name, str) else ""
        if text not in self._allowed:
            raise AgentError(f"holds a pickle that wants {shown(text)}, which has no place there")
        self._stack.append(Name(text))

    def _push_record(self, name: Any, arguments: Any) -> None:
        if not isinstance(name, Name) or not isinstance(arguments, tuple):
            raise TypeError("a call of something that has no name")
        self._stack.append(Record(name.text, arguments))

    def _build(self, state: Any) -> None:
        if not isinstance(self._stack[-1], Record):
            raise TypeError("a state for something that has none")
        self._stack[-1].state = state

    def _extend(self, values: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, list | Record):
            raise TypeError("entries for something that is no list")
        (target.entries if isinstance(target, Record) else target).extend(values)

    def _set_items(self, pairs: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, dict | Record) or len(pairs) % 2:
            raise TypeError("items for something that is no dictionary")
        items = target.items if isinstance(target, Record) else target
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            if not (isinstance(key, str) or (isinstance(key, int) and key.bit_length() < 64)):
                raise TypeError("a key that is neither text nor a number")
            items[key] = value
