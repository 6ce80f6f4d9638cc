"""The bridge benchmark, for real: real servers, real sockets, the exit codes that scripts rely on."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bridge.conftest import RunningBridge, running_bridge
from tests.bridge.old_server import old_server
from tests.processes import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timing]

ROWS = {
    "bare engine",
    "embedded",
    "WebSocket JSON",
    "WebSocket batch of 64",
    "raw TCP, as JSON",
    "raw TCP, as batch",
}
COMMAND = [sys.executable, "-m", "racer_viewer", "bench", "bridge"]


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "--steps", "300", "--warmup", "20", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, encoding="utf-8")


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBridge]:
    with running_bridge(tmp_path_factory.mktemp("bridge"), "--token", "secret", "--max-cars", "64") as running:
        yield running


@pytest.fixture(scope="module")
def figures() -> dict[str, Any]:
    result = bench("--json")
    assert result.returncode == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_every_kind_of_step_is_measured(figures: dict[str, Any]) -> None:
    assert set(figures["speeds"]) == ROWS
    for speed in figures["speeds"].values():
        assert speed["steps_per_second"] == pytest.approx(1e6 / speed["mean_us"])
        assert 0 < speed["p50_us"] <= speed["p95_us"] <= speed["p99_us"]
    assert figures["speeds"]["WebSocket batch of 64"]["cars"] == 64
    assert figures["steps"] == 300
    assert figures["remark"] == ""
    assert figures["target"] is None
    assert figures["target_reached"] is True


def test_raw_tcp_has_the_sizes_of_the_messages(figures: dict[str, Any]) -> None:
    assert 40 < figures["request_bytes"]["raw TCP, as JSON"] < 120
    assert 400 < figures["reply_bytes"]["raw TCP, as JSON"] < 600
    assert figures["request_bytes"]["raw TCP, as batch"] == 16 + 64 * 24
    assert figures["reply_bytes"]["raw TCP, as batch"] == 16 + 64 * (8 + 48 + 8 + 40 + 56 + 3)


def test_the_ratios_hang_together_and_generous_ones_hold(figures: dict[str, Any]) -> None:
    ratios = {name: ratio["value"] for name, ratio in figures["ratios"].items()}
    assert ratios["WebSocket JSON / embedded"] > 5.0
    assert 0.5 < ratios["WebSocket JSON / raw TCP, as JSON"] < 20.0
    assert ratios["WebSocket batch of 64 / WebSocket JSON"] < 6.0
    assert 1.0 < ratios["embedded / bare engine"] < 6.0
    for ratio in figures["ratios"].values():
        bound, limit = ratio["goal"].rsplit(" ", 1)
        right = ratio["value"] >= float(limit) if bound == "at least" else ratio["value"] <= float(limit)
        assert ratio["reached"] == right


@pytest.mark.parametrize(("target", "code", "verdict"), [("1", 0, "reached"), ("1e9", 1, "missed")])
def test_a_running_bridge_is_held_against_a_target(bridge: RunningBridge, target: str, code: int, verdict: str) -> None:
    result = bench("--url", bridge.url, "--token", "secret", "--target", target)
    assert result.returncode == code, result.stderr
    assert all(row in result.stdout for row in ROWS)
    assert f"JSON steps/s: {verdict}" in result.stdout.splitlines()[-1]
    assert bridge.process.poll() is None


def test_without_a_server_or_its_token_it_is_one_line_and_code_2(bridge: RunningBridge) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for arguments, message in (
        (("--url", f"ws://127.0.0.1:{port}"), "is the bridge running?"),
        (("--url", bridge.url, "--token", "wrong"), "requires a token"),
    ):
        result = bench(*arguments)
        assert result.returncode == 2
        *warnings, problem = result.stderr.splitlines()
        assert message in problem
        assert len(warnings) == arguments.count("--token")  # others can see it in the list of processes
        assert result.stdout == ""


def test_an_existing_bridge_is_measured_without_the_batch_it_does_not_know() -> None:
    with old_server() as server:
        result = bench("--url", server.url, "--steps", "20", "--warmup", "2", "--json")
    assert result.returncode == 0, result.stderr
    figures = json.loads(result.stdout)
    assert set(figures["speeds"]) == ROWS - {"WebSocket batch of 64", "raw TCP, as batch"}
    assert set(figures["ratios"]) == {
        "WebSocket JSON / embedded",
        "WebSocket JSON / raw TCP, as JSON",
        "embedded / bare engine",
    }
    assert "does not support 'batch'" in figures["remark"]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes as Linux lists them")
def test_ctrl_c_leaves_no_process_behind() -> None:
    process = subprocess.Popen(
        [*COMMAND, "--steps", "100000000"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
    )
    try:
        wait_for(lambda: len(children_of(process.pid)) == 3, "the bridge and two echoes run", 120)
        children = children_of(process.pid)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    finally:
        process.kill()
        process.wait()
    wait_for(lambda: not any(Path(f"/proc/{child}").exists() for child in children), "all of them have ended")


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
