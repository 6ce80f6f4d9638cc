"""`racer-viewer bench games`: how fast a games server answers, and how steadily its games run meanwhile.

Every kind of request is sent in turn with raw TCP of the same sizes, in short slices, since the machine may be busy and
its speed may drift. Nothing that answers over TCP on this machine can be faster than that. A frame is drawn once in a
tick: who asks more often gets the same again.
"""

import json
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import orjson
from rich.console import Console
from rich.table import Table

from racer_env.games import RacingGameClient
from racer_env.games.game import CAR_RACING, check_kind
from racer_viewer.bench.harness import describe_machine, echo_process, receive, served

GAMES = (1, 6)
SLICES = 8
"""Turns of each kind of request and of its baseline."""
MOVING = (0.05, 0.3, 0.0)
"""An action with which there is something to draw."""


@dataclass(frozen=True)
class Speed:
    """Of one kind of request: how it went, and how raw TCP of the same sizes went in the same seconds."""

    requests_per_second: float
    p50_us: float
    p99_us: float
    reply_bytes: int
    raw_p50_us: float
    raw_p99_us: float
    of_raw: float
    """How many times as long as raw TCP it takes: the median over the slices."""


@dataclass(frozen=True)
class Steadiness:
    """Of the least steady game. Lateness is how long after its due time a tick began [ms]."""

    wanted: float
    quiet_rate: float
    quiet_late_p50: float
    quiet_late_p99: float
    asked_rate: float
    """While requests were answered as fast as possible, in the last seconds of that."""
    skipped: int
    """In all of that time; all games together."""


@dataclass(frozen=True)
class Figures:
    machine: str
    game: str
    seconds: float
    speeds: dict[str, Speed]
    steadiness: dict[str, Steadiness]


def run(seconds: float, as_json: bool) -> int:
    """Measure each kind of request for so long, and print."""
    check_kind(CAR_RACING)
    speeds: dict[str, Speed] = {}
    steadiness: dict[str, Steadiness] = {}
    for games in GAMES:
        with served("games", "--port", "0", "--num-games", str(games)) as address:
            _measure(int(address.rsplit(":", 1)[1]), games, seconds, speeds, steadiness)
    figures = Figures(describe_machine(), CAR_RACING, seconds, speeds, steadiness)
    if as_json:
        print(json.dumps(asdict(figures), indent=2))
    else:
        _print(figures)
    return 0


def _measure(
    port: int, games: int, seconds: float, speeds: dict[str, Speed], steadiness: dict[str, Steadiness]
) -> None:
    name = f"{games} game{'s' * (games > 1)}"
    with RacingGameClient(port=port) as seeing, RacingGameClient(port=port, frames=False) as blind:
        blind.states()
        for game_id in range(games):
            blind.set_action(MOVING, game_id)
        time.sleep(seconds)
        quiet = blind.stats()["games"]
        for with_frames, client in (("", blind), (" + frame", seeing)):
            speeds[f"{name}: one{with_frames}"] = _speed(client, {"type": "GET_STATE", "game_id": 0}, seconds)
            if games > 1:
                speeds[f"{name}: all{with_frames}"] = _speed(client, {"type": "GET_STATES"}, seconds)
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
    """Ticks, since the start of the games."""
    return sum(each["skipped"] for each in games)


def _speed(client: RacingGameClient, request: dict[str, Any], seconds: float) -> Speed:
    """Of a request, as the client itself asks and checks it."""
    several = request["type"] == "GET_STATES"
    ask: Callable[[], object] = client.states if several else client.get_state
    request_bytes, reply_bytes = len(orjson.dumps(request)) + 1, _reply_bytes(client, several)
    with ExitStack() as open_things:
        connection = open_things.enter_context(echo_process(request_bytes, reply_bytes))

        def echo() -> None:
            connection.sendall(bytes(request_bytes))
            receive(connection, reply_bytes)

        pairs = [(_times(ask, seconds / SLICES), _times(echo, seconds / SLICES)) for _ in range(SLICES)]
    asked, raw = (np.concatenate(times) for times in zip(*pairs, strict=True))
    return Speed(
        len(asked) / float(asked.sum()) * 1e6,
        *_percentiles(asked),
        reply_bytes,
        *_percentiles(raw),
        statistics.median(float(one.mean() / other.mean()) for one, other in pairs),
    )


def _reply_bytes(client: RacingGameClient, several: bool) -> int:
    """About the size of a reply: telemetry and what is around it, and each frame in base64."""
    states = client.states() if several else [client.get_state()]
    frames = sum(0 if state.frame is None else state.frame.nbytes * 4 // 3 for state in states)
    return sum(len(orjson.dumps(state.telemetry)) + 200 for state in states) + frames


def _times(ask: Callable[[], object], seconds: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """How long each request takes, for so long, at least one [µs]."""
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


def _print(figures: Figures) -> None:
    console = Console()
    table = Table(
        box=None,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        header_style="bold",
        title=figures.machine,
        title_justify="left",
    )
    table.add_column(f"{figures.game}, states", no_wrap=True)
    for heading in ("asked/s", "p50 [µs]", "p99", "bytes", "raw p50", "raw p99", "× raw"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, speed in figures.speeds.items():
        table.add_row(
            name,
            f"{speed.requests_per_second:,.0f}",
            f"{speed.p50_us:,.0f}",
            f"{speed.p99_us:,.0f}",
            f"{speed.reply_bytes:,}",
            f"{speed.raw_p50_us:,.0f}",
            f"{speed.raw_p99_us:,.0f}",
            f"{speed.of_raw:,.0f}",
        )
    console.print(table)
    for name, steady in figures.steadiness.items():
        line = (
            f"{name}: {steady.quiet_rate:.1f} of {steady.wanted:g} ticks/s, late by {steady.quiet_late_p50:.2f} ms "
            f"(median), {steady.quiet_late_p99:.1f} ms (99 %); while all of this was asked {steady.asked_rate:.1f} "
            f"ticks/s, {steady.skipped} skipped"
        )
        console.print(line, markup=False, highlight=False, soft_wrap=True)
