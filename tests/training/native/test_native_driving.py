"""Driving statistics of the native learner: equal to those that the other engines collect tick by tick."""

import numpy as np
import pytest

from racer_env.engine import load_circuit
from racer_viewer.training.config import parse_run_config
from racer_viewer.training.lap_tracker import LapTracker
from racer_viewer.training.metrics import DrivingStats, completion_rate
from racer_viewer.training.native.network import initial_parameters
from racer_viewer.training.native.rollout import Normalisation, RolloutCollector
from racer_viewer.training.sb3 import make_cars
from racer_viewer.training.vec_env import find_cars, simulation_of

TICKS = 500


TERMS = {"bend": "speed * curvature_50", "aim": "-0.1 * abs(heading_error)", "gate": "0.5 if gate_passed else 0"}


@pytest.mark.parametrize("terms", [{}, TERMS], ids=["six components", "terms"])
@pytest.mark.parametrize("tracks", [["track-01"], ["track-03", "random:7", "track-01"]])
def test_the_native_learner_and_the_others_give_the_same_statistics(tracks: list[str], terms: dict[str, str]) -> None:
    rewards = {"episode": {"maxSteps": 350, "stillnessTimeoutTicks": 60}, "terms": terms}
    config = parse_run_config(
        {"num_cars": 12, "n_steps": TICKS, "seed": 5, "tracks": tracks, "starts": "anywhere", "rewards": rewards}
    )
    native_cars, other_cars = (find_cars(make_cars(config)) for _ in range(2))
    for cars in (native_cars, other_cars):
        cars.seed(config.seed)
        cars.reset()
    simulation = simulation_of(native_cars)
    assert simulation is not None
    rng = np.random.default_rng(0)
    parameters = initial_parameters(config.net, config.first_action, -0.5, rng)
    rollout = RolloutCollector(config, simulation, parameters, Normalisation.create(config))
    rollout.begin(rng)
    assert rollout.run(0, TICKS)
    native = rollout.driving.take()

    tracker, other = LapTracker(config, simulation_of(other_cars), other_cars.last_step), DrivingStats()
    space = other_cars.action_space
    for actions in rollout.tables.actions:
        other_cars.step(np.clip(actions, space.low, space.high))
        other.add(tracker.step(other_cars.last_step))
    assert_same(native, other, len(terms))


@pytest.mark.parametrize("tracks", [["track-01"], ["track-03", "random:7", "track-03"]])
def test_they_give_the_same_statistics_after_a_circuit_was_exchanged(tracks: list[str]) -> None:
    rewards = {"episode": {"maxSteps": 350, "stillnessTimeoutTicks": 60}}
    config = parse_run_config(
        {"num_cars": 12, "n_steps": TICKS, "seed": 5, "tracks": tracks, "starts": "anywhere", "rewards": rewards}
    )
    native_cars, other_cars = (find_cars(make_cars(config)) for _ in range(2))
    for cars in (native_cars, other_cars):
        cars.seed(config.seed)
        cars.reset()
    simulations = [simulation_of(cars) for cars in (native_cars, other_cars)]
    rng = np.random.default_rng(0)
    parameters = initial_parameters(config.net, config.first_action, -0.5, rng)
    rollout = RolloutCollector(config, simulations[0], parameters, Normalisation.create(config))
    tracker, native, other = LapTracker(config, simulations[1], other_cars.last_step), DrivingStats(), DrivingStats()
    space = other_cars.action_space
    rollout.begin(rng)
    for first, last in ((0, 90), (90, 170), (170, TICKS)):
        assert rollout.run(first, last)
        native.add(rollout.driving.take())
        for actions in rollout.tables.actions[first:last]:
            other_cars.step(np.clip(actions, space.low, space.high))
            other.add(tracker.step(other_cars.last_step))
            tracker.update_tracks()
        new = load_circuit(f"random:{first}")
        for simulation in simulations:
            for number in (0, 2)[: len(tracks) // 2 + 1]:
                simulation.exchange_track(number, new)
        tracker.update_tracks()
    assert_same(native, other, 0)
    assert set(native.lap_circuits) <= set(range(len(set(tracks))))


def assert_same(native: DrivingStats, other: DrivingStats, terms: int) -> None:
    assert native.distance == pytest.approx(other.distance)
    assert native.failures == other.failures
    assert 0.0 < completion_rate(native.distance, native.failures) < 1.0
    assert (native.steps, native.laps, native.lap_circuits) == (other.steps, other.laps, other.lap_circuits)
    assert native.lengths == other.lengths
    np.testing.assert_allclose(native.returns, other.returns, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(native.components, other.components, rtol=1e-9, atol=1e-9)
    assert native.components[6 : 6 + terms].all()
    assert not native.components[6 + terms :].any()
    assert sorted(map(repr, native.sectors)) == sorted(map(repr, other.sectors))
