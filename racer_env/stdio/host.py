"""Host for a Gymnasium environment on stdin and stdout.

Invalid requests and exceptions of the environment are reported as errors, and the host continues. stdin and stdout are
reserved for the protocol: output of the environment goes to stderr, and its stdin is empty.
"""

from __future__ import annotations

import importlib
import json
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
from racer_env.bridge.validation import exactly
from racer_env.errors import ActionError, ContractError, RacerError, in_one_line, short
from racer_env.stdio.schema import Bounds, check_array, check_choice, describe

MAX_REQUEST_SIZE = 1024 * 1024
"""Maximum length of a request [bytes]."""
MAX_INFO_DEPTH = 16
"""Maximum nesting of an info; deeper parts, including circular references, are left out."""
MAX_ERROR_LENGTH = 2000
"""Maximum length of an error [characters]."""
ALE_PREFIX, ALE_MODULE = "ALE/", "ale_py"
"""Prefix of the ids of Atari environments, and the module that registers them when it is imported."""
MIN_INTEGER, MAX_INTEGER = -(2**63), 2**64 - 1
"""Range of integers that the JSON encoder supports."""

_STDIN, _STDOUT, _STDERR = 0, 1, 2
_NOT_JSON = object()
"""Marks a value that JSON cannot represent."""

Environment = gymnasium.Env[Any, Any]
Reply = dict[str, Any]


class LineTooLongError(RacerError):
    """A request is longer than `MAX_REQUEST_SIZE`."""


class RequestError(RacerError):
    """A request is invalid."""


def claim_standard_streams() -> tuple[BinaryIO, BinaryIO]:
    """Return this process's stdin and stdout, and redirect them for everything else.

    Until the process exits, output of Python, C and child processes goes to stderr, even if it was buffered, and stdin
    is empty.
    """
    if not (_is_open(_STDIN) and _is_open(_STDOUT)):
        raise RacerError("stdin and stdout must be open: another program is meant to start this command")
    nothing = os.open(os.devnull, os.O_RDWR)  # becomes stderr if that was closed
    requests, replies = os.fdopen(os.dup(_STDIN), "rb"), os.fdopen(os.dup(_STDOUT), "wb")
    os.dup2(nothing, _STDIN)
    os.dup2(_STDERR, _STDOUT)
    if nothing != _STDERR:
        os.close(nothing)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(line_buffering=True, errors="backslashreplace")
    _set_binary_mode(requests, replies)
    return requests, replies


def read_lines(requests: BinaryIO) -> Iterator[bytes | LineTooLongError]:
    """Yield requests until the end of input; a request that is too long is skipped and yields an error."""
    while line := requests.readline(MAX_REQUEST_SIZE):
        if len(line) < MAX_REQUEST_SIZE or line.endswith(b"\n"):
            yield line
        else:
            while (rest := requests.readline(MAX_REQUEST_SIZE)) and not rest.endswith(b"\n"):
                pass
            yield LineTooLongError(f"a request has at most {MAX_REQUEST_SIZE} bytes")


def _is_open(stream: int) -> bool:
    try:
        os.fstat(stream)
    except OSError:
        return False
    return True


def _set_binary_mode(*streams: BinaryIO) -> None:
    if sys.platform == "win32":
        import msvcrt

        for stream in streams:
            msvcrt.setmode(stream.fileno(), os.O_BINARY)


def encode(reply: Mapping[str, Any]) -> bytes:
    """Return a reply as a line."""
    return orjson.dumps(reply, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE)


def error_reply(error: BaseException) -> Reply:
    """Return the reply for an error."""
    text = f"{type(error).__name__}: {error}"[:MAX_ERROR_LENGTH]
    return {"ok": False, "error": text.encode("utf-8", "backslashreplace").decode()}


def encode_observation(value: Any, bounds: Bounds) -> Any:
    """Return an observation for exact transfer; raise ContractError if shape or type differ from the description."""
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
    """Return the parts of an info that JSON can represent; NumPy values become plain ones."""
    plain = _to_json(value, MAX_INFO_DEPTH)
    return plain if isinstance(plain, dict) else {}


def to_integer(value: Any) -> Any:
    """Return a whole number that is written as 1.0, true or "1" as an int, and any other value unchanged."""
    if type(value) is int:
        return value
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return value
    return value if type(value) is float and value != number else number


