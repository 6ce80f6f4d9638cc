"""`racer-viewer bench bridge`: the cost of a step over each kind of bridge, against raw TCP.

Other programs may slow the machine down: everything is stepped in turn, in short rounds, and the ratios are medians
over those rounds.
"""

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_env import RacerEnv
from racer_env.bridge.batch_format import encode_result, encode_step
from racer_env.bridge.client import RemoteBatch
from racer_env.bridge.interface import DEFAULT_TRACK
from racer_env.bridge.messages import ResetRequest, StepRequest, TrackReply, TrackRequest, encode
from racer_env.bridge.session import ServerLimits, Session
from racer_env.bridge.track_cache import TrackCache
from racer_env.bridge.ws_client import ClientConnection
from racer_env.engine import Driver, Simulation, circuits, load_circuit
from racer_env.errors import BridgeError, ContractError
from racer_viewer.bench.harness import (
    Goal,
    Summary,
    describe_machine,
    echo_process,
    median_ratio,
    print_report,
    receive,
    server_process,
    verdict,
)
from racer_viewer.warmup import prepare_engine

CARS = 64
"""Cars of the batch."""
ROUND_STEPS = 200
"""Steps of each kind per round."""
DRIVE_TICKS, TYPICAL_TICK = 3000, 100
"""Length of the recorded drive, and a tick at which the car is moving."""
NOISE = (0.1, 0.1, 0.05)
"""Standard deviation of the noise on steer, throttle and brake, so that no two cars drive the same."""

ENGINE, EMBEDDED = "bare engine", "embedded"
JSON, JSON_LIMIT = "WebSocket JSON", "raw TCP, as JSON"
BATCH, BATCH_LIMIT = f"WebSocket batch of {CARS}", "raw TCP, as batch"
"""Kinds of steps; raw TCP has messages of the same sizes."""
IN_TURN = (ENGINE, EMBEDDED, JSON, JSON_LIMIT, BATCH, BATCH_LIMIT)
MIN_JSON_TO_EMBEDDED, MAX_JSON_TO_RAW, MAX_BATCH_TO_JSON, MAX_EMBEDDED_TO_ENGINE = 20.0, 4.0, 2.0, 3.0
"""Goals for ratios of step times."""

Floats32 = NDArray[np.float32]
Nanoseconds = NDArray[np.int64]


@dataclass(frozen=True)
class StepCost:
    """Time of a step; a step of a batch moves `cars` cars."""

    cars: int
    steps_per_second: float
    mean_us: float
    p50_us: float
    p95_us: float
    p99_us: float


@dataclass(frozen=True)
class BridgeReport:
    """Results of the benchmark; `remark` says what was not measured and why."""

    machine: str
    bridge: str
    steps: int
    request_bytes: dict[str, int]
    reply_bytes: dict[str, int]
    speeds: dict[str, StepCost]
    ratios: dict[str, Goal]
    remark: str
    target: float | None
    target_reached: bool


def run(
    steps: int, warmup: int, target: float | None, url: str | None, token: str | None, uvloop: bool, as_json: bool
) -> int:
    """Measure and print; return 1 if JSON steps per second stay below the target."""
    if url is not None:
        ClientConnection(url, token).close()  # so that a wrong address is reported before the engine is compiled
    prepare_engine()
    with ExitStack() as stack:
        address = url or stack.enter_context(bridge_process(uvloop))
        report = measure(address, token if url else None, steps, warmup, target)
    print_report(report, _summary(report), as_json)
    return 0 if report.target_reached else 1


@contextmanager
def bridge_process(uvloop: bool) -> Iterator[str]:
    """Start a server whose circuits are built, and yield its address."""
    with server_process("bridge", "--port", "0", *(["--uvloop"] if uvloop else [])) as url:
        with closing(ClientConnection(url)) as connection:
            connection.request(TrackRequest(circuits()[-1].id), TrackReply, lambda reply: None)
        yield url


