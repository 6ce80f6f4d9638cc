"""Formulas of reward terms: what they mean, and what is refused, with the place of the error."""

import ast
import math
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from racer_env.engine import formulas, terms
from racer_env.engine.config import Config, parse_config
from racer_env.engine.formulas import FUNCTIONS, KNOWN_NAMES, LIMIT, MAX_LENGTH, FormulaError, parse_formula, translate
from racer_env.engine.quantities import QUANTITIES
from racer_env.engine.scoring import RecordedDrive, pay
from tests.engine.formula_trees import TREES, Tree

NAMES = [each.name for each in QUANTITIES]


def evaluate(formula: str, rows: np.ndarray) -> np.ndarray:
    """Return what a formula pays for rows of quantities."""
    drive = RecordedDrive(rows, np.zeros((len(rows), 6)), np.zeros(0, np.int64))
    return pay(drive, parse_config({"terms": {"own": formula}}))[:, -1]


def value_of(formula: str, **quantities: float) -> float:
    row = np.zeros((1, len(QUANTITIES)))
    for name, value in quantities.items():
        row[0, NAMES.index(name)] = value
    return float(evaluate(formula, row)[0])


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("1 + 2 * 3", 7.0),
        ("(1 + 2) * 3", 9.0),
        ("2 ** 3 ** 2", 512.0),
        ("-2 ** 2", -4.0),
        ("2 ** -1", 0.5),
        ("10 - 4 - 3", 3.0),
        ("24 / 4 / 2", 3.0),
        ("1 < 2 < 3", 1.0),
        ("1 < 3 < 2", 0.0),
        ("3 > 2 >= 2", 1.0),
        ("not 1 == 2", 1.0),
        ("1 or 0 and 0", 1.0),
        ("5 if 1 > 2 else 6 if 0 else 7", 7.0),
        ("-(3 if 1 else 4)", -3.0),
        ("max(1, 5, 3) - min(4, 2, 9)", 3.0),
        ("clip(7, 0, 5) + clip(-7, 0, 5)", 5.0),
        ("1e3 + .5 + 2.", 1002.5),
        ("+3", 3.0),
        ("sqrt(-4)", 0.0),
        ("1 / 0", 0.0),
        ("0 / 0", 0.0),
        ("0 ** -1", LIMIT),
        ("(-8) ** 0.5", 0.0),
        ("exp(1000)", LIMIT),
        ("-exp(1000) * exp(1000)", -LIMIT),
        ("log(0)", math.log(1e-9)),
        ("sign(-3) + sign(0) + sign(7)", 0.0),
        ("cos(0) + sin(0) + tanh(0)", 1.0),
    ],
)
def test_a_formula_means_what_it_says(formula: str, value: float) -> None:
    assert value_of(formula) == pytest.approx(value)


def test_quantities_are_read_by_name() -> None:
    assert value_of("speed * 2 - slip", speed=30.0, slip=0.5) == 59.5
    assert value_of("0.01 if off_track else 0.0", off_track=1.0) == 0.01


@settings(max_examples=300, deadline=None)
@given(tree=TREES, seed=st.integers(0, 2**32 - 1))
def test_every_formula_gives_what_plain_arithmetic_gives(tree: Tree, seed: int) -> None:
    try:
        translate((("own", tree.text),))
    except FormulaError as error:
        assume("too" not in error.reason and "at most" not in error.reason)
        raise
    rows = usual_rows(seed, 8)
    paid = evaluate(tree.text, rows)
    for row, value in zip(rows, paid, strict=True):
        expected = tree.value(dict(zip(NAMES, row.tolist(), strict=True)))
        assert value == pytest.approx(expected, rel=1e-9, abs=1e-9), tree.text


STRANGE = st.one_of(st.floats(), st.sampled_from([0.0, -0.0, math.inf, -math.inf, math.nan, 1e308, -1e308, 5e-324]))


@settings(max_examples=300, deadline=None)
@given(tree=TREES, values=st.lists(STRANGE, min_size=len(QUANTITIES), max_size=len(QUANTITIES)))
def test_every_formula_is_finite_on_every_state(tree: Tree, values: list[float]) -> None:
    """Even on quantities that no car can have."""
    try:
        translate((("own", tree.text),))
    except FormulaError:
        assume(False)
    paid = evaluate(tree.text, np.array([values]))
    assert np.isfinite(paid).all()
    assert np.abs(paid).max() <= LIMIT


def usual_rows(seed: int, count: int) -> np.ndarray:
    """Return rows of cars that do not stand still."""
    low, high = np.array([(each.low, each.high) for each in QUANTITIES]).T
    rows = np.random.default_rng(seed).uniform(low, high, (count, len(QUANTITIES)))
    rows[:, NAMES.index("speed")] += 10.0
    rows[:, NAMES.index("still_time")] = 0.0
    return rows


