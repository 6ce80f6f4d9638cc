"""The bridges: how an environment reaches its cars, in this process or on a server.

Nothing is imported with the package: its contract is for those too who have neither an engine nor a server.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from racer_env.bridge.interface import BatchStep

__all__ = ["BatchStep"]


def __getattr__(name: str) -> Any:
    if name != "BatchStep":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from racer_env.bridge.interface import BatchStep

    return BatchStep
