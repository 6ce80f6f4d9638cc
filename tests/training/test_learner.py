"""Environment, untrained model and schedules of the SB3 learner."""

import numpy as np
import pytest

from racer_env.engine import load_circuit
from racer_env.errors import RacerError
from racer_viewer.bench.bridge import bridge_process
from racer_viewer.training.config import PAID_UNITS, LinearSchedule, RunConfig, parse_run_config
from racer_viewer.training.sb3 import make_env, make_model
from racer_viewer.training.vec_env import find_cars, simulation_of


def config(**settings: object) -> RunConfig:
    return parse_run_config({"tracks": ["track-01", "track-06"], "num_cars": 6, "net": [8], "seed": 3, **settings})


def test_progress_in_units_pays_equal_distances_equally_on_every_circuit() -> None:
    lengths = np.array([load_circuit(name).length for name in ("track-01", "track-06")])
    rewards = {"weights": {"stillnessPenalty": 0.0}, "episode": {"maxSteps": 20}}
    plain, paid = (make_env(config(progress_in_units=on, rewards=rewards)) for on in (False, True))
    for env in (plain, paid):
        env.seed(5)
        env.reset()
    for _ in range(50):  # episodes end, and cars draw other circuits
        tracks = simulation_of(find_cars(paid)).cars.track.copy()
        for env in (plain, paid):
            env.step(np.tile(np.float32([0.0, 1.0, 0.0]), (6, 1)))
        expected = plain.get_original_reward() * lengths[tracks] / PAID_UNITS
        np.testing.assert_allclose(paid.get_original_reward(), expected, rtol=1e-5, atol=1e-9)
    assert set(tracks) == {0, 1}


def test_progress_in_units_on_several_circuits_is_an_error_on_a_bridge() -> None:
    with bridge_process(uvloop=False) as url:
        one = make_env(config(tracks=["track-03"], progress_in_units=True), url)
        one.reset()
        one.step(np.tile(np.float32([0.0, 1.0, 0.0]), (6, 1)))
        one.close()
        several = make_env(config(progress_in_units=True), url)
        with pytest.raises(RacerError, match="several circuits"):
            several.reset()
        several.close()


def test_an_untrained_policy_accelerates() -> None:
    env = make_env(config())
    action, _ = make_model(config(), env).predict(env.reset(), deterministic=True)
    assert (action[:, 1] > 0.5).all()
    assert action[:, 2] == pytest.approx(0.0)


def test_a_schedule_stays_at_its_last_value_in_an_incomplete_last_rollout() -> None:
    schedule = LinearSchedule(1e-3, 1e-4)
    assert [schedule(remaining) for remaining in (1.0, 0.0, -0.3)] == pytest.approx([1e-3, 1e-4, 1e-4])
