"""Driving metrics of a run."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.logger import Logger, configure
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from racer_env import RacerEnv, RacerVectorEnv
from racer_env.engine import ANYWHERE
from racer_viewer.agents import CHAMPION, load_agent, models_folder
from racer_viewer.training.vec_env import RacerMetricsCallback, SB3VecEnv

COMPONENTS = ("progress", "speed", "wall", "offTrack", "backward", "stillness")


class RecordedMetrics(Logger):
    """Logger without output."""

    def __init__(self) -> None:
        super().__init__(None, [])


class NoModel:
    """Model with the attributes that a callback needs."""

    def __init__(self, env: DummyVecEnv) -> None:
        self.logger, self.num_timesteps, self._env = RecordedMetrics(), 0, env

    def get_env(self) -> DummyVecEnv:
        return self._env


def crafted(count: int) -> tuple[RacerMetricsCallback, RecordedMetrics]:
    model = NoModel(DummyVecEnv([RacerEnv] * count))
    callback = RacerMetricsCallback()
    callback.init_callback(model)  # type: ignore[arg-type]
    callback.on_training_start({}, {})
    return callback, model.logger


def info(lap: int, steps: int, gate: int = 0, **components: float) -> dict[str, Any]:
    return {
        **dict.fromkeys(COMPONENTS, 0.0),
        **components,
        "lap": lap,
        "stepCount": steps,
        "checkpoint": gate,
        "rawSpeed": 9.0,
    }


def add_step(callback: RacerMetricsCallback, infos: list[dict[str, Any]], dones: list[bool]) -> None:
    callback.update_locals({"infos": infos, "dones": np.array(dones)})
    assert callback.on_step()


def test_lap_times_are_differences_of_step_counts() -> None:
    callback, metrics = crafted(2)
    add_step(callback, [info(1, 10), info(1, 20)], [False, False])
    add_step(callback, [info(2, 600), info(1, 700)], [False, False])
    add_step(callback, [info(3, 1080), info(2, 900)], [False, False])
    callback.on_rollout_end()
    assert metrics.name_to_value["racer/mean_lap_time_sec"] == pytest.approx((10.0 + 8.0 + 15.0) / 3)
    assert metrics.name_to_value["racer/best_lap_time_sec"] == 8.0
    assert metrics.name_to_value["racer/episodes_this_rollout"] == 0
    assert "racer/completion_rate" not in metrics.name_to_value
    assert (callback.metrics.laps, callback.metrics.best_lap) == (3, 8.0)


def test_an_end_starts_the_counts_anew() -> None:
    callback, metrics = crafted(2)
    add_step(callback, [info(2, 600), info(1, 50)], [True, True])
    add_step(callback, [info(1, 1), info(1, 1)], [False, False])
    add_step(callback, [info(2, 540), info(1, 540)], [True, False])
    callback.on_rollout_end()
    assert metrics.name_to_value["racer/completion_rate"] == 0.0, "no car has passed a gate"
    assert metrics.name_to_value["racer/episodes_this_rollout"] == 3
    assert metrics.name_to_value["racer/best_lap_time_sec"] == 9.0
    metrics.name_to_value.clear()
    callback.on_rollout_end()
    assert dict(metrics.name_to_value) == {"racer/episodes_this_rollout": 0}, "each rollout counts for itself"
    assert callback.metrics.best_lap == 9.0


def test_completion_is_the_chance_to_drive_a_lap_without_getting_stuck() -> None:
    callback, metrics = crafted(1)
    for episode in range(3):  # each drives half a lap of 30 gates; the last one ends because the car stands still
        for gate in range(15):
            add_step(callback, [info(1, gate, gate)], [False])
        last = {**info(1, 15, 15), "TimeLimit.truncated": episode < 2}
        add_step(callback, [last], [True])
        callback.on_rollout_end()
        assert metrics.name_to_value["racer/completion_rate"] == pytest.approx(1.0 if episode < 2 else math.exp(-2))


def test_a_car_that_passes_no_gate_for_three_seconds_is_stuck_although_it_moves() -> None:
    callback, metrics = crafted(1)
    for gate in range(30):
        add_step(callback, [info(1, gate, gate)], [False])
    for tick in range(400):
        last = {**info(1, 30 + tick, 29), "TimeLimit.truncated": tick == 399}
        add_step(callback, [last], [tick == 399])
    callback.on_rollout_end()
    assert metrics.name_to_value["racer/completion_rate"] == pytest.approx(math.exp(-30 / 29)), (
        "once, until it moves on"
    )


@pytest.mark.parametrize(("driver", "rate"), [(CHAMPION, 1.0), (None, 0.0)])
def test_completion_is_right_where_a_lap_is_longer_than_an_episode(driver: str | None, rate: float) -> None:
    config = {"episode": {"maxSteps": 300, "stillnessTimeoutTicks": 120}}
    env = SB3VecEnv(RacerVectorEnv(4, track_id="track-03", config=config, start=ANYWHERE))
    callback, model = RacerMetricsCallback(), NoModel(env)  # type: ignore[arg-type]
    callback.init_callback(model)  # type: ignore[arg-type]
    callback.on_training_start({}, {})
    agent = load_agent(models_folder() / f"{driver}.zip") if driver else None
    env.seed(0)
    observations = env.reset()
    for _ in range(700):
        observations, *_ = env.step(agent.act(observations) if agent else np.zeros((4, 3), np.float32))
        callback.on_step()
    callback.on_rollout_end()
    assert "racer/best_lap_time_sec" not in model.logger.name_to_value, "no episode has a whole lap"
    assert model.logger.name_to_value["racer/completion_rate"] == pytest.approx(rate, abs=0.01)


def test_components_are_means_over_cars_and_steps() -> None:
    callback, metrics = crafted(2)
    add_step(callback, [info(1, 1, progress=0.2, wall=-1.0), info(1, 1, progress=0.4)], [False, False])
    add_step(callback, [info(1, 2, progress=0.6), info(1, 2, progress=0.8)], [False, False])
    assert metrics.name_to_value["reward/progress"] == pytest.approx(0.5)
    assert metrics.name_to_value["reward/wall"] == pytest.approx(-0.25)
    assert {name for name in metrics.name_to_value if name.startswith("reward/")} == {f"reward/{c}" for c in COMPONENTS}


def test_episode_rewards_are_sums_over_the_last_episodes() -> None:
    callback, metrics = crafted(2)
    add_step(callback, [info(1, 1, progress=1.0), info(1, 1, progress=2.0, wall=-1.0)], [False, False])
    add_step(callback, [info(1, 2, progress=1.0), info(1, 2, progress=2.0)], [True, False])
    callback.on_rollout_end()
    assert metrics.name_to_value["rollout/ep_rew_mean"] == 2.0
    assert metrics.name_to_value["rollout/ep_len_mean"] == 2.0
    add_step(callback, [info(1, 1, progress=5.0), info(1, 3, progress=1.0)], [False, True])
    callback.on_rollout_end()
    assert metrics.name_to_value["rollout/ep_rew_mean"] == pytest.approx((2.0 + 4.0) / 2)
    assert metrics.name_to_value["rollout/ep_len_mean"] == 2.5


def test_arrays_and_infos_give_the_same_metrics() -> None:
    config = {"episode": {"maxSteps": 900}}
    metrics = []
    for env in (
        SB3VecEnv(RacerVectorEnv(3, config=config)),
        DummyVecEnv([lambda: RacerEnv(config=config) for _ in range(3)]),
    ):
        callback, model = RacerMetricsCallback(), NoModel(VecNormalize(env))  # type: ignore[arg-type]
        callback.init_callback(model)  # type: ignore[arg-type]
        callback.on_training_start({}, {})
        env.reset()
        for _ in range(1000):
            steer = np.float32([[-0.155, 0.5, 0.0], [-0.15, 0.6, 0.0], [0.0, 0.3, 0.0]])
            _, _, dones, infos = env.step(steer)
            callback.update_locals({"infos": infos, "dones": dones})
            callback.on_step()
        callback.on_rollout_end()
        metrics.append(dict(model.logger.name_to_value))
    assert metrics[0] == pytest.approx(metrics[1])
    assert metrics[0]["racer/episodes_this_rollout"] >= 3


@pytest.mark.parametrize("algorithm", [PPO, SAC])
@pytest.mark.parametrize("many", [True, False])
def test_the_metrics_are_in_the_event_file(algorithm: type[PPO] | type[SAC], many: bool, tmp_path: Path) -> None:
    config = {"episode": {"maxSteps": 40}}
    env = (
        SB3VecEnv(RacerVectorEnv(4, config=config, start=ANYWHERE))
        if many
        else DummyVecEnv([lambda: RacerEnv(config=config)])
    )
    options: dict[str, Any] = {"n_steps": 32, "batch_size": 32, "n_epochs": 1}
    if algorithm is SAC:
        options = {"buffer_size": 500, "learning_starts": 50, "batch_size": 16, "train_freq": 8, "gradient_steps": 1}
    model = algorithm("MlpPolicy", env, seed=0, device="cpu", **options)
    model.set_logger(configure(str(tmp_path), ["tensorboard"]))
    model.learn(512, callback=RacerMetricsCallback(), log_interval=1)
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    tags = set(events.Tags()["scalars"])
    assert {f"reward/{component}" for component in COMPONENTS} <= tags
    assert {"racer/episodes_this_rollout", "racer/completion_rate"} <= tags
    episodes = sum(event.value for event in events.Scalars("racer/episodes_this_rollout"))
    assert episodes > 0
