"""The racing environment: `RacerEnv` for one car, `RacerVectorEnv` for many, on a fast engine. Needs no window.

After `import racer_env`, `gymnasium.make("Racer-v0")` knows it; `gymnasium.make("racer_env:Racer-v0")` imports it too.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import gymnasium

if TYPE_CHECKING:
    from racer_env.env import DiscreteRacerEnv, RacerEnv
    from racer_env.games import RacingGameClient
    from racer_env.stdio import StdioClient, StdioEnv
    from racer_env.vector import RacerVectorEnv

__all__ = ["DiscreteRacerEnv", "RacerEnv", "RacerVectorEnv", "RacingGameClient", "StdioClient", "StdioEnv"]

_HOMES = {
    "DiscreteRacerEnv": "racer_env.env",
    "RacerEnv": "racer_env.env",
    "RacerVectorEnv": "racer_env.vector",
    "RacingGameClient": "racer_env.games",
    "StdioClient": "racer_env.stdio",
    "StdioEnv": "racer_env.stdio",
}

gymnasium.register(
    "Racer-v0", entry_point="racer_env.env:RacerEnv", vector_entry_point="racer_env.vector:RacerVectorEnv"
)
gymnasium.register("RacerDiscrete-v0", entry_point="racer_env.env:DiscreteRacerEnv")


def __getattr__(name: str) -> Any:
    """Environments and clients, imported when somebody asks: those who want the engine alone wait for nothing else."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]  # for completion, and for help()
