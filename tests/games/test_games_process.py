"""Start and end of the server process and its workers."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from racer_env.errors import BridgeError
from racer_env.games import RacingGameClient
from tests.games.conftest import StartGames
from tests.games.plain_player import PlainPlayer, plain_player
from tests.processes import wait_for

STOP_TIMEOUT = 10.0
on_linux = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes as Linux lists them")

ATTEMPTS = """
import contextlib, io, json, os, sys
from racer_viewer.cli import main

def attempt(arguments):
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        try:
            code = main(["games", *arguments])
        except SystemExit as end:
            code = end.code
    return code, errors.getvalue()

found = [attempt(arguments) for arguments in json.loads(sys.argv[1])]
sys.modules["Box2D"] = None  # as where it is not installed
found.append(attempt([]))
sys.path.insert(0, sys.argv[2])  # with one that does not load
del sys.modules["Box2D"]
found.append(attempt([]))
print(json.dumps(found))
"""


def workers_of(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [int(child) for child in (task / "children").read_text().split()]
    return found


def is_running(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_failed_start_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("Box2D")
    (tmp_path / "Box2D.py").write_text("import no_such_part_of_it")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        cases = {
            ("--port", str(port)): rf"port {port} on 127.0.0.1 is taken; (\d+) is free: --port \1",
            ("--host", "no.such.host.invalid"): "cannot listen on no.such.host.invalid:5555",
            ("--seed", "-1"): "--seed is a whole number from 0",
            ("--num-games", "1000"): "--num-games is at most 256",
            ("--max-steps", "9" * 23): "--max-steps is at most 2147483647",
            ("--render-all",): "--render-all needs a window: add --render human",
            ("--hz", "100000"): "--hz is at most 1000",
            ("--render", "human"): r"no display to open a window on \(.*\): use --render rgb_array .*, or none",
        }
        if sys.platform != "linux":
            del cases["--render", "human"]
        hidden = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
        environment = {name: value for name, value in os.environ.items() if name not in hidden}
        run = subprocess.run(
            [sys.executable, "-c", ATTEMPTS, json.dumps(list(cases)), str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=120,
            env=environment,
        )
    assert run.returncode == 0, run.stderr
    *results, without_box2d, broken_box2d = json.loads(run.stdout)
    for (code, errors), reason in zip(results, cases.values(), strict=True):
        assert code == 2
        *warnings, line = errors.splitlines()
        assert re.search(reason, line), errors
        assert all("warning: " in warning for warning in warnings)
    assert without_box2d[0] == 2
    assert 'needs Box2D, which is not installed: pip install "racer-viewer[games]", or --game Racer' in without_box2d[1]
    assert without_box2d[1].count("\n") == 1
    assert broken_box2d[0] == 2
    assert re.search(r"Box2D, which is installed but cannot be imported \(.*no_such_part_of_it", broken_box2d[1])
    assert broken_box2d[1].count("\n") == 1
    assert "this protocol has no password" in results[1][1]


@on_linux
@pytest.mark.slow
def test_a_worker_that_dies_is_replaced_and_its_games_restart(start_games: StartGames) -> None:
    with start_games("--num-games", "2", "--render", "none") as games, plain_player(games.port) as player:
        with plain_player(games.port) as other:
            for each in (player, other):
                each.state(0)
                each.state(1)
            player.act(0, gas=0.7)
            before = player.state(0)["episode"]
            victim = workers_of(games.process.pid)[0]
            os.kill(victim, signal.SIGKILL)
            wait_for(lambda: not is_running(victim), "the worker has exited")
            for each in (player, other):
                losses = _losses(each)
                assert len(set(losses)) == len(losses), "each loss is reported once; one worker may run both games"
                for line in losses:
                    assert re.search(r"game \d was lost and starts again: worker process \d ended \(signal 9\)", line)
                each.state(0)
                each.state(1)
        wait_for(lambda: player.state(0)["telemetry"]["speed"] > 3.0, "the last action stays in effect", 60)
        assert player.state(0)["episode"] >= before
        children = workers_of(games.process.pid)
        assert victim not in children
        assert games.end() == 0
        wait_for(lambda: not any(map(is_running, children)), "all workers have ended")
        assert "ended (signal 9); restarting its games" in games.log.read_text()


def _losses(player: PlainPlayer) -> list[str]:
    """Query both games until at least one is reported as lost; return the errors."""
    errors: list[str] = []

    def ask() -> bool:
        replies = [player.ask({"type": "GET_STATE", "game_id": game_id}) for game_id in (0, 1)]
        errors.extend(reply["message"] for reply in replies if reply["type"] == "ERROR")
        return bool(errors)

    wait_for(ask, "an ERROR")
    return errors


@on_linux
@pytest.mark.parametrize("signal_number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_server_that_gets_a_signal_informs_its_clients_and_leaves_no_process(
    start_games: StartGames, signal_number: signal.Signals
) -> None:
    with start_games("--num-games", "2") as games:
        client, silent = RacingGameClient(port=games.port), RacingGameClient(port=games.port)
        client.states()
        children = workers_of(games.process.pid)
        assert len(children) >= 1
        begin = time.monotonic()
        for _ in range(3):
            games.process.send_signal(signal_number)
        assert games.process.wait(20) == 0
        assert time.monotonic() - begin < STOP_TIMEOUT
        for each in (client, silent):
            with pytest.raises(BridgeError, match=r"the server is shutting down|has closed the connection"):
                each.get_state(0)
            each.close()
        wait_for(lambda: not any(map(is_running, children)), "all workers have ended")
        log = games.log.read_text()
        assert re.search(r"2 games at [\d.]+.* of 50 ticks/s; ticks are late by .* skipped", log)
        assert "Traceback" not in log


@on_linux
@pytest.mark.slow
def test_workers_exit_when_the_server_is_killed(start_games: StartGames) -> None:
    with start_games("--num-games", "2") as games, plain_player(games.port) as player:
        player.state(0)
        children = workers_of(games.process.pid)
        games.process.kill()
        games.process.wait()
        wait_for(lambda: not any(map(is_running, children)), "all workers have ended")
