"""Cloning: a policy learns to drive from laps."""

import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from racer_env.engine import load_circuit
from racer_viewer.agents import RunningStats, Statistics, load_agent
from racer_viewer.agents.policies import ACTION_HIGH, ACTION_LOW
from racer_viewer.replays import Replay, ReplayError, demonstrated_drive, recoveries, trace_replay
from racer_viewer.training.config import RunConfig
from racer_viewer.training.evaluation import Evaluation, evaluate
from racer_viewer.training.native.cloning import (
    CloningEpoch,
    CloningLoss,
    CloningSettings,
    DemonstrationSet,
    clone,
    mirrored,
    normalised,
)
from racer_viewer.training.native.model_files import save_native_model
from racer_viewer.training.native.network import Parameters, initial_parameters
from racer_viewer.training.native.update import AdamState
from tests.replays.replay_drives import ring_run
from tests.training.noisy_drives import noisy_drive

QUICK = CloningSettings(epochs=4)


def new_policy(seed: int = 0) -> Parameters:
    return initial_parameters((64, 64), (0.0, 1.0, -1.0), -1.0, np.random.default_rng(seed))


def lessons(*replays: Replay) -> DemonstrationSet:
    return DemonstrationSet.of_traces(map(trace_replay, replays))


def learn(
    data: DemonstrationSet, settings: CloningSettings = QUICK, seed: int = 0
) -> tuple[Parameters, RunningStats, list[CloningEpoch]]:
    parameters, stats = new_policy(seed), data.statistics()
    epochs = list(clone(parameters, "tanh", data, stats, settings, seed))
    return parameters, stats, epochs


def drive(parameters: Parameters, stats: RunningStats, folder: Path) -> Evaluation:
    """Save the clone as a model, load that, and let it drive on track-01."""
    config, adam = RunConfig(), AdamState.create(parameters.sizes)
    returns = RunningStats(np.array(0.0), np.array(1.0), 1.0)
    path = save_native_model(folder / "clone.zip", config, parameters, adam, Statistics(stats, returns), 0, 0)
    return evaluate(load_agent(path).act, [load_circuit("track-01")], enough_laps=2)[0]


def laps_cleanly(evaluation: Evaluation) -> bool:
    return evaluation.clean and evaluation.best_flying is not None


@pytest.mark.parametrize("seed", range(5))
def test_three_noisy_laps_give_a_clone_that_laps_cleanly_after_three_seconds(seed: int, tmp_path: Path) -> None:
    replay = noisy_drive(seed)
    learn(lessons(replay), CloningSettings(epochs=1))  # machine code is loaded
    start = time.process_time()
    parameters, stats, _ = learn(lessons(replay), CloningSettings(), seed)
    seconds = time.process_time() - start
    evaluation = drive(parameters, stats, tmp_path)
    assert laps_cleanly(evaluation)
    assert evaluation.best_flying == pytest.approx(min(replay.laps) / 60.0, rel=0.05)
    assert seconds <= 3.0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("laps", "noise"), [(3, 0.0), (3, 0.3), (1, 0.15)])
def test_a_steady_driver_or_a_single_lap_is_enough(laps: int, noise: float, seed: int, tmp_path: Path) -> None:
    parameters, stats, _ = learn(lessons(noisy_drive(seed, laps, noise)), CloningSettings(), seed)
    assert laps_cleanly(drive(parameters, stats, tmp_path))


def test_the_gradient_is_that_of_the_loss() -> None:
    rng = np.random.default_rng(1)
    observations = rng.standard_normal((700, 14)).astype(np.float32)
    actions = rng.uniform(ACTION_LOW, ACTION_HIGH, (700, 3)).astype(np.float32)
    actions[::3] = np.round(actions[::3])  # at their limits
    parameters = new_policy()
    parameters.weights[-1][0] *= 50.0
    loss, rows = CloningLoss(observations, actions, parameters, "tanh"), np.arange(700)
    gradient, mean = loss.gradient(rows)
    slopes = gradient.flat.copy()
    assert mean == pytest.approx(loss.loss(rows))
    for direction in rng.standard_normal((5, len(slopes))).astype(np.float32):
        before, step = parameters.flat.copy(), np.float32(1e-4)
        parameters.flat[...] = before + step * direction
        ahead = loss.loss(rows)
        parameters.flat[...] = before - step * direction
        back = loss.loss(rows)
        parameters.flat[...] = before
        assert (ahead - back) / 2e-4 == pytest.approx(float(slopes @ direction), rel=0.02, abs=1e-3)


