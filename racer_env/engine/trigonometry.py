"""Sine, cosine and arctangent without calls of the C library, which cannot be inlined.

The polynomials are Chebyshev fits (mpmath's `chebyfit`, 40 digits) of sin, cos and atan without their first terms,
each in the square of its argument. Errors are below 3e-16, relative to the angle for the arctangent. Angles and ratios
that a driving car does not produce go to the C library.
"""

import math

from racer_env.engine.compiled import part

MAX_ANGLE = 100.0
MAX_RATIO = 0.4375
"""Ranges of the polynomials: angle [rad], and y / x."""
QUARTER = 1.57079632673412561417
"""A quarter turn to 33 bits: its multiples are exact."""
QUARTER_REST = 6.07710050650619224932e-11
"""Rest of a quarter turn."""


@part
def sin_cos(angle: float) -> tuple[float, float]:
    """Return sine and cosine of an angle."""
    if not abs(angle) < MAX_ANGLE:
        return math.sin(angle), math.cos(angle)
    quarters = math.floor(angle * (2.0 / math.pi) + 0.5)
    r = (angle - quarters * QUARTER) - quarters * QUARTER_REST
    z = r * r
    w = z * z
    sin = (-0.16666666666666666 + z * 0.008333333333330925) + w * (
        (-0.00019841269836722418 + z * 2.755731608381636e-06)
        + w * (-2.5051127944014188e-08 + z * 1.5917848524808262e-10)
    )
    cos = (0.041666666666666664 + z * -0.0013888888888887382) + w * (
        (2.480158729874307e-05 + z * -2.7557317260008837e-07)
        + w * (2.0876143827993133e-09 + z * -1.1382456778061306e-11)
    )
    sin, cos = r + r * z * sin, (1.0 - 0.5 * z) + w * cos
    quadrant = int(quarters)
    sin, cos = (cos, sin) if quadrant & 1 else (sin, cos)
    return (-sin if quadrant & 2 else sin), (-cos if (quadrant + 1) & 2 else cos)


@part
def arctan2(y: float, x: float) -> float:
    """Return the angle of a direction; fast if the direction is close to the x axis."""
    if not abs(y) < MAX_RATIO * x:
        return math.atan2(y, x)
    t = y / x
    z = t * t
    w = z * z
    even = -0.33333333333333326 + w * (
        -0.14285714283127662
        + w
        * (-0.0909090014058555 + w * (-0.06663224869084483 + w * (-0.050334165154982353 + w * -0.017532295994972764)))
    )
    odd = 0.19999999999987655 + w * (
        0.11111110899049664 + w * (0.07692086204975024 + w * (0.05847612444521365 + w * 0.0378116004846169))
    )
    return t + t * z * (even + z * odd)
