"""Racing environment: `RacerEnv` for one car, `RacerVectorEnv` for many. Needs no window.

`import racer_env` registers `Racer-v0` and `RacerDiscrete-v0`; `gymnasium.make("racer_env:Racer-v0")` does it too.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import gymnasium

if TYPE_CHECKING:
    from racer_env.env import DiscreteRacerEnv, RacerEnv
    from racer_env.games import RacingGameClient
    from racer_env.stdio import StdioClient, StdioEnv
    from racer_env.vector import DiscreteRacerVectorEnv, RacerVectorEnv

__all__ = [
    "DiscreteRacerEnv",
    "DiscreteRacerVectorEnv",
    "RacerEnv",
    "RacerVectorEnv",
    "RacingGameClient",
    "StdioClient",
    "StdioEnv",
]

_MODULES = {
    "DiscreteRacerEnv": "racer_env.env",
    "DiscreteRacerVectorEnv": "racer_env.vector",
    "RacerEnv": "racer_env.env",
    "RacerVectorEnv": "racer_env.vector",
    "RacingGameClient": "racer_env.games",
    "StdioClient": "racer_env.stdio",
    "StdioEnv": "racer_env.stdio",
}

gymnasium.register(
    "Racer-v0", entry_point="racer_env.env:RacerEnv", vector_entry_point="racer_env.vector:RacerVectorEnv"
)
gymnasium.register(
    "RacerDiscrete-v0",
    entry_point="racer_env.env:DiscreteRacerEnv",
    vector_entry_point="racer_env.vector:DiscreteRacerVectorEnv",
)


def __getattr__(name: str) -> Any:
    """Import environments and clients on first access, so that the engine alone imports quickly."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
