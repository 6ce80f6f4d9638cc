"""How fast the engine turns: a gearbox for the ear, since the simulation has none. Needs no numpy, so it loads fast."""

from __future__ import annotations

import math

TOP_SPEEDS = (30.0, 43.0, 61.0, 87.0, 122.0, 172.0)
"""Of each gear, where the engine turns at its limit [units/s]. At top speed, 160, there is a little left."""
SHIFT_UP_AT = 0.97
SHIFT_DOWN_AT = 0.85
"""Share of the top speed of a gear where the next is taken, and of the gear below where that is taken again."""

IDLE = 0.27
REVVING = 0.38
"""Revs at rest, and how much full throttle adds there while the clutch slips."""
LABOUR = 1.4
MOST_LABOUR = 0.1
"""What a slip angle costs in revs [1/rad], and where that ends [rad]: bends can be heard on a car at its top speed."""

FIRING_AT_LIMIT = 390.0
"""Ignitions per second at the limit [Hz]: the pitch that is heard. Revs are shares of that."""
BANDS = 40
LOWEST_BAND, HIGHEST_BAND = 0.25, 1.0
"""Revs of the first and the last engine loop; each is 3.6 % above the one before, half a semitone."""
_BANDS_PER_E = (BANDS - 1) / math.log(HIGHEST_BAND / LOWEST_BAND)


def gear_at(speed: float, gear: int) -> int:
    """The gear, from 0, after `gear` at this speed [units/s]."""
    while gear < len(TOP_SPEEDS) - 1 and speed > SHIFT_UP_AT * TOP_SPEEDS[gear]:
        gear += 1
    while gear > 0 and speed < SHIFT_DOWN_AT * TOP_SPEEDS[gear - 1]:
        gear -= 1
    return gear


def revs_at(speed: float, gear: int, throttle: float, slip_angle: float) -> float:
    """Revs as a share of the limit. From a standstill the clutch slips: the throttle decides, then the wheels."""
    clutch = IDLE + REVVING * throttle
    wheels = speed / TOP_SPEEDS[gear] * (1.0 - LABOUR * min(slip_angle, MOST_LABOUR))
    return min(1.0, max(wheels, clutch if gear == 0 else IDLE))


def band_revs(band: int) -> float:
    """Revs of an engine loop."""
    return LOWEST_BAND * math.exp(band / _BANDS_PER_E)


def place_in_bands(revs: float) -> float:
    """The number of the engine loop that sounds so, with a fraction if it lies between two."""
    place = math.log(max(revs, LOWEST_BAND) / LOWEST_BAND) * _BANDS_PER_E
    return min(place, BANDS - 1.0)
