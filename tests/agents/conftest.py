"""What the tests of agents share."""

from pathlib import Path

import pytest
import torch

torch.set_num_threads(1)
"""More of them than free cores would make every test here many times slower."""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the models lie that all tests share."""
    return tmp_path_factory.mktemp("models")
