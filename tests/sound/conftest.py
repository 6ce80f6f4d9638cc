"""Fixtures of the sound tests."""

import pytest

from tests.sound.offline_mix import OfflineMixer


@pytest.fixture(scope="session")
def mixer() -> OfflineMixer:
    """All sounds; not to be changed."""
    return OfflineMixer()
