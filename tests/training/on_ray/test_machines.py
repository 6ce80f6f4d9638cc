"""Where Ray runs, and who can reach it."""

import socket
import sys
from typing import Any

import pytest

from racer_env.errors import RacerError
from racer_viewer.training.ray.machines import TRIES, ray_running

ray: Any = pytest.importorskip("ray", reason="python run.py --with ray test …")


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[Exception | None]:
    """What connecting to a cluster comes to, one after the other; nothing is done in its place."""
    outcomes: list[Exception | None] = []

    def connect(**options: Any) -> None:
        outcome = outcomes.pop(0)
        if outcome is not None:
            raise outcome

    monkeypatch.setattr(ray, "init", connect)
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    return outcomes


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have one loopback address")
def test_a_ray_of_its_own_is_there_for_this_machine_only() -> None:
    with ray_running(None, processes=1):
        (node,) = ray.nodes()
        gcs = ray.get_runtime_context().gcs_address
        assert node["NodeManagerAddress"] == gcs.split(":")[0] == "127.0.0.1"
        for port in (node["NodeManagerPort"], int(gcs.split(":")[1])):
            socket.create_connection(("127.0.0.1", port), 5.0).close()
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.2", port), 5.0)


def test_a_cluster_that_fails_to_take_a_client_is_asked_again(connections: list[Exception | None]) -> None:
    connections += [ConnectionAbortedError("Starting Ray client server failed"), None]
    with ray_running("auto", processes=1):
        assert not connections


def test_a_cluster_that_fails_always_is_given_up(connections: list[Exception | None]) -> None:
    connections += [ConnectionAbortedError("Starting Ray client server failed")] * TRIES
    with pytest.raises(RacerError, match="at auto: Starting Ray client server failed"), ray_running("auto", 1):
        pass
    assert not connections


def test_a_cluster_that_is_not_there_is_not_asked_again(connections: list[Exception | None]) -> None:
    connections += [ConnectionError("nobody is there"), None]
    with pytest.raises(RacerError, match="nobody is there"), ray_running("auto", 1):
        pass
    assert connections == [None]
