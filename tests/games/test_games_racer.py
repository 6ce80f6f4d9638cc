"""Racer-v0 as a game is a car of the engine."""

import numpy as np
import pytest

from racer_env.engine import CAR, Simulation, Track
from racer_env.games.racer_game import RacerGame, racer_track


@pytest.fixture(scope="module")
def track() -> Track:
    return racer_track()


def test_it_is_a_car_of_the_simulation(track: Track) -> None:
    simulation, game = Simulation(track), RacerGame(track)
    game.restart()
    for tick in range(200):
        action = (0.3 * np.sin(tick / 20.0), 0.8, 0.0)
        result = simulation.step([action])
        result_of_game = game.tick(action)
        assert result_of_game.reward == result.rewards[0]
        assert result_of_game.terminated == result.terminated[0]
    car, telemetry = simulation.cars[0], game.telemetry()
    assert (telemetry["car_x"], telemetry["car_y"], telemetry["car_angle"]) == (car["x"], car["y"], car["heading"])
    assert (telemetry["car_vx"], telemetry["car_vy"], telemetry["speed"]) == (car["vx"], car["vy"], car["speed"])
    assert telemetry["car_angular_vel"] == car["yaw_rate"]
    assert (telemetry["tiles_visited"], telemetry["total_tiles"]) == (car["lap_gates"], len(track.gates))
    assert telemetry["lap_time"] == pytest.approx(200 / 60)
    assert telemetry["best_lap_time"] is None
    assert telemetry["observation"] == result.observations[0].tolist()
    data = game.draw_data(800, 600)
    assert data.kind == "car"
    assert np.frombuffer(data.content, CAR)["x"] == car["x"]


def test_an_episode_ends_after_standing_still_and_has_no_length_limit(track: Track) -> None:
    game = RacerGame(track)
    results = [game.tick((0.0, 0.0, 0.0)) for _ in range(180)]
    assert [result.terminated for result in results] == [False] * 179 + [True]
    assert results[-1].info == {"stood_still": True}
    game.restart()
    assert not any(game.tick((0.0, 1.0 if tick % 100 < 50 else 0.0, 0.0)).truncated for tick in range(4000))


def test_frames_show_the_road(track: Track) -> None:
    game = RacerGame(track, prepared=True)
    standing = np.frombuffer(game.frame(), np.uint8).reshape(96, 96, 3)
    for _ in range(90):
        game.tick((0.0, 1.0, 0.0))
    moving = np.frombuffer(game.frame(), np.uint8).reshape(96, 96, 3)
    assert (standing != moving).any()
    assert len(np.unique(moving.reshape(-1, 3), axis=0)) > 100
