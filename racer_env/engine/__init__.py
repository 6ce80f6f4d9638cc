"""The racing engine: arrays in, arrays out. No clock, no global state; only starts are random, and seeded.

`docs/engine.md` explains a tick, the data layout and the accelerators.
"""

from racer_env.engine.car import DT, TICKS_PER_SECOND
from racer_env.engine.circuits import Circuit, Medals, circuit_name, circuits, load_circuit
from racer_env.engine.config import Config, load_config, parse_config
from racer_env.engine.driver import Driver
from racer_env.engine.rewards import REWARD_COMPONENTS, Component, RewardComponent, component_colours
from racer_env.engine.simulation import Simulation, SimulationState, StepResult
from racer_env.engine.starts import ANYWHERE, Start, parse_start
from racer_env.engine.tick import CAR
from racer_env.engine.track import Track, build_track
from racer_env.engine.warm_up import warm_up, warm_up_in_background

__all__ = [
    "ANYWHERE",
    "CAR",
    "DT",
    "REWARD_COMPONENTS",
    "TICKS_PER_SECOND",
    "Circuit",
    "Component",
    "Config",
    "Driver",
    "Medals",
    "RewardComponent",
    "Simulation",
    "SimulationState",
    "Start",
    "StepResult",
    "Track",
    "build_track",
    "circuit_name",
    "circuits",
    "component_colours",
    "load_circuit",
    "load_config",
    "parse_config",
    "parse_start",
    "warm_up",
    "warm_up_in_background",
]
