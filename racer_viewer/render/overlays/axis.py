"""How far an axis goes: round figures that change seldom."""

import math

STEPS = (1.0, 2.0, 5.0, 10.0)
PATIENCE = 180
"""So many looks at small values, three seconds of frames, before an axis gets shorter."""
_ROUNDING = 1.0 + 1e-9


class CalmAxis:
    """An axis from 0 to `reach`, which is 1, 2 or 5 times a power of ten.

    It gets longer at once, so that nothing is ever cut off, and shorter only when nothing has needed it for a while.
    """

    def __init__(self, least: float, most: float = math.inf) -> None:
        self.least, self.most = least, most
        self.reach = least
        self._waited = 0

    def cover(self, largest: float) -> float:
        """Look at the largest value that is to be shown now; returns the reach."""
        wanted = min(self.most, max(self.least, round_up(largest)))
        self._waited = self._waited + 1 if wanted < self.reach else 0
        if wanted > self.reach or self._waited >= PATIENCE:
            self.reach, self._waited = wanted, 0
        return self.reach


def round_up(value: float) -> float:
    """The least of 1, 2, 5 times a power of ten that is no less; 0 for 0."""
    if not 0.0 < value < math.inf:
        return 0.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in STEPS if step * power * _ROUNDING >= value)
