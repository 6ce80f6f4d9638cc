"""RacerVectorEnv: N cars, identical to N single environments."""

import gc
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from racer_env import RacerEnv, RacerVectorEnv
from racer_env.engine import ANYWHERE, CAR
from racer_env.env import EnvClosedError
from racer_env.errors import ActionError, BridgeError, RacerError
from tests.bridge.conftest import running_bridge
from tests.bridge.old_server import old_server

CONFIG = {"episode": {"maxSteps": 90, "stillnessTimeoutTicks": 12}, "weights": {"speedBonus": 0.01}}


def drawn_actions(ticks: int, cars: int) -> np.ndarray:
    drawn = np.random.default_rng(1).uniform((-1, 0, 0), (1, 1, 0.6), (ticks // 10 + 1, cars, 3))
    return drawn.repeat(10, axis=0)[:ticks].astype(np.float32)


def assert_equal(ours: Any, theirs: Any, where: str = "infos") -> None:
    """Compare recursively, bit by bit."""
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys(), where
        for key in theirs:
            assert_equal(ours[key], theirs[key], f"{where}[{key!r}]")
    elif theirs.dtype == object:
        for row, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            assert (a is None) == (b is None), f"{where}[{row}]"
            assert a is None or a.tobytes() == b.tobytes(), f"{where}[{row}]"
    else:
        assert ours.dtype == theirs.dtype, where
        np.testing.assert_array_equal(ours, theirs, where)


def single(number: int, tracks: list[str], redraw: bool) -> RacerEnv:
    return RacerEnv(track_id=tracks if redraw else tracks[number % len(tracks)], config=CONFIG, start=ANYWHERE)


@pytest.mark.parametrize("redraw", [False, True])
@pytest.mark.parametrize("remote", [False, True])
def test_results_are_bit_identical_to_single_environments(redraw: bool, remote: bool, tmp_path: Path) -> None:
    tracks = ["track-01", "track-03", "random:9"]
    singles = SyncVectorEnv(
        [lambda i=i: single(i, tracks, redraw) for i in range(7)],  # type: ignore[misc]
        autoreset_mode=AutoresetMode.SAME_STEP,
    )
    with running_bridge(tmp_path) as bridge:
        url = bridge.url if remote else None
        together = RacerVectorEnv(7, url, track_id=tracks, config=CONFIG, start=ANYWHERE, redraw=redraw)
        for seed in (4, [9, 8, 7, 6, 5, 4, 3]):
            (ours, our_infos), (theirs, their_infos) = together.reset(seed=seed), singles.reset(seed=seed)
            assert ours.tobytes() == theirs.tobytes()
            assert_equal(our_infos, their_infos)
            ends = 0
            for actions in drawn_actions(250, 7):
                *our_arrays, our_infos = together.step(actions)
                *their_arrays, their_infos = singles.step(actions)
                for name, a, b in zip(
                    ("observations", "rewards", "term", "trunc"), our_arrays, their_arrays, strict=True
                ):
                    assert a.dtype == b.dtype, name
                    assert a.tobytes() == b.tobytes(), name
                assert_equal(our_infos, their_infos)
                ends += int("final_obs" in our_infos)
            assert ends > 3
        together.close()


def test_make_vec_returns_a_racer_vector_env() -> None:
    env = gymnasium.make_vec("racer_env:Racer-v0", num_envs=3, track_id="track-02")
    assert isinstance(env.unwrapped, RacerVectorEnv)
    assert env.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    observations, _ = env.reset(seed=1)
    assert env.observation_space.contains(observations)
    assert env.action_space.shape == (3, 3)
    env.step(env.action_space.sample())
    env.close()


def test_a_mask_resets_only_some_cars(tmp_path: Path) -> None:
    with running_bridge(tmp_path) as bridge:
        for url in (None, bridge.url):
            env = RacerVectorEnv(4, url, start=ANYWHERE)
            env.reset(seed=1)
            for _ in range(5):
                before = env.step(np.full((4, 3), 0.5, np.float32))[0]
            after, infos = env.reset(options={"reset_mask": np.array([False, True, False, True])})
            assert (after == before).all(axis=1).tolist() == [True, False, True, False]
            assert infos["stepCount"].tolist() == [5, 0, 5, 0]
            assert infos["_stepCount"].tolist() == [False, True, False, True]
            with pytest.raises(RacerError, match="reset of all"):
                env.reset(options={"reset_mask": np.array([True] * 4), "circuit": "track-02"})
            for wrong in ([True] * 4, np.array([1, 0, 0, 0]), np.zeros(4, bool), np.ones(3, bool)):
                with pytest.raises(RacerError, match="reset_mask"):
                    env.reset(options={"reset_mask": wrong})
            env.close()


def test_a_copy_stays_and_without_copies_arrays_are_reused() -> None:
    for copy in (True, False):
        env = RacerVectorEnv(2, copy=copy)
        first, _ = env.reset(seed=0)
        kept = first.copy()
        env.step(np.ones((2, 3), np.float32))
        assert np.array_equal(first, kept) == copy


def test_threads_change_nothing() -> None:
    alone, shared = RacerVectorEnv(256, start=ANYWHERE), RacerVectorEnv(256, start=ANYWHERE, threads=2)
    assert np.array_equal(alone.reset(seed=2)[0], shared.reset(seed=2)[0])
    for actions in drawn_actions(40, 256):
        assert np.array_equal(alone.step(actions)[0], shared.step(actions)[0])
    shared.close()


def test_errors_name_what_is_wrong() -> None:
    env = RacerVectorEnv(3)
    env.reset(seed=0)
    for wrong in (np.zeros((2, 3)), np.zeros(3), "abc", np.full((3, 3), np.nan)):
        with pytest.raises(ActionError, match="finite numbers"):
            env.step(wrong)
    with pytest.raises(RacerError, match="3 cars need one number each, not 2"):
        env.reset(seed=[1, 2])
    with pytest.raises(RacerError, match="draws nothing"):
        RacerVectorEnv(3, render_mode="human")  # type: ignore[arg-type]
    env.close()
    env.close()
    with pytest.raises(EnvClosedError, match="closed"):
        env.step(np.zeros((3, 3)))


def test_an_existing_server_cannot_batch_and_the_error_says_so() -> None:
    with old_server() as server, pytest.raises(BridgeError, match="does not support 'batch'"):
        RacerVectorEnv(3, server.url)


def test_a_failed_connection_raises_its_error_and_nothing_later(monkeypatch: pytest.MonkeyPatch) -> None:
    later: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", later.append)
    with pytest.raises(BridgeError):
        RacerVectorEnv(2, "ws://127.0.0.1:9")
    gc.collect()
    assert not later


def test_cars_are_copies_of_the_rows_of_the_simulation() -> None:
    env = RacerVectorEnv(3, start=ANYWHERE)
    _, infos = env.reset(seed=1)
    before = env.cars
    assert before.dtype == CAR
    assert before["speed"].tolist() == infos["speed"].tolist()
    actions = np.array([(0.0, 1.0, 0.0), (0.5, 0.5, 0.0), (0.0, 0.0, 1.0)], np.float32)
    _, rewards, *_ = env.step(actions)
    assert before["step_count"].tolist() == [0, 0, 0]
    assert env.cars["step_count"].tolist() == [1, 1, 1]
    assert env.cars["action"].tolist() == actions.tolist()
    assert env.cars["reward"].tolist() == rewards.tolist()


def test_cars_over_a_bridge_have_no_rows(tmp_path: Path) -> None:
    with running_bridge(tmp_path) as bridge:
        env = RacerVectorEnv(2, bridge.url)
        env.reset(seed=0)
        with pytest.raises(BridgeError, match="no positions"):
            _ = env.cars
        env.close()
