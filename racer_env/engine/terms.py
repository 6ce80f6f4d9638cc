"""Reward terms of a config: their names and formulas, and the evaluator of their programs.

A program is a row of instructions over one array of numbers, the operands. The evaluator is compiled once, with the
engine: another formula is another array, so no formula has to wait for a compiler, and none becomes code.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_env.engine.compiled import Compiled, shared
from racer_env.engine.formulas import (
    CONSTANTS,
    FIRST_CONSTANT,
    FUNCTIONS,
    LIMIT,
    MAX_OPERATIONS,
    OPERANDS,
    WORDS,
    Operation,
    Program,
    translate,
)
from racer_env.engine.quantities import measures_for
from racer_env.engine.rewards import COMPONENT_COUNT, MAX_TERMS, REWARD_COMPONENTS, TermComponent
from racer_env.errors import ConfigError, short

MAX_NAME_LENGTH = 24
"""Maximum length of a term's name [characters]."""
RESERVED = frozenset(
    {
        *(component.wire_name for component in REWARD_COMPONENTS),
        *("tick", "rawSpeed", "lap", "checkpoint", "stepCount", "wallContact", "stillnessCounter"),
        *("episode", "final_obs", "final_info", "terminal_observation", "total", "reward"),
    }
)
"""Names that a term cannot have: keys of an `info`, of Gymnasium and of stable-baselines3 have them already."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)

TERM_RULES: list[tuple[Any, ...]] = [
    ("measures", "i8"), ("terms", "i8"), ("ends", "i8", MAX_TERMS), ("results", "i8", MAX_TERMS),
    ("instructions", "i2", (MAX_OPERATIONS, 5)), ("values", "f8", OPERANDS),
]  # fmt: skip
"""Columns of a config's record for its terms.

measures: bits of what a tick must measure, see `quantities`; 0 without terms.
terms: number of terms. ends, results: see `formulas.Program`.
values: operands. Each car's tick writes its quantities and results there: threads need a record of their own.
"""

(_ADD, _SUBTRACT, _MULTIPLY, _DIVIDE, _POWER, _LESS, _LESS_EQUAL, _EQUAL, _NOT_EQUAL, _AND, _OR, _NOT, _NEGATE, _SELECT,
 _ABS, _MIN, _MAX, _CLIP, _SQRT, _EXP, _LOG, _SIGN, _SIN, _COS, _TANH) = range(len(Operation))  # fmt: skip
LEAST_LOG = 1e-9
"""Smallest number whose logarithm is taken."""


def parse_terms(content: Any) -> dict[str, str]:
    """Return the checked terms of an ai-config, by their names. Raises ConfigError."""
    if not isinstance(content, Mapping):
        raise ConfigError(f"config.terms must be an object of names and formulas, not {type(content).__name__}")
    if len(content) > MAX_TERMS:
        raise ConfigError(f"config.terms: at most {MAX_TERMS} terms, not {len(content)}")
    for name, formula in content.items():
        check_term_name(name)
        if not isinstance(formula, str):
            raise ConfigError(f"config.terms.{name} must be a formula in quotes, not {short(formula)}")
    terms = {str(name): str(formula) for name, formula in content.items()}
    translate(tuple(terms.items()))
    return terms


def is_term_name(name: Any) -> bool:
    """Return whether this is a text of the form of a term's name."""
    return isinstance(name, str) and len(name) <= MAX_NAME_LENGTH and _NAME.fullmatch(name) is not None


def check_term_name(name: Any) -> None:
    """Raise ConfigError for a name that a term cannot have."""
    if not is_term_name(name):
        raise ConfigError(
            f"config.terms: {short(name)} is not a name: use a letter, then letters, digits and _, "
            f"at most {MAX_NAME_LENGTH}"
        )
    if name in RESERVED or name in FUNCTIONS or name in CONSTANTS or name in WORDS or keyword.iskeyword(name):
        raise ConfigError(f"config.terms: the name {name} has another meaning: use another one")


