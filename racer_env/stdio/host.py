"""stdin and stdout, kept for the protocol: whatever an environment prints or reads, it meets other streams.

Replies as JSON: what an environment gives is often numpy, and sometimes nothing that JSON could carry.

A Gymnasium environment behind stdin and stdout. Mistakes of the other side, and of the environment, end nothing."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, BinaryIO

import gymnasium
import numpy as np
import orjson
from gymnasium import spaces

from racer_env.box2d import box2d_missing
from racer_env.bridge.validation import exactly, short
from racer_env.errors import ActionError, ContractError, RacerError, in_one_line
from racer_env.stdio.schema import Bounds, checked_array, checked_choice, describe

LONGEST_REQUEST = 1024 * 1024
"""Bytes."""

_STDIN, _STDOUT, _STDERR = 0, 1, 2


class LineTooLongError(RacerError):
    """A request did not end within `LONGEST_REQUEST`."""


def claim_standard_streams() -> tuple[BinaryIO, BinaryIO]:
    """The streams that this process was given as stdin and stdout.

    From now on, until its end, what is printed by Python, by C or by a child process goes to stderr, also what lies in
    a buffer until the end; and who reads stdin finds nothing.
    """
    if not (_is_open(_STDIN) and _is_open(_STDOUT)):
        raise RacerError("stdin and stdout must be open: this command is for another program to talk to")
    nothing = os.open(os.devnull, os.O_RDWR)  # which is stderr, if that was closed
    requests, replies = os.fdopen(os.dup(_STDIN), "rb"), os.fdopen(os.dup(_STDOUT), "wb")
    os.dup2(nothing, _STDIN)
    os.dup2(_STDERR, _STDOUT)
    if nothing != _STDERR:
        os.close(nothing)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(line_buffering=True, errors="backslashreplace")
    _without_line_ends_of_windows(requests, replies)
    return requests, replies


def lines(requests: BinaryIO) -> Iterator[bytes | LineTooLongError]:
    """One request after the other, until the end of input. One that is too long is read to its end, and is an error."""
    while line := requests.readline(LONGEST_REQUEST):
        if len(line) < LONGEST_REQUEST or line.endswith(b"\n"):
            yield line
        else:
            while (rest := requests.readline(LONGEST_REQUEST)) and not rest.endswith(b"\n"):
                pass
            yield LineTooLongError(f"a request has at most {LONGEST_REQUEST} bytes")


def _is_open(stream: int) -> bool:
    try:
        os.fstat(stream)
    except OSError:
        return False
    return True


def _without_line_ends_of_windows(*streams: BinaryIO) -> None:
    if sys.platform == "win32":
        import msvcrt

        for stream in streams:
            msvcrt.setmode(stream.fileno(), os.O_BINARY)


DEEPEST = 16
"""Levels of an info that are sent; what lies deeper is left out, and so is what contains itself."""
LONGEST_ERROR = 2000
"""Characters."""
SMALLEST_INTEGER, LARGEST_INTEGER = -(2**63), 2**64 - 1

_NOTHING = object()
"""What JSON cannot carry."""


def encode(reply: Mapping[str, Any]) -> bytes:
    """A line, with its end."""
    return orjson.dumps(reply, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE)


def refusal(error: BaseException) -> dict[str, Any]:
    """The reply that says what was wrong."""
    text = f"{type(error).__name__}: {error}"[:LONGEST_ERROR]
    return {"ok": False, "error": text.encode("utf-8", "backslashreplace").decode()}


def encode_observation(value: Any, bounds: Bounds) -> Any:
    """What is sent of an observation, to the bit, if it has the shape and the type that were described."""
    array = np.asarray(value)
    if array.shape != bounds.shape:
        raise ContractError(f"observation: shape {bounds.shape} expected, got {array.shape}")
    exact = exactly(array, bounds.dtype)
    if exact is None:
        raise ContractError(f"observation: values of {bounds.dtype} expected, got {array.dtype}")
    if exact.dtype.kind == "f":
        if not np.isfinite(exact).all():
            at = tuple(int(i) for i in np.argwhere(~np.isfinite(exact))[0])
            raise ContractError(f"observation{list(at)}: a finite number expected, got {exact[at]}")
        exact = exact.astype(np.float64)
    elif exact.dtype.kind == "b":
        exact = exact.astype(np.uint8)
    return np.ascontiguousarray(exact) if exact.ndim else exact.item()


def encode_reward(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ContractError(f"reward: a finite number expected, got {number}")
    return number


def encode_info(value: Any) -> dict[str, Any]:
    """Those parts of an info that JSON can carry. Numpy becomes plain; a part with NaN or infinity is left out."""
    plain = _plain(value, DEEPEST)
    return plain if isinstance(plain, dict) else {}


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()  # and on: what is in an array of objects may be anything
    if isinstance(value, str):
        return str(value) if _is_unicode(value) else _NOTHING
    if isinstance(value, int):
        return int(value) if SMALLEST_INTEGER <= value <= LARGEST_INTEGER else _NOTHING
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else _NOTHING
    if depth and isinstance(value, Mapping):
        parts = {key: _plain(part, depth - 1) for key, part in value.items() if type(key) is str and _is_unicode(key)}
        return {key: part for key, part in parts.items() if part is not _NOTHING}
    if depth and isinstance(value, list | tuple):
        items = [_plain(item, depth - 1) for item in value]
        return _NOTHING if _NOTHING in items else items
    return _NOTHING


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


Environment = gymnasium.Env[Any, Any]
Reply = dict[str, Any]


class RequestError(RacerError):
    """A request is not one of those that the protocol knows."""


def run(env_id: str, make_kwargs: str | None = None) -> int:
    """Host an environment until `close`, the end of input, or Ctrl-C. The exit code is for the process.

    make_kwargs: a JSON object for gymnasium.make.
    """
    options = _make_options(make_kwargs)
    requests, replies = claim_standard_streams()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the environment is closed then, too
    host = Host(_make(env_id, options))
    try:
        _serve(host, requests, replies)
    finally:
        host.close()
    return 0


class Host:
    """Answers requests to one environment."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._started = self.is_closed = False
        try:
            self._description = describe(env.observation_space, env.action_space)
        except RacerError:
            self.close()
            raise
        self._answers = {"describe": self._describe, "reset": self._reset, "step": self._step, "close": self._close}

    def answer(self, line: bytes) -> bytes:
        """The reply to a request, whatever it is."""
        try:
            return encode({"ok": True, **self._answer(line)})
        except (RacerError, orjson.JSONDecodeError, gymnasium.error.ResetNeeded) as error:
            return encode(refusal(error))
        except (Exception, SystemExit) as error:  # of the environment
            with suppress(OSError):
                traceback.print_exc()
            return encode(refusal(error))

    def close(self) -> None:
        """Once. If the environment fails even then, there is nothing left to do about it."""
        if self.is_closed:
            return
        self.is_closed = True
        try:
            self._env.close()
        except (Exception, SystemExit) as error:
            with suppress(OSError):
                traceback.print_exception(error, chain=False)

    def _answer(self, line: bytes) -> Reply:
        request = orjson.loads(line)
        if type(request) is not dict:
            raise RequestError(f'a request is an object, as {{"cmd":"describe"}}, not {short(request)}')
        command = request.get("cmd")
        answer = self._answers.get(command) if isinstance(command, str) else None
        if answer is None:
            raise RequestError(f"cmd: one of {', '.join(self._answers)} expected, got {short(command)}")
        return answer(request)

    def _describe(self, request: Reply) -> Reply:
        return self._description.to_json()

    def _reset(self, request: Reply) -> Reply:
        seed, options = request.get("seed"), request.get("options")
        if seed is not None and (type(seed) is not int or seed < 0):
            raise RequestError(f"seed: a whole number from 0 expected, got {short(seed)}")
        if options is not None and type(options) is not dict:
            raise RequestError(f"options: an object expected, got {short(options)}")
        observation, info = self._env.reset(seed=seed, options=options)
        self._started = True
        return {"obs": self._observation(observation), "info": encode_info(info)}

    def _step(self, request: Reply) -> Reply:
        if not self._started:
            raise gymnasium.error.ResetNeeded("step before reset: reset the environment first")
        if "action" not in request:
            raise ActionError("action: missing")
        action = self._action(request["action"])
        observation, reward, terminated, truncated, info = self._env.step(action)
        return {
            "obs": self._observation(observation),
            "reward": encode_reward(reward),
            "terminated": bool(terminated),
            "truncated": bool(truncated),
            "info": encode_info(info),
        }

    def _close(self, request: Reply) -> Reply:
        self.close()
        return {}

    def _observation(self, value: Any) -> Any:
        return encode_observation(value, self._description.observation)

    def _action(self, value: Any) -> Any:
        """As the environment takes it. Choices are numbered from 0 on the wire, whatever the space starts with."""
        actions, space = self._description.actions, self._env.action_space
        if isinstance(actions, Bounds):
            return checked_array(value, actions)
        start = int(space.start) if isinstance(space, spaces.Discrete) else 0
        return np.int64(start + checked_choice(value, actions))


