"""The table of reward components is the only place that lists them."""

import re
from pathlib import Path

import numpy as np
import pytest

import racer_env
import racer_viewer
from racer_env.bridge.batch_format import COLUMNS
from racer_env.bridge.interface import COMPONENT_KEYS, STEP_KEYS
from racer_env.engine import CAR, REWARD_COMPONENTS, Config, Simulation, component_colours, load_circuit, rewards
from racer_env.engine.config import RULES, Weights
from racer_viewer.render.overlays import reward as reward_panel
from racer_viewer.render.plots import figures

WIRE_NAMES = tuple(component.wire_name for component in REWARD_COMPONENTS)


def test_names_and_keys_are_unique() -> None:
    for field in ("name", "wire_name", "weight", "weight_key", "label", "colour", "colour_blind_colour"):
        values = [getattr(component, field) for component in REWARD_COMPONENTS]
        assert len(set(values)) == len(values), field


@pytest.mark.parametrize("component", REWARD_COMPONENTS, ids=lambda component: component.name)
def test_each_component_has_an_index_a_weight_and_a_valid_default(component: rewards.RewardComponent) -> None:
    assert REWARD_COMPONENTS[getattr(rewards, component.name.upper())] is component
    assert getattr(Weights(), component.weight) == component.default
    assert Config().to_json()["weights"][component.weight_key] == component.default
    low, high = component.weight_range
    assert low <= component.default <= high
    assert 0.0 < component.weight_step <= high - low


def test_every_list_of_components_follows_the_table() -> None:
    assert CAR["components"].shape == (len(REWARD_COMPONENTS) + rewards.MAX_TERMS,)
    assert (RULES.names or ())[: len(REWARD_COMPONENTS)] == tuple(each.weight for each in REWARD_COMPONENTS)
    assert WIRE_NAMES == COMPONENT_KEYS == STEP_KEYS[: len(REWARD_COMPONENTS)]
    assert {name: width for name, _, width in COLUMNS}["components"] == len(REWARD_COMPONENTS)
    assert tuple(f"reward/{name}" for name in WIRE_NAMES) == figures.COMPONENT_KEYS
    assert {each.label for each in REWARD_COMPONENTS} <= set(reward_panel.LABELS)
    assert len(component_colours()) == len(component_colours(colour_blind=True)) == len(REWARD_COMPONENTS)


def test_the_reward_is_the_sum_in_the_order_of_the_table() -> None:
    simulation = Simulation(load_circuit("track-01"), 8, {"weights": {"speedBonus": 0.01, "stillnessPenalty": -0.3}})
    actions = np.random.default_rng(0).uniform((-1.0, 0.0, 0.0), 1.0, (50, 8, 3))
    for action in actions:
        result = simulation.step(action)
        totals = result.components[:, 0].copy()
        for column in result.components.T[1:]:
            totals += column
        np.testing.assert_array_equal(result.rewards, totals)


def test_no_other_file_spells_out_the_components() -> None:
    """Weights and wire names of penalties are rare words: outside the table only presets and prose use them."""
    weights = "|".join(each.weight_key for each in REWARD_COMPONENTS if each.weight != each.name)
    names = "|".join(each.weight for each in REWARD_COMPONENTS if each.weight != each.name)
    spelled = {
        path.relative_to(folder.parent).as_posix()
        for folder in (Path(racer_env.__file__).parent, Path(racer_viewer.__file__).parent)
        for path in folder.rglob("*.py")
        if re.search(rf"\b({weights}|{names})\b", path.read_text("utf-8"))
    }
    assert spelled == {"racer_env/engine/rewards.py", "racer_viewer/training/config.py"}
