"""Gymnasium over stdin and stdout: an environment in a process of its own, one JSON object a line.

`StdioClient` and `StdioEnv` are imported when somebody asks: a helper that hosts an environment needs neither.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from racer_env.stdio.client import StdioClient
    from racer_env.stdio.env import StdioEnv
    from racer_env.stdio.expected import Expected

__all__ = ["Expected", "StdioClient", "StdioEnv"]


def __getattr__(name: str) -> Any:
    if name == "StdioClient":
        from racer_env.stdio.client import StdioClient

        return StdioClient
    if name == "StdioEnv":
        from racer_env.stdio.env import StdioEnv

        return StdioEnv
    if name == "Expected":
        from racer_env.stdio.expected import Expected

        return Expected
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
