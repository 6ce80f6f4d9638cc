"""The racing environment: `RacerEnv` for one car, `RacerVectorEnv` for many, on a fast engine. Needs no window.

After `import racer_env`, `gymnasium.make("Racer-v0")` knows it; `gymnasium.make("racer_env:Racer-v0")` imports it too.
"""

from typing import TYPE_CHECKING, Any

import gymnasium

if TYPE_CHECKING:
    from racer_env.env import DiscreteRacerEnv, RacerEnv
    from racer_env.vector import RacerVectorEnv

__all__ = ["DiscreteRacerEnv", "RacerEnv", "RacerVectorEnv"]

gymnasium.register(
    "Racer-v0", entry_point="racer_env.env:RacerEnv", vector_entry_point="racer_env.vector:RacerVectorEnv"
)
gymnasium.register("RacerDiscrete-v0", entry_point="racer_env.env:DiscreteRacerEnv")


def __getattr__(name: str) -> Any:
    """The environments, imported when somebody asks: those who want the engine alone wait for nothing else."""
    if name in ("RacerEnv", "DiscreteRacerEnv"):
        import racer_env.env

        return getattr(racer_env.env, name)
    if name == "RacerVectorEnv":
        import racer_env.vector

        return racer_env.vector.RacerVectorEnv
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
