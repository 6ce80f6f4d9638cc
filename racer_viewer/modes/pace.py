"""How fast time goes for those who only look: stopped, tick by tick, or at a speed."""

from __future__ import annotations

from racer_viewer.ui.intents import Do, Intent

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
NAMES = ("¼×", "½×", "1×", "2×", "4×", "8×", "16×")
NORMAL = SPEEDS.index(1.0)


class Pace:
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
            case Do.PAUSE:
                self.stopped = not self.stopped
            case Do.SLOWER:
                self.chosen = max(0, self.chosen - 1)
            case Do.FASTER:
                self.chosen = min(len(SPEEDS) - 1, self.chosen + 1)
            case Do.TICK:
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