def term_components(terms: Mapping[str, str]) -> tuple[TermComponent, ...]:
    """Return the components of some terms."""
    return tuple(TermComponent(name, formula, number) for number, (name, formula) in enumerate(terms.items()))


def program_of(terms: Mapping[str, str]) -> Program:
    """Return the program of some terms. Raises FormulaError."""
    return translate(tuple(terms.items()))


def write_program(program: Program, record: NDArray[np.void]) -> None:
    """Write a program to the columns `TERM_RULES` of a config's record."""
    count = len(program.results)
    record["measures"], record["terms"] = measures_for(program.quantities) or int(count > 0), count
    record["ends"][0, :count], record["results"][0, :count] = program.ends, program.results
    if program.instructions:
        record["instructions"][0, : len(program.instructions)] = program.instructions
    record["values"][0, FIRST_CONSTANT : FIRST_CONSTANT + len(program.constants)] = program.constants


@shared
def pay_terms(rules: Compiled, car: Compiled) -> None:
    """Evaluate the terms, set their components, and add them to the reward."""
    run_program(rules, car.components)
    for term in range(rules.terms):
        car.reward += car.components[COMPONENT_COUNT + term]


@shared
def run_program(rules: Compiled, components: Compiled) -> None:
    """Set the components of the terms from the quantities in `rules.values`."""
    code, values = rules.instructions, rules.values
    at = 0
    for term in range(rules.terms):
        while at < rules.ends[term]:
            values[code[at, 1]] = _result(code[at, 0], values[code[at, 2]], values[code[at, 3]], values[code[at, 4]])
            at += 1
        components[COMPONENT_COUNT + term] = _limited(values[rules.results[term]])


@shared
def _result(operation: int, a: float, b: float, c: float) -> float:
    """Return the result of one operation, which is always finite."""
    value = 0.0
    if operation == _ADD:
        value = a + b
    elif operation == _SUBTRACT:
        value = a - b
    elif operation == _MULTIPLY:
        value = a * b
    elif operation == _DIVIDE:
        value = a / b if b != 0.0 else 0.0
    elif operation == _POWER:
        value = a**b
    elif operation == _LESS:
        value = 1.0 if a < b else 0.0
    elif operation == _LESS_EQUAL:
        value = 1.0 if a <= b else 0.0
    elif operation == _EQUAL:
        value = 1.0 if a == b else 0.0
    elif operation == _NOT_EQUAL:
        value = 1.0 if a != b else 0.0
    elif operation == _AND:
        value = 1.0 if a != 0.0 and b != 0.0 else 0.0
    elif operation == _OR:
        value = 1.0 if a != 0.0 or b != 0.0 else 0.0
    elif operation == _NOT:
        value = 1.0 if a == 0.0 else 0.0
    elif operation == _NEGATE:
        value = -a
    elif operation == _SELECT:
        value = b if a != 0.0 else c
    elif operation == _ABS:
        value = abs(a)
    elif operation == _MIN:
        value = a if a < b else b
    elif operation == _MAX:
        value = a if a > b else b
    elif operation == _CLIP:
        value = b if a < b else a
        value = c if value > c else value
    elif operation == _SQRT:
        value = math.sqrt(a) if a > 0.0 else 0.0
    elif operation == _EXP:
        value = math.exp(a)
    elif operation == _LOG:
        value = math.log(a if a > LEAST_LOG else LEAST_LOG)
    elif operation == _SIGN:
        value = 1.0 if a > 0.0 else -1.0 if a < 0.0 else 0.0
    elif operation == _SIN:
        value = math.sin(a)
    elif operation == _COS:
        value = math.cos(a)
    elif operation == _TANH:
        value = math.tanh(a)
    return _limited(value)


@shared
def _limited(value: float) -> float:
    """Return a finite number: what is no number becomes 0, and what is too large the limit."""
    if -LIMIT <= value <= LIMIT:
        return value
    return LIMIT if value > LIMIT else -LIMIT if value < -LIMIT else 0.0
