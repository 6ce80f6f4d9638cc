"""User controls of a race: playback speed, and the conversion of keys and sticks to steering and pedals."""

from __future__ import annotations

from racer_viewer.ui.intents import Command, Controls, Intent

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
SPEED_NAMES = ("¼×", "½×", "1×", "2×", "4×", "8×", "16×")
NORMAL = SPEEDS.index(1.0)


class PlaybackSpeed:
    """Number of simulation ticks for each window tick: paused, single steps, or a multiple of real time.

    paused: time stands still, except for single steps.
    chosen: index into `SPEEDS`.
    """

    def __init__(self) -> None:
        self.paused = False
        self.chosen = NORMAL
        self._fraction = 0.0
        self._single_steps = 0

    @property
    def speed(self) -> float:
        return SPEEDS[self.chosen]

    @property
    def name(self) -> str:
        return SPEED_NAMES[self.chosen]

    def handle(self, intent: Intent) -> bool:
        """Handle commands for the speed; returns whether this was one."""
        match intent:
            case Command.PAUSE:
                self.paused = not self.paused
            case Command.SLOWER:
                self.chosen = max(0, self.chosen - 1)
            case Command.FASTER:
                self.chosen = min(len(SPEEDS) - 1, self.chosen + 1)
            case Command.TICK:
                self._single_steps += int(self.paused)
                self.paused = True
            case _:
                return False
        return True

    def ticks(self) -> int:
        """Return the simulation ticks due in this window tick; called once per window tick."""
        if self.paused:
            steps, self._single_steps, self._fraction = self._single_steps, 0, 0.0
            return steps
        self._fraction += self.speed
        due = int(self._fraction)
        self._fraction -= due
        return due

    def share(self, share: float) -> float:
        """Return the position between the last two simulation ticks after this share of the window's next tick."""
        return 1.0 if self.paused or self.speed > 1.0 else min(1.0, self._fraction + share * self.speed)


DT = 1.0 / 60.0
"""Duration of a window tick [s]."""
TOP_SPEED = 160.0
"""Maximum speed of a car [units/s]."""
STEER_RATE, RETURN_RATE = 4.0, 9.0
"""Rates at which a key moves the steering away from the centre and back [full lock/s]."""
LIMIT_AT_TOP_SPEED = 0.42
"""Maximum steering by a key at top speed [full lock]; more would only make the car slide."""
PEDAL_RATE = 12.0
"""Rate at which a key moves a pedal [full travel/s]."""
STICK_EXPONENT = 1.6
"""Exponent of the stick response; above 1, small deflections steer finely."""

Action = tuple[float, float, float]
"""Steer, throttle and brake."""


class SteeringInput:
    """Converts controls to actions: keys move steering and pedals gradually, sticks and triggers directly."""

    def __init__(self) -> None:
        self._steer = self._throttle = self._brake = 0.0

    def update(self, controls: Controls, speed: float) -> Action:
        """Return the action for one tick at this speed [units/s]."""
        if controls.analogue:
            bent = abs(controls.steer) ** STICK_EXPONENT
            self._steer = bent if controls.steer > 0.0 else -bent
        else:
            limit = 1.0 - (1.0 - LIMIT_AT_TOP_SPEED) * min(speed / TOP_SPEED, 1.0)
            self._steer = _steered(self._steer, controls.steer * limit)
        self._throttle = _towards(self._throttle, controls.throttle, PEDAL_RATE * DT)
        self._brake = _towards(self._brake, controls.brake, PEDAL_RATE * DT)
        return self._steer, self._throttle, self._brake

    def release(self) -> None:
        """Centre the steering and release the pedals at once."""
        self._steer = self._throttle = self._brake = 0.0


def _steered(now: float, goal: float) -> float:
    returning = abs(goal) < abs(now) or goal * now < 0.0
    return _towards(now, goal, (RETURN_RATE if returning else STEER_RATE) * DT)


def _towards(now: float, goal: float, step: float) -> float:
    return min(goal, now + step) if goal > now else max(goal, now - step)
