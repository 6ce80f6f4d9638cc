"""A Gymnasium environment behind stdin and stdout. Mistakes of the other side, and of the environment, end nothing."""

from __future__ import annotations

import signal
import threading
import traceback
from contextlib import suppress
from typing import Any, BinaryIO

import gymnasium
import numpy as np
import orjson
from gymnasium import spaces

from racer_env.box2d import box2d_missing
from racer_env.bridge.contract import short
from racer_env.errors import ActionError, RacerError, in_one_line
from racer_env.stdio import encoding
from racer_env.stdio.actions import checked_array, checked_choice
from racer_env.stdio.description import Bounds, describe
from racer_env.stdio.streams import LineTooLongError, claim_standard_streams, lines

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
            return encoding.encode({"ok": True, **self._answer(line)})
        except (RacerError, orjson.JSONDecodeError, gymnasium.error.ResetNeeded) as error:
            return encoding.encode(encoding.refusal(error))
        except (Exception, SystemExit) as error:  # of the environment
            with suppress(OSError):
                traceback.print_exc()
            return encoding.encode(encoding.refusal(error))

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
        return {"obs": self._observation(observation), "info": encoding.info(info)}

    def _step(self, request: Reply) -> Reply:
        if not self._started:
            raise gymnasium.error.ResetNeeded("step before reset: reset the environment first")
        if "action" not in request:
            raise ActionError("action: missing")
        action = self._action(request["action"])
        observation, reward, terminated, truncated, info = self._env.step(action)
        return {
            "obs": self._observation(observation),
            "reward": encoding.reward(reward),
            "terminated": bool(terminated),
            "truncated": bool(truncated),
            "info": encoding.info(info),
        }

    def _close(self, request: Reply) -> Reply:
        self.close()
        return {}

    def _observation(self, value: Any) -> Any:
        return encoding.observation(value, self._description.observation)

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
            reply = encoding.encode(encoding.refusal(line))
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
