"""Helpers that hang, exit or misbehave: the client reports it, and the process is gone."""

import gc
import math
import os
import signal
import subprocess
import sys

import gymnasium
import numpy as np
import pytest

from racer_env.errors import ActionError, BridgeError, ContractError, RacerError
from racer_env.stdio import Expected, StdioClient, client, process
from tests.processes import is_gone, process_exists, wait_for
from tests.stdio.helpers import EXPECTED, HERE, collect_helpers, drive, has_helper_threads, hostile


def test_a_plain_helper_is_driven() -> None:
    with StdioClient(hostile(), EXPECTED) as helper:
        observation, info = helper.reset()
        assert (observation.dtype, observation.tolist(), info) == (np.float32, [0.0, 0.5, 1.0], {})
        assert helper.step(np.int64(1))[1:] == (1.0, False, False, {})
        assert not helper.description.takes_options
        with pytest.raises(BridgeError, match="takes no reset options"):
            helper.reset(options={"a": 1})
        helper.step(0)
    assert not process_exists(helper.pid)
    for use in (helper.reset, lambda: helper.step(0)):
        with pytest.raises(BridgeError, match="is closed: start another helper"):
            use()
    helper.close()


def test_a_silent_helper_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BridgeError, match=r"gave no reply within 0\.2 s and was ended; last lines on stderr: ready"):
        drive(hostile(on="step", how="hang", says="ready"), timeout=0.2)
    started = collect_helpers(monkeypatch)
    with pytest.raises(BridgeError, match=r"gave no reply within 0\.2 s"):
        StdioClient(hostile(on="describe", how="hang"), start_timeout=0.2)
    assert [process_exists(each.pid) for each in started] == [False]


def test_a_helper_that_ignores_sigterm_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "TERMINATE_TIMEOUT", 0.1)
    with pytest.raises(BridgeError, match="gave no reply"):
        drive(hostile(on="step", how="hang", ignores=True), timeout=0.2)
    monkeypatch.setattr(client, "CLOSE_TIMEOUT", 0.1)
    drive(hostile(on="close", how="hang", ignores=True))


def test_the_exit_of_a_helper_is_reported() -> None:
    with pytest.raises(BridgeError, match=r"exited: exit code 3; last lines on stderr: first words \| last words$"):
        drive(hostile(on="step", how="die"))
    with pytest.raises(BridgeError, match="cannot start no-such-program"):
        StdioClient(["no-such-program"])
    for command in ([], "python"):
        with pytest.raises(BridgeError, match="a command is a list"):
            StdioClient(command)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no process sessions")
def test_the_exit_of_a_helper_is_reported_though_another_process_keeps_its_pipes_open() -> None:
    with pytest.raises(BridgeError, match=r"exited: exit code 3; last lines on stderr: left behind: \d+$") as raised:
        StdioClient(hostile(on="describe", how="stray"), start_timeout=30.0)
    stray = int(str(raised.value).split()[-1])
    try:
        wait_for(lambda: not has_helper_threads(), "the threads end")
        assert process_exists(stray)
    finally:
        os.kill(stray, signal.SIGKILL)


def test_a_killed_helper_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    started = collect_helpers(monkeypatch)
    with StdioClient(hostile()) as helper:
        helper.reset()
        os.kill(helper.pid, signal.SIGTERM)
        wait_for(lambda: started[0].has_reply, "the end of its output")
        with pytest.raises(BridgeError, match="exited: "):
            helper.step(0)
    assert not process_exists(helper.pid)


def test_endless_output_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MAX_REPLY_SIZE", 1_000_000)
    with pytest.raises(ContractError, match="a line of at most 1000000 bytes expected, got a longer one"):
        drive(hostile(on="step", how="flood"))
    expected = "^obs: missing; the helper sent more lines than requested; last lines on stderr: ready$"
    with pytest.raises(ContractError, match=expected):
        drive(hostile(on="step", how="lines", says="ready"))


def test_an_unrequested_line_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ContractError, match=r"a JSON object expected, got b'Welcome|got one more: b'Welcome"):
        drive(hostile(first="Welcome"))
    started = collect_helpers(monkeypatch)
    with StdioClient(hostile(on="reset", how="twice")) as helper:
        helper.reset()
        wait_for(lambda: started[0].has_reply, "the second line")
        with pytest.raises(ContractError, match=r"one line expected for each request, got one more"):
            helper.step(0)
        assert not process_exists(helper.pid)


def test_a_helper_may_fill_its_stderr() -> None:
    with StdioClient(hostile(on="reset", how="stderr")) as helper:
        helper.reset()
        wait_for(lambda: helper.last_lines[-1:] == ("the last word",), "the last line of stderr", 60)
        assert len(helper.last_lines) <= process.MAX_STDERR_LINES
        assert max(map(len, helper.last_lines)) <= process.MAX_STDERR_LINE_SIZE


