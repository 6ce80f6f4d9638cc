"""`racer-viewer bench engine`: the cost of a simulation step, and what it depends on.

Other programs may slow the machine down: everything is measured several times, in turn with CartPole-v1, and the ratios
are medians over those rounds.
"""

import math
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from racer_env.engine import ANYWHERE, CAR, Driver, Simulation, Start, Track, build_track, load_circuit
from racer_env.engine.car import move
from racer_env.engine.compiled import entry
from racer_env.engine.contact import meet_walls
from racer_env.engine.locate import locate
from racer_env.engine.rays import cast_rays
from racer_env.engine.simulation import Cars
from racer_env.engine.trigonometry import sin_cos
from racer_viewer.bench.harness import Summary, describe_machine, median_ratio, print_report
from racer_viewer.warmup import prepare_engine


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


PARTS: dict[str, Callable[[Any, Any], None]] = {"centreline": _centreline, "rays": _rays, "car": _car, "walls": _walls}
"""Parts of a tick by name; each runs alone over all cars."""


def part_cost(part: str, simulation: Simulation, seconds: float) -> float:
    """Return the shortest time that a part takes for one car, over many runs [ns]."""
    before, state = simulation.save(), simulation.save()
    if part == "walls":  # walls are met after the cars have moved
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


Run = Callable[[float], float]
"""A measurement: runs for about the given time [s] and returns steps per second."""

TICKS = 256
"""Recorded actions per measurement, driven again and again from the same state [ticks]."""
NOISE = (0.5, 0.3, 0.2)
"""Standard deviation of the noise on steer, throttle and brake, so that some cars leave the road and touch walls."""
SETTLING_TICKS, NOISE_TICKS = 64, 8
"""Ticks driven before the recording, and ticks for which a driver keeps its noise; the first is a multiple of the
second."""
LONG_CIRCUIT_FACTOR = 10
CHECK_CLOCK_FROM = 64
"""Number of cars from which reading the clock after every tick costs next to nothing."""
CAR_COUNTS = (1, 4, 16, 64, 256, 1024, 4096)


@dataclass(frozen=True)
class EngineReport:
    """Results of the benchmark; `ratios` are against CartPole-v1."""

    machine: str
    cartpole_steps_per_second: float
    steps_per_second: dict[str, float]
    ratios: dict[str, float]
    faster_than_brute_force: float
    nanoseconds_per_car: dict[str, float]
    long_circuit_cost: dict[str, float]
    cost_by_cars: dict[str, float]


def run(quick: bool, as_json: bool) -> int:
    """Measure and print; return the exit code."""
    prepare_engine()
    report = measure(rounds=3 if quick else 9, seconds=0.1 if quick else 0.35)
    print_report(report, _summary(report), as_json)
    return 0


def measure(rounds: int, seconds: float) -> EngineReport:
    """Measure everything in turn, for `seconds` in each round."""
    track = load_circuit("track-03")
    long = long_circuit(track.length)
    cores = os.cpu_count() or 1
    runs: dict[str, Run] = {
        "CartPole-v1": cartpole(),
        "1 car from Python": racers(track, 1),
        "64 cars": racers(track, 64),
        "1024 cars": racers(track, 1024),
        f"1024 cars, {cores} threads": racers(track, 1024, threads=cores),
        "1024 cars, random actions": racers(track, 1024, skilled=False),
        "1024 cars, random actions from the start line": racers(track, 1024, skilled=False, start=Start()),
        "64 cars, brute force": racers(track, 64, brute_force=True),
        "64 cars, long circuit": racers(long, 64),
        "1024 cars, long circuit": racers(long, 1024),
    }
    speeds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, go in runs.items():
            speeds[name].append(go(seconds))

    def ratio(name: str, baseline: str = "CartPole-v1") -> float:
        return median_ratio(speeds, name, baseline)

    names = [name for name in runs if name != "CartPole-v1"]
    moving = recorded(track, 1024).simulation
    by_cars = {count: racers(track, count) for count in CAR_COUNTS}
    costs = {str(count): statistics.median(1e9 / go(seconds) for _ in range(rounds)) for count, go in by_cars.items()}
    return EngineReport(
        machine=describe_machine(),
        cartpole_steps_per_second=statistics.median(speeds["CartPole-v1"]),
        steps_per_second={name: statistics.median(speeds[name]) for name in names},
        ratios={name: ratio(name) for name in names},
        faster_than_brute_force=ratio("64 cars", "64 cars, brute force"),
        nanoseconds_per_car={part: part_cost(part, moving, seconds) for part in PARTS},
        long_circuit_cost={cars: 1.0 / ratio(f"{cars}, long circuit", cars) for cars in ("64 cars", "1024 cars")},
        cost_by_cars=costs,
    )


