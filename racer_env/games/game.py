"""The games that a server offers, and one game that runs freely: latest action, tick by tick, episode by episode."""

from __future__ import annotations

import base64
import os
import sys
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol

from racer_env.box2d import box2d_missing
from racer_env.errors import RacerError
from racer_env.games.worker_protocol import NEUTRAL, Action, EpisodeEnd, GameSnapshot, SetupCommand

CAR_RACING, RACER = "CarRacing-v3", "Racer-v0"
MAX_WORKERS = 8
"""Maximum number of worker processes; a game needs little time except for its frames."""
MAX_PREPARED = 8
"""Maximum number of racers per worker whose drawing is prepared before the start; more would delay the start."""
PIXELS, CAR = "pixels", "car"
"""Kinds of DrawData: rows of RGB bytes, or one row of `racer_env.engine.CAR`."""


@dataclass(frozen=True)
class GameKind:
    """A game that a server can run.

    hz: ticks per second that the game is designed for.
    """

    name: str
    hz: float


KINDS = {kind.name: kind for kind in (GameKind(CAR_RACING, 50.0), GameKind(RACER, 60.0))}


class GameMissingError(RacerError):
    """The game is unknown, or a package that it needs is not installed."""


@dataclass(frozen=True)
class TickResult:
    """Result of one tick."""

    reward: float
    terminated: bool = False
    truncated: bool = False
    info: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class DrawData:
    """Data for drawing a game in a window: an image, or the car state that the window draws itself."""

    kind: str
    width: int
    height: int
    content: bytes


class GameBackend(Protocol):
    """A car that can be driven, from one episode to the next."""

    def restart(self) -> None:
        """Begin an episode."""

    def tick(self, action: Action) -> TickResult: ...

    def telemetry(self) -> dict[str, Any]:
        """Return the car's state as JSON values."""

    def frame(self) -> bytes:
        """Draw the current state, 96 × 96 × 3."""

    def draw_data(self, width: int, height: int) -> DrawData:
        """Return data for drawing an area of this size in a window [px]."""


class Game:
    """A running game: its backend, its score and its episodes.

    frames: whether frames may be requested; if so, the last frame of each episode is kept.
    episode: number of earlier episodes, if this game continues one that was lost.
    """

    def __init__(self, game_id: int, backend: GameBackend, max_steps: int, frames: bool, episode: int = 0) -> None:
        self.game_id, self.episode = game_id, episode
        self.action = NEUTRAL
        self._backend = backend
        self._max_steps, self._frames = max_steps, frames
        self._steps, self._total = 0, 0.0
        self._result = TickResult(0.0)
        self._frame: str | None = None

    def restart(self) -> EpisodeEnd | None:
        """Begin an episode; return the end of the previous one if it had at least one tick."""
        interrupted = self._episode_end(truncated=True, by_reset=True) if self._steps else None
        self._begin()
        return interrupted

    def tick(self) -> EpisodeEnd | None:
        """Run one tick with the latest action; if it ends the episode, begin the next and return the end."""
        self._frame = None
        result = self._backend.tick(self.action)
        self._steps += 1
        self._total += result.reward
        self._result = result
        too_long = self._steps >= self._max_steps
        if not (result.terminated or result.truncated or too_long):
            return None
        end = self._episode_end(truncated=not result.terminated, by_reset=False)
        self._begin()
        return end

    def snapshot(self) -> GameSnapshot:
        telemetry = {**self._backend.telemetry(), "steps": self._steps, "total_reward": self._total}
        return GameSnapshot(self.game_id, self.episode, self._result.reward, telemetry, self._result.info)

    def frame(self) -> str:
        """Return the frame in base64; drawn once per tick however often it is requested."""
        if self._frame is None:
            self._frame = base64.b64encode(self._backend.frame()).decode()
        return self._frame

    def draw_data(self, width: int, height: int) -> DrawData:
        return self._backend.draw_data(width, height)

    def _begin(self) -> None:
        self._backend.restart()
        self.episode += 1
        self._steps, self._total, self._result, self._frame = 0, 0.0, TickResult(0.0), None

    def _episode_end(self, truncated: bool, by_reset: bool) -> EpisodeEnd:
        return EpisodeEnd(self.snapshot(), truncated, by_reset, self.frame() if self._frames else None)


def check_kind(name: str) -> GameKind:
    """Return the kind with this name; raise GameMissingError if it cannot run here."""
    if name not in KINDS:
        raise GameMissingError(f"there is no game {name!r}; known games: {', '.join(KINDS)}")
    if name == CAR_RACING:
        _check_box2d()
    return KINDS[name]


def _check_box2d() -> None:
    try:
        import_module("Box2D")
    except ImportError as error:
        raise GameMissingError(f"{box2d_missing(CAR_RACING, error)}, or --game {RACER}") from None


def worker_count(name: str, num_games: int, frames: bool) -> int:
    """Return the number of worker processes for these games.

    A tick costs next to nothing, a frame some milliseconds and a new CarRacing track ten milliseconds: frames and
    tracks are worth a process per core. Racers without frames share one process.
    """
    if name == RACER and not frames:
        return 1
    return min(core_count(), num_games, MAX_WORKERS)


def core_count() -> int:
    """Return the number of cores that this process may use, as far as the system reports it."""
    if sys.version_info >= (3, 13):
        return os.process_cpu_count() or 1
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def make_backends(setup: SetupCommand) -> list[GameBackend]:
    """Create the games of one worker. Game i uses seed + i, so it does not depend on the worker that runs it."""
    seeds = [None if setup.seed is None else setup.seed + game_id for game_id in setup.game_ids]
    if setup.game == RACER:
        from racer_env.games.racer_game import RacerGame, racer_track

        track = racer_track()
        prepared = setup.frames and len(seeds) <= MAX_PREPARED
        return [RacerGame(track, seed, prepared) for seed in seeds]
    from racer_env.games.car_racing import CarRacingGame, prepare_drawing

    if setup.frames:
        prepare_drawing()
    return [CarRacingGame(seed) for seed in seeds]
