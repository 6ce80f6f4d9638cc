"""RacerVectorEnv: N cars, identical to N single environments."""

import gc
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import wrappers
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import vector as vector_wrappers

from racer_env import DiscreteRacerEnv, DiscreteRacerVectorEnv, RacerEnv, RacerVectorEnv
from racer_env.engine import ANYWHERE, CAR
from racer_env.env import EnvClosedError
from racer_env.errors import ActionError, BridgeError, RacerError
from tests.bridge.conftest import running_bridge
from tests.bridge.old_server import old_server
from tests.servers import RunningServer


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_bridge(tmp_path_factory.mktemp("bridge")) as server:
        yield server


CONFIG = {"episode": {"maxSteps": 40, "stillnessTimeoutTicks": 12}, "weights": {"speedBonus": 0.01}}


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


def sync(cars: int, tracks: list[str], redraw: bool, mode: AutoresetMode) -> SyncVectorEnv:
    """Gymnasium's own vector environment of single cars."""
    return SyncVectorEnv([lambda i=i: single(i, tracks, redraw) for i in range(cars)], autoreset_mode=mode)  # type: ignore[misc]


def assert_same_results(ours: Any, theirs: Any) -> None:
    """Compare the results of a reset or a step bit by bit."""
    *our_arrays, our_infos = ours
    *their_arrays, their_infos = theirs
    for name, a, b in zip(("observations", "rewards", "term", "trunc"), our_arrays, their_arrays, strict=False):
        assert a.dtype == b.dtype, name
        assert a.tobytes() == b.tobytes(), name
    assert_equal(our_infos, their_infos)


def drive_both(together: Any, singles: SyncVectorEnv, mode: AutoresetMode, draws: np.random.Generator) -> int:
    """Drive both with the same random actions and compare every result; return the number of episodes that ended."""
    cars, ends = together.num_envs, 0
    for _ in range(250):
        actions = np.stack([together.single_action_space.sample() for _ in range(cars)])
        ours, theirs = together.step(actions), singles.step(actions)
        assert_same_results(ours, theirs)
        ended = ours[2] | ours[3]
        ends += int(ended.sum())
        mask = ended.copy() if mode is AutoresetMode.DISABLED else np.zeros(cars, np.bool_)
        if draws.random() < 0.04:  # now and then some cars start again before the end of their episode
            mask |= draws.random(cars) < 0.5
        if mask.any():
            seed = [None, 17, [int(number) for number in draws.integers(99, size=cars)]][draws.integers(3)]
            assert_same_results(
                together.reset(seed=seed, options={"reset_mask": mask}),
                singles.reset(seed=seed, options={"reset_mask": mask.copy()}),
            )
    return ends


@pytest.mark.parametrize("redraw", [False, True])
@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize("mode", AutoresetMode)
def test_results_are_bit_identical_to_those_of_gymnasium(
    mode: AutoresetMode, remote: bool, redraw: bool, bridge: RunningServer
) -> None:
    tracks = ["track-01", "track-03", "random:9"]
    singles = sync(7, tracks, redraw, mode)
    url = bridge.url if remote else None
    together = RacerVectorEnv(
        7, url, track_id=tracks, config=CONFIG, start=ANYWHERE, redraw=redraw, autoreset_mode=mode
    )
    assert together.metadata["autoreset_mode"] is mode
    for number, seed in enumerate((4, [9, 8, 7, 6, 5, 4, 3])):
        together.single_action_space.seed(number)
        assert_same_results(together.reset(seed=seed), singles.reset(seed=seed))
        assert drive_both(together, singles, mode, np.random.default_rng(number)) > 3
    together.close()


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("number", [0, 1, *(pytest.param(each, marks=pytest.mark.slow) for each in range(2, 8))])
def test_random_settings_are_bit_identical_to_those_of_gymnasium(mode: AutoresetMode, number: int) -> None:
    draws = np.random.default_rng([number, 18])
    cars = int(draws.integers(1, 9))
    tracks = [*draws.choice(["track-01", "track-02", "track-04", f"random:{number}"], draws.integers(1, 4))]
    redraw = bool(draws.integers(2)) and len(tracks) > 1
    limits = {"maxSteps": int(draws.integers(5, 60)), "stillnessTimeoutTicks": int(draws.integers(3, 20))}
    options: dict[str, Any] = {"config": {"episode": limits}, "start": ANYWHERE}
    discrete = bool(draws.integers(2))
    one, many = (DiscreteRacerEnv, DiscreteRacerVectorEnv) if discrete else (RacerEnv, RacerVectorEnv)
    singles = SyncVectorEnv(
        [lambda i=i: one(track_id=tracks if redraw else tracks[i % len(tracks)], **options) for i in range(cars)],  # type: ignore[misc]
        autoreset_mode=mode,
    )
    together = many(cars, track_id=tracks, redraw=redraw, autoreset_mode=mode.value, **options)
    assert together.action_space == singles.action_space
    assert together.metadata["autoreset_mode"] is mode
    together.single_action_space.seed(number)
    assert_same_results(together.reset(seed=number), singles.reset(seed=number))
    assert drive_both(together, singles, mode, draws) > 3


