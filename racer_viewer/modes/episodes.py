"""Episodes that were watched: what came of each, and how it can be seen again."""

from __future__ import annotations

from dataclasses import dataclass

from racer_viewer.modes.race_car import RaceCar
from racer_viewer.replays import Replay

KEPT = 400
"""The last so many are remembered; each is some 70 kB."""


@dataclass(frozen=True, eq=False)
class Episode:
    """What one car made of an episode.

    number: which it was since watching began, from 1.
    best: its fastest lap [ticks]; None without one.
    ending: how it ended, in a few words.
    replay: what was driven; None if nothing was, or while it is driven.
    """

    number: int
    driver: str
    circuit: str
    reward: float
    laps: int
    best: int | None
    ending: str
    replay: Replay | None


def episode_of(car: RaceCar, number: int, ending: str = "") -> Episode:
    """As far as it is; the ending is the one given unless it came to its own."""
    best, circuit = car.stopwatch.best_of_run, car.env.track.circuit
    return Episode(
        number,
        car.entrant.name,
        circuit.name if circuit else "",
        float(car.totals.sum()),
        len(car.stopwatch.laps),
        best.ticks if best else None,
        car.ending or ending,
        car.replay() if car.ending or ending else None,
    )