@pytest.mark.slow
def test_a_helper_that_reads_nothing_does_not_block() -> None:
    with StdioClient([sys.executable, "-I", "-S", "-c", DEAF], timeout=3.0) as helper:
        helper.reset()
        with pytest.raises(BridgeError, match="no reply"):
            helper.step(np.zeros(200_000))
    assert not process_exists(helper.pid)


DEAF = """
import sys, threading
for reply in ('"n_actions":null,"action_shape":[200000],"obs_shape":[],"obs_dtype":"float64"', '"obs":0.5'):
    sys.stdin.readline()
    print('{"ok":true,' + reply + '}', flush=True)
threading.Event().wait()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no process groups like these")
def test_child_processes_of_a_helper_end_with_it() -> None:
    with StdioClient(hostile(on="reset", how="child")) as helper:
        child = helper.reset()[1]["child"]
        assert process_exists(child)
    wait_for(lambda: is_gone(child), "the child ends")


def test_an_exception_ends_the_helper() -> None:
    helper = StdioClient(hostile())
    with pytest.raises(ZeroDivisionError), helper:
        _ = 1 / 0
    assert not process_exists(helper.pid)


def test_a_garbage_collected_client_leaves_no_process() -> None:
    helper = StdioClient(hostile())
    pid = helper.pid
    del helper
    gc.collect()
    assert not process_exists(pid)


INTERRUPTED = """
import sys
from racer_env.stdio import StdioClient
with StdioClient(sys.argv[1:]) as helper:
    print(helper.pid, flush=True)
    helper.reset()
    helper.step(0)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C cannot be sent to one process alone")
def test_ctrl_c_ends_the_helper() -> None:
    command = [sys.executable, "-c", INTERRUPTED, *hostile(on="step", how="hang")]
    with subprocess.Popen(command, stdout=-1, stderr=-1, cwd=HERE.parent.parent, text=True) as program:
        try:
            assert program.stdout is not None
            pid = int(program.stdout.readline())
            program.send_signal(signal.SIGINT)
            _, err = program.communicate(timeout=60)
        finally:
            program.kill()
    assert "KeyboardInterrupt" in err
    assert not process_exists(pid)


def test_invalid_actions_and_arguments_are_refused() -> None:
    with StdioClient(hostile(), EXPECTED) as helper:
        with pytest.raises(RacerError, match="step before reset"):
            helper.step(0)
        helper.reset()
        for wrong in (2, -1, 0.0, True, "0", None, [0], np.zeros(1), np.True_):
            with pytest.raises(ActionError, match="action: a whole number from 0 to 1 expected"):
                helper.step(wrong)
        for seed in (1.7, "1", [1], 10**5000):
            with pytest.raises(RacerError, match="seed must be a whole number, not"):
                helper.reset(seed=seed)
        assert helper.step(np.array(1)).reward == 1.0
    described = {"n_actions": None, "action_shape": [2], "action_low": [-1, None], "action_high": 1}
    with StdioClient(hostile(described=described)) as helper:
        helper.reset()
        for wrong in ([0], [0, 2], [-2, 0], [0, math.nan], [0, -math.inf], ["0", "0"], [True, 0], 0, None, [[0, 0]]):
            with pytest.raises(ActionError, match="action"):
                helper.step(wrong)
        assert helper.step(np.array([1.0, -1e30])).reward == 1.0
    for timeouts in ({"timeout": 0.0}, {"timeout": None}, {"timeout": "3"}, {"start_timeout": math.inf}):
        with pytest.raises(RacerError, match="timeout must be a number of seconds above 0"):
            StdioClient(hostile(), **timeouts)


def test_a_helper_continues_after_it_refuses_a_request() -> None:
    with StdioClient(hostile(on="step", change={"ok": False, "error": "ValueError: not\nnow"})) as helper:
        helper.reset()
        for _ in range(2):
            with pytest.raises(BridgeError, match="refused the request: ValueError: not now"):
                helper.step(1)
        helper.reset()
    assert not process_exists(helper.pid)


@pytest.mark.slow
def test_the_own_helper_is_checked_too() -> None:
    with StdioClient.hosting("CartPole-v1", expected=Expected((4,), np.float32, n_actions=2)) as helper:
        refusal = "refused the request: RequestError: seed: a whole number from 0 expected, got -1"
        with pytest.raises(BridgeError, match=refusal):
            helper.reset(-1)
        for seed in (1, np.uint64(2**64 - 1), 2**64, 2**100):
            first, _ = gymnasium.make("CartPole-v1").reset(seed=int(seed))
            assert helper.reset(seed)[0].tolist() == first.tolist()
        assert helper.step(1).reward == 1.0
    assert not process_exists(helper.pid)
    with pytest.raises(ContractError, match="n_actions: 3 expected, got 2"):
        StdioClient.hosting("CartPole-v1", expected=Expected(n_actions=3))


@pytest.mark.slow
def test_the_own_helper_reports_why_it_cannot_start() -> None:
    with pytest.raises(BridgeError, match=r"exit code 2; last lines on stderr: .*Did you mean: `CartPole`"):
        StdioClient.hosting("CartPol-v1")
