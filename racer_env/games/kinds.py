"""Which games there are, how fast they run, and how they are made."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib import import_module

from racer_env.box2d import box2d_missing
from racer_env.errors import RacerError
from racer_env.games.game import Playable
from racer_env.games.worker_protocol import Setup

CAR_RACING, RACER = "CarRacing-v3", "Racer-v0"
MOST_WORKERS = 8
"""More have nothing to do: a game needs little but for its pictures."""
MOST_PREPARED = 8
"""Racers of a worker that are made ready to be drawn before they start: with more, nobody wants to wait so long."""


@dataclass(frozen=True)
class Kind:
    """hz: ticks per second, as the game was made for."""

    name: str
    hz: float


KINDS = {kind.name: kind for kind in (Kind(CAR_RACING, 50.0), Kind(RACER, 60.0))}


class GameMissingError(RacerError):
    """The game is unknown, or something that it needs is not installed."""


def check_kind(name: str) -> Kind:
    """The kind of this name, if it can be played here."""
    if name not in KINDS:
        raise GameMissingError(f"there is no game {name!r}; known: {', '.join(KINDS)}")
    if name == CAR_RACING:
        _check_box2d()
    return KINDS[name]


def _check_box2d() -> None:
    try:
        import_module("Box2D")
    except ImportError as error:
        raise GameMissingError(f"{box2d_missing(CAR_RACING, error)}, or --game {RACER}") from None


def worker_count(name: str, num_games: int, frames: bool) -> int:
    """Over how many processes games are spread.

    A tick costs next to nothing, a picture some milliseconds and a new CarRacing track ten: those are worth a process
    for each core. Racers without pictures are not.
    """
    if name == RACER and not frames:
        return 1
    return min(core_count(), num_games, MOST_WORKERS)


def core_count() -> int:
    """That this process may use, as far as the system tells."""
    if sys.version_info >= (3, 13):
        return os.process_cpu_count() or 1
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def make_playables(setup: Setup) -> list[Playable]:
    """The games of one worker. Game i draws by seed + i, so it is the same in whichever worker it is."""
    seeds = [None if setup.seed is None else setup.seed + game_id for game_id in setup.game_ids]
    if setup.game == RACER:
        from racer_env.games.racer_game import RacerGame, racer_track

        track = racer_track()
        prepared = setup.frames and len(seeds) <= MOST_PREPARED
        return [RacerGame(track, seed, prepared) for seed in seeds]
    from racer_env.games.car_racing import CarRacingGame, prepare_drawing

    if setup.frames:
        prepare_drawing()
    return [CarRacingGame(seed) for seed in seeds]
