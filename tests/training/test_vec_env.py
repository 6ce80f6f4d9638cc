"""SB3VecEnv: the cars of a RacerVectorEnv for stable-baselines3."""

import copy
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

from racer_env import RacerEnv, RacerVectorEnv
from racer_env.bridge.interface import COMPONENT_KEYS, STEP_KEYS
from racer_env.engine import ANYWHERE
from racer_env.env import EnvClosedError
from racer_env.errors import RacerError
from racer_viewer.training.vec_env import CarInfo, SB3VecEnv
from tests.bridge.conftest import running_bridge

TRACKS = ("track-01", "track-03")
SHORT_EPISODES = {"episode": {"maxSteps": 90, "stillnessTimeoutTicks": 25}}


def make(num_cars: int = 4, **options: Any) -> SB3VecEnv:
    return SB3VecEnv(RacerVectorEnv(num_cars, **options))


def random_actions(ticks: int, cars: int) -> np.ndarray:
    """Held for a while each; every third car stands on its brake, so that its episodes end early."""
    drawn = np.random.default_rng(5).uniform((-1, 0, 0), (1, 1, 0.2), (ticks // 10 + 1, cars, 3))
    drawn[:, ::3] = (0.0, 0.0, 1.0)
    return np.repeat(drawn, 10, axis=0)[:ticks].astype(np.float32)


@pytest.fixture(scope="module")
def bridge_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_bridge(tmp_path_factory.mktemp("bridge")) as bridge:
        yield bridge.url


def assert_same_as_single_envs(bridge_url: str | None, ticks: int) -> None:
    cars = 6
    shared = {"config": SHORT_EPISODES, "start": ANYWHERE}
    ours = make(cars, bridge_url=bridge_url, track_id=TRACKS, **shared)
    single = DummyVecEnv([lambda i=i: RacerEnv(track_id=TRACKS[i % 2], **shared) for i in range(cars)])
    assert ours.seed(7) == single.seed(7)
    np.testing.assert_array_equal(ours.reset(), single.reset())
    assert ours.reset_infos == single.reset_infos
    ended = truncated = 0
    for actions in random_actions(ticks, cars):
        results = ours.step(actions), single.step(actions)
        for mine, theirs in zip(*(result[:3] for result in results), strict=True):
            assert mine.dtype == theirs.dtype
            np.testing.assert_array_equal(mine, theirs)
        for mine, theirs in zip(*(result[3] for result in results), strict=True):
            assert set(mine) == set(theirs)
            np.testing.assert_array_equal(mine.get("terminal_observation", ()), theirs.pop("terminal_observation", ()))
            assert {key: mine[key] for key in theirs} == theirs
            assert {key: type(mine[key]) for key in theirs} == {key: type(theirs[key]) for key in theirs}
        assert ours.reset_infos == single.reset_infos
        truncated += sum(info["TimeLimit.truncated"] for info in results[0][3])
        ended += sum(results[0][2])
    assert truncated > 5
    assert ended > truncated + 5
    ours.close()
    single.close()


def test_the_cars_are_those_of_single_environments_to_the_last_bit() -> None:
    assert_same_as_single_envs(None, 500)


def test_over_a_socket_too(bridge_url: str) -> None:
    assert_same_as_single_envs(bridge_url, 400)


def test_observations_and_rewards_of_a_step_stay_when_the_next_one_runs() -> None:
    env = make()
    first = env.reset()
    kept = first.copy()
    observations, rewards, dones, _ = env.step(np.full((4, 3), (0.2, 1.0, 0.0), np.float32))
    copies = [array.copy() for array in (observations, rewards, dones)]
    for _ in range(50):
        env.step(np.full((4, 3), (0.2, 1.0, 0.0), np.float32))
    np.testing.assert_array_equal(first, kept)
    for array, expected in zip((observations, rewards, dones), copies, strict=True):
        np.testing.assert_array_equal(array, expected)


def test_the_info_of_a_car_that_goes_on_shows_the_latest_tick_and_its_copies_stay() -> None:
    env = make(2)
    env.reset()
    actions = np.full((2, 3), (0.0, 1.0, 0.0), np.float32)
    info = env.step(actions)[3][1]
    copies = [info.copy(), dict(info), {**info}, copy.copy(info), copy.deepcopy(info), pickle.loads(pickle.dumps(info))]
    assert all(type(each) is dict and each["stepCount"] == 1 for each in copies)
    assert all(each == info for each in copies)
    assert env.step(actions)[3][1] is info
    assert info["stepCount"] == info.get("stepCount") == 2
    assert info != copies[0]


def test_an_info_reads_like_a_dictionary() -> None:
    env = make(1)
    env.reset()
    info = env.step(np.zeros((1, 3), np.float32))[3][0]
    assert isinstance(info, CarInfo)
    assert list(info) == list(info.keys()) == [*STEP_KEYS, "TimeLimit.truncated"]
    assert len(info) == len(info.values()) == len(info.items()) == 14
    assert "progress" in info
    assert "episode" not in info
    assert info.get("episode") is None
    assert info.get("TimeLimit.truncated", True) is False
    assert repr(info) == repr(dict(info))
    with pytest.raises(KeyError, match="terminal_observation"):
        info["terminal_observation"]


def test_the_last_step_has_components_and_laps_as_arrays() -> None:
    env = make(3)
    with pytest.raises(RacerError, match="reset"):
        _ = env.last_step
    env.reset()
    rewards, infos = env.step(np.full((3, 3), (0.0, 1.0, 0.0), np.float32))[1::2]
    step = env.last_step
    np.testing.assert_array_equal(step.components.sum(axis=1).astype(np.float32), rewards)
    assert [info[key] for info in infos for key in COMPONENT_KEYS] == step.components.ravel().tolist()
    assert step.finished_lap_ticks.tolist() == [0, 0, 0]


def test_seeds_count_for_one_reset() -> None:
    env = make(start=ANYWHERE)
    env.seed(3)
    first, second = env.reset(), env.reset()
    env.seed(3)
    np.testing.assert_array_equal(env.reset(), first)
    np.testing.assert_array_equal(env.reset(), second)
    assert (first != second).any()


def test_options_are_for_all_cars() -> None:
    env = make(2)
    env.set_options({"circuit": "track-03", "start": {"speed": 50.0}})
    env.reset()
    assert [info["speed"] for info in env.reset_infos] == [50.0, 50.0]
    env.set_options([{"start": {"speed": 10.0}}, {"start": {"speed": 20.0}}])
    with pytest.raises(RacerError, match="same options"):
        env.reset()
    for too_few in ([{"start": {"speed": 10.0}}], []):
        env.set_options(too_few)
        with pytest.raises(RacerError, match="same options"):
            env.reset()
    env.set_options({"circiut": "track-01"})
    with pytest.raises(RacerError, match="did you mean circuit"):
        env.reset()


def test_attributes_and_methods_are_those_of_all_cars_together() -> None:
    env = make(3)
    assert env.get_attr("render_mode") == [None] * 3
    assert env.get_attr("action_space", [0, 2]) == [RacerEnv().action_space] * 2
    assert not env.has_attr("no_such_thing")
    env.set_attr("nickname", "swift")
    assert env.get_attr("nickname", 1) == ["swift"]
    with pytest.raises(RacerError, match="one environment"):
        env.set_attr("nickname", "slow", indices=1)
    observations, _ = env.env_method("reset", seed=1)[2]
    assert observations.shape == (3, 14)
    with pytest.raises(RacerError, match="one environment"):
        env.env_method("reset", indices=[0, 1])
    assert env.env_is_wrapped(Monitor) == [False] * 3
    assert env.get_images() == [None] * 3


def test_a_closed_environment_says_so() -> None:
    env = make(2)
    env.reset()
    env.close()
    env.close()
    with pytest.raises(EnvClosedError, match="closed"):
        env.step(np.zeros((2, 3), np.float32))


def test_waiting_without_actions_is_an_error() -> None:
    env = make(2)
    env.reset()
    with pytest.raises(RacerError, match="step_async"):
        env.step_wait()


def test_monitor_and_normalisation_see_the_episodes_that_end() -> None:
    env = VecNormalize(VecMonitor(make(6, config=SHORT_EPISODES)))
    env.seed(1)
    env.reset()
    ended = []
    for actions in random_actions(100, 6):
        infos = env.step(actions)[3]
        ended += [info for info in infos if "episode" in info]
    assert {int(info["episode"]["l"]) for info in ended} >= {25, 90}
    assert all(info["stepCount"] == info["episode"]["l"] for info in ended)
    assert all(np.isfinite(info["terminal_observation"]).all() for info in ended)
    assert np.isfinite(env.obs_rms.mean).all()


class LapsAndComponents(BaseCallback):
    """Sums what the arrays say, as a training metric does."""

    def __init__(self) -> None:
        super().__init__()
        self.progress, self.steps, self.read = 0.0, 0, 0

    def _on_step(self) -> bool:
        env = self.training_env.unwrapped
        assert isinstance(env, SB3VecEnv)
        self.progress += float(env.last_step.components[:, 0].sum())
        self.steps += len(env.last_step.rewards)
        self.read += sum(info["stepCount"] > 0 for info in self.locals["infos"])
        return True


@pytest.mark.parametrize("wrap", [lambda env: env, lambda env: VecNormalize(VecMonitor(env))], ids=["plain", "wrapped"])
def test_ppo_learns(wrap: Any) -> None:
    env = wrap(make(8, config=SHORT_EPISODES, start=ANYWHERE))
    callback = LapsAndComponents()
    model = PPO("MlpPolicy", env, n_steps=64, batch_size=256, n_epochs=2, seed=0, device="cpu")
    model.learn(1024, callback=callback)
    assert callback.steps == callback.read == 1024
    assert callback.progress != 0.0


def test_ppo_learns_the_same_as_on_single_environments() -> None:
    weights = []
    shared = {"config": SHORT_EPISODES, "start": ANYWHERE}
    for env in (make(4, **shared), make_vec_env(RacerEnv, 4, env_kwargs=shared)):
        model = PPO("MlpPolicy", env, n_steps=64, batch_size=64, n_epochs=2, seed=0, device="cpu")
        model.learn(512)
        weights.append({name: value.numpy() for name, value in model.policy.state_dict().items()})
    for name, value in weights[0].items():
        np.testing.assert_array_equal(value, weights[1][name], err_msg=name)


def test_sac_learns() -> None:
    env = VecMonitor(make(4, config=SHORT_EPISODES, start=ANYWHERE))
    model = SAC(
        "MlpPolicy", env, learning_starts=64, batch_size=32, buffer_size=2000, train_freq=4, seed=0, device="cpu"
    )
    model.learn(480)
    buffer = model.replay_buffer
    assert buffer is not None
    assert buffer.timeouts[: buffer.pos].any()
    assert buffer.dones[: buffer.pos].any()
    assert model.ep_info_buffer


def test_a_policy_can_be_evaluated_on_it() -> None:
    env = VecMonitor(make(4, config=SHORT_EPISODES))
    model = PPO("MlpPolicy", env, device="cpu")
    rewards, lengths = evaluate_policy(model, env, n_eval_episodes=4, return_episode_rewards=True)
    assert len(rewards) == len(lengths) == 4


def test_the_results_file_of_a_monitor_can_have_our_keys(tmp_path: Path) -> None:
    env = VecMonitor(make(2, config=SHORT_EPISODES), str(tmp_path / "run"), info_keywords=("lap", "wallContact"))
    env.reset()
    for actions in random_actions(30, 2):
        env.step(actions)
    env.close()
    header, first = (tmp_path / "run.monitor.csv").read_text().splitlines()[1:3]
    assert header == "r,l,t,lap,wallContact"
    assert first.endswith(",1,False")
