"""What the parts of a tick cost, each run alone over the same cars."""

import time
from typing import Any

import numpy as np

from racer_env.engine import CAR, Simulation
from racer_env.engine.car import move
from racer_env.engine.compiled import entry
from racer_env.engine.contact import meet_walls
from racer_env.engine.locate import locate
from racer_env.engine.rays import cast_rays
from racer_env.engine.simulation import Cars
from racer_env.engine.trigonometry import sin_cos


@entry
def _centreline(track: Any, cars: Any) -> None:
    for i in range(len(cars)):
        car = cars[i]
        car.centre_distance, car.arc, car.half_width = locate(track, car.x, car.y)


@entry
def _rays(track: Any, cars: Any) -> None:
    for i in range(len(cars)):
        car = cars[i]
        sin, cos = sin_cos(car.heading)
        cast_rays(track, car.x, car.y, car.heading, sin, cos, car.rays)


@entry
def _car(track: Any, cars: Any) -> None:
    for i in range(len(cars)):
        move(cars[i])


@entry
def _walls(track: Any, cars: Any) -> None:
    for i in range(len(cars)):
        meet_walls(track, cars[i], cars[i].located_x, cars[i].located_y)


PARTS = {"centreline": _centreline, "rays": _rays, "car": _car, "walls": _walls}


def part_cost(part: str, simulation: Simulation, seconds: float) -> float:
    """Least time [ns] that a part takes for one car, out of many runs over all cars of a simulation."""
    before, state = simulation.save(), simulation.save()
    if part == "walls":  # they come after the cars have moved
        _car(simulation.tables, _rows(state.cars))
    PARTS[part](simulation.tables, _rows(simulation.cars))
    best = float("inf")
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        simulation.restore(state)
        begin = time.perf_counter()
        PARTS[part](simulation.tables, _rows(simulation.cars))
        best = min(best, time.perf_counter() - begin)
    simulation.restore(before)
    return best / simulation.num_cars * 1e9


def _rows(cars: Cars) -> Any:
    return cars.view(CAR, np.ndarray)
