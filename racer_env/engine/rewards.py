"""Reward components: the table that everything reads, and the formula.

A new component needs a row in `REWARD_COMPONENTS`, its index, and its line in `pay_rewards`. Weights and their checks,
messages, metrics, charts, panels and menus follow from the table. The components of a config are these six, and then
its own terms (`terms`), each with its formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from racer_env.engine.car import MAX_SPEED, ROAD
from racer_env.engine.compiled import Compiled, part
from racer_env.engine.quantities import distance_gained

Colour = tuple[int, int, int]


def camel_case(name: str) -> str:
    """Return the name in the spelling of JSON keys: `off_track` becomes `offTrack`."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


@dataclass(frozen=True)
class RewardComponent:
    """One part of the reward.

    name: name in Python.
    weight: name of its weight in Python.
    default: default of the weight.
    label: name on screen.
    colour, colour_blind_colour: colour in charts and panels, in the ordinary and in the colour-blind palette.
    weight_range, weight_step: values that the training menu offers for the weight.
    """

    name: str
    weight: str
    default: float
    label: str
    colour: Colour
    colour_blind_colour: Colour
    weight_range: tuple[float, float]
    weight_step: float

    @property
    def wire_name(self) -> str:
        """Key in `info`, in messages and in the metrics of a run."""
        return camel_case(self.name)

    @property
    def weight_key(self) -> str:
        """Key of the weight in an ai-config."""
        return camel_case(self.weight)


REWARD_COMPONENTS = (
    RewardComponent(
        "progress", "progress", 1.0, "progress", (92, 214, 122), (0, 158, 115), (0.0, 5.0), 0.1
    ),
    RewardComponent(
        "speed", "speed_bonus", 0.0, "speed", (80, 168, 255), (86, 180, 233), (0.0, 0.01), 0.0005
    ),
    RewardComponent(
        "wall", "wall_penalty", -0.002, "wall", (255, 92, 76), (213, 94, 0), (-0.05, 0.0), 0.001
    ),
    RewardComponent(
        "off_track", "off_track_penalty", -0.001, "off track", (255, 176, 46), (230, 159, 0), (-0.02, 0.0), 0.0005
    ),
    RewardComponent(
        "backward", "backward_penalty", 0.0, "backward", (200, 120, 240), (204, 121, 167), (-5.0, 0.0), 0.1
    ),
    RewardComponent(
        "stillness", "stillness_penalty", -0.001, "stillness", (150, 160, 166), (150, 160, 166), (-0.02, 0.0), 0.0005
    ),
)  # fmt: skip
"""All reward components, in the order in which they are summed, stored and sent."""

PROGRESS, SPEED, WALL, OFF_TRACK, BACKWARD, STILLNESS = range(len(REWARD_COMPONENTS))
"""Indices of the components in `REWARD_COMPONENTS` and in the car's column `components`."""
COMPONENT_COUNT = len(REWARD_COMPONENTS)
MAX_TERMS = 8
"""Maximum number of terms with formulas in a config."""
COMPONENT_CAPACITY = COMPONENT_COUNT + MAX_TERMS
"""Width of the car's column `components`: the components of the table, then the terms of the config, then zeros."""


TERM_COLOURS: tuple[Colour, ...] = (
    (64, 214, 208), (246, 112, 156), (190, 214, 62), (128, 132, 255),
    (214, 158, 106), (255, 232, 140), (0, 150, 150), (190, 92, 128),
)  # fmt: skip
"""Colours of the terms of a config, by their number."""
TERM_COLOUR_BLIND_COLOURS: tuple[Colour, ...] = (
    (240, 228, 96), (0, 114, 178), (170, 222, 255), (136, 86, 40),
    (255, 204, 176), (98, 96, 204), (0, 98, 80), (255, 255, 214),
)  # fmt: skip
"""The same in the colour-blind palette."""


@dataclass(frozen=True)
class TermComponent:
    """A term of a config: a component with a name and a formula of its own.

    number: number of the term in its config, which gives it its colours.
    """

    name: str
    formula: str
    number: int

    @property
    def wire_name(self) -> str:
        """Key in `info`, in messages and in the metrics of a run."""
        return self.name

    @property
    def label(self) -> str:
        """Name on screen."""
        return self.name

    @property
    def colour(self) -> Colour:
        return TERM_COLOURS[self.number]

    @property
    def colour_blind_colour(self) -> Colour:
        return TERM_COLOUR_BLIND_COLOURS[self.number]


Component = RewardComponent | TermComponent


def component_colours(
    colour_blind: bool = False, components: Sequence[Component] = REWARD_COMPONENTS
) -> tuple[Colour, ...]:
    """Return the colour of each component in one of the two palettes."""
    return tuple(each.colour_blind_colour if colour_blind else each.colour for each in components)


@part
def pay_rewards(rules: Compiled, length: float, car: Compiled, old_arc: float) -> None:
    """Set the reward components, their sum, and whether the episode ends."""
    gained = distance_gained(length, car.arc, old_arc)
    still = car.speed < rules.stillness_speed_threshold
    parts = car.components
    parts[PROGRESS] = gained / length * rules.progress
    parts[SPEED] = car.speed / MAX_SPEED * rules.speed_bonus
    parts[WALL] = rules.wall_penalty if car.wall_contact else 0.0
    parts[OFF_TRACK] = rules.off_track_penalty if car.surface != ROAD else 0.0
    parts[BACKWARD] = rules.backward_penalty if gained < 0.0 else 0.0
    parts[STILLNESS] = rules.stillness_penalty if still else 0.0
    reward = parts[0]
    for i in range(1, COMPONENT_COUNT):
        reward += parts[i]
    car.reward = reward
    car.step_count += 1
    car.stillness = car.stillness + 1 if still else 0
    car.terminated = car.stillness >= rules.stillness_timeout_ticks
    car.truncated = car.step_count >= rules.max_steps