def cartpole() -> Run:
    env = gymnasium.make("CartPole-v1")
    env.reset(seed=0)

    def go(seconds: float) -> float:
        steps = 0
        start = time.perf_counter()
        while (elapsed := time.perf_counter() - start) < seconds:
            for i in range(200):
                _, _, terminated, truncated, _ = env.step(i % 2)
                if terminated or truncated:
                    env.reset()
            steps += 200
        return steps / elapsed

    return go


@dataclass(frozen=True)
class Recording:
    """A simulation in some state, and actions to drive it with from there, `(ticks, cars, 3)`."""

    simulation: Simulation
    actions: NDArray[np.float64]


def recorded(
    track: Track,
    num_cars: int,
    threads: int = 1,
    skilled: bool = True,
    start: Start = ANYWHERE,
    brute_force: bool = False,
) -> Recording:
    """Return moving cars, by default all over the track, and the next actions of their drivers."""
    tables = track.brute_force_tables() if brute_force else None
    simulation = Simulation(track, num_cars, None, True, start=start, threads=threads, tables=tables)
    driver, noise = Driver(track), np.random.default_rng(0)
    actions = np.empty((TICKS, num_cars, 3))
    for tick in range(-SETTLING_TICKS, TICKS):
        if tick % NOISE_TICKS == 0:
            wander = noise.normal(0.0, NOISE, (num_cars, 3))
            random = noise.uniform((-1.0, 0.0, 0.0), (1.0, 1.0, 0.3), (num_cars, 3))
        action = driver.act(simulation.cars) + wander if skilled else random
        if tick == 0:
            state = simulation.save()
        if tick >= 0:
            actions[tick] = action
        simulation.step(action)
    simulation.restore(state)
    return Recording(simulation, actions)


def racers(track: Track, num_cars: int, **scenario: Any) -> Run:
    """Return a measurement of all cars' steps per second, driven from one recording over and over."""
    recording = recorded(track, num_cars, **scenario)
    simulation, actions = recording.simulation, list(recording.actions)
    state = simulation.save()

    def go(seconds: float) -> float:
        steps = 0
        start = time.perf_counter()
        while time.perf_counter() - start < seconds:
            simulation.restore(state)
            for action in actions:
                simulation.step(action)
                steps += num_cars
                if num_cars >= CHECK_CLOCK_FROM and time.perf_counter() - start > seconds:
                    break
        return steps / (time.perf_counter() - start)

    return go


def long_circuit(length: float) -> Track:
    """Return a circuit of switchbacks and a straight, LONG_CIRCUIT_FACTOR times the given length."""
    straight, bend, half_width = 900.0, 50.0, 12.0
    legs = 2 * round(LONG_CIRCUIT_FACTOR * length / (straight + (math.pi + 2.0) * bend) / 2.0)
    points: list[tuple[float, float]] = []
    for leg in range(legs):
        y, towards = 2.0 * bend * leg, 1.0 if leg % 2 == 0 else -1.0
        start, end = (0.0, straight) if towards > 0 else (straight, 0.0)
        points += [(x, y) for x in np.linspace(start, end, int(straight / 60.0))]
        turns = np.radians((45.0, 90.0, 135.0)) if leg < legs - 1 else ()
        points += [(end + towards * bend * math.sin(t), y + bend * (1.0 - math.cos(t))) for t in turns]
    back = -3.5 * bend
    top = points[-1][1]
    points += [(back + 50.0, top - 20.0), *((back, y) for y in np.linspace(top - 80.0, 80.0, int(top / 60.0)))]
    points.append((back + 50.0, 20.0))
    return build_track([(x, y, half_width) for x, y in points])


def _summary(report: EngineReport) -> Summary:
    rows = [[name, f"{speed:,.0f}", f"{report.ratios[name]:.1f}"] for name, speed in report.steps_per_second.items()]
    parts = ", ".join(f"{name} {cost:.0f}" for name, cost in report.nanoseconds_per_car.items())
    counts = ", ".join(f"{count}: {cost:.0f}" for count, cost in report.cost_by_cars.items())
    longer = ", ".join(f"{cost:.2f} × with {cars}" for cars, cost in report.long_circuit_cost.items())
    return Summary(
        report.machine,
        ("one thread unless said otherwise", "steps/s", "× CartPole-v1"),
        [["CartPole-v1", f"{report.cartpole_steps_per_second:,.0f}", "1.0"], *rows],
        [
            f"Parts of a car's tick [ns]: {parts}",
            f"One car's step by number of cars [ns]: {counts}",
            f"Against brute force, 64 cars: {report.faster_than_brute_force:.0f} × faster",
            f"On a circuit {LONG_CIRCUIT_FACTOR} × as long, a step costs {longer}",
        ],
    )
