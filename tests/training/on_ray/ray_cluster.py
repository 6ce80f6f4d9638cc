"""Ray cluster of two nodes on this machine, each with its own loopback address."""

import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from tests.training.on_ray.ray_processes import wait_for

NODE = (sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats")
HEAD, OTHER = "127.0.0.2", "127.0.0.3"
"""Addresses of the nodes; Ray replaces 127.0.0.1 by the address in the network."""
OBJECT_STORE_SIZE = 100 * 2**20
"""Object store of each node [bytes]."""
STOP_TIMEOUT = 30.0
"""Time for a node to end [s]."""


@contextmanager
def cluster(log: Path) -> Iterator[str]:
    """Start a cluster and yield its address for clients, `ray://…`. The head has one CPU, the other node two.

    Programs started meanwhile find the cluster and its token in their environment.
    """
    head, client = free_ports(2)
    known = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32), "RAY_ADDRESS": f"{HEAD}:{head}"}
    with (
        patch.dict(os.environ, known),
        TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder,
        ExitStack() as nodes,
    ):
        begin = ("--head", f"--port={head}", f"--ray-client-server-port={client}", "--include-dashboard=false")
        nodes.enter_context(node(log, HEAD, *begin, f"--temp-dir={folder}", "--num-cpus=1"))
        wait_for(lambda: answers(head) and answers(client), "the head")
        nodes.enter_context(node(log, OTHER, f"--address={HEAD}:{head}", "--num-cpus=2"))
        wait_for(lambda: log.read_text(errors="replace").count("Ray runtime started") == 2, "both nodes")
        yield f"ray://{HEAD}:{client}"


@contextmanager
def node(log: Path, host: str, *arguments: str) -> Iterator[None]:
    own = (f"--node-ip-address={host}", "--min-worker-port=0", "--max-worker-port=0")
    with log.open("ab") as file:
        process = subprocess.Popen(
            [*NODE, *own, f"--object-store-memory={OBJECT_STORE_SIZE}", *arguments], stdout=file, stderr=file
        )
    try:
        yield
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_TIMEOUT)
        process.kill()
        process.wait()


def free_ports(count: int) -> list[int]:
    with ExitStack() as sockets:
        found = [sockets.enter_context(closing(socket.socket())) for _ in range(count)]
        for each in found:
            each.bind((HEAD, 0))
        return [each.getsockname()[1] for each in found]


def answers(port: int) -> bool:
    with suppress(OSError), closing(socket.create_connection((HEAD, port), 1.0)):
        return True
    return False
