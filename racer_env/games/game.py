"""One game in free run: the latest action, tick after tick, episode after episode."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any, Protocol

from racer_env.games.worker_protocol import REST, Action, Ending, Moment


@dataclass(frozen=True)
class Outcome:
    """What a tick gave."""

    reward: float
    terminated: bool = False
    truncated: bool = False
    info: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Sight:
    """What somebody in front of a window sees of a game: a picture, or the state that the window draws it from."""

    kind: str
    width: int
    height: int
    content: bytes


PIXELS, CAR = "pixels", "car"
"""Kinds of sight: rows of RGB bytes; a row of `racer_env.engine.CAR`."""


class Playable(Protocol):
    """What a game is made of: a car that can be driven, from one episode to the next."""

    def restart(self) -> None:
        """Begin an episode."""

    def tick(self, action: Action) -> Outcome: ...

    def telemetry(self) -> dict[str, Any]:
        """Where the car is and what it does, as JSON has it."""

    def frame(self) -> bytes:
        """The picture of this moment, 96 × 96 × 3."""

    def sight(self, width: int, height: int) -> Sight:
        """For a window with so many pixels to fill."""


class Game:
    """A playable thing with its score.

    frames: whether somebody may ask for pictures; the last one of each episode is kept then.
    episode: how many there were before, if this game goes on with one that was lost.
    """

    def __init__(self, game_id: int, playable: Playable, max_steps: int, frames: bool, episode: int = 0) -> None:
        self.game_id, self.episode = game_id, episode
        self.action = REST
        self._playable = playable
        self._max_steps, self._frames = max_steps, frames
        self._steps, self._total = 0, 0.0
        self._outcome = Outcome(0.0)
        self._frame: str | None = None

    def restart(self) -> Ending | None:
        """Begin an episode; returns how the one before was broken off, if it had got anywhere."""
        broken_off = self._ending(truncated=True, by_reset=True) if self._steps else None
        self._begin()
        return broken_off

    def tick(self) -> Ending | None:
        """One tick with the latest action. An episode that ends by it is returned, and the next one begins."""
        self._frame = None
        outcome = self._playable.tick(self.action)
        self._steps += 1
        self._total += outcome.reward
        self._outcome = outcome
        too_long = self._steps >= self._max_steps
        if not (outcome.terminated or outcome.truncated or too_long):
            return None
        ending = self._ending(truncated=not outcome.terminated, by_reset=False)
        self._begin()
        return ending

    def moment(self) -> Moment:
        telemetry = {**self._playable.telemetry(), "steps": self._steps, "total_reward": self._total}
        return Moment(self.game_id, self.episode, self._outcome.reward, telemetry, self._outcome.info)

    def frame(self) -> str:
        """The picture in base64; drawn once for all who ask within a tick."""
        if self._frame is None:
            self._frame = base64.b64encode(self._playable.frame()).decode()
        return self._frame

    def sight(self, width: int, height: int) -> Sight:
        return self._playable.sight(width, height)

    def _begin(self) -> None:
        self._playable.restart()
        self.episode += 1
        self._steps, self._total, self._outcome, self._frame = 0, 0.0, Outcome(0.0), None

    def _ending(self, truncated: bool, by_reset: bool) -> Ending:
        return Ending(self.moment(), truncated, by_reset, self.frame() if self._frames else None)
