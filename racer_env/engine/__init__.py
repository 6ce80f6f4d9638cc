"""The racing engine: arrays in, arrays out; no files but circuits, no clock, no globals."""

from racer_env.engine.simulation import Simulation, SimulationState, StepResult
from racer_env.engine.track import Track, build_track
