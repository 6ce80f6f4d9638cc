"""The games benchmark, for real: real servers, real sockets."""

import json
import signal
import socket
import subprocess
import sys

import pytest

pytestmark = pytest.mark.timing

ROWS = {
    "1 game: one",
    "1 game: one + frame",
    "6 games: one",
    "6 games: all",
    "6 games: one + frame",
    "6 games: all + frame",
}


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "racer_viewer", "bench", "games", "--seconds", "0.4", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, encoding="utf-8")


@pytest.mark.slow
def test_every_kind_of_request_is_measured_against_raw_tcp() -> None:
    pytest.importorskip("Box2D")
    result = bench("--json")
    assert result.returncode == 0, result.stderr
    figures = json.loads(result.stdout)
    assert set(figures["speeds"]) == ROWS
    for speed in figures["speeds"].values():
        assert speed["requests_per_second"] > 1.0
        assert 0 < speed["p50_us"] <= speed["p99_us"]
        assert 0 < speed["raw_p50_us"] <= speed["raw_p99_us"]
        assert speed["of_raw"] > 1.0
    sizes = {name: speed["reply_bytes"] for name, speed in figures["speeds"].items()}
    assert 300 < sizes["1 game: one"] < 1500
    assert 36_864 < sizes["1 game: one + frame"] < 40_000
    assert sizes["6 games: all + frame"] > 6 * 36_864
    for steady in figures["steadiness"].values():
        assert steady["wanted"] == 50.0
        assert 10.0 < steady["quiet_rate"] < 75.0


@pytest.mark.slow
def test_a_table_for_people() -> None:
    pytest.importorskip("Box2D")
    result = bench()
    assert result.returncode == 0, result.stderr
    assert all(row in result.stdout for row in ROWS)
    assert "of 50 ticks/s" in result.stdout
    assert "…" not in result.stdout.split("\n", 2)[2], "nothing is cut at 80 columns"


SERVED = """
import time
from racer_viewer.bench.harness import server_process

with server_process("games", "--game", "Racer-v0", "--render", "none", "--port", "0") as address:
    print(address, flush=True)
    time.sleep(120)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to catch")
def test_sigterm_ends_a_benchmark_and_its_server() -> None:
    with subprocess.Popen([sys.executable, "-c", SERVED], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        host, port = process.stdout.readline().strip().rsplit(":", 1)
        socket.create_connection((host, int(port)), 10).close()
        process.terminate()
        assert process.wait(30) == 128 + signal.SIGTERM
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), 10).close()
