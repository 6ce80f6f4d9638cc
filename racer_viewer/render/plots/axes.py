"""From values to pixels and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pygame
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BEYOND = 3.0
"""Points further outside than this, of the height of the frame, are brought here: nobody sees where they are."""


@dataclass(frozen=True, eq=False)
class Axes:
    """frame: where the values are, in pixels of the chart. span: steps from left to right.

    inset: from the edge of the frame to the ends of the axes [px], so that what is there can be seen.
    """

    frame: pygame.Rect
    span: tuple[float, float]
    low: float
    high: float
    inset: int = 0

    def xs(self, steps: Floats) -> Floats:
        """[px]"""
        first, last = self.span
        return self.frame.left + self.inset + (steps - first) * (self._width / (last - first))

    def ys(self, values: Floats) -> Floats:
        """[px]"""
        share = np.clip((values - self.low) / (self.high - self.low), -BEYOND, 1.0 + BEYOND)
        ys: Floats = self.frame.bottom - 1 - self.inset - share * (self.frame.height - 1 - 2 * self.inset)
        return ys

    def x(self, steps: float) -> float:
        first, last = self.span
        return self.frame.left + self.inset + (steps - first) * (self._width / (last - first))

    def y(self, value: float) -> float:
        share = min(1.0 + BEYOND, max(-BEYOND, (value - self.low) / (self.high - self.low)))
        return self.frame.bottom - 1 - self.inset - share * (self.frame.height - 1 - 2 * self.inset)

    def steps_at(self, x: float) -> float:
        """At a pixel, at the ends if it is outside."""
        first, last = self.span
        share = (x - self.frame.left - self.inset) / self._width
        return first + min(1.0, max(0.0, share)) * (last - first)

    @property
    def _width(self) -> int:
        return max(1, self.frame.width - 1 - 2 * self.inset)

    def outside(self, values: Floats) -> Floats:
        """1 for those above the frame, -1 for those below, 0 for the others and for what is missing."""
        return np.where(values > self.high, 1.0, np.where(values < self.low, -1.0, 0.0))
