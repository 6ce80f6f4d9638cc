"""Fixtures of the agent tests."""

from pathlib import Path

import pytest
import torch

torch.set_num_threads(1)
"""One torch thread; more threads than free cores would make every test many times slower."""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the models that all tests share."""
    return tmp_path_factory.mktemp("models")
