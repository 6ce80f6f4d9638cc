"""The environment checkers of Gymnasium and stable-baselines3 accept the environments."""

import warnings
from collections.abc import Callable
from typing import Any

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env as gymnasium_check
from gymnasium.wrappers import RescaleAction
from stable_baselines3.common.env_checker import check_env as sb3_check

from racer_env import DiscreteRacerEnv, RacerEnv


def warnings_of(check: Callable[..., Any], *arguments: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check(*arguments)
    return [str(warning.message) for warning in caught]


def test_stable_baselines3_has_no_objection_but_to_pedals_from_zero_to_one() -> None:
    complaints = warnings_of(sb3_check, RacerEnv())
    assert len(complaints) <= 1
    assert all("symmetric and normalized" in complaint for complaint in complaints)


def test_stable_baselines3_has_no_objection_to_a_rescaled_or_discrete_action() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sb3_check(RescaleAction(RacerEnv(), -1, 1))
        sb3_check(DiscreteRacerEnv())


@pytest.mark.parametrize("render_mode", [None, "rgb_array"])
@pytest.mark.parametrize("name", ["Racer-v0", "RacerDiscrete-v0"])
def test_gymnasium_has_no_objection(name: str, render_mode: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = gymnasium.make(f"racer_env:{name}", render_mode=render_mode)
    assert warnings_of(gymnasium_check, env.unwrapped) == []
    env.close()
