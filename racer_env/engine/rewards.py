"""Reward components and the end of an episode."""

import numpy as np

from racer_env.engine.car import MAX_SPEED, ROAD
from racer_env.engine.compiled import Compiled, part

RULES = np.dtype([
    ("progress", "f8"), ("speed_bonus", "f8"), ("wall_penalty", "f8"), ("off_track_penalty", "f8"),
    ("backward_penalty", "f8"), ("stillness_penalty", "f8"), ("stillness_speed", "f8"),
    ("max_steps", "i8"), ("stillness_timeout", "i8"),
])  # fmt: skip
"""Reward weights and episode limits, as compiled code reads them (see `config`)."""


@part
def judge(rules: Compiled, length: float, car: Compiled, old_arc: float) -> None:
    """Set the six reward components, their sum, and whether the episode ends."""
    gained = car.arc - old_arc
    if gained > length / 2.0:
        gained -= length
    elif gained < -length / 2.0:
        gained += length
    still = car.speed < rules.stillness_speed
    parts = car.components
    parts[0] = gained / length * rules.progress
    parts[1] = car.speed / MAX_SPEED * rules.speed_bonus
    parts[2] = rules.wall_penalty if car.wall_contact else 0.0
    parts[3] = rules.off_track_penalty if car.surface != ROAD else 0.0
    parts[4] = rules.backward_penalty if gained < 0.0 else 0.0
    parts[5] = rules.stillness_penalty if still else 0.0
    car.reward = parts[0] + parts[1] + parts[2] + parts[3] + parts[4] + parts[5]
    car.step_count += 1
    car.stillness = car.stillness + 1 if still else 0
    car.terminated = car.stillness >= rules.stillness_timeout
    car.truncated = car.step_count >= rules.max_steps
