"""`racer-viewer bench bridge`: what a step costs through each kind of bridge, and what it could cost at best.

The machine may be busy and its speed may drift: everything is stepped in turn, in short rounds, and the ratios are
medians over those rounds.
"""

import json
import socket
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from racer_env import RacerEnv
from racer_env.bridge.batch_format import encode_result, encode_step
from racer_env.bridge.client import RemoteBatch
from racer_env.bridge.interface import DEFAULT_TRACK
from racer_env.bridge.ws_client import Connection
from racer_env.engine import Driver, Simulation, circuits, load_circuit
from racer_env.errors import BridgeError, ContractError
from racer_viewer.bench.harness import describe_machine, echo_process, receive, served
from racer_viewer.warmup import prepare_engine

CARS = 64
"""Of the batch."""
ROUND_STEPS = 200
"""Of each kind before it is the next one's turn."""
DRIVE_TICKS, TYPICAL_TICK = 3000, 100
"""Of an episode; and one where the car is on its way."""
NOISE = (0.1, 0.1, 0.05)
"""Spread of the noise on the driver's steer, throttle and brake, so that no two cars do the same."""

ENGINE, EMBEDDED = "bare engine", "embedded"
JSON, JSON_LIMIT = "WebSocket JSON", "raw TCP, as JSON"
BATCH, BATCH_LIMIT = f"WebSocket batch of {CARS}", "raw TCP, as batch"
"""Raw TCP with messages of the same sizes."""
IN_TURN = (ENGINE, EMBEDDED, JSON, JSON_LIMIT, BATCH, BATCH_LIMIT)
LEAST_SPEEDUP, MOST_OF_LIMIT, MOST_OF_JSON, MOST_OF_ENGINE = 20.0, 4.0, 2.0, 3.0
"""To be reached: JSON / embedded; JSON / raw TCP; batch / JSON; embedded / bare engine."""

Floats32 = NDArray[np.float32]
Nanoseconds = NDArray[np.int64]


@dataclass(frozen=True)
class Speed:
    """Of a step; a batch's step moves `cars` cars."""

    cars: int
    steps_per_second: float
    mean_us: float
    p50_us: float
    p95_us: float
    p99_us: float


@dataclass(frozen=True)
class Ratio:
    """How one step compares with another of the same run, and what is to be reached."""

    value: float
    goal: str
    reached: bool


@dataclass(frozen=True)
class Figures:
    """What the benchmark found. `remark` says what was not measured and why."""

    machine: str
    bridge: str
    steps: int
    request_bytes: dict[str, int]
    reply_bytes: dict[str, int]
    speeds: dict[str, Speed]
    ratios: dict[str, Ratio]
    remark: str
    target: float | None
    target_reached: bool


def run(
    steps: int, warmup: int, target: float | None, url: str | None, token: str | None, uvloop: bool, as_json: bool
) -> int:
    """Measure and print. The exit code is 1 if JSON steps per second stay below the target."""
    prepare_engine()
    with ExitStack() as open_things:
        address = url or open_things.enter_context(bridge_process(uvloop))
        figures = measure(address, token if url else None, steps, warmup, target)
    if as_json:
        print(json.dumps(asdict(figures), indent=2))
    else:
        _print(figures)
    return 0 if figures.target_reached else 1


@contextmanager
def bridge_process(uvloop: bool) -> Iterator[str]:
    """The address of a server that runs as long as it is needed, its circuits built."""
    with served("bridge", "--port", "0", *(["--uvloop"] if uvloop else [])) as url:
        with closing(Connection(url)) as connection:
            connection.request({"type": "track", "trackId": circuits()[-1].id}, "track_result", dict)
        yield url


class Stepped:
    """Something that is driven on, a number of steps at a time, with recorded actions.

    over: whether a step's result says that an episode ended; then it is reset, which is not timed.
    """

    def __init__(
        self,
        step: Callable[[Any], Any],
        actions: Sequence[Any],
        over: Callable[[Any], Any] = lambda result: False,
        reset: Callable[[], Any] = lambda: None,
        cars: int = 1,
    ) -> None:
        self._step, self._actions, self._over, self._reset = step, actions, over, reset
        self._tick = 0
        self.cars = cars
        reset()

    def go(self, steps: int) -> Nanoseconds:
        """How long each of the next steps takes."""
        times = np.empty(steps, np.int64)
        step, actions, over, now = self._step, self._actions, self._over, time.perf_counter_ns
        for number in range(steps):
            action = actions[self._tick]
            begin = now()
            result = step(action)
            times[number] = now() - begin
            self._tick = (self._tick + 1) % len(actions)
            if over(result):
                self._reset()
                self._tick = 0
        return times


def measure(url: str, token: str | None, steps: int, warmup: int, target: float | None) -> Figures:
    drive, remark = recorded_drive(), ""
    sizes = {JSON_LIMIT: json_sizes(drive)}
    stepped = {ENGINE: engine(drive), EMBEDDED: environment(RacerEnv(), drive)}
    with ExitStack() as open_things:
        try:
            batch = open_things.enter_context(closing(RemoteBatch(CARS, url, token)))
            stepped[BATCH] = Stepped(batch.step, list(drive), reset=batch.reset, cars=CARS)
            sizes[BATCH_LIMIT] = len(encode_step(drive[0])), len(encode_result(batch.reset()))
        except ContractError:
            raise
        except BridgeError as error:
            remark = f"No batch of {CARS}: {error}"
        remote = open_things.enter_context(closing(RacerEnv(url, token=token)))
        stepped[JSON] = environment(remote, drive)
        for name, (request, reply) in sizes.items():
            stepped[name] = echo(open_things.enter_context(echo_process(request, reply)), request, reply)
        times = in_turn({name: stepped[name] for name in IN_TURN if name in stepped}, steps, warmup)
    speeds = {name: speed(rounds, stepped[name].cars) for name, rounds in times.items()}
    return Figures(
        machine=describe_machine(),
        bridge=url,
        steps=steps,
        request_bytes={name: request for name, (request, _) in sizes.items()},
        reply_bytes={name: reply for name, (_, reply) in sizes.items()},
        speeds=speeds,
        ratios=dict(compared(times)),
        remark=remark,
        target=target,
        target_reached=target is None or speeds[JSON].steps_per_second >= target,
    )


