"""Conversion of keys and sticks to a car's steering and pedals."""

import pytest

from racer_viewer.modes.controls import LIMIT_AT_TOP_SPEED, SteeringInput
from racer_viewer.ui.intents import IDLE, Controls

RIGHT = Controls(steer=1.0)


def test_a_key_turns_the_wheel_over_some_ticks_and_lets_it_back_faster() -> None:
    steering = SteeringInput()
    turning = [steering.update(RIGHT, 0.0)[0] for _ in range(20)]
    assert turning == sorted(turning)
    assert 0.0 < turning[0] < 0.1
    assert turning[-1] == 1.0
    returning = [steering.update(IDLE, 0.0)[0] for _ in range(20)]
    assert returning[-1] == 0.0
    assert returning.index(0.0) < turning.index(1.0)


def test_a_tap_is_a_small_correction() -> None:
    steering = SteeringInput()
    for _ in range(3):
        steer = steering.update(RIGHT, 160.0)[0]
    assert 0.0 < steer < 0.25


def test_at_speed_a_key_turns_less_far() -> None:
    steering = SteeringInput()
    for _ in range(60):
        steer = steering.update(RIGHT, 160.0)[0]
    assert steer == pytest.approx(LIMIT_AT_TOP_SPEED)


def test_a_stick_is_taken_as_it_is_and_fine_in_the_middle() -> None:
    steering = SteeringInput()
    assert steering.update(Controls(steer=-1.0, analogue=True), 160.0)[0] == -1.0
    half = steering.update(Controls(steer=0.5, analogue=True), 160.0)[0]
    assert 0.0 < half < 0.5


def test_pedals_go_down_quickly_and_are_let_go() -> None:
    steering = SteeringInput()
    ways = [steering.update(Controls(throttle=1.0, brake=0.0), 0.0)[1] for _ in range(10)]
    assert ways[-1] == 1.0
    steering.release()
    assert steering.update(IDLE, 0.0) == (0.0, 0.0, 0.0)