def test_the_next_step_ignores_the_action_of_a_car_that_ended() -> None:
    env = RacerVectorEnv(2, config={"episode": {"maxSteps": 3}}, autoreset_mode="NextStep")
    first, _ = env.reset(seed=0)
    for _ in range(3):
        last, _, _, truncated, infos = env.step(np.ones((2, 3), np.float32))
    assert truncated.all()
    assert infos["stepCount"].tolist() == [3, 3]
    assert not np.array_equal(last, first)
    observations, rewards, _, truncated, infos = env.step(np.ones((2, 3), np.float32))
    assert np.array_equal(observations, first)
    assert rewards.tolist() == [0.0, 0.0]
    assert not truncated.any()
    assert infos["stepCount"].tolist() == [0, 0]


def test_without_autoreset_a_car_that_ended_must_be_reset() -> None:
    env = RacerVectorEnv(3, config={"episode": {"maxSteps": 4}}, autoreset_mode=AutoresetMode.DISABLED)
    env.reset(seed=0)
    actions = np.zeros((3, 3), np.float32)
    env.step(actions)
    env.reset(options={"reset_mask": np.array([False, True, False])})
    for _ in range(3):
        *_, truncated, _ = env.step(actions)
    assert truncated.tolist() == [True, False, True]
    with pytest.raises(RacerError, match="these cars have ended: 0, 2; reset them with the option reset_mask"):
        env.step(actions)
    env.reset(options={"reset_mask": truncated})
    assert env.step(actions)[4]["stepCount"].tolist() == [1, 4, 1]


WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "ArrayConversion": lambda env: vector_wrappers.ArrayConversion(env, np, pytest.importorskip("torch")),
    "ClipAction": vector_wrappers.ClipAction,
    "ClipReward": lambda env: vector_wrappers.ClipReward(env, 0.0, 0.001),
    "DictInfoToList": vector_wrappers.DictInfoToList,
    "DtypeObservation": lambda env: vector_wrappers.DtypeObservation(env, np.float64),
    "FlattenObservation": vector_wrappers.FlattenObservation,
    "HumanRendering": vector_wrappers.HumanRendering,
    "NormalizeObservation": vector_wrappers.NormalizeObservation,
    "NormalizeReward": vector_wrappers.NormalizeReward,
    "NumpyToTorch": lambda env: vector_wrappers.NumpyToTorch(env),
    "RecordVideo": lambda env: vector_wrappers.RecordVideo(env, "videos", video_length=4),
    "RecordEpisodeStatistics": vector_wrappers.RecordEpisodeStatistics,
    "RescaleAction": lambda env: vector_wrappers.RescaleAction(env, -1.0, 1.0),
    "RescaleObservation": lambda env: vector_wrappers.RescaleObservation(env, -1.0, 1.0),
    "ReshapeObservation": lambda env: vector_wrappers.ReshapeObservation(env, (2, 7)),
    "TransformAction": lambda env: vector_wrappers.TransformAction(env, lambda actions: actions / 2),
    "TransformObservation": lambda env: vector_wrappers.TransformObservation(env, lambda seen: seen / 2),
    "TransformReward": lambda env: vector_wrappers.TransformReward(env, lambda rewards: rewards / 2),
    "VectorizeTransformAction": lambda env: vector_wrappers.VectorizeTransformAction(env, wrappers.ClipAction),
    "VectorizeTransformObservation": lambda env: vector_wrappers.VectorizeTransformObservation(
        env, wrappers.RescaleObservation, min_obs=-1.0, max_obs=1.0
    ),
    "VectorizeTransformReward": lambda env: vector_wrappers.VectorizeTransformReward(
        env, wrappers.TransformReward, func=lambda reward: reward / 2
    ),
}
FOR_OTHER_OBSERVATIONS = {"FilterObservation", "GrayscaleObservation", "ResizeObservation"}
FOR_JAX = {"JaxToNumpy", "JaxToTorch"}  # environments written in jax
REQUIRED = {
    "ArrayConversion": "array_api_compat",
    "HumanRendering": "cv2",
    "NumpyToTorch": "array_api_compat",
    "RecordVideo": "moviepy",
}
"""Packages that wrappers need; `run.py --with peers` has them."""


def test_all_vector_wrappers_of_gymnasium_are_tried() -> None:
    assert {*WRAPPERS, *FOR_OTHER_OBSERVATIONS, *FOR_JAX} == {*vector_wrappers.__all__}


