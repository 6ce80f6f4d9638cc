"""CarRacing without drawing has the same rewards, ends, telemetry and frames as CarRacing."""

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("Box2D")

from gymnasium.envs.box2d.car_racing import PLAYFIELD, CarRacing

from racer_env.games.car_racing import CarRacingGame


def frame_of(game: CarRacingGame) -> NDArray[np.uint8]:
    return np.frombuffer(game.frame(), np.uint8).reshape(96, 96, 3)


def drive(tick: int) -> tuple[float, float, float]:
    """Return an action that drives on and off the road, with skids."""
    return float(np.sin(tick / 9.0)), 0.9 if tick % 40 < 30 else 0.0, 0.0 if tick % 40 < 33 else 0.7


@pytest.mark.parametrize("seed", [5, pytest.param(77, marks=pytest.mark.slow)])
def test_results_and_frames_equal_those_of_the_plain_environment(seed: int) -> None:
    plain, game = CarRacing(), CarRacingGame(seed)
    observation, _ = plain.reset(seed=seed)
    game.restart()
    assert (frame_of(game) == observation).all()
    for tick in range(70):
        observation, reward, terminated, truncated, info = plain.step(np.array(drive(tick)))
        result = game.tick(drive(tick))
        assert (result.reward, result.terminated, result.truncated, result.info) == (
            float(reward),
            terminated,
            truncated,
            info,
        )
        telemetry, hull = game.telemetry(), plain.car.hull
        assert (telemetry["car_x"], telemetry["car_y"]) == tuple(hull.position)
        assert (telemetry["car_vx"], telemetry["car_vy"]) == tuple(hull.linearVelocity)
        assert (telemetry["car_angle"], telemetry["car_angular_vel"]) == (hull.angle, hull.angularVelocity)
        assert telemetry["wheel_speeds"] == [wheel.omega for wheel in plain.car.wheels]
        assert (telemetry["tiles_visited"], telemetry["total_tiles"]) == (plain.tile_visited_count, len(plain.track))
        if tick % 3 == 0:
            assert (frame_of(game) == observation).all()
    assert telemetry["tiles_visited"] > 3
    assert telemetry["speed"] > 10.0


def test_leaving_the_field_ends_the_episode_as_in_the_plain_environment() -> None:
    plain, game = CarRacing(), CarRacingGame(5)
    plain.reset(seed=5)
    game.restart()
    for car in (plain.car, game.env.car):
        car.hull.position = (PLAYFIELD + 5.0, 0.0)
    observation, reward, terminated, _, info = plain.step(np.zeros(3))
    result = game.tick((0.0, 0.0, 0.0))
    assert (result.reward, result.terminated, result.info) == (reward, terminated, info)
    assert result.reward == -100.0
    assert (frame_of(game) == observation).all()


def test_the_seed_determines_all_episodes() -> None:
    first, second, other = CarRacingGame(9), CarRacingGame(9), CarRacingGame(10)
    places = []
    for game in (first, second, other):
        for _ in range(2):
            game.restart()
            places.append(game.telemetry()["car_y"])
    assert places[:2] == places[2:4]
    assert len({*places}) == 4


def test_an_image_fits_the_window_and_is_never_larger_than_it_was_drawn() -> None:
    game = CarRacingGame(1)
    game.restart()
    for wanted, size in (((500, 800), (500, 400)), ((3000, 400), (500, 400)), ((4000, 4000), (1000, 800))):
        data = game.draw_data(*wanted)
        assert (data.kind, data.width, data.height) == ("pixels", *size)
        assert len(data.content) == size[0] * size[1] * 3
    pixels = np.frombuffer(data.content, np.uint8).reshape(800, 1000, 3)
    assert tuple(pixels[790, 990]) == (0, 0, 0), "the panel at the bottom"
    red = (pixels == (204, 0, 0)).all(axis=2)
    assert red.any(), "the car, and its channels are in the right order"
