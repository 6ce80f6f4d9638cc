"""What the parts of a tick cost, each run alone over the same cars.

`racer-viewer bench engine`: what a step of the simulation costs, and what that depends on.

The machine may be busy and its speed may drift: every figure is taken several times, in turn with CartPole-v1, and the
ratios are medians over those rounds.
"""

import json
import math
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from racer_env.engine import ANYWHERE, CAR, Driver, Simulation, Start, Track, build_track, load_circuit
from racer_env.engine.car import move
from racer_env.engine.compiled import entry
from racer_env.engine.contact import meet_walls
from racer_env.engine.locate import locate
from racer_env.engine.rays import cast_rays
from racer_env.engine.simulation import Cars
from racer_env.engine.trigonometry import sin_cos
from racer_viewer.bench.harness import describe_machine
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


Run = Callable[[float], float]
"""Runs for about so many seconds and returns steps per second."""

TICKS = 256
"""Recorded actions that a measurement drives with, again and again from the same state."""
NOISE = (0.5, 0.3, 0.2)
"""Spread of the noise on the driver's steer, throttle and brake, so that cars go wide and touch walls too."""
SETTLING_TICKS, TICKS_PER_WHIM = 64, 8
"""Driven before the recording starts; how long a driver keeps a noise. The first is a multiple of the second."""
LONG_CIRCUIT_FACTOR = 10
CHECK_CLOCK_FROM = 64
"""With this many cars, a look at the clock after every tick costs nothing that shows."""
CAR_COUNTS = (1, 4, 16, 64, 256, 1024, 4096)


@dataclass(frozen=True)
class Figures:
    """What the benchmark found; `ratios` and what is in them are against CartPole-v1 unless they say otherwise."""

    machine: str
    cartpole_steps_per_second: float
    steps_per_second: dict[str, float]
    ratios: dict[str, float]
    faster_than_brute_force: float
    nanoseconds_per_car: dict[str, float]
    long_circuit_cost: dict[str, float]
    cost_by_cars: dict[str, float]


def run(quick: bool, as_json: bool) -> int:
    """Measure and print."""
    prepare_engine()
    figures = measure(rounds=3 if quick else 9, seconds=0.1 if quick else 0.35)
    if as_json:
        print(json.dumps(asdict(figures), indent=2))
    else:
        _print(figures)
    return 0


def measure(rounds: int, seconds: float) -> Figures:
    track = load_circuit("track-03")
    long = long_circuit(track.length)
    everyone = os.cpu_count() or 1
    runs: dict[str, Run] = {
        "CartPole-v1": cartpole(),
        "1 car from Python": racers(track, 1),
        "64 cars": racers(track, 64),
        "1024 cars": racers(track, 1024),
        f"1024 cars, {everyone} threads": racers(track, 1024, threads=everyone),
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

    def ratio(name: str, base: str = "CartPole-v1") -> float:
        return statistics.median(a / b for a, b in zip(speeds[name], speeds[base], strict=True))

    names = [name for name in runs if name != "CartPole-v1"]
    on_their_way = recorded(track, 1024).simulation
    by_cars = {count: racers(track, count) for count in CAR_COUNTS}
    costs = {str(count): statistics.median(1e9 / go(seconds) for _ in range(rounds)) for count, go in by_cars.items()}
    return Figures(
        machine=describe_machine(),
        cartpole_steps_per_second=statistics.median(speeds["CartPole-v1"]),
        steps_per_second={name: statistics.median(speeds[name]) for name in names},
        ratios={name: ratio(name) for name in names},
        faster_than_brute_force=ratio("64 cars", "64 cars, brute force"),
        nanoseconds_per_car={part: part_cost(part, on_their_way, seconds) for part in PARTS},
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
    """A simulation in some state, and actions to drive it with from there."""

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
    """Cars on their way, by default all over the track and at speed, and what their drivers do next."""
    tables = track.brute_force_tables() if brute_force else None
    simulation = Simulation(track, num_cars, None, True, start=start, threads=threads, tables=tables)
    driver, noise = Driver(track), np.random.default_rng(0)
    actions = np.empty((TICKS, num_cars, 3))
    for tick in range(-SETTLING_TICKS, TICKS):
        if tick % TICKS_PER_WHIM == 0:
            wander = noise.normal(0.0, NOISE, (num_cars, 3))
            whim = noise.uniform((-1.0, 0.0, 0.0), (1.0, 1.0, 0.3), (num_cars, 3))
        action = driver.act(simulation.cars) + wander if skilled else whim
        if tick == 0:
            state = simulation.save()
        if tick >= 0:
            actions[tick] = action
        simulation.step(action)
    simulation.restore(state)
    return Recording(simulation, actions)


def racers(track: Track, num_cars: int, **scenario: Any) -> Run:
    """Steps of all cars per second, driven from one recording over and over."""
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
    """Switchbacks, folded up about LONG_CIRCUIT_FACTOR times as long as this, with a straight way back."""
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


def _print(figures: Figures) -> None:
    console = Console()
    table = Table(box=None, pad_edge=False, header_style="bold", title=figures.machine, title_justify="left")
    table.add_column("one thread unless said otherwise")
    table.add_column("steps/s", justify="right")
    table.add_column("× CartPole-v1", justify="right")
    table.add_row("CartPole-v1", f"{figures.cartpole_steps_per_second:,.0f}", "1.0")
    for name, speed in figures.steps_per_second.items():
        table.add_row(name, f"{speed:,.0f}", f"{figures.ratios[name]:.1f}")
    console.print(table)
    parts = ", ".join(f"{name} {cost:.0f}" for name, cost in figures.nanoseconds_per_car.items())
    counts = ", ".join(f"{count}: {cost:.0f}" for count, cost in figures.cost_by_cars.items())
    longer = ", ".join(f"{cost:.2f} × with {cars}" for cars, cost in figures.long_circuit_cost.items())
    for line in (
        f"Of a car's tick [ns]: {parts}",
        f"One car's step by number of cars [ns]: {counts}",
        f"Against brute force, 64 cars: {figures.faster_than_brute_force:.0f} × faster",
        f"On a circuit {LONG_CIRCUIT_FACTOR} × as long, a step costs {longer}",
    ):
        console.print(line, markup=False, highlight=False)
