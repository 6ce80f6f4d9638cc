"""Random formulas for tests: each is a text, and its meaning in plain Python, without the project's parser."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

from racer_env.engine.formulas import FUNCTIONS, LIMIT
from racer_env.engine.quantities import QUANTITIES

Values = Mapping[str, float]


@dataclass(frozen=True)
class Tree:
    """A formula with parentheses around every part."""

    text: str
    value: Callable[[Values], float]


def limited(value: float) -> float:
    """Return the value that the language gives for a result: always a finite number."""
    return 0.0 if math.isnan(value) else min(LIMIT, max(-LIMIT, value))


def _power(a: float, b: float) -> float:
    try:
        result = a**b
    except ZeroDivisionError:
        return math.copysign(math.inf, a) if b % 2.0 == 1.0 else math.inf
    except OverflowError:
        return -math.inf if a < 0.0 and b % 2.0 == 1.0 else math.inf
    return math.nan if isinstance(result, complex) else result


def _exp(a: float) -> float:
    try:
        return math.exp(a)
    except OverflowError:
        return math.inf


BINARY: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b if b else 0.0,
    "**": _power,
    "<": lambda a, b: float(a < b),
    "<=": lambda a, b: float(a <= b),
    ">": lambda a, b: float(a > b),
    ">=": lambda a, b: float(a >= b),
    "==": lambda a, b: float(a == b),
    "!=": lambda a, b: float(a != b),
    "and": lambda a, b: float(bool(a) and bool(b)),
    "or": lambda a, b: float(bool(a) or bool(b)),
}
CALLS: dict[str, Callable[..., float]] = {
    "abs": abs,
    "min": min,
    "max": max,
    "clip": lambda x, low, high: min(max(x, low), high),
    "sqrt": lambda x: math.sqrt(max(0.0, x)),
    "exp": _exp,
    "log": lambda x: math.log(max(x, 1e-9)),
    "sign": lambda x: float((x > 0.0) - (x < 0.0)),
    "sin": math.sin,
    "cos": math.cos,
    "tanh": math.tanh,
}
assert CALLS.keys() == FUNCTIONS.keys()

NUMBERS = st.one_of(
    st.integers(0, 20).map(lambda number: (str(number), float(number))),
    st.floats(0.0, 1e9, allow_nan=False).map(lambda number: (repr(number), number)),
    st.sampled_from([(".5", 0.5), ("2.", 2.0), ("1e-3", 1e-3), ("1E9", 1e9), ("pi", math.pi)]),
)
LEAVES = st.one_of(
    NUMBERS.map(lambda each: Tree(each[0], lambda values: each[1])),
    st.sampled_from([each.name for each in QUANTITIES]).map(lambda name: Tree(name, lambda values: values[name])),
)


def _binary(sign: str, a: Tree, b: Tree) -> Tree:
    return Tree(f"({a.text} {sign} {b.text})", lambda values: limited(BINARY[sign](a.value(values), b.value(values))))


def _call(name: str, parts: list[Tree]) -> Tree:
    text = f"{name}({', '.join(part.text for part in parts)})"
    return Tree(text, lambda values: limited(CALLS[name](*(part.value(values) for part in parts))))


def _call_of(name: str, parts: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    function = FUNCTIONS[name]
    arguments = st.lists(parts, min_size=function.least, max_size=function.most or 4)
    return arguments.map(lambda chosen: _call(name, chosen))


def _bigger(parts: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    return st.one_of(
        st.builds(_binary, st.sampled_from([*BINARY]), parts, parts),
        st.builds(lambda a: Tree(f"(-{a.text})", lambda values: -a.value(values)), parts),
        st.builds(lambda a: Tree(f"(not {a.text})", lambda values: float(not a.value(values))), parts),
        st.builds(
            lambda a, test, b: Tree(
                f"({a.text} if {test.text} else {b.text})",
                lambda values: a.value(values) if test.value(values) else b.value(values),
            ),
            parts, parts, parts,
        ),
        st.sampled_from([*FUNCTIONS]).flatmap(lambda name: _call_of(name, parts)),
    )  # fmt: skip


TREES = st.recursive(LEAVES, _bigger, max_leaves=12)
