"""docs/rewards.md: its quantities, functions, limits and examples are those of the code."""

import re

import pytest

from racer_env.engine import parse_config
from racer_env.engine.formulas import (
    FUNCTIONS,
    LIMIT,
    MAX_CONSTANTS,
    MAX_LENGTH,
    MAX_NESTING,
    MAX_OPERATIONS,
    FormulaError,
    parse_formula,
)
from racer_env.engine.quantities import QUANTITIES
from racer_env.engine.rewards import MAX_TERMS
from racer_env.engine.terms import MAX_NAME_LENGTH
from tests.documents import ROOT, Document, table_rows
from tools.reward_lines import examples

TEXT = Document("docs/rewards.md").text


def test_the_table_of_quantities_is_that_of_the_engine() -> None:
    rows = table_rows(TEXT, "Quantities")[1:]
    assert [tuple(cells) for cells in rows] == [(f"`{each.name}`", each.unit, each.help) for each in QUANTITIES]


def test_the_table_of_functions_is_that_of_the_engine() -> None:
    rows = [cells for cells in table_rows(TEXT, "Formulas") if cells[0].endswith(")`")]
    assert rows == [[f"`{each.name}({each.arguments})`", each.help] for each in FUNCTIONS.values()]


@pytest.mark.parametrize("content", re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL))
def test_every_config_is_accepted(content: str) -> None:
    assert parse_config(content).to_json()["weights"]


def test_there_are_six_examples_and_their_picture_is_drawn_from_them() -> None:
    found = examples(TEXT)
    assert len(found) == 6
    assert len({*map(str, found.values())}) == 6
    picture = (ROOT / "docs" / "rewards.svg").read_text(encoding="utf-8")
    assert all(f">{name}</text>" in picture for name in found)


def test_the_error_that_is_shown_is_the_error_that_is_raised() -> None:
    shown = re.findall(r"`config\.terms\.line: (.*?)`", TEXT)[0]
    with pytest.raises(FormulaError) as error:
        parse_formula("0.00025 * (sped - 40)")
    assert str(error.value) == shown


def test_the_limits_are_those_of_the_code() -> None:
    limits = TEXT[TEXT.index("**Limits**") :].split("\n\n")[0]
    numbers = [int(number) for number in re.findall(r"\d+", limits)]
    assert numbers == [MAX_TERMS, MAX_NAME_LENGTH, MAX_LENGTH, MAX_NESTING, MAX_OPERATIONS, MAX_CONSTANTS]
    assert f"±{LIMIT:,.0f}" in TEXT
    security = next(cells for cells in table_rows(Document("SECURITY.md").text, "Promises") if "formulas" in cells[0])
    assert f"{MAX_TERMS} terms, {MAX_LENGTH} characters and {MAX_NESTING} levels each, {MAX_OPERATIONS}" in security[1]
