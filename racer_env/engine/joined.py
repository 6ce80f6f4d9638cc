"""Tables of several tracks end to end, so that one compiled call steps the cars of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from racer_env.engine.compiled import Compiled, part
from racer_env.engine.starts import draw
from racer_env.engine.tables import TrackTables
from racer_env.engine.tick import BAD_ACTION, start_cars, step_cars, step_cars_with_terms


class JoinedTables(NamedTuple):
    """Tables of several tracks: each array holds those of all tracks, one after the other.

    begins: index of the first entry of each track in each array, in the order of `TrackTables`, (tracks + 1, arrays).
    wall_points: flat, because the points of a track are (2, n).
    """

    tables: TrackTables
    wall_points: NDArray[np.float64]
    begins: NDArray[np.int64]


class Fleet(NamedTuple):
    """Cars of a simulation as compiled code sees them.

    order: rows of the cars, sorted by track. ends: end of each track's cars in `order`.
    draws: range from which a new episode draws its track; empty if cars keep their track.
    next_tracks: track of a new episode, by the number drawn, or by the track before if cars keep their track.
    before: see `step_cars_with_terms`; empty without terms.
    """

    joined: JoinedTables
    rules: NDArray[np.void]
    ranges: NDArray[np.float64]
    cars: NDArray[np.void]
    observations: NDArray[np.float32]
    order: NDArray[np.int64]
    ends: NDArray[np.int64]
    draws: NDArray[np.float64]
    next_tracks: NDArray[np.int64]
    before: NDArray[np.float64]


def join_tables(tracks: Sequence[TrackTables]) -> JoinedTables:
    """Join the tables of some tracks."""
    points = [each.wall_points.reshape(-1) for each in tracks]
    columns = [
        points if name == "wall_points" else [getattr(each, name) for each in tracks] for name in TrackTables._fields
    ]
    begins = np.array([np.cumsum([0, *map(len, column)]) for column in columns]).T.copy()
    arrays = dict(zip(TrackTables._fields, map(np.concatenate, columns), strict=True))
    flat_points = arrays.pop("wall_points")
    joined = JoinedTables(TrackTables(wall_points=tracks[0].wall_points, **arrays), flat_points, begins)
    joined.tables.seal()
    flat_points.flags.writeable = False
    return joined


@part
def tables_of(joined: Compiled, track: int) -> Compiled:
    """Return the tables of one track."""
    all_tables, begins = joined.tables, joined.begins
    a, b = begins[track], begins[track + 1]
    return TrackTables(
        all_tables.frame[a[0] : b[0]],
        all_tables.stretches[a[1] : b[1]],
        all_tables.samples[a[2] : b[2]],
        all_tables.limits[a[3] : b[3]],
        all_tables.segments[a[4] : b[4]],
        all_tables.gates[a[5] : b[5]],
        all_tables.cells[a[6] : b[6]],
        all_tables.lists[a[7] : b[7]],
        joined.wall_points[a[8] : b[8]].reshape(2, (b[8] - a[8]) // 2),
        all_tables.squares[a[9] : b[9]],
        all_tables.beams[a[10] : b[10]],
    )


@part
def sort_by_track(fleet: Compiled) -> None:
    """Set the order of the cars. Call it at the start and whenever a car has changed its track."""
    ends, cars = fleet.ends, fleet.cars
    for track in range(len(ends)):
        ends[track] = 0
    for i in range(len(cars)):
        ends[cars[i].track] += 1
    first = 0
    for track in range(len(ends)):
        first += ends[track]
        ends[track] = first - ends[track]
    for i in range(len(cars)):
        track = cars[i].track
        fleet.order[ends[track]] = i
        ends[track] += 1


@part
def step_fleet(fleet: Compiled) -> int:
    """Advance all cars by one tick. Returns how many episodes ended, or BAD_ACTION."""
    ended = begin = 0
    for track in range(len(fleet.ends)):
        end = fleet.ends[track]
        if end > begin:
            tables = tables_of(fleet.joined, track)
            members = fleet.order[begin:end]
            if len(fleet.before):
                count = step_cars_with_terms(tables, fleet.rules, fleet.cars, fleet.observations, members, fleet.before)
            else:
                count = step_cars(tables, fleet.rules, fleet.cars, fleet.observations, members)
            if count == BAD_ACTION:
                return BAD_ACTION
            ended += count
        begin = end
    return ended


@part
def restart(fleet: Compiled, row: Compiled) -> None:
    """Start the next episode of a car, perhaps on another track. row: index of the car, an array of one."""
    car = fleet.cars[row[0]]
    if len(fleet.draws):
        car.track = int(draw(car, fleet.draws))
    car.track = fleet.next_tracks[car.track]
    start_cars(tables_of(fleet.joined, car.track), fleet.ranges, fleet.cars, fleet.observations, row)
