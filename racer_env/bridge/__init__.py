"""The bridges: how an environment reaches its cars, in this process or on a server."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from racer_env.bridge.client import BridgeClient, RemoteBatch
    from racer_env.bridge.embedded import EmbeddedBatch, EmbeddedBridge
    from racer_env.bridge.followed import FollowedCar, WatchedClient
    from racer_env.bridge.interface import Batch, BatchStep, Bridge, Scenario, Step

__all__ = [
    "Batch",
    "BatchStep",
    "Bridge",
    "BridgeClient",
    "EmbeddedBatch",
    "EmbeddedBridge",
    "FollowedCar",
    "RemoteBatch",
    "Scenario",
    "Step",
    "WatchedClient",
    "open_batch",
    "open_bridge",
]

_HOMES = {
    "Batch": "interface",
    "BatchStep": "interface",
    "Bridge": "interface",
    "BridgeClient": "client",
    "EmbeddedBatch": "embedded",
    "EmbeddedBridge": "embedded",
    "FollowedCar": "followed",
    "RemoteBatch": "client",
    "Scenario": "interface",
    "Step": "interface",
    "WatchedClient": "followed",
}


def open_bridge(url: str | None = None, token: str | None = None, telemetry: bool = False) -> "Bridge":
    """One car: in this process, or on the server at a URL. With telemetry, its state can be seen too."""
    if url is None:
        from racer_env.bridge.embedded import EmbeddedBridge

        return EmbeddedBridge()
    from racer_env.bridge.client import BridgeClient
    from racer_env.bridge.followed import WatchedClient

    client = BridgeClient(url, token, telemetry)
    return WatchedClient(client) if telemetry and not client.has_telemetry else client


def open_batch(num_cars: int, url: str | None = None, token: str | None = None, threads: int = 1) -> "Batch":
    """N cars: in this process, or on the server at a URL."""
    if url is None:
        from racer_env.bridge.embedded import EmbeddedBatch

        return EmbeddedBatch(num_cars, threads)
    from racer_env.bridge.client import RemoteBatch

    return RemoteBatch(num_cars, url, token)


def __getattr__(name: str) -> Any:
    """Imported when somebody asks: the contract is for those too who have neither an engine nor a server."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
