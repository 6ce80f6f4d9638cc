"""Sine, cosine and arctangent without a call into the C library, which costs a tick more than the car's physics.

The polynomials are those of FreeBSD's msun (k_sin.c, k_cos.c, s_atan.c; Copyright (C) 1993 by Sun Microsystems, Inc.,
freely used, copied, modified and distributed provided that this notice is preserved). Errors are below 3e-16 of 1, or
of the angle for the arctangent. Angles and ratios that are not those of a driving car go to the C library.
"""

import math

from racer_env.engine.compiled import part

LARGEST_ANGLE = 100.0
LARGEST_RATIO = 0.4375
QUARTER = 1.57079632673412561417
"""A quarter turn to 33 bits: its multiples are exact."""
QUARTER_REST = 6.07710050650619224932e-11


@part
def sin_cos(angle: float) -> tuple[float, float]:
    """Sine and cosine of an angle."""
    if not abs(angle) < LARGEST_ANGLE:
        return math.sin(angle), math.cos(angle)
    quarters = math.floor(angle * (2.0 / math.pi) + 0.5)
    r = (angle - quarters * QUARTER) - quarters * QUARTER_REST
    z = r * r
    w = z * z
    sin = (8.33333333332248946124e-03 + z * -1.98412698298579493134e-04) + w * (
        (2.75573137070700676789e-06 + z * -2.50507602534068634195e-08) + w * 1.58969099521155010221e-10
    )
    sin = r + z * r * (-1.66666666666666324348e-01 + z * sin)
    cos = (4.16666666666666019037e-02 + z * -1.38888888888741095749e-03) + w * (
        (2.48015872894767294178e-05 + z * -2.75573143513906633035e-07)
        + w * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11)
    )
    cos = (1.0 - 0.5 * z) + w * cos
    quadrant = int(quarters)
    sin, cos = (cos, sin) if quadrant & 1 else (sin, cos)
    return (-sin if quadrant & 2 else sin), (-cos if (quadrant + 1) & 2 else cos)


@part
def arctan2(y: float, x: float) -> float:
    """The angle of a direction, fast if it is close to that of the x axis."""
    if not abs(y) < LARGEST_RATIO * x:
        return math.atan2(y, x)
    t = y / x
    z = t * t
    w = z * z
    odd = 1.42857142725034663711e-01 + w * (
        9.09088713343650656196e-02
        + w * (6.66107313738753120669e-02 + w * (4.97687799461593236017e-02 + w * 1.62858201153657823623e-02))
    )
    even = -1.99999999998764832476e-01 + w * (
        -1.11111104054623557880e-01
        + w * (-7.69187620504482999495e-02 + w * (-5.83357013379057348645e-02 + w * -3.65315727442169155270e-02))
    )
    return t - t * (z * (3.33333333333329318027e-01 + w * odd) + w * even)