def _serve(host: Host, requests: BinaryIO, replies: BinaryIO) -> None:
    for line in lines(requests):
        if isinstance(line, LineTooLongError):
            reply = encode(refusal(line))
        elif line.isspace():
            continue
        else:
            reply = host.answer(line)
        try:
            replies.write(reply)
            replies.flush()
        except OSError:  # nobody listens any more
            return
        if host.is_closed:
            return


def _make_options(make_kwargs: str | None) -> dict[str, Any]:
    try:
        options = orjson.loads(make_kwargs or "{}")
    except orjson.JSONDecodeError as error:
        raise RacerError(f"--make-kwargs must be a JSON object: {error}") from None
    if type(options) is not dict:
        raise RacerError(f'--make-kwargs must be a JSON object, as {{"render_mode":null}}, not {short(options)}')
    return options


def _make(env_id: str, options: dict[str, Any]) -> Environment:
    try:
        return gymnasium.make(env_id, **options)
    except gymnasium.error.DependencyNotInstalled as error:
        if str(error).startswith("Box2D"):
            raise RacerError(box2d_missing(env_id, error.__cause__)) from None
        raise RacerError(f"cannot make {env_id!r}: {in_one_line(error)}") from None
    except (gymnasium.error.Error, RacerError) as error:
        raise RacerError(f"cannot make {env_id!r}: {in_one_line(error)}") from None
    except (Exception, SystemExit) as error:
        raise RacerError(f"cannot make {env_id!r}: {type(error).__name__}: {in_one_line(error)}") from None
