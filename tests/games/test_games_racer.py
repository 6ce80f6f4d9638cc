"""The racer as a game is a car of the engine."""

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
        outcome = game.tick(action)
        assert outcome.reward == result.rewards[0]
        assert outcome.terminated == result.terminated[0]
    car, told = simulation.cars[0], game.telemetry()
    assert (told["car_x"], told["car_y"], told["car_angle"]) == (car["x"], car["y"], car["heading"])
    assert (told["car_vx"], told["car_vy"], told["speed"]) == (car["vx"], car["vy"], car["speed"])
    assert told["car_angular_vel"] == car["yaw_rate"]
    assert (told["tiles_visited"], told["total_tiles"]) == (car["lap_gates"], len(track.gates))
    assert told["lap_time"] == pytest.approx(200 / 60)
    assert told["best_lap_time"] is None
    assert told["observation"] == result.observations[0].tolist()
    sight = game.sight(800, 600)
    assert sight.kind == "car"
    assert np.frombuffer(sight.content, CAR)["x"] == car["x"]


def test_it_ends_after_standing_still_and_never_by_its_length(track: Track) -> None:
    game = RacerGame(track)
    outcomes = [game.tick((0.0, 0.0, 0.0)) for _ in range(180)]
    assert [outcome.terminated for outcome in outcomes] == [False] * 179 + [True]
    assert outcomes[-1].info == {"stood_still": True}
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
