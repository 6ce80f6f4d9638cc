"""Which bridge there is behind a URL, and without one."""

from __future__ import annotations

from racer_env.bridge.client import BridgeClient, RemoteBatch
from racer_env.bridge.embedded import EmbeddedBatch, EmbeddedBridge
from racer_env.bridge.followed import WatchedClient
from racer_env.bridge.interface import Batch, Bridge


def open_bridge(url: str | None = None, token: str | None = None, telemetry: bool = False) -> Bridge:
    """One car: in this process, or on the server at a URL. With telemetry, its state can be seen too."""
    if url is None:
        return EmbeddedBridge()
    client = BridgeClient(url, token, telemetry)
    return WatchedClient(client) if telemetry and not client.has_telemetry else client


def open_batch(num_cars: int, url: str | None = None, token: str | None = None, threads: int = 1) -> Batch:
    """N cars: in this process, or on the server at a URL."""
    return EmbeddedBatch(num_cars, threads) if url is None else RemoteBatch(num_cars, url, token)