def _to_json(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()  # may still contain arbitrary objects
    if isinstance(value, str):
        return str(value) if _is_unicode(value) else _NOT_JSON
    if isinstance(value, int):
        return int(value) if MIN_INTEGER <= value <= MAX_INTEGER else _NOT_JSON
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else _NOT_JSON
    if depth and isinstance(value, Mapping):
        parts = {key: _to_json(part, depth - 1) for key, part in value.items() if type(key) is str and _is_unicode(key)}
        return {key: part for key, part in parts.items() if part is not _NOT_JSON}
    if depth and isinstance(value, list | tuple):
        items = [_to_json(item, depth - 1) for item in value]
        return _NOT_JSON if _NOT_JSON in items else items
    return _NOT_JSON


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def run(env_id: str, make_kwargs: str | None = None) -> int:
    """Host an environment until `close`, the end of input, or Ctrl-C; return the exit code.

    make_kwargs: arguments for gymnasium.make as a JSON object.
    """
    options = _parse_make_kwargs(make_kwargs)
    requests, replies = claim_standard_streams()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the environment is closed
    host = EnvHost(make_env(env_id, options))
    try:
        _serve(host, requests, replies)
    finally:
        host.close()
    return 0


class EnvHost:
    """Answers requests for one environment."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._started = self.is_closed = False
        try:
            self._description = describe(env.observation_space, env.action_space)
        except RacerError:
            self.close()
            raise
        self._handlers = {"describe": self._describe, "reset": self._reset, "step": self._step, "close": self._close}

    def answer(self, line: bytes) -> bytes:
        """Return the reply to a request; errors of the request or the environment become error replies."""
        try:
            return encode({"ok": True, **self._handle(line)})
        except (RacerError, orjson.JSONDecodeError, gymnasium.error.ResetNeeded) as error:
            return encode(error_reply(error))
        except (Exception, SystemExit) as error:  # raised by the environment
            with suppress(OSError):
                traceback.print_exc()
            return encode(error_reply(error))

    def close(self) -> None:
        """Close the environment once; print an exception that it raises."""
        if self.is_closed:
            return
        self.is_closed = True
        try:
            self._env.close()
        except (Exception, SystemExit) as error:
            with suppress(OSError):
                traceback.print_exception(error, chain=False)

    def _handle(self, line: bytes) -> Reply:
        request = orjson.loads(line)
        if type(request) is not dict:
            raise RequestError(f'a request is an object, such as {{"cmd":"describe"}}, not {short(request)}')
        command = request.get("cmd")
        handler = self._handlers.get(command) if isinstance(command, str) else None
        if handler is None:
            raise RequestError(f"cmd: one of {', '.join(self._handlers)} expected, got {short(command)}")
        if type(request.get("seed")) is float:  # orjson rounds integers of more than 64 bits to a float
            request = json.loads(line)
        return handler(request)

    def _describe(self, request: Reply) -> Reply:
        return self._description.to_json()

    def _reset(self, request: Reply) -> Reply:
        seed, options = to_integer(request.get("seed")), request.get("options")
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
        """Return an action for the environment; in messages, discrete actions are always numbered from 0."""
        actions, space = self._description.actions, self._env.action_space
        if isinstance(actions, Bounds):
            return check_array(value, actions)
        start = int(space.start) if isinstance(space, spaces.Discrete) else 0
        return np.int64(start + check_choice(to_integer(value), actions))


def _serve(host: EnvHost, requests: BinaryIO, replies: BinaryIO) -> None:
    for line in read_lines(requests):
        if isinstance(line, LineTooLongError):
            reply = encode(error_reply(line))
        elif line.isspace():
            continue
        else:
            reply = host.answer(line)
        try:
            replies.write(reply)
            replies.flush()
        except OSError:  # the other side has closed its end
            return
        if host.is_closed:
            return


def _parse_make_kwargs(make_kwargs: str | None) -> dict[str, Any]:
    try:
        options = orjson.loads(make_kwargs or "{}")
    except orjson.JSONDecodeError as error:
        raise RacerError(f"--make-kwargs must be a JSON object: {error}") from None
    if type(options) is not dict:
        raise RacerError(f'--make-kwargs must be a JSON object, such as {{"render_mode":null}}, not {short(options)}')
    return options


def make_env(env_id: str, options: dict[str, Any]) -> Environment:
    """Create an environment; raise RacerError with one line if that fails."""
    try:
        if env_id.startswith(ALE_PREFIX):
            gymnasium.register_envs(importlib.import_module(ALE_MODULE))
        return gymnasium.make(env_id, **options)
    except gymnasium.error.DependencyNotInstalled as error:
        if str(error).startswith("Box2D"):
            raise RacerError(box2d_missing(env_id, error.__cause__)) from None
        raise RacerError(f"cannot make {env_id!r}: {in_one_line(error)}") from None
    except (gymnasium.error.Error, RacerError) as error:
        raise RacerError(f"cannot make {env_id!r}: {in_one_line(error)}") from None
    except ModuleNotFoundError as error:
        if error.name == ALE_MODULE:
            raise RacerError(f"{env_id} needs ale-py, which is not installed: pip install ale-py") from None
        raise RacerError(f"cannot make {env_id!r}: {type(error).__name__}: {in_one_line(error)}") from None
    except (Exception, SystemExit) as error:
        raise RacerError(f"cannot make {env_id!r}: {type(error).__name__}: {in_one_line(error)}") from None