@pytest.mark.parametrize(
    ("formula", "column", "reason"),
    [
        ("", 1, "empty"),
        ("   ", 1, "empty"),
        ("sped * 2", 1, "did you mean speed?"),
        ("2 * heading_eror", 5, "did you mean heading_error?"),
        ("speed *", 8, "is missing at the end"),
        ("speed * * 2", 9, "is missing"),
        ("(speed", 7, "expected ) at the end"),
        ("speed)", 6, "unexpected )"),
        ("speed 2", 7, "an operator such as * is missing before 2"),
        ("2speed", 2, "an operator such as * is missing before speed"),
        ("abs", 1, "abs is a function: write abs(x)"),
        ("abs()", 5, "is missing"),
        ("abs(1, 2)", 1, "2 arguments for abs: write abs(x)"),
        ("min(1)", 1, "1 argument for min: write min(x, y, ...)"),
        ("clip(1, 2)", 1, "write clip(x, low, high)"),
        ("abz(1)", 1, "did you mean abs?"),
        ("speed(1)", 1, "is not a function"),
        ("1 if speed", 11, "else is missing: write A if CONDITION else B at the end"),
        ("speed = 3", 7, "use == to compare"),
        ("speed ^ 2", 7, "use ** for a power"),
        ("speed && slip", 7, "use and"),
        ("!off_track", 1, "use not"),
        ("speed % 2", 7, "there is no remainder"),
        ("2 × speed", 3, "use *"),
        ("1e999", 1, "at most 1e+09"),
        ("9999999999", 1, "at most 1e+09"),
        ("and speed", 1, "is missing"),
        ("speed and", 10, "is missing at the end"),
        ("1_000", 2, "an operator"),
    ],
)
def test_a_wrong_formula_is_refused_with_the_place_of_the_error(formula: str, column: int, reason: str) -> None:
    with pytest.raises(FormulaError) as error:
        parse_formula(formula)
    assert error.value.column + 1 == column, error.value
    assert reason in error.value.reason
    assert str(error.value) == f"column {column}: {error.value.reason}"
    assert "\n" not in str(error.value)


HOSTILE = [
    "__import__('os').system('true')",
    "().__class__.__bases__[0].__subclasses__()",
    "speed.__class__",
    "eval(1)",
    "exec('x')",
    "open('/etc/passwd')",
    "lambda: 1",
    "[x for x in (1, 2)]",
    "{1: 2}",
    "f'{speed}'",
    "speed; slip",
    "speed := 3",
    "print(speed)",
    "while 1: 1",
    "import os",
    "\x00",
    "speed\u202e",
    "ｓｐｅｅｄ",
    "speed" * 200,
    "(" * 5000 + "1" + ")" * 5000,
    "-" * 290 + "1",
    "not " * 70 + "1",
    "+".join(["1"] * 150) + "*" * 3,
    "2**" * 90 + "2",
    "1 if 1 else " * 20 + "1",
    "min(" + ",".join(["speed"] * 400) + ")",
    "1" * 100_000,
    "#",
    "\\",
    "0x10",
    "1j",
    "None",
    "speed if",
]


@pytest.mark.parametrize("formula", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_formula_is_refused_in_one_line(formula: str) -> None:
    with pytest.raises(FormulaError) as error:
        translate((("own", formula),))
    text = str(error.value)
    assert len(text) < 300
    assert text.isprintable()
    assert 0 <= error.value.column <= MAX_LENGTH


def test_limits_count_all_terms_together() -> None:
    long = " + ".join(["speed * 2"] * 20)
    parse_config({"terms": {f"term{number}": long for number in range(4)}})
    with pytest.raises(FormulaError, match="too long: at most 160 operations in all terms") as error:
        parse_config({"terms": {f"term{number}": long for number in range(5)}})
    assert error.value.term == "term4"
    numbers = {f"term{n}": " + ".join(str(n * 100 + i) for i in range(18)) for n in range(6)}
    with pytest.raises(FormulaError, match="too many different numbers"):
        parse_config({"terms": numbers})


def test_deep_but_allowed_formulas_work() -> None:
    assert value_of("(" * 19 + "7" + ")" * 19) == 7.0
    assert value_of(" + ".join(["1"] * 75)) == 75.0
    nested = "speed"
    for _ in range(9):
        nested = f"max({nested}, min(slip, 3))"
    assert value_of(nested, speed=2.0, slip=5.0) == 3.0


def test_a_chained_comparison_of_comparisons_cannot_explode() -> None:
    nested = "speed"
    for _ in range(18):
        nested = f"(1 < {nested} < 9)"
    with pytest.raises(FormulaError, match="too long"):
        translate((("own", nested),))


def test_random_text_is_accepted_or_refused_but_never_an_error_of_another_kind() -> None:
    chance = random.Random(4)
    pieces = [*KNOWN_NAMES, *"+-*/()<>=!,. ", "**", "<=", "1", "2.5", "if", "else", "and", "or", "not", "\n", "é", "."]
    accepted = 0
    for _ in range(4000):
        text = " ".join(chance.choice(pieces) for _ in range(chance.randint(1, 9)))
        column = column_of_error(text)
        accepted += column is None
        assert column is None or 0 <= column <= len(text)
    assert accepted > 20


def column_of_error(text: str) -> int | None:
    try:
        translate((("own", text),))
    except FormulaError as error:
        return error.column
    return None


def test_nothing_in_the_language_executes_text() -> None:
    """The modules of the language call none of Python's ways to run code or to reach attributes by name."""
    forbidden = {"eval", "exec", "compile", "__import__", "getattr", "setattr", "globals", "vars", "open"}
    for module in (formulas, terms):
        tree = ast.parse(Path(module.__file__ or "").read_text("utf-8"))
        calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
        assert not {function.id for function in calls if isinstance(function, ast.Name)} & forbidden


def test_names_of_quantities_functions_and_words_are_distinct() -> None:
    words = [*KNOWN_NAMES, *formulas.WORDS]
    assert len(set(words)) == len(words)
    assert all(name.isidentifier() for name in words)
    assert all(each.help and each.low < each.high for each in QUANTITIES)
    assert all(function.help for function in FUNCTIONS.values())


def test_a_config_without_terms_says_nothing_about_them() -> None:
    assert "terms" not in Config().to_json()
    assert parse_config({"terms": {}}) == Config()
    assert parse_config({"terms": {"own": "speed"}}).to_json()["terms"] == {"own": "speed"}