def plain(values: Any) -> Any:
    """Return results of a wrapper as lists and arrays of numbers, without times."""
    if isinstance(values, dict):
        return {key: plain(value) for key, value in values.items() if key != "t"}
    if isinstance(values, list):
        return [plain(value) for value in values]
    array = np.asarray(values)
    return [*array] if array.dtype == object else array


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("name", WRAPPERS)
def test_every_vector_wrapper_of_gymnasium_works(
    name: str, mode: AutoresetMode, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if name in REQUIRED:
        pytest.importorskip(REQUIRED[name])
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.chdir(tmp_path)
    rendering = {"render_mode": "rgb_array"} if name in ("HumanRendering", "RecordVideo") else {}
    limits = {"episode": {"maxSteps": 20}}
    theirs: Any = SyncVectorEnv([lambda: RacerEnv(config=limits, **rendering)] * 2, autoreset_mode=mode)  # type: ignore[arg-type]
    ours: Any = RacerVectorEnv(2, config=limits, autoreset_mode=mode, **rendering)
    try:
        theirs = WRAPPERS[name](theirs)
    except (AssertionError, ValueError) as refusal:
        assert mode is not AutoresetMode.NEXT_STEP, "the mode that all wrappers support"
        with pytest.raises(type(refusal), match=re.escape(str(refusal))):
            WRAPPERS[name](ours)
        return
    ours = WRAPPERS[name](ours)
    np.testing.assert_equal(plain([*ours.reset(seed=1)]), plain([*theirs.reset(seed=1)]))
    ours.action_space.seed(1)
    to_torch = name in ("ArrayConversion", "NumpyToTorch")
    without_end = rendering or (to_torch and mode is AutoresetMode.SAME_STEP)  # these cannot convert final_obs
    for _ in range(15 if without_end else 45):
        actions = ours.action_space.sample()
        if to_torch:
            actions = pytest.importorskip("torch").from_numpy(actions)
        one, other = ours.step(actions), theirs.step(actions)
        for a, b in zip(plain([*one]), plain([*other]), strict=True):
            if isinstance(b, (dict, list)):
                np.testing.assert_equal(a, b)
            else:
                assert a.dtype == b.dtype
                assert a.tobytes() == b.tobytes()
        if mode is AutoresetMode.DISABLED and np.asarray(one[3]).any():
            ours.reset()
            theirs.reset()
    if rendering:
        for a, b in zip(ours.env.render(), theirs.env.render(), strict=True):
            np.testing.assert_array_equal(a, b)
    ours.close()
    theirs.close()
    assert (name == "RecordVideo") == any(tmp_path.glob("videos/*.mp4"))


def test_make_vec_returns_a_racer_vector_env() -> None:
    env = gymnasium.make_vec("racer_env:Racer-v0", num_envs=3, track_id="track-02")
    assert isinstance(env.unwrapped, RacerVectorEnv)
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    observations, _ = env.reset(seed=1)
    assert env.observation_space.contains(observations)
    assert env.action_space.shape == (3, 3)
    env.step(env.action_space.sample())
    env.close()


def test_make_vec_takes_the_entry_point_of_both_environments() -> None:
    for name, kind in (("Racer-v0", RacerVectorEnv), ("RacerDiscrete-v0", DiscreteRacerVectorEnv)):
        env = gymnasium.make_vec(name, 3, "vector_entry_point", autoreset_mode=AutoresetMode.NEXT_STEP)
        assert type(env.unwrapped) is kind
        assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
        assert env.spec is not None
        again = gymnasium.make_vec(env.spec)
        assert type(again.unwrapped) is kind
        assert again.num_envs == 3
        assert again.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
        again.reset(seed=1)
        again.step(again.action_space.sample())


def test_images_are_those_of_single_environments() -> None:
    env = RacerVectorEnv(2, track_id=["track-01", "track-02"], render_mode="rgb_array")
    singles = [RacerEnv(track_id=track, render_mode="rgb_array") for track in ("track-01", "track-02")]
    env.reset(seed=1)
    for number, one in enumerate(singles):
        one.reset(seed=1 + number)
    actions = np.array([(0.2, 1.0, 0.0), (-0.3, 1.0, 0.0)], np.float32)
    for _ in range(3):
        for _ in range(20):
            env.step(actions)
            for one, action in zip(singles, actions, strict=True):
                one.step(action)
        for image, one in zip(env.render(), singles, strict=True):
            np.testing.assert_array_equal(image, one.render())
    env.close()


def test_a_mask_resets_only_some_cars(bridge: RunningServer) -> None:
    for url in (None, bridge.url):
        env = RacerVectorEnv(4, url, start=ANYWHERE)
        env.reset(seed=1)
        for _ in range(5):
            before = env.step(np.full((4, 3), 0.5, np.float32))[0]
        after, infos = env.reset(options={"reset_mask": np.array([False, True, False, True])})
        assert (after == before).all(axis=1).tolist() == [True, False, True, False]
        assert infos["stepCount"].tolist() == [0, 0, 0, 0]
        assert env.cars["step_count"].tolist() == [5, 0, 5, 0] if url is None else True
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
    with pytest.raises(RacerError, match="must be None or 'rgb_array', not 'human'"):
        RacerVectorEnv(3, render_mode="human")
    with pytest.raises(RacerError, match="on a bridge cannot render"):
        RacerVectorEnv(3, "ws://127.0.0.1:9", render_mode="rgb_array")
    with pytest.raises(RacerError, match="draws nothing"):
        env.render()
    with pytest.raises(RacerError, match="one of 'NextStep', 'SameStep', 'Disabled', not 'Never'"):
        RacerVectorEnv(3, autoreset_mode="Never")
    with pytest.raises(RacerError, match="3 cars need one number each, not 2"):
        env.reset(seed=[1, 2], options={"reset_mask": np.ones(3, np.bool_)})
    discrete = DiscreteRacerVectorEnv(2)
    discrete.reset(seed=0)
    for wrong in ([0, 9], [-1, 0], [0], [0.5, 1.0], "ab"):
        with pytest.raises(RacerError, match="2 whole numbers from 0 to 8"):
            discrete.step(wrong)
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


def test_cars_over_a_bridge_have_no_rows(bridge: RunningServer) -> None:
    env = RacerVectorEnv(2, bridge.url)
    env.reset(seed=0)
    with pytest.raises(BridgeError, match="no positions"):
        _ = env.cars
    env.close()
