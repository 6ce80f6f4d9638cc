"""From keys and sticks to the steering wheel and pedals of a car."""

from __future__ import annotations

from racer_viewer.ui.intents import Controls

DT = 1.0 / 60.0
TOP_SPEED = 160.0
"""[units/s]"""
TURN_RATE, RETURN_RATE = 4.0, 9.0
"""How fast a key turns the wheel, and how fast it comes back, in full turns a second."""
LIMIT_AT_TOP_SPEED = 0.42
"""Of a full turn by a key: at top speed that is already a tight corner."""
PEDAL_RATE = 12.0
"""How fast a key presses a pedal, in full ways a second."""
STICK_CURVE = 1.6
"""Above 1, small moves of a stick steer finely."""

Action = tuple[float, float, float]


class Wheel:
    """A key is all or nothing, and a car wants more than that: keys move the wheel and pedals over some ticks.

    Sticks and triggers are taken as they are.
    """

    def __init__(self) -> None:
        self._steer = self._throttle = self._brake = 0.0

    def turn(self, controls: Controls, speed: float) -> Action:
        """Steer, throttle and brake for one tick at this speed [units/s]."""
        if controls.analogue:
            bent = abs(controls.steer) ** STICK_CURVE
            self._steer = bent if controls.steer > 0.0 else -bent
        else:
            limit = 1.0 - (1.0 - LIMIT_AT_TOP_SPEED) * min(speed / TOP_SPEED, 1.0)
            self._steer = _steered(self._steer, controls.steer * limit)
        self._throttle = _towards(self._throttle, controls.throttle, PEDAL_RATE * DT)
        self._brake = _towards(self._brake, controls.brake, PEDAL_RATE * DT)
        return self._steer, self._throttle, self._brake

    def let_go(self) -> None:
        self._steer = self._throttle = self._brake = 0.0


def _steered(now: float, goal: float) -> float:
    """Back towards the middle quickly, away from it slowly."""
    returning = abs(goal) < abs(now) or goal * now < 0.0
    return _towards(now, goal, (RETURN_RATE if returning else TURN_RATE) * DT)


def _towards(now: float, goal: float, step: float) -> float:
    return min(goal, now + step) if goal > now else max(goal, now - step)
