"""Formulas of reward terms: tokens, grammar, and the operations that compiled code carries out.

A formula is one expression over named quantities, such as `-0.01 * abs(slip) if speed > 20 else 0`. It is read here,
and becomes rows of numbers for the evaluator in `terms`: nothing of it is ever executed as a program, no code is
generated from it, and everything about it has a limit.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple, NoReturn

from racer_env.engine.quantities import QUANTITIES, QUANTITY_INDEX
from racer_env.errors import ConfigError, suggestion

MAX_LENGTH = 300
"""Maximum length of a formula [characters]."""
MAX_NESTING = 20
"""Maximum number of parentheses, functions and conditions inside each other."""
MAX_OPERATIONS = 160
"""Maximum number of operations of all terms together; a client of a server pays for its own, and so does the server."""
MAX_CONSTANTS = 96
"""Maximum number of different numbers in all terms."""
REGISTERS = 32
"""Number of results that wait to be used at the same time."""
LIMIT = 1e9
"""Limit of every number and every result: larger ones become this, so that a reward is always finite."""


class Operation(IntEnum):
    """Operations of the evaluator."""

    ADD = 0
    SUBTRACT = 1
    MULTIPLY = 2
    DIVIDE = 3
    POWER = 4
    LESS = 5
    LESS_EQUAL = 6
    EQUAL = 7
    NOT_EQUAL = 8
    AND = 9
    OR = 10
    NOT = 11
    NEGATE = 12
    SELECT = 13
    ABS = 14
    MIN = 15
    MAX = 16
    CLIP = 17
    SQRT = 18
    EXP = 19
    LOG = 20
    SIGN = 21
    SIN = 22
    COS = 23
    TANH = 24


class Function(NamedTuple):
    """A function of the language. most: None for any number of arguments."""

    name: str
    operation: Operation
    least: int
    most: int | None
    arguments: str
    help: str


FUNCTIONS = {
    each.name: each
    for each in (
        Function("abs", Operation.ABS, 1, 1, "x", "size of a number without its sign"),
        Function("min", Operation.MIN, 2, None, "x, y, ...", "the smallest of two or more numbers"),
        Function("max", Operation.MAX, 2, None, "x, y, ...", "the largest of two or more numbers"),
        Function("clip", Operation.CLIP, 3, 3, "x, low, high", "x, but at least low and at most high"),
        Function("sqrt", Operation.SQRT, 1, 1, "x", "square root; of a negative number 0"),
        Function("exp", Operation.EXP, 1, 1, "x", "e to the power of x"),
        Function("log", Operation.LOG, 1, 1, "x", "natural logarithm; a number below 1e-9 counts as 1e-9"),
        Function("sign", Operation.SIGN, 1, 1, "x", "-1, 0 or 1"),
        Function("sin", Operation.SIN, 1, 1, "x", "sine of an angle in radians"),
        Function("cos", Operation.COS, 1, 1, "x", "cosine of an angle in radians"),
        Function("tanh", Operation.TANH, 1, 1, "x", "hyperbolic tangent: x near 0, and never beyond -1 and 1"),
    )
}
"""Functions by name."""
CONSTANTS = {"pi": math.pi}
"""Named numbers."""
WORDS = ("and", "or", "not", "if", "else")
"""Words of the language."""
KNOWN_NAMES = (*QUANTITY_INDEX, *FUNCTIONS, *CONSTANTS)


class FormulaError(ConfigError):
    """A formula is wrong.

    column: index of the first wrong character. length: number of wrong characters. term: name of the term, if known.
    """

    def __init__(self, reason: str, column: int, length: int = 1, term: str = "") -> None:
        super().__init__(f"{term and f'config.terms.{term}: '}column {column + 1}: {reason}")
        self.reason, self.column, self.length, self.term = reason, column, length, term


class Token(NamedTuple):
    """kind: "number", "name", "operator" or "end"."""

    kind: str
    text: str
    column: int


_TOKEN = re.compile(
    r"[ \t\r\n]*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<operator>\*\*|<=|>=|==|!=|[-+*/<>(),]))",
    re.ASCII,
)
_SPACE = " \t\r\n"
_HINTS = {
    "=": "use == to compare",
    "^": "use ** for a power",
    "&": "use and",
    "|": "use or",
    "!": "use not, or != to compare",
    "?": "write A if CONDITION else B",
    ".": "names have no parts",
    "[": "use ( and )",
    "{": "use ( and )",
    "%": "there is no remainder",
    "×": "use *",
    "·": "use *",
    "−": "use -",
    "÷": "use /",
}


def tokens(text: str) -> list[Token]:
    """Split a formula into its tokens; the last one is its end. Raises FormulaError."""
    if len(text) > MAX_LENGTH:
        raise FormulaError(f"a formula has at most {MAX_LENGTH} characters, not {len(text):,}", MAX_LENGTH)
    found, place, end = [], 0, len(text.rstrip(_SPACE))
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None:
            column = end - len(text[place:end].lstrip(_SPACE))
            sign = text[column]
            hint = _HINTS.get(sign, "use numbers, names, + - * / ( ) and the words and, or, not, if, else")
            shown = sign if sign.isprintable() else ascii(sign)
            raise FormulaError(f"{shown} is not part of a formula: {hint}", column)
        kind = match.lastgroup or ""
        found.append(Token(kind, match[kind], match.start(kind)))
        place = match.end()
    return [*found, Token("end", "", end)]


@dataclass(frozen=True)
class Number:
    """A number, or one of the `CONSTANTS`."""

    value: float


@dataclass(frozen=True)
class Name:
    """A quantity."""

    index: int


@dataclass(frozen=True)
class Apply:
    """An operation on one to three parts."""

    operation: Operation
    parts: tuple[Node, ...]
    column: int


Node = Number | Name | Apply

_COMPARISONS = {"<": Operation.LESS, "<=": Operation.LESS_EQUAL, ">": Operation.LESS, ">=": Operation.LESS_EQUAL,
                "==": Operation.EQUAL, "!=": Operation.NOT_EQUAL}  # fmt: skip
_SWAPPED = (">", ">=")
_SUMS = {"+": Operation.ADD, "-": Operation.SUBTRACT}
_PRODUCTS = {"*": Operation.MULTIPLY, "/": Operation.DIVIDE}


class _Parser:
    """Recursive-descent parser of one formula; precedence is that of Python."""

    def __init__(self, text: str) -> None:
        self._tokens, self._next, self._depth = tokens(text), 0, 0

    def parse(self) -> Node:
        if self._token.kind == "end":
            raise FormulaError("the formula is empty: write an expression such as -0.01 * slip", 0)
        tree = self._expression()
        if self._token.kind != "end":
            self._fail_after_operand()
        return tree

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _take(self, *texts: str) -> Token | None:
        """Return the next token and move on if it is one of these operators or words."""
        token = self._token
        if token.text not in texts or token.kind == "end":
            return None
        self._next += 1
        return token

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise FormulaError(f"nested too deeply: at most {MAX_NESTING} levels", self._token.column)

    def _expression(self) -> Node:
        """Parse `A if CONDITION else B`, or anything below it."""
        self._enter()
        value = self._any_of()
        if (word := self._take("if")) is not None:
            condition = self._any_of()
            if self._take("else") is None:
                self._fail("else is missing: write A if CONDITION else B")
            value = Apply(Operation.SELECT, (condition, value, self._expression()), word.column)
        self._depth -= 1
        return value

    def _any_of(self) -> Node:
        value = self._all_of()
        while (word := self._take("or")) is not None:
            value = Apply(Operation.OR, (value, self._all_of()), word.column)
        return value

    def _all_of(self) -> Node:
        value = self._negation()
        while (word := self._take("and")) is not None:
            value = Apply(Operation.AND, (value, self._negation()), word.column)
        return value

    def _negation(self) -> Node:
        if (word := self._take("not")) is None:
            return self._comparison()
        self._enter()
        value = Apply(Operation.NOT, (self._negation(),), word.column)
        self._depth -= 1
        return value

    def _comparison(self) -> Node:
        """Parse a comparison; a chain such as `10 < speed < 20` is true if each of its comparisons is."""
        left, result = self._sum(), None
        while (sign := self._take(*_COMPARISONS)) is not None:
            right = self._sum()
            parts = (right, left) if sign.text in _SWAPPED else (left, right)
            compared = Apply(_COMPARISONS[sign.text], parts, sign.column)
            result = compared if result is None else Apply(Operation.AND, (result, compared), sign.column)
            left = right
        return left if result is None else result

    def _sum(self) -> Node:
        value = self._product()
        while (sign := self._take(*_SUMS)) is not None:
            value = Apply(_SUMS[sign.text], (value, self._product()), sign.column)
        return value

    def _product(self) -> Node:
        value = self._signed()
        while (sign := self._take(*_PRODUCTS)) is not None:
            value = Apply(_PRODUCTS[sign.text], (value, self._signed()), sign.column)
        return value

    def _signed(self) -> Node:
        sign = self._take("-", "+")
        if sign is None:
            return self._power()
        self._enter()
        value = self._signed()
        self._depth -= 1
        if sign.text == "+":
            return value
        return Number(-value.value) if isinstance(value, Number) else Apply(Operation.NEGATE, (value,), sign.column)

    def _power(self) -> Node:
        base = self._atom()
        if (sign := self._take("**")) is None:
            return base
        self._enter()
        value = Apply(Operation.POWER, (base, self._signed()), sign.column)
        self._depth -= 1
        return value

    def _atom(self) -> Node:
        token = self._token
        if self._take("(") is not None:
            value = self._expression()
            if self._take(")") is None:
                self._fail_after_operand("expected )")
            return value
        if token.kind == "number":
            self._next += 1
            return self._number(token)
        if token.kind == "name" and token.text not in WORDS:
            self._next += 1
            return self._named(token)
        self._fail("a number, a name or ( is missing")

    def _number(self, token: Token) -> Node:
        value = float(token.text)
        if not value <= LIMIT:
            raise FormulaError(f"a number is at most {LIMIT:g}", token.column, len(token.text))
        return Number(value)

    def _named(self, token: Token) -> Node:
        name, length = token.text, len(token.text)
        if name in FUNCTIONS:
            return self._call(token)
        if self._token.text == "(":
            hint = suggestion(name, FUNCTIONS)
            raise FormulaError(f"{name[:MAX_NAME_SHOWN]} is not a function; {hint}", token.column, length)
        if name in CONSTANTS:
            return Number(CONSTANTS[name])
        if name not in QUANTITY_INDEX:
            hint = suggestion(name, KNOWN_NAMES, "see docs/rewards.md for all quantities")
            raise FormulaError(f"unknown quantity {name[:MAX_NAME_SHOWN]!r}; {hint}", token.column, length)
        return Name(QUANTITY_INDEX[name])

    def _call(self, token: Token) -> Node:
        function = FUNCTIONS[token.text]
        usage = f"write {function.name}({function.arguments})"
        if self._take("(") is None:
            raise FormulaError(f"{function.name} is a function: {usage}", token.column, len(token.text))
        arguments = [self._expression()]
        while self._take(",") is not None:
            arguments.append(self._expression())
        if self._take(")") is None:
            self._fail_after_operand("expected , or )")
        if not function.least <= len(arguments) <= (function.most or len(arguments)):
            count = f"{len(arguments)} argument{'s' if len(arguments) > 1 else ''}"
            raise FormulaError(f"{count} for {function.name}: {usage}", token.column, len(token.text))
        if function.most is None:  # folded into pairs
            value = arguments[0]
            for argument in arguments[1:]:
                value = Apply(function.operation, (value, argument), token.column)
            return value
        return Apply(function.operation, tuple(arguments), token.column)

    def _fail_after_operand(self, expected: str = "") -> NoReturn:
        """Raise an error for what follows a complete part of the formula."""
        token = self._token
        if token.kind in ("number", "name") and token.text not in WORDS:
            self._fail(f"an operator such as * is missing before {token.text[:MAX_NAME_SHOWN]}")
        self._fail(expected or f"unexpected {token.text}")

    def _fail(self, reason: str) -> NoReturn:
        """Raise an error at the next token."""
        token = self._token
        where = " at the end" if token.kind == "end" else ""
        raise FormulaError(reason + where, token.column, max(1, len(token.text)))


MAX_NAME_SHOWN = 40
"""Maximum length of a name in an error message [characters]."""


@lru_cache(maxsize=256)
def parse_formula(text: str) -> Node:
    """Return the tree of a formula. Raises FormulaError."""
    return _Parser(text).parse()


Instruction = tuple[int, int, int, int, int]
"""Operation, operand that receives the result, and up to three operands it works on."""


@dataclass(frozen=True)
class Program:
    """All terms of a reward as the evaluator reads them.

    Operands are indices of one array of numbers: first the quantities, then constants, then registers.

    instructions: those of all terms, one term after the other.
    constants: the numbers of all terms.
    ends: end of each term's instructions. results: operand with the value of each term.
    quantities: indices of the quantities that any term uses.
    """

    instructions: tuple[Instruction, ...]
    constants: tuple[float, ...]
    ends: tuple[int, ...]
    results: tuple[int, ...]
    quantities: frozenset[int]


FIRST_CONSTANT = len(QUANTITIES)
FIRST_REGISTER = FIRST_CONSTANT + MAX_CONSTANTS
OPERANDS = FIRST_REGISTER + REGISTERS
"""Number of operands."""


class _Translator:
    """Turns trees into instructions."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.constants: dict[float, int] = {}
        self.quantities: set[int] = set()
        self._free: list[int] = []

    def translate(self, tree: Node) -> int:
        """Add the instructions of a term; return the operand with its value."""
        self._free = [*range(OPERANDS - 1, FIRST_REGISTER - 1, -1)]
        return self._operand(tree)

    def _operand(self, node: Node) -> int:
        if isinstance(node, Name):
            self.quantities.add(node.index)
            return node.index
        if isinstance(node, Number):
            if node.value not in self.constants and len(self.constants) == MAX_CONSTANTS:
                raise FormulaError(f"too many different numbers: at most {MAX_CONSTANTS} in all terms", 0)
            return self.constants.setdefault(node.value, FIRST_CONSTANT + len(self.constants))
        operands = [self._operand(part) for part in node.parts]
        self._free += {each for each in operands if each >= FIRST_REGISTER}
        if not self._free:
            raise FormulaError("nested too deeply: write it as several terms", node.column)
        if len(self.instructions) == MAX_OPERATIONS:
            raise FormulaError(f"too long: at most {MAX_OPERATIONS} operations in all terms", node.column)
        target = self._free.pop()
        a, b, c = (*operands, 0, 0)[:3]
        self.instructions.append((int(node.operation), target, a, b, c))
        return target


@lru_cache(maxsize=64)
def translate(formulas: tuple[tuple[str, str], ...]) -> Program:
    """Return the program of some terms, given by names and formulas. Raises FormulaError with the name of the term."""
    translator, ends, results = _Translator(), [], []
    for name, text in formulas:
        try:
            results.append(translator.translate(parse_formula(text)))
        except FormulaError as error:
            raise FormulaError(error.reason, error.column, error.length, name) from None
        ends.append(len(translator.instructions))
    return Program(
        tuple(translator.instructions), tuple(translator.constants), tuple(ends), tuple(results),
        frozenset(translator.quantities),
    )  # fmt: skip
