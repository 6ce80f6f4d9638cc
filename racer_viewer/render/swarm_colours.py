"""Scales of colour for the swarm: even steps of lightness, so that a car that does better is always brighter."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from racer_viewer.ui.theme import COLOUR_BLIND, Palette

SHADES = 32
"""Steps from worst to best."""
HEAT_SHADES = 256
"""Steps from cold to hot."""
_HEAT_GAMMA = 0.6
"""Below 1 what is rarely driven on is easier to see."""

Floats = NDArray[np.float64]
Bytes = NDArray[np.uint8]

_QUALITY = ((0.44, 0.17, 348.0), (0.57, 0.22, 24.0), (0.72, 0.18, 56.0), (0.83, 0.17, 92.0), (0.90, 0.22, 132.0))
"""Purple, red, orange, yellow, green; each as lightness 0 to 1, chroma and hue [°] of OKLCh."""
_QUALITY_COLOUR_BLIND = ((0.40, 0.15, 300.0), (0.53, 0.14, 255.0), (0.66, 0.12, 200.0), (0.80, 0.17, 150.0),
                         (0.94, 0.18, 106.0))  # fmt: skip
"""Violet, blue, teal, green, yellow: told apart by lightness, and by blue against yellow."""
_HEAT = ((0.36, 0.13, 275.0), (0.47, 0.14, 264.0), (0.58, 0.13, 250.0), (0.72, 0.11, 232.0))
"""Dark blue to light: a hue that no car has."""
_HEAT_COLOUR_BLIND = ((0.36, 0.07, 40.0), (0.52, 0.11, 45.0), (0.60, 0.11, 50.0), (0.70, 0.08, 58.0))
"""Brown to sand, for the same reason."""
_HEAT_OPACITY = 0.80
"""Where it is hottest; where it is cold one sees the ground."""

_LMS = np.array(
    [(1.0, 0.3963377774, 0.2158037573), (1.0, -0.1055613458, -0.0638541728), (1.0, -0.0894841775, -1.2914855480)]
)
_RGB = np.array(
    [(4.0767416621, -3.3077115913, 0.2309699292), (-1.2684380046, 2.6097574011, -0.3413193965),
     (-0.0041960863, -0.7034186147, 1.7076147010)]
)  # fmt: skip
"""From OKLab to the responses of the eye's cones, and from their cubes to linear red, green and blue."""


@cache
def quality_colours(palette: Palette) -> Bytes:
    """(SHADES, 3), the worst first."""
    return _bytes(_ramp(_QUALITY_COLOUR_BLIND if palette == COLOUR_BLIND else _QUALITY, np.linspace(0.0, 1.0, SHADES)))


@cache
def heat_colours(palette: Palette) -> Bytes:
    """(HEAT_SHADES, 4), the coldest first; multiplied with their opacity, the last column."""
    warm = np.linspace(0.0, 1.0, HEAT_SHADES) ** _HEAT_GAMMA
    colours = _ramp(_HEAT_COLOUR_BLIND if palette == COLOUR_BLIND else _HEAT, warm)
    opacity = _HEAT_OPACITY * warm[:, None] ** 0.8
    return _bytes(np.concatenate([colours * opacity, opacity], axis=1))


def shades_of(quality: NDArray[np.float32], steps: int = SHADES) -> NDArray[np.intp]:
    """Numbers of the colours; what is not known is taken for bad."""
    share = np.clip(np.nan_to_num(quality), 0.0, 1.0)
    return np.minimum(share * steps, steps - 1).astype(np.intp)


def _ramp(anchors: tuple[tuple[float, float, float], ...], at: Floats) -> Floats:
    """At these shares of the way from the first anchor to the last, as red, green and blue 0 to 1."""
    lightness, chroma, hue = np.array(anchors).T
    hue = np.unwrap(np.radians(hue))
    of = np.linspace(0.0, 1.0, len(anchors))
    chroma, hue = np.interp(at, of, chroma), np.interp(at, of, hue)
    lab = np.stack([np.interp(at, of, lightness), chroma * np.cos(hue), chroma * np.sin(hue)], axis=1)
    linear = np.clip((lab @ _LMS.T) ** 3 @ _RGB.T, 0.0, 1.0)
    return np.asarray(np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1.0 / 2.4) - 0.055))


def _bytes(colours: Floats) -> Bytes:
    found = np.rint(colours * 255.0).astype(np.uint8)
    found.setflags(write=False)
    return found
