"""The host process answers every line and writes nothing but replies to stdout."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from racer_env import box2d
from racer_env.errors import RacerError
from racer_env.stdio import host
from racer_env.stdio.host import MAX_REQUEST_SIZE
from tests.stdio import odd_envs
from tests.stdio.helpers import HOST, ODD_ENVIRONMENT, HostProcess, hosting

DESCRIBED = {"n_actions": 2, "obs_shape": [4], "obs_dtype": "float32"}


@pytest.fixture(scope="module")
def cartpole() -> Iterator[HostProcess]:
    """Start a host that the tests share; none of them ends it."""
    with hosting("CartPole-v1") as host:
        yield host
        code, out, err = host.finish()
        assert (code, out) == (0, b"")
        assert "Traceback" not in err


def test_a_plain_client_gets_the_plain_fields(cartpole: HostProcess) -> None:
    described = cartpole.ask(cmd="describe")
    assert {key: described[key] for key in DESCRIBED} == DESCRIBED
    assert described["obs_low"] == [pytest.approx(-4.8), None, pytest.approx(-0.4189, abs=1e-4), None]
    here = gymnasium.make("CartPole-v1")
    first, _ = here.reset(seed=7)
    assert cartpole.ask(cmd="reset", seed=7) == {"ok": True, "obs": first.tolist(), "info": {}}
    for action in (0, 1, 1):
        reply = cartpole.ask(cmd="step", action=action)
        assert list(reply) == ["ok", "obs", "reward", "terminated", "truncated", "info"]
        assert reply["obs"] == here.step(action)[0].tolist()
        assert (reply["reward"], reply["terminated"], reply["truncated"]) == (1.0, False, False)


WRONG = [
    (b"{", "JSONDecodeError: "),
    (b"\xff\xfe", "JSONDecodeError: "),
    (b'{"cmd":"step","action":NaN}', "JSONDecodeError: "),
    (b"[" * 100_000, "JSONDecodeError: "),
    (b"[1]", "RequestError: a request is an object"),
    (b"null", "RequestError: a request is an object"),
    (b"{}", "RequestError: cmd: one of describe, reset, step, close expected, got None"),
    (b'{"cmd":"jump"}', "RequestError: cmd: one of describe, reset, step, close expected, got 'jump'"),
    (b'{"cmd":["step"]}', "RequestError: cmd"),
    (b'{"cmd":"reset","seed":-1}', "RequestError: seed: a whole number from 0 expected, got -1"),
    (b'{"cmd":"reset","seed":1.5}', "RequestError: seed"),
    (b'{"cmd":"reset","seed":-1.0}', "RequestError: seed: a whole number from 0 expected, got -1"),
    (b'{"cmd":"reset","seed":[1]}', "RequestError: seed"),
    (b'{"cmd":"reset","options":[]}', "RequestError: options: an object"),
    (b'{"cmd":"step"}', "ActionError: action: missing"),
    (b'{"cmd":"step","action":2}', "ActionError: action: a whole number from 0 to 1 expected, got 2"),
    (b'{"cmd":"step","action":-1}', "ActionError: action"),
    (b'{"cmd":"step","action":2.0}', "ActionError: action: a whole number from 0 to 1 expected, got 2"),
    (b'{"cmd":"step","action":0.7}', "ActionError: action: a whole number from 0 to 1 expected, got 0.7"),
    (b'{"cmd":"step","action":1e300}', "ActionError: action"),
    (b'{"cmd":"step","action":"right"}', "ActionError: action"),
    (b'{"cmd":"step","action":[1]}', "ActionError: action"),
    (b'{"cmd":"step","action":null}', "ActionError: action"),
]


@pytest.mark.parametrize(("line", "named"), WRONG)
def test_an_invalid_request_gets_an_error(cartpole: HostProcess, line: bytes, named: str) -> None:
    cartpole.ask(cmd="reset")
    cartpole.send(line + b"\n")
    reply = cartpole.receive()
    assert reply["ok"] is False
    assert reply["error"].startswith(named)
    assert len(reply["error"]) < 300
    assert cartpole.ask(cmd="step", action=0)["ok"]


@pytest.mark.parametrize("written", ["1", "1.0", "1e0", "true", '"1"'])
def test_whole_numbers_are_accepted_in_every_form_that_existing_helpers_accept(
    cartpole: HostProcess, written: str
) -> None:
    here = gymnasium.make("CartPole-v1")
    first, _ = here.reset(seed=1)
    cartpole.send(b'{"cmd":"reset","seed":%s}\n' % written.encode())
    assert cartpole.receive()["obs"] == first.tolist()
    cartpole.send(b'{"cmd":"step","action":%s}\n' % written.encode())
    assert cartpole.receive()["obs"] == here.step(1)[0].tolist()


@pytest.mark.parametrize("seed", [2**32, 2**53 + 1, 2**63, 2**64 - 1, 2**64, 2**64 + 1, 2**100])
def test_large_seeds_are_exact(cartpole: HostProcess, seed: int) -> None:
    first, _ = gymnasium.make("CartPole-v1").reset(seed=seed)
    assert cartpole.ask(cmd="reset", seed=seed)["obs"] == first.tolist()


def test_a_line_without_end_is_one_mistake(cartpole: HostProcess) -> None:
    for length in (MAX_REQUEST_SIZE, 3 * MAX_REQUEST_SIZE + 17):
        cartpole.send(b"x" * length + b'{"cmd":"describe"}\n')
        assert cartpole.receive()["error"].startswith("LineTooLongError: a request has at most 1048576 bytes")
    padded = b'{"cmd":"describe"}' + b" " * (MAX_REQUEST_SIZE - 19) + b"\n"
    cartpole.send(padded)
    assert cartpole.receive()["ok"]


def test_blank_lines_and_windows_line_ends_are_accepted(cartpole: HostProcess) -> None:
    cartpole.send(b'\n \r\n{"cmd":"describe"}\r\n')
    assert cartpole.receive()["ok"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
REQUESTS = st.builds(
    lambda command, fields: json.dumps({**fields, "cmd": command}).encode(),
    st.sampled_from(["describe", "reset", "step"]) | VALUES,
    st.fixed_dictionaries({}, optional={"action": VALUES, "seed": VALUES, "options": VALUES}),
)
LINES = st.binary(max_size=200).map(lambda raw: raw.replace(b"\n", b"")) | REQUESTS


@given(st.lists(LINES, min_size=1, max_size=10))
@settings(max_examples=60, deadline=None)
def test_each_line_gets_one_reply(cartpole: HostProcess, requests: list[bytes]) -> None:
    sent = [line for line in requests if line.strip(b" \t\r\v\f") and b'"close"' not in line]
    cartpole.send(b"".join(line + b"\n" for line in sent))
    for _ in sent:
        cartpole.receive()
    described = cartpole.ask(cmd="describe")
    assert described["ok"]
    assert described["n_actions"] == 2


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[HostProcess]:
    closed_file = json.dumps({"closed_file": str(tmp_path / "closed_file")})
    with hosting("odd_envs:Odd-v0", "--make-kwargs", closed_file) as host:
        yield host


def test_output_and_exceptions_of_an_environment_do_not_disturb_the_protocol(odd: HostProcess, tmp_path: Path) -> None:
    assert odd.ask(cmd="step", action=0) == {
        "ok": False,
        "error": "ResetNeeded: step before reset: reset the environment first",
    }
    first = odd.ask(cmd="reset", seed=1, options={"a": 1})
    assert first["obs"] == [0.1, 1e300]
    shown = {"number": 0.5, "array": [0, 1, 2], "nested": {"a": [1, None]}}
    assert first["info"] == {**shown, "options": {"a": 1}}
    for oddity in range(5):  # four ways of printing, and reading stdin
        assert odd.ask(cmd="step", action=oddity) == {
            "ok": True, "obs": [0.1, 1 / 3], "reward": 0.5, "terminated": oddity == 0, "truncated": False,
            "info": shown,
        }  # fmt: skip
    errors = [odd.ask(cmd="step", action=oddity)["error"] for oddity in range(5, 10)]
    assert errors == [
        "KeyError: 'no\\nsuch \\udcff thing'",
        "SystemExit: enough",
        "ContractError: observation[1]: a finite number expected, got nan",
        "ContractError: observation: shape (2,) expected, got (3,)",
        "ContractError: reward: a finite number expected, got inf",
    ]
    assert odd.ask(cmd="step", action=10)["obs"] == [0.25, 5.0]
    assert odd.ask(cmd="step", action=11)["error"].startswith("ActionError: action: a whole number from 0 to 10")
    assert odd.ask(cmd="close") == {"ok": True}
    code, out, err = odd.finish()
    assert (code, out) == (0, b"")
    for word in ("made", '{"ok":true}', '{"ok":false}', "from a child", "closed", "KeyError", "fails at that"):
        assert word in err
    assert "from C" in err or sys.platform == "win32"
    assert (tmp_path / "closed_file").read_text() == "closed"


@pytest.mark.parametrize(
    "how", ["end of input", "terminate", *(pytest.param(how, marks=pytest.mark.slow) for how in ("interrupt", "deaf"))]
)
def test_the_environment_is_closed_however_the_process_ends(odd: HostProcess, tmp_path: Path, how: str) -> None:
    if sys.platform == "win32" and how in ("interrupt", "terminate"):
        pytest.skip("Windows has no such signals")
    assert odd.ask(cmd="reset")["ok"]
    if how == "end of input":
        code, out, _ = odd.finish(b'{"cmd":"describe"}')  # without a line end
        assert code == 0
        assert json.loads(out)["ok"]
    elif how == "deaf":
        assert odd.process.stdout is not None
        odd.process.stdout.close()
        odd.send(b'{"cmd":"describe"}\n' * 3)
        assert odd.process.wait(60) == 0
    else:
        odd.process.send_signal(signal.SIGINT if how == "interrupt" else signal.SIGTERM)
        assert odd.process.wait(60) == 130
    assert (tmp_path / "closed_file").read_text() == "closed"
    if how != "end of input":
        assert odd.process.stderr is not None
        err = odd.process.stderr.read().decode()
        assert "KeyboardInterrupt" not in err
        assert "BrokenPipe" not in err


WRONG_STARTS = [
    (["CartPol-v1"], "cannot make 'CartPol-v1': Environment `CartPol` doesn't exist. Did you mean: `CartPole`?"),
    (["CartPole-v1", "--make-kwargs", "{a"], "--make-kwargs must be a JSON object: "),
    (["CartPole-v1", "--make-kwargs", "[1]"], "--make-kwargs must be a JSON object, such as"),
    (["CartPole-v1", "--make-kwargs", '{"a":1}'], "cannot make 'CartPole-v1': TypeError: "),
    (["no_such_module:X-v0"], "cannot make 'no_such_module:X-v0': ModuleNotFoundError: No module named"),
    (["odd_envs:NeedsBox2D-v0"], "odd_envs:NeedsBox2D-v0 needs Box2D, which is not installed: pip install "),
    (["odd_envs:Dict-v0"], "observations of a Dict space cannot be sent: register the environment with gymnasium."),
]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [WRONG_STARTS[0], WRONG_STARTS[1], *(pytest.param(*start, marks=pytest.mark.slow) for start in WRONG_STARTS[2:])],
)
def test_a_failed_start_is_one_line_and_exit_code_2(arguments: list[str], expected: str) -> None:
    with hosting(*arguments) as host:
        code, out, err = host.finish()
    assert (code, out) == (2, b"")
    assert err.startswith(f"racer_env.stdio: {expected}")
    assert err.count("\n") == 1


def test_the_advice_about_box2d_is_correct(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"{odd_envs.__name__}:NeedsBox2D-v0"
    for options, advice in (
        ({}, 'needs Box2D, which is not installed: pip install "racer-viewer\\[games]"$'),
        ({"cause": "libm.so: no\nsuch file"}, r"imported \(ImportError: libm.so: no such file\): reinstall it$"),
        ({"needs": "pygame"}, "cannot make .*: pygame is not installed"),
    ):
        with pytest.raises(RacerError, match=advice):
            host.make_env(name, options)
    monkeypatch.setattr(box2d, "FIRST_UNSUPPORTED_PYTHON", sys.version_info[:2])
    with pytest.raises(RacerError, match=rf"for Python below 3\.{sys.version_info[1]} only: pip .* there$"):
        host.make_env(name, {})


def test_atari_environments_are_registered_by_their_package(tmp_path: Path) -> None:
    package = tmp_path / "ale_py.py"
    package.write_text(
        "import gymnasium\nfrom gymnasium.envs.classic_control import CartPoleEnv\n"
        "gymnasium.register('ALE/Toy-v5', entry_point=CartPoleEnv)\n"
    )
    for content, code, expected in (
        (package.read_text(), 0, b'{"ok":true,"n_actions":2,'),
        ("import ale_py.missing", 2, b"racer_env.stdio: cannot make 'ALE/Toy-v5': ModuleNotFoundError: "),
        ("raise ModuleNotFoundError(name='ale_py')", 2, b"racer_env.stdio: ALE/Toy-v5 needs ale-py, which is not inst"),
    ):
        package.write_text(content)
        run = subprocess.run(
            [*HOST, "--env-id", "ALE/Toy-v5"],
            input=b'{"cmd":"describe"}\n',
            capture_output=True,
            env=ODD_ENVIRONMENT | {"PYTHONPATH": os.pathsep.join((str(tmp_path), ODD_ENVIRONMENT["PYTHONPATH"]))},
            timeout=120,
        )
        assert run.returncode == code
        assert (run.stdout + run.stderr).startswith(expected)


@pytest.mark.slow
def test_a_host_without_stdin_reports_it() -> None:
    if sys.platform == "win32":
        pytest.skip("a process cannot be started like this on Windows")
    run = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *HOST, "--env-id", "CartPole-v1"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 2
    assert "stdin and stdout must be open" in run.stderr


@pytest.mark.slow
def test_array_actions_and_images_are_transferred() -> None:
    cases: dict[str, tuple[Any, list[Any]]] = {
        "choices": ([2, 13], [[3, 10], [0, 9], [0.5, 10], [True, 10], [0], 1]),
        "switches": ([[0, 1], [1, 0]], [[[0, 1], [1, 2]], [[0, 1], [1]], [0, 1, 1, 0]]),
        "box": ([0.5, 1e30], [[2, 0], [0, 1e39], [[0, 0]], ["0", 0], [None, 0], {"a": 1}, "ab"]),
    }
    for space, (right, wrong) in cases.items():
        with hosting("odd_envs:Arrays-v0", "--make-kwargs", json.dumps({"space": space})) as host:
            described = host.ask(cmd="describe")
            assert described["n_actions"] is None
            assert np.shape(described["action_low"]) == np.shape(right) == tuple(described["action_shape"])
            host.ask(cmd="reset")
            reply = host.ask(cmd="step", action=right)
            picture = np.arange(60).reshape(3, 5, 4).T.tolist()
            assert reply["obs"] == (picture if space == "box" else right)
            for action in wrong:
                assert host.ask(cmd="step", action=action)["error"].startswith("ActionError: action")
            assert described["action_high"] == {
                "choices": [2, 13], "switches": [[1, 1], [1, 1]], "box": [1.0, None]
            }[space]  # fmt: skip


@pytest.mark.slow
def test_stderr_may_be_closed() -> None:
    if sys.platform == "win32":
        pytest.skip("a process cannot be started like this on Windows")
    run = subprocess.run(
        ["sh", "-c", 'exec "$@" 2>&-', "sh", *HOST, "--env-id", "odd_envs:Odd-v0"],
        input=b'{"cmd":"reset"}\n{"cmd":"step","action":1}\n{"cmd":"step","action":5}\n',
        capture_output=True,
        env=ODD_ENVIRONMENT,
        timeout=120,
    )
    replies = [json.loads(line) for line in run.stdout.splitlines()]
    assert [reply["ok"] for reply in replies] == [True, True, False]