class Stepped:
    """Something to step with recorded actions.

    Parameters:
        over: whether a step's result says that the episode ended; then `reset` is called, which is not timed
        cars: cars that a step moves
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
        """Return the time of each of the next steps."""
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


def measure(url: str, token: str | None, steps: int, warmup: int, target: float | None) -> BridgeReport:
    """Measure everything in turn; an old server without batches is measured without them."""
    drive, remark = recorded_drive(), ""
    sizes = {JSON_LIMIT: json_sizes(drive)}
    stepped = {ENGINE: engine(drive), EMBEDDED: environment(RacerEnv(), drive)}
    with ExitStack() as stack:
        try:
            batch = stack.enter_context(closing(RemoteBatch(CARS, url, token)))
            stepped[BATCH] = Stepped(batch.step, list(drive), reset=batch.reset, cars=CARS)
            sizes[BATCH_LIMIT] = len(encode_step(drive[0])), len(encode_result(batch.reset()))
        except ContractError:
            raise
        except BridgeError as error:
            remark = f"No batch of {CARS}: {error}"
        remote = stack.enter_context(closing(RacerEnv(url, token=token)))
        stepped[JSON] = environment(remote, drive)
        for name, (request, reply) in sizes.items():
            stepped[name] = echo(stack.enter_context(echo_process(request, reply)), request, reply)
        times = in_turn({name: stepped[name] for name in IN_TURN if name in stepped}, steps, warmup)
    speeds = {name: step_cost(rounds, stepped[name].cars) for name, rounds in times.items()}
    return BridgeReport(
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
    """Return the times of all steps of each kind, by round."""
    for each in stepped.values():
        each.go(warmup)
    times: dict[str, list[Nanoseconds]] = {name: [] for name in stepped}
    for done in range(0, steps, ROUND_STEPS):
        for name, each in stepped.items():
            times[name].append(each.go(min(ROUND_STEPS, steps - done)))
    return times


def compared(times: dict[str, list[Nanoseconds]]) -> Iterator[tuple[str, Goal]]:
    """Yield the ratios of mean step times, with their names."""
    means = {name: [float(each.mean()) for each in rounds] for name, rounds in times.items()}
    for slower, faster, goal, limit in (
        (JSON, EMBEDDED, Goal.at_least, MIN_JSON_TO_EMBEDDED),
        (JSON, JSON_LIMIT, Goal.at_most, MAX_JSON_TO_RAW),
        (BATCH, JSON, Goal.at_most, MAX_BATCH_TO_JSON),
        (EMBEDDED, ENGINE, Goal.at_most, MAX_EMBEDDED_TO_ENGINE),
    ):
        if slower in means:
            yield f"{slower} / {faster}", goal(median_ratio(means, slower, faster), limit)


def step_cost(rounds: list[Nanoseconds], cars: int) -> StepCost:
    times = np.concatenate(rounds) / 1000.0
    mean = float(times.mean())
    return StepCost(cars, 1e6 / mean, mean, *(float(value) for value in np.percentile(times, (50, 95, 99))))


def recorded_drive() -> Floats32:
    """Return actions of drivers from the standing start, `(ticks, cars, 3)`."""
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
    """Return the sizes of the request and of the reply of a typical step [bytes]."""
    tracks = TrackCache()
    tracks.build(DEFAULT_TRACK)
    session = Session(tracks, ServerLimits())
    session.answer_text(encode(ResetRequest()))
    for action in drive[:TYPICAL_TICK, 0]:
        request = encode(StepRequest(tuple(action.tolist())))
        reply = session.answer_text(request)
    return len(request), len(reply)


def _summary(report: BridgeReport) -> Summary:
    rows = []
    for name, cost in report.speeds.items():
        times = (f"{value:.1f}" for value in (cost.mean_us, cost.p50_us, cost.p95_us, cost.p99_us))
        per_second = cost.steps_per_second
        rows.append([name, f"{per_second:,.0f}", f"{cost.cars * per_second:,.0f}", *times])
    lines = [f"{name}: {ratio.value:.2f} {ratio}" for name, ratio in report.ratios.items()]
    if report.remark:
        lines.append(report.remark)
    if report.target is not None:
        lines.append(f"Target of {report.target:,.0f} JSON steps/s: {verdict(report.target_reached)}")
    columns = (f"{report.steps:,} steps each", "steps/s", "car steps/s", "mean [µs]", "p50", "p95", "p99")
    return Summary(report.machine, columns, rows, lines)
