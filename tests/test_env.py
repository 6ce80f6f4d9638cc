"""RacerEnv: a Gymnasium environment that behaves the same over every bridge."""

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from racer_env import DiscreteRacerEnv, RacerEnv
from racer_env.engine import ANYWHERE, Driver, Simulation, Start, load_circuit
from racer_env.env import DISCRETE_ACTIONS, EnvClosedError
from racer_env.errors import ActionError, CircuitError, ConfigError, RacerError
from tests.bridge.conftest import running_bridge
from tests.bridge.old_server import old_server

STEP_KEYS = {
    "progress", "speed", "wall", "offTrack", "backward", "stillness", "tick", "rawSpeed", "lap", "checkpoint",
    "stepCount", "wallContact", "stillnessCounter",
}  # fmt: skip


def actions(ticks: int, seed: int = 0) -> np.ndarray:
    """Return actions that drive, hit a wall and stand still for a while."""
    drawn = np.random.default_rng(seed).uniform((-1, 0.3, 0), (1, 1, 0.3), (ticks // 10 + 1, 3)).repeat(10, axis=0)
    drawn[ticks // 2 : ticks // 2 + 20] = (0.0, 0.0, 1.0)
    return drawn[:ticks].astype(np.float32)


def episode(env: RacerEnv, ticks: int = 250, **reset: Any) -> list[Any]:
    """Return the results of a reset and some steps."""
    results: list[Any] = [env.reset(**reset)]
    results += [env.step(action) for action in actions(ticks)]
    env.close()
    return results


def assert_same(a: list[Any], b: list[Any], tolerance: float = 0.0) -> None:
    for (first, *rest), (other, *others) in zip(a, b, strict=True):
        np.testing.assert_allclose(first, other, rtol=0, atol=tolerance)
        *numbers, info = rest
        *other_numbers, other_info = others
        assert numbers == pytest.approx(other_numbers, abs=tolerance)
        assert info == pytest.approx(other_info, abs=tolerance)
        assert [type(value) for value in numbers] == [type(value) for value in other_numbers]


def test_gymnasium_checks_pass_without_warnings(
    recwarn: pytest.WarningsRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    check_env(gymnasium.make("racer_env:Racer-v0").unwrapped)
    check_env(gymnasium.make("RacerDiscrete-v0").unwrapped)
    check_env(gymnasium.make("Racer-v0", start=ANYWHERE, track_id=("track-01", "track-02")).unwrapped)
    assert [str(warning.message) for warning in recwarn] == []


def test_importing_the_environment_imports_no_window_and_no_learner() -> None:
    code = (
        "import racer_env, gymnasium, sys; gymnasium.make('Racer-v0').reset();"
        "from racer_env import RacerVectorEnv;"
        "assert not {'pygame', 'torch', 'stable_baselines3', 'racer_viewer'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


def test_the_spaces_are_those_of_the_racer() -> None:
    env = RacerEnv()
    assert env.action_space == gymnasium.spaces.Box(np.float32([-1, 0, 0]), np.float32([1, 1, 1]))
    assert env.observation_space.shape == (14,)
    assert env.observation_space.low.tolist() == [0.0] * 10 + [-1.0, -1.0, 0.0, 0.0]
    assert env.observation_space.high.tolist() == [1.0] * 14
    assert env.metadata["render_fps"] == 60


def test_the_same_episode_comes_from_this_process_a_socket_and_an_existing_server(tmp_path: Path) -> None:
    config = {"weights": {"speedBonus": 0.01}, "episode": {"maxSteps": 200, "stillnessTimeoutTicks": 10}}
    options: dict[str, Any] = {"track_id": "track-03", "config": config}
    embedded = episode(RacerEnv(**options), seed=3)
    assert any(step[2] for step in embedded[1:]), "it should end by standing still"
    assert any(step[3] for step in embedded[1:]), "and by the number of steps"
    with running_bridge(tmp_path) as bridge:
        assert_same(embedded, episode(RacerEnv(bridge.url, **options), seed=3))
    with old_server() as server:
        assert_same(embedded, episode(RacerEnv(server.url, **options), seed=3), tolerance=1e-6)
        assert {"type": "close"} in server.requests


def test_random_starts_and_circuits_are_the_same_over_the_socket(tmp_path: Path) -> None:
    options: dict[str, Any] = {"track_id": ["track-01", "random:5", "track-04"], "start": ANYWHERE}
    with running_bridge(tmp_path) as bridge:
        here, there = RacerEnv(**options), RacerEnv(bridge.url, **options)
        for seed in (7, None, None, None, 8):
            ours, theirs = here.reset(seed=seed), there.reset(seed=seed)
            assert ours[0].tolist() == theirs[0].tolist()
            assert ours[1] == theirs[1]
            for action in actions(20):
                assert_same([here.step(action)], [there.step(action)])
        here.close()
        there.close()


def test_a_reset_returns_the_info_keys_of_a_step(tmp_path: Path) -> None:
    with running_bridge(tmp_path) as bridge, old_server() as server:
        for url in (None, bridge.url, server.url):
            env = RacerEnv(url)
            _, at_reset = env.reset(seed=1)
            info = env.step(np.float32([0, 1, 0]))[4]
            assert list(at_reset) == list(info)
            assert [type(value) for value in at_reset.values()] == [type(value) for value in info.values()]
            assert {key: value for key, value in at_reset.items() if value} == {"lap": 1}
            env.close()
    _, info = RacerEnv(start={"speed": 50}).reset(seed=1)
    assert info["speed"] == info["rawSpeed"] == 50.0


@pytest.mark.slow
def test_a_hundred_random_episodes_run_in_this_process_and_over_the_socket(tmp_path: Path) -> None:
    config = {"episode": {"maxSteps": 120, "stillnessTimeoutTicks": 60}}
    with running_bridge(tmp_path) as bridge:
        for env in (RacerEnv(config=config, start=ANYWHERE), RacerEnv(bridge.url, config=config, start=ANYWHERE)):
            env.action_space.seed(1)
            for number in range(100):
                observation, _ = env.reset(seed=number)
                ended = False
                while not ended:
                    assert env.observation_space.contains(observation)
                    observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
                    assert info.keys() == STEP_KEYS
                    assert reward == pytest.approx(sum(info[key] for key in list(info)[:6]))
                    ended = terminated or truncated
            env.close()


def test_a_seed_repeats_an_episode_and_no_seed_goes_on_from_it() -> None:
    env = RacerEnv(start=ANYWHERE)
    first = [env.reset(seed=5)[0], env.reset()[0], env.reset()[0]]
    again = [env.reset(seed=5)[0], env.reset()[0], env.reset()[0]]
    assert np.array_equal(first, again)
    assert len({tuple(observation) for observation in first}) == 3
    assert not np.array_equal(RacerEnv(start=ANYWHERE).reset()[0], RacerEnv(start=ANYWHERE).reset()[0])


def test_options_of_a_reset_hold_from_that_episode_on() -> None:
    env = RacerEnv()
    env.reset(seed=0, options={"circuit": "track-02", "start": {"arc": 0.5, "speed": [50, 60]}})
    for _ in range(2):
        observation, info = env.reset()
        assert 50 <= info["speed"] <= 60
        assert observation[12] == pytest.approx(0.5, abs=1e-3)
    env.reset(options={"config": {"weights": {"progress": 0.0, "speedBonus": 1.0}}, "start": Start()})
    assert env.step(np.float32([0, 1, 0]))[4]["progress"] == 0.0


def test_every_combination_of_keys_is_an_action() -> None:
    continuous, discrete = RacerEnv(), DiscreteRacerEnv()
    keys, numbers = continuous.get_keys_to_action(), discrete.get_keys_to_action()
    assert keys.keys() == numbers.keys()
    assert len(keys) == 2**4
    assert all(continuous.action_space.contains(action) for action in keys.values())
    assert all(DISCRETE_ACTIONS[numbers[held]].tolist() == keys[held].tolist() for held in keys)
    assert keys[("w", "a")].tolist() == [-1, 1, 0]
    assert keys[("s", "d")].tolist() == [1, 0, 1]
    assert keys[("w", "a", "s", "d")].tolist() == [0, 0, 1]
    assert keys[""].tolist() == [0, 0, 0]


PLAY = """
import gymnasium, numpy, pygame, racer_env
from gymnasium.utils.play import play

def press(kind, key):
    pygame.event.post(pygame.event.Event(kind, key=key))

def after_step(before, after, action, reward, terminated, truncated, info):
    actions.append(numpy.asarray(action).tolist())
    if len(actions) == 3:
        press(pygame.KEYDOWN, pygame.K_w)
    if len(actions) == 6:
        press(pygame.KEYDOWN, pygame.K_d)
    if len(actions) == 9:
        press(pygame.KEYUP, pygame.K_w)
        press(pygame.KEYUP, pygame.K_d)
    if len(actions) == 12:
        press(pygame.KEYDOWN, pygame.K_ESCAPE)

for name in ("Racer-v0", "RacerDiscrete-v0"):
    actions = []
    play(gymnasium.make(name, render_mode="rgb_array"), callback=after_step)
    print(actions)
"""


@pytest.mark.slow
def test_play_of_gymnasium_drives_with_the_keys() -> None:
    environment = {**os.environ, "SDL_VIDEODRIVER": "dummy", "PYGAME_HIDE_SUPPORT_PROMPT": "1"}
    run = subprocess.run(
        [sys.executable, "-c", PLAY], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stderr
    continuous, discrete = map(ast.literal_eval, run.stdout.splitlines())
    assert continuous == [[0, 0, 0]] * 3 + [[0, 1, 0]] * 3 + [[1, 1, 0]] * 3 + [[0, 0, 0]] * 3
    assert discrete == [4] * 3 + [3] * 3 + [6] * 3 + [4] * 3


def test_errors_name_what_is_wrong() -> None:
    with pytest.raises(ConfigError, match="did you mean circuit"):
        RacerEnv().reset(options={"circut": "track-02"})
    with pytest.raises(ConfigError, match="unknown key 'lap'"):
        RacerEnv(start={"lap": 3})
    with pytest.raises(ConfigError, match="not both"):
        RacerEnv(config_path="a.json", config={})
    with pytest.raises(ConfigError, match="at least one circuit"):
        RacerEnv(track_id=[])
    with pytest.raises(CircuitError, match="did you mean track-01"):
        RacerEnv(track_id="track-1").reset()
    with pytest.raises(RacerError, match="render_mode"):
        RacerEnv(render_mode="ansi")
    with pytest.raises(RacerError, match="draws nothing"):
        RacerEnv().render()
    with pytest.raises(RacerError, match="reset the environment first"):
        RacerEnv().step(np.zeros(3, np.float32))


@pytest.mark.parametrize(
    "action", [[0, 0], [0, 0, 0, 0], 0.5, None, "abc", [0, 0, float("nan")], [[0, 0, 0]], [0, 0, {}]]
)
def test_an_action_that_is_not_three_finite_numbers_is_an_error_and_steps_nothing(action: Any) -> None:
    env = RacerEnv()
    env.reset(seed=0)
    with pytest.raises(ActionError, match="finite numbers"):
        env.step(action)
    assert env.step(np.zeros(3, np.float32))[4]["stepCount"] == 1


def test_a_failed_reset_leaves_the_environment_as_it_was() -> None:
    env = RacerEnv()
    env.reset(seed=0)
    env.step(np.float32([0, 1, 0]))
    with pytest.raises(CircuitError):
        env.reset(options={"circuit": "track-99"})
    assert env.step(np.float32([0, 1, 0]))[4]["stepCount"] == 2
    env.reset()


def test_a_closed_environment_says_so_and_closing_twice_is_fine() -> None:
    env = RacerEnv(render_mode="rgb_array")
    env.reset(seed=0)
    env.close()
    env.close()
    for use in (env.reset, lambda: env.step(np.zeros(3, np.float32)), env.render):
        with pytest.raises(EnvClosedError, match="closed"):
            use()


def test_the_config_can_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "ai-config.json"
    path.write_text('{"episode": {"maxSteps": 3}}')
    env = RacerEnv(config_path=str(path))
    env.reset(seed=0)
    assert [env.step(np.float32([0, 1, 0]))[3] for _ in range(3)] == [False, False, True]


def test_a_circuit_can_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(
        '{"name": "Mine", "control_points": [[-200, -100, 20], [200, -100, 20], [280, 0, 16], [200, 100, 20],'
        " [-200, 100, 20], [-280, 0, 16]]}"
    )
    env = RacerEnv(track_id=str(path))
    env.reset(seed=0)
    assert env.step(np.float32([0, 1, 0]))[0].shape == (14,)


def test_the_discrete_environment_drives_the_same_car() -> None:
    discrete, plain = DiscreteRacerEnv(), RacerEnv()
    assert discrete.action_space.n == len(DISCRETE_ACTIONS) == 9
    discrete.reset(seed=0)
    plain.reset(seed=0)
    for number in [1, 0, 6, 3, 3, 5, 8, 4, 7, 2]:
        assert discrete.step(number)[0].tolist() == plain.step(DISCRETE_ACTIONS[number])[0].tolist()
    for wrong in (9, -1, 1.5, None):
        with pytest.raises(RacerError, match="0 to 8"):
            discrete.step(wrong)


@pytest.mark.parametrize("source", ["here", "bridge", "old"])
def test_a_picture_is_drawn_wherever_the_car_is(source: str, tmp_path: Path) -> None:
    with running_bridge(tmp_path) as bridge, old_server() as server:
        url = {"here": None, "bridge": bridge.url, "old": server.url}[source]
        env = RacerEnv(url, track_id="track-03", render_mode="rgb_array")
        env.reset(seed=0)
        before = env.render()
        for _ in range(60):
            env.step(np.float32([0, 1, 0]))
        after = env.render()
        env.close()
    assert before is not None
    assert after is not None
    assert before.dtype == np.uint8
    assert before.ndim == 3
    assert before.shape[2] == 3
    assert not np.array_equal(before, after)


def test_the_car_has_the_same_row_wherever_it_is_simulated(tmp_path: Path) -> None:
    columns = ("x", "y", "heading", "speed", "arc", "lap", "checkpoint", "lap_ticks", "step_count", "action", "reward",
               "components", "finished_lap_ticks", "wall_contact", "terminated", "truncated", "rays")  # fmt: skip
    with running_bridge(tmp_path) as bridge, old_server() as server:
        envs = [RacerEnv(url, render_mode="rgb_array") for url in (None, bridge.url, server.url)]
        for env in envs:
            env.reset(seed=0)
        driver, copy = Driver(load_circuit("track-01")), Simulation(load_circuit("track-01"))
        here, there, shadowed = envs
        finished: list[int] = []
        for tick in range(1500):
            (action,) = driver.act(copy.cars)
            copy.step([action])
            here.step(action)
            there.step(action)
            for name in columns:
                assert here.car[name].tolist() == there.car[name].tolist(), name
            if tick < 100:
                shadowed.step(action)
                for name in columns:
                    np.testing.assert_allclose(here.car[name], shadowed.car[name], rtol=0, atol=1e-6, err_msg=name)
            if there.car["finished_lap_ticks"]:
                finished.append(int(there.car["finished_lap_ticks"]))
                break
        assert finished == [tick + 1]
        assert shadowed.shadow is not None
        assert shadowed.shadow.in_sync
        for env in envs:
            env.close()


def test_a_driver_laps_through_the_environment() -> None:
    track = load_circuit("track-01")
    env, driver, copy = RacerEnv(), Driver(track), Simulation(track)
    env.reset(seed=0)
    laps = []
    for _ in range(1500):
        action = driver.act(copy.cars)
        copy.step(action)
        info = env.step(action[0])[4]
        laps.append(info["lap"])
    assert laps[-1] >= 2
    assert info["lap"] == copy.cars.lap[0]
