"""What a game looks like at one tick, and how an episode ended: said by workers, told to clients."""

from __future__ import annotations

from typing import Any

import msgspec

FRAME_SIZE = 96
"""Width and height of a frame [px]."""
FRAME_SHAPE = (FRAME_SIZE, FRAME_SIZE, 3)
FRAME_BYTES = FRAME_SIZE * FRAME_SIZE * 3
"""Of red, green and blue, row by row from the top."""

Action = tuple[float, float, float]
"""Steer (right is positive), gas, brake."""
REST: Action = (0.0, 0.0, 0.0)
LOWEST, HIGHEST = (-1.0, 0.0, 0.0), (1.0, 1.0, 1.0)
"""Of an action."""


class Moment(msgspec.Struct, frozen=True, array_like=True):
    """A game after a tick.

    episode: counts from 1 over the life of a game.
    reward: of the last tick; 0 before the first one.
    """

    game_id: int
    episode: int
    reward: float
    telemetry: dict[str, Any]
    info: dict[str, Any]

    @property
    def total_reward(self) -> float:
        """Of the episode until now."""
        return float(self.telemetry["total_reward"])


class Ending(msgspec.Struct, frozen=True, array_like=True):
    """The last moment of an episode.

    truncated: it was stopped, by its length or by a RESET, where the game itself would have gone on.
    by_reset: somebody's RESET stopped it.
    frame: the last picture in base64, where pictures are drawn.
    """

    moment: Moment
    truncated: bool
    by_reset: bool
    frame: str | None


class ClockReport(msgspec.Struct, frozen=True, array_like=True):
    """How steadily a game ticks. Lateness is how long after its due time a tick began, since the game's start [ms].

    rate: ticks per second in the last seconds, at most the wanted `hz`.
    skipped: ticks that were left out because the machine was too far behind.
    """

    game_id: int
    hz: float
    rate: float
    ticks: int
    skipped: int
    late_p50: float
    late_p99: float
    late_max: float

    @property
    def keeps_up(self) -> bool:
        return self.rate >= KEEPS_UP * self.hz


KEEPS_UP = 0.97
"""Of the wanted rate: what is less is told."""
