"""Tests with programs of others: rl_zoo3, sb3-contrib, minari. `python run.py --with peers test` has them."""

import numpy as np
import pytest


@pytest.fixture
def observations() -> np.ndarray:
    """Raw observations within the limits of the environment."""
    low = np.zeros(14)
    low[[10, 11]] = -1.0
    return np.random.default_rng(18).uniform(low, 1.0, (200, 14)).astype(np.float32)
