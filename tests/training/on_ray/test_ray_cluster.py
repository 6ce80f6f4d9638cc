"""Local Ray sessions and connections to clusters."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from racer_env.errors import RacerError
from racer_viewer.training.ray import cluster
from racer_viewer.training.ray.cluster import CONNECT_TRIES, ray_session, wait_for_cpus

ray: Any = pytest.importorskip("ray", reason="python run.py --with ray test …")


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[Exception | None]:
    """Results of the following connection attempts; nothing is connected."""
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
    with ray_session(None, processes=1):
        (node,) = ray.nodes()
        gcs = ray.get_runtime_context().gcs_address
        assert node["NodeManagerAddress"] == gcs.split(":")[0] == "127.0.0.1"
        for port in (node["NodeManagerPort"], int(gcs.split(":")[1])):
            socket.create_connection(("127.0.0.1", port), 5.0).close()
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.2", port), 5.0)


def test_far_too_many_runners_are_refused_before_they_take_all_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    with pytest.raises(RacerError, match="9 runners are too many for the 2 cores of this machine: use at most 8"):
        ray_session(None, 9).__enter__()


@pytest.mark.slow
def test_a_ray_that_others_use_is_waited_for_and_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CPU_TIMEOUT", 2.0)
    with ray_session(None, processes=2):
        there = int(ray.cluster_resources()["CPU"])

        class Other:
            def answer(self) -> None:
                pass

        holder = ray.remote(Other).options(num_cpus=there).remote()
        ray.get(holder.answer.remote())
        with pytest.raises(RacerError, match="only 0 of this Ray are free"):
            wait_for_cpus(1)
        ray.kill(holder)
        wait_for_cpus(1)


@pytest.mark.slow
def test_the_secret_of_a_ray_of_its_own_is_left_nowhere(tmp_path: Path) -> None:
    code = (
        "import os; from racer_viewer.training.ray.cluster import ray_session\n"
        "before = dict(os.environ)\n"
        "with ray_session(None, 1): pass\n"
        "changed = {name for name in os.environ if os.environ[name] != before.get(name)}\n"
        "assert not {name for name in changed if 'AUTH' in name}, changed"
    )
    own = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, **own})
    assert not (tmp_path / ".ray").exists()


@pytest.mark.parametrize("address", ["ray://a..b:1", "ray://[::1]:9", "ray://127.0.0.1:99999"])
def test_what_is_no_address_is_one_line(address: str) -> None:
    with pytest.raises(RacerError, match="cannot connect to a Ray cluster"), ray_session(address, 1):
        pass


def test_a_cluster_that_fails_to_take_a_client_is_asked_again(connections: list[Exception | None]) -> None:
    connections += [ConnectionAbortedError("Starting Ray client server failed"), None]
    with ray_session("auto", processes=1):
        assert not connections


def test_a_cluster_that_fails_always_is_given_up(connections: list[Exception | None]) -> None:
    connections += [ConnectionAbortedError("Starting Ray client server failed")] * CONNECT_TRIES
    with pytest.raises(RacerError, match="at auto: Starting Ray client server failed"), ray_session("auto", 1):
        pass
    assert not connections


def test_a_cluster_that_is_not_there_is_not_asked_again(connections: list[Exception | None]) -> None:
    connections += [ConnectionError("nobody is there"), None]
    with pytest.raises(RacerError, match="nobody is there"), ray_session("auto", 1):
        pass
    assert connections == [None]
