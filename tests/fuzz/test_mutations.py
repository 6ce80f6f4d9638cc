"""Mutated files and messages are read or refused with an error of the project, within two seconds and 300 MiB."""

from contextlib import suppress
from pathlib import Path

import pytest

from tests.fuzz.file_formats import FILE_FORMATS
from tests.fuzz.limited import Format, find_failure
from tests.fuzz.message_formats import MESSAGE_FORMATS

USUAL, MANY = 220, 3300
"""Number of mutations of each format in the usual tests, and in all tests."""


@pytest.mark.parametrize("many", [False, pytest.param(True, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])])
@pytest.mark.parametrize("kind", [*FILE_FORMATS, *MESSAGE_FORMATS], ids=lambda kind: kind.name)
def test_every_mutation_is_read_or_refused(kind: Format, many: bool, tmp_path: Path) -> None:
    seeds = kind.make(tmp_path)
    assert seeds
    with suppress(*kind.allowed):
        for number, data in enumerate(seeds):
            folder = tmp_path / f"valid-{number}"
            folder.mkdir()
            kind.read(data, folder)  # compiles the engine here, so that no mutation is charged for it
    numbers = range(USUAL, USUAL + int(MANY * kind.share)) if many else range(int(USUAL * kind.share))
    failure = find_failure(kind, seeds, 1, numbers, tmp_path)
    assert failure is None, f"mutation {failure.number} of {kind.name}: {failure.problem}"
