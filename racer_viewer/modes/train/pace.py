"""How fast a run learns: as fast as it can, or slowed down so that the eye can follow."""

from __future__ import annotations

PACES: tuple[float | None, ...] = (1.0, 2.0, 10.0, None)
"""That can be chosen: times real time; None is as fast as it can."""
PACE_NAMES = ("real time", "2×", "10×", "full speed")


def number_of(pace: float | None) -> int:
    """Of the pace that can be chosen and comes nearest: somebody else may have asked for any."""
    if pace is None:
        return PACES.index(None)
    known = [each for each in PACES if each is not None]
    return min(range(len(known)), key=lambda number: abs(known[number] - pace))


def name_of(pace: float | None) -> str:
    return PACE_NAMES[PACES.index(pace)] if pace in PACES else f"{pace:g}×"
