"""Fixtures of the Ray tests."""

from collections.abc import Iterator

import pytest

from racer_viewer.training.ray.cluster import ray_session

MAX_RUNNERS = 2
"""Runners of any run in the test process."""


@pytest.fixture(scope="module")
def local_ray() -> Iterator[None]:
    """Ray on this machine, shared by all runs of a module: they use a session that exists already."""
    with ray_session(None, MAX_RUNNERS):
        yield