def in_turn(stepped: dict[str, Stepped], steps: int, warmup: int) -> dict[str, list[Nanoseconds]]:
    """The times of all steps of each, by rounds."""
    for each in stepped.values():
        each.go(warmup)
    times: dict[str, list[Nanoseconds]] = {name: [] for name in stepped}
    for done in range(0, steps, ROUND_STEPS):
        for name, each in stepped.items():
            times[name].append(each.go(min(ROUND_STEPS, steps - done)))
    return times


def compared(times: dict[str, list[Nanoseconds]]) -> Iterator[tuple[str, Ratio]]:
    """The ratios of what was measured."""

    def ratio(slower: str, faster: str) -> float:
        pairs = zip(times[slower], times[faster], strict=True)
        return statistics.median(float(a.mean() / b.mean()) for a, b in pairs)

    speedup = ratio(JSON, EMBEDDED)
    yield f"{JSON} / {EMBEDDED}", Ratio(speedup, f"at least {LEAST_SPEEDUP:g}", speedup >= LEAST_SPEEDUP)
    for slower, faster, most in (
        (JSON, JSON_LIMIT, MOST_OF_LIMIT),
        (BATCH, JSON, MOST_OF_JSON),
        (EMBEDDED, ENGINE, MOST_OF_ENGINE),
    ):
        if slower in times:
            value = ratio(slower, faster)
            yield f"{slower} / {faster}", Ratio(value, f"at most {most:g}", value <= most)


def speed(rounds: list[Nanoseconds], cars: int) -> Speed:
    times = np.concatenate(rounds) / 1000.0
    mean = float(times.mean())
    return Speed(cars, 1e6 / mean, mean, *(float(value) for value in np.percentile(times, (50, 95, 99))))


def recorded_drive() -> Floats32:
    """Actions (ticks, cars, 3) of drivers from the standing start."""
    track = load_circuit(DEFAULT_TRACK)
    simulation, driver, random = Simulation(track, CARS), Driver(track), np.random.default_rng(0)
    actions = np.empty((DRIVE_TICKS, CARS, 3), np.float32)
    for row in actions:
        row[...] = np.clip(driver.act(simulation.cars) + random.normal(0.0, NOISE, row.shape), (-1.0, 0.0, 0.0), 1.0)
        simulation.step(row)
    return actions


def engine(drive: Floats32) -> Stepped:
    simulation = Simulation(load_circuit(DEFAULT_TRACK))
    actions = list(drive[:, :1].astype(np.float64))
    return Stepped(simulation.step, actions, lambda result: len(simulation.ended), simulation.reset)


def environment(env: RacerEnv, drive: Floats32) -> Stepped:
    actions = list(drive[:, 0].copy())
    return Stepped(env.step, actions, lambda result: result[2] or result[3], lambda: env.reset(seed=0))


def echo(connection: socket.socket, request_bytes: int, reply_bytes: int) -> Stepped:
    def exchange(request: bytes) -> None:
        connection.sendall(request)
        receive(connection, reply_bytes)

    return Stepped(exchange, [bytes(request_bytes)])


def json_sizes(drive: Floats32) -> tuple[int, int]:
    """Bytes of the request and the reply of a step somewhere on the way."""
    env = RacerEnv()
    env.reset(seed=0)
    for action in drive[:TYPICAL_TICK, 0]:
        result = env.step(action)
    request = orjson.dumps({"type": "step", "action": action.tolist()})
    names = ("observation", "reward", "terminated", "truncated", "info")
    reply = {"type": "step_result", **dict(zip(names, result, strict=True))}
    return len(request), len(orjson.dumps(reply, option=orjson.OPT_SERIALIZE_NUMPY))


def _print(figures: Figures) -> None:
    console = Console()
    table = Table(box=None, pad_edge=False, header_style="bold", title=figures.machine, title_justify="left")
    table.add_column(f"{figures.steps:,} steps each")
    for heading in ("steps/s", "car steps/s", "mean [µs]", "p50", "p95", "p99"):
        table.add_column(heading, justify="right")
    for name, speed in figures.speeds.items():
        times = (f"{value:.1f}" for value in (speed.mean_us, speed.p50_us, speed.p95_us, speed.p99_us))
        per_second = speed.steps_per_second
        table.add_row(name, f"{per_second:,.0f}", f"{speed.cars * per_second:,.0f}", *times)
    console.print(table)
    lines = [
        f"{name}: {ratio.value:.2f} ({ratio.goal}: {_verdict(ratio.reached)})" for name, ratio in figures.ratios.items()
    ]
    if figures.remark:
        lines.append(figures.remark)
    if figures.target is not None:
        lines.append(f"Target of {figures.target:,.0f} JSON steps/s: {_verdict(figures.target_reached)}")
    for line in lines:
        console.print(line, markup=False, highlight=False)


def _verdict(reached: bool) -> str:
    return "reached" if reached else "missed"
