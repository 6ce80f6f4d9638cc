"""What there is to play. Needs no numpy, so that it loads fast."""

from __future__ import annotations

from typing import Literal, NamedTuple

RATE = 48_000
"""Samples per second: what most devices have, so nothing is resampled."""

Effect = Literal["move", "accept", "back", "beep", "go", "gate", "lap", "record", "wall"]
"""Plays once: a choice in a menu moves, is accepted, is left; 3-2-1, GO; a gate, a lap, a record; a wall is hit."""

LoopKind = Literal["body", "load", "tyres", "rumble", "scrape", "wind"]


class Loop(NamedTuple):
    """Sounds on and on. `body` and `load` are the engine and its bite when it pulls, a pair for each band of revs."""

    kind: LoopKind
    band: int = 0


TYRES, RUMBLE, SCRAPE, WIND = Loop("tyres"), Loop("rumble"), Loop("scrape"), Loop("wind")
