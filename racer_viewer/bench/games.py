"""`racer-viewer bench games`: response time of a games server, and how regularly its games tick meanwhile.

Every kind of request is sent in turn with raw TCP of the same sizes, in short slices, since other programs may slow the
machine down. A frame is drawn once per tick: faster requests get the same frame again.
"""

import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from racer_env.games import RacingGameClient
from racer_env.games.game import CAR_RACING, check_kind
from racer_viewer.bench.harness import Summary, describe_machine, echo_process, print_report, receive, server_process

GAMES = (1, 6)
SLICES = 8
"""Number of turns of each kind of request and of its baseline."""
MOVING = (0.05, 0.3, 0.0)
"""An action that moves the car, so that frames differ."""


@dataclass(frozen=True)
class RequestCost:
    """Time of one kind of request, and of raw TCP with the same sizes in the same seconds.

    Attributes:
        of_raw: median over the slices of the time divided by that of raw TCP
    """

    requests_per_second: float
    p50_us: float
    p99_us: float
    reply_bytes: int
    raw_p50_us: float
    raw_p99_us: float
    of_raw: float


@dataclass(frozen=True)
class Steadiness:
    """Tick rate and lateness of the least regular game.

    Attributes:
        quiet_late_p50, quiet_late_p99: delay of a tick after its due time, without requests [ms]
        asked_rate: tick rate while requests were answered as fast as possible, in the last seconds [ticks/s]
        skipped: ticks of all games that were skipped meanwhile
    """

    wanted: float
    quiet_rate: float
    quiet_late_p50: float
    quiet_late_p99: float
    asked_rate: float
    skipped: int


@dataclass(frozen=True)
class GamesReport:
    """Results by kind of request, and by number of games."""

    machine: str
    game: str
    seconds: float
    speeds: dict[str, RequestCost]
    steadiness: dict[str, Steadiness]


def run(seconds: float, as_json: bool) -> int:
    """Measure each kind of request for `seconds` and print; return the exit code."""
    check_kind(CAR_RACING)
    speeds: dict[str, RequestCost] = {}
    steadiness: dict[str, Steadiness] = {}
    for games in GAMES:
        with server_process("games", "--port", "0", "--num-games", str(games)) as address:
            _measure(int(address.rsplit(":", 1)[1]), games, seconds, speeds, steadiness)
    report = GamesReport(describe_machine(), CAR_RACING, seconds, speeds, steadiness)
    print_report(report, _summary(report), as_json)
    return 0


def _measure(
    port: int, games: int, seconds: float, speeds: dict[str, RequestCost], steadiness: dict[str, Steadiness]
) -> None:
    name = f"{games} game{'s' * (games > 1)}"
    with RacingGameClient(port=port) as seeing, RacingGameClient(port=port, frames=False) as blind:
        blind.states()
        for game_id in range(games):
            blind.set_action(MOVING, game_id)
        time.sleep(seconds)
        quiet = blind.stats()["games"]
        for with_frames, client in (("", blind), (" + frame", seeing)):
            speeds[f"{name}: one{with_frames}"] = _request_cost(client, {"type": "GET_STATE", "game_id": 0}, seconds)
            if games > 1:
                speeds[f"{name}: all{with_frames}"] = _request_cost(client, {"type": "GET_STATES"}, seconds)
        after = blind.stats()
    steadiness[name] = Steadiness(
        wanted=after["hz"],
        quiet_rate=min(each["rate"] for each in quiet),
        quiet_late_p50=max(each["late_ms"]["p50"] for each in quiet),
        quiet_late_p99=max(each["late_ms"]["p99"] for each in quiet),
        asked_rate=min(each["rate"] for each in after["games"]),
        skipped=_skipped(after["games"]) - _skipped(quiet),
    )


def _skipped(games: list[dict[str, Any]]) -> int:
    """Return the number of ticks skipped since the start of the games."""
    return sum(each["skipped"] for each in games)


def _request_cost(client: RacingGameClient, request: dict[str, Any], seconds: float) -> RequestCost:
    """Measure a request, as the client sends and checks it."""
    several = request["type"] == "GET_STATES"
    ask: Callable[[], object] = client.states if several else client.get_state
    request_bytes, reply_bytes = len(orjson.dumps(request)) + 1, _reply_bytes(client, several)
    with ExitStack() as stack:
        connection = stack.enter_context(echo_process(request_bytes, reply_bytes))

        def echo() -> None:
            connection.sendall(bytes(request_bytes))
            receive(connection, reply_bytes)

        pairs = [(_times(ask, seconds / SLICES), _times(echo, seconds / SLICES)) for _ in range(SLICES)]
    asked, raw = (np.concatenate(times) for times in zip(*pairs, strict=True))
    return RequestCost(
        len(asked) / float(asked.sum()) * 1e6,
        *_percentiles(asked),
        reply_bytes,
        *_percentiles(raw),
        statistics.median(float(one.mean() / other.mean()) for one, other in pairs),
    )


def _reply_bytes(client: RacingGameClient, several: bool) -> int:
    """Return the approximate size of a reply: telemetry with its envelope, and each frame in base64."""
    states = client.states() if several else [client.get_state()]
    frames = sum(0 if state.frame is None else state.frame.nbytes * 4 // 3 for state in states)
    return sum(len(orjson.dumps(state.telemetry)) + 200 for state in states) + frames


def _times(ask: Callable[[], object], seconds: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Send requests for `seconds`, at least one; return their times [µs]."""
    times: list[float] = []
    now = time.perf_counter_ns
    end = now() + round(seconds * 1e9)
    while not times or now() < end:
        begin = now()
        ask()
        times.append((now() - begin) / 1000.0)
    return np.array(times)


def _percentiles(times: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[float, float]:
    p50, p99 = np.percentile(times, (50, 99))
    return float(p50), float(p99)


def _summary(report: GamesReport) -> Summary:
    rows = [
        [
            name,
            f"{cost.requests_per_second:,.0f}",
            f"{cost.p50_us:,.0f}",
            f"{cost.p99_us:,.0f}",
            f"{cost.reply_bytes:,}",
            f"{cost.raw_p50_us:,.0f}",
            f"{cost.raw_p99_us:,.0f}",
            f"{cost.of_raw:,.0f}",
        ]
        for name, cost in report.speeds.items()
    ]
    lines = [
        f"{name}: {steady.quiet_rate:.1f} of {steady.wanted:g} ticks/s, late by {steady.quiet_late_p50:.2f} ms "
        f"(median), {steady.quiet_late_p99:.1f} ms (99 %); during these requests {steady.asked_rate:.1f} "
        f"ticks/s, {steady.skipped} skipped"
        for name, steady in report.steadiness.items()
    ]
    columns = (f"{report.game}, states", "req/s", "p50 [µs]", "p99", "bytes", "raw p50", "raw p99", "× raw")
    return Summary(report.machine, columns, rows, lines)
