"""How fast time goes for those who only look: stopped, tick by tick, or at a speed.

From keys and sticks to the steering wheel and pedals of a car."""

from __future__ import annotations

from racer_viewer.ui.intents import Command, Controls, Intent

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
NAMES = ("¼×", "½×", "1×", "2×", "4×", "8×", "16×")
NORMAL = SPEEDS.index(1.0)


class PlaybackSpeed:
    """Asked once per tick of the window, sixty times a second, for the ticks of the simulation that are due."""

    def __init__(self) -> None:
        self.stopped = False
        self.chosen = NORMAL
        """Number of the speed."""
        self._part = 0.0
        self._single = 0

    @property
    def speed(self) -> float:
        return SPEEDS[self.chosen]

    @property
    def name(self) -> str:
        return NAMES[self.chosen]

    def handle(self, intent: Intent) -> bool:
        """Whether it was for it."""
        match intent:
            case Command.PAUSE:
                self.stopped = not self.stopped
            case Command.SLOWER:
                self.chosen = max(0, self.chosen - 1)
            case Command.FASTER:
                self.chosen = min(len(SPEEDS) - 1, self.chosen + 1)
            case Command.TICK:
                self._single += int(self.stopped)
                self.stopped = True
            case _:
                return False
        return True

    def ticks(self) -> int:
        """Of the simulation, to do now."""
        if self.stopped:
            single, self._single, self._part = self._single, 0, 0.0
            return single
        self._part += self.speed
        due = int(self._part)
        self._part -= due
        return due

    def share(self, share: float) -> float:
        """Of the way to the last tick of the simulation, when this share of the window's next tick has passed."""
        return 1.0 if self.stopped or self.speed > 1.0 else min(1.0, self._part + share * self.speed)


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


class SteeringInput:
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