def test_outputs_beyond_a_limit_that_the_driver_held_are_right() -> None:
    parameters = new_policy()
    for weights in parameters.weights:
        weights[...] = 0.0
    parameters.biases[-1][0] = (3.0, 2.0, -4.0)
    full = np.tile(np.float32([1.0, 1.0, 0.0]), (5, 1))
    loss = CloningLoss(np.zeros((5, 14), np.float32), full, parameters, "tanh")
    assert loss.loss(np.arange(5)) == 0.0
    half = CloningLoss(np.zeros((5, 14), np.float32), full * np.float32(0.5), parameters, "tanh")
    assert half.loss(np.arange(5)) == pytest.approx(2.5**2 + 1.5**2)


def test_the_same_seed_gives_the_same_weights() -> None:
    data = lessons(noisy_drive(0))
    first, second, other = learn(data, seed=1), learn(data, seed=1), learn(data, seed=2)
    assert np.array_equal(first[0].flat, second[0].flat)
    assert first[2] == second[2]
    assert not np.array_equal(first[0].flat, other[0].flat)


def test_the_clone_has_the_weights_with_the_lowest_held_out_loss() -> None:
    data, parameters = lessons(noisy_drive(0)), new_policy()
    found: dict[float, bytes] = {}
    for epoch in clone(parameters, "tanh", data, data.statistics(), CloningSettings(epochs=8), 0):
        found[epoch.held_out] = parameters.flat.tobytes()
        assert epoch.best == min(found)
    assert parameters.flat.tobytes() == found[min(found)]


def test_cloning_that_is_stopped_leaves_the_best_weights_so_far() -> None:
    data, parameters = lessons(noisy_drive(0)), new_policy()
    epochs = clone(parameters, "tanh", data, data.statistics(), CloningSettings(), 0)
    next(epochs)
    first = parameters.flat.copy()
    epochs.close()
    assert np.array_equal(parameters.flat, first)


def test_it_stops_when_the_held_out_loss_no_longer_falls() -> None:
    data = lessons(noisy_drive(0))
    epochs = learn(data, CloningSettings(epochs=200, patience=5, learning_rate=5e-3))[2]
    assert len(epochs) < 200
    best = min(epochs, key=lambda epoch: epoch.held_out)
    assert epochs[-1].number == best.number + 5


def test_held_out_laps_are_whole_laps_but_not_the_only_standing_start() -> None:
    data = lessons(noisy_drive(0), noisy_drive(1))
    for seed in range(10):
        held_out = data.held_out(0.2, np.random.default_rng(seed))
        chosen = set(data.laps[held_out].tolist())
        assert chosen
        assert chosen.isdisjoint({0, 3})
        assert np.array_equal(held_out, np.isin(data.laps, list(chosen)))


def test_a_stretch_of_the_only_lap_is_held_out_with_its_recoveries() -> None:
    data = lessons(noisy_drive(0, laps=1))
    held_out = data.held_out(0.2, np.random.default_rng(0))
    ticks = data.ticks[held_out]
    assert 0.15 < np.mean(held_out[~data.recovered]) < 0.25
    assert set(data.ticks[~held_out].tolist()).isdisjoint(ticks.tolist())
    assert data.recovered[held_out].any()


def test_several_drives_are_joined() -> None:
    one, other = lessons(noisy_drive(0)), lessons(noisy_drive(1))
    both = one.joined(other)
    assert len(both) == len(one) + len(other)
    assert set(both.laps.tolist()) == set(range(6))
    assert both.sources == one.sources + other.sources


def test_recoveries_come_back_to_the_line() -> None:
    trace = trace_replay(noisy_drive(0, noise=0.0))
    lap = trace.laps[1]
    steps = recoveries(trace, lap, 0)
    driver = trace.replay.actions[lap.first + steps.ticks]
    pushed = np.abs(steps.actions[:, 0] - driver[:, 0])
    assert 0.02 < pushed.mean() < 0.5
    assert np.isfinite(steps.observations).all()
    assert len(steps.actions) > 2 * lap.ticks
    assert np.array_equal(steps.actions, recoveries(trace, lap, 0).actions)


def test_a_mirror_image_of_a_mirror_image_is_the_same() -> None:
    drive = demonstrated_drive(trace_replay(ring_run(200)))
    seen, done = mirrored(drive.observations[:-1], drive.actions)
    assert not np.array_equal(seen, drive.observations[:-1])
    for image, original in zip(mirrored(seen, done), (drive.observations[:-1], drive.actions), strict=True):
        assert np.array_equal(image, original)


def test_statistics_normalise_what_was_seen() -> None:
    data = lessons(noisy_drive(0))
    values = normalised(data.observations, data.statistics(), clip=1e6)
    assert values.mean(axis=0) == pytest.approx(np.zeros(14), abs=1e-3)
    assert values.std(axis=0) == pytest.approx(np.ones(14), abs=0.01)


@pytest.mark.parametrize("replays", [[], [ring_run(60)]])
def test_no_lap_is_an_error(replays: Iterable[Replay]) -> None:
    with pytest.raises((ValueError, ReplayError), match=r"nothing to learn|no finished lap"):
        lessons(*replays)
