"""How long things took, in a few numbers and little memory."""

from __future__ import annotations

import math


class Latencies:
    """Durations, counted in steps of about a fifth of an octave: percentiles are right to 15 %."""

    _PER_OCTAVE = 5
    _OCTAVES = 40

    def __init__(self) -> None:
        self._counts = [0] * (self._PER_OCTAVE * self._OCTAVES)
        self._total = self._number = self._longest = 0

    def add(self, nanoseconds: int) -> None:
        """One more."""
        self._number += 1
        self._total += nanoseconds
        self._longest = max(self._longest, nanoseconds)
        step = int(math.log2(max(nanoseconds, 1)) * self._PER_OCTAVE)
        self._counts[min(step, len(self._counts) - 1)] += 1

    def percentile(self, percent: float) -> float:
        """Nanoseconds that so many per cent took at most."""
        wanted, seen = self._number * percent / 100.0, 0
        for step, count in enumerate(self._counts):
            seen += count
            if count and seen >= wanted:
                return min(float(2.0 ** ((step + 1) / self._PER_OCTAVE)), float(self._longest))
        return 0.0

    def summary(self) -> dict[str, float]:
        """For a log line, in microseconds."""
        mean = self._total / self._number if self._number else 0.0
        values = {"mean": mean, "p50": self.percentile(50), "p99": self.percentile(99), "max": float(self._longest)}
        return {f"{name}_us": round(value / 1000.0, 1) for name, value in values.items()}
