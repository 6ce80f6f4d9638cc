"""An environment in a helper process, seen from outside: every value that comes back is held to the contract."""

from __future__ import annotations

import json
import math
import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import orjson
from numpy.typing import NDArray

from racer_env.bridge.validation import Contract, field, short
from racer_env.errors import BridgeError, ContractError, RacerError
from racer_env.stdio.process import Helper
from racer_env.stdio.schema import Bounds, Expected, agreed, checked_array, checked_choice

START_TIMEOUT, REPLY_TIMEOUT, CLOSE_TIMEOUT = 120.0, 30.0, 2.0
"""Seconds for the first reply, for every other one, and for a goodbye."""

LONGEST_REFUSAL = 2000
"""Characters that are told of it."""

Info = dict[str, Any]
Reply = dict[str, Any]
Result = TypeVar("Result")


class Step(NamedTuple):
    """What one step gave, in the order that Gymnasium gives it."""

    observation: NDArray[Any]
    reward: float
    terminated: bool
    truncated: bool
    info: Info


class StdioClient:
    """An environment that a helper process hosts: ours, or any program that speaks the protocol.

    command: how the helper is started, as a list of words; `StdioClient.hosting` knows that of ours.
    expected: what the helper must say of itself.
    timeout, start_timeout: seconds for a reply, and for the first one.
    cwd, environment: for the process, as subprocess.Popen takes them.

    A value that breaks the contract is a ContractError, and ends the process; so do a helper that is silent for too
    long or goes away, as a BridgeError. A request that the helper refuses is a BridgeError too, and ends nothing.
    """

    def __init__(
        self,
        command: Sequence[str],
        expected: Expected | None = None,
        *,
        timeout: float = REPLY_TIMEOUT,
        start_timeout: float = START_TIMEOUT,
        cwd: str | Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        for name, seconds in (("timeout", timeout), ("start_timeout", start_timeout)):
            if not (isinstance(seconds, int | float | np.number) and 0.0 < seconds < math.inf):
                raise RacerError(f"{name} must be a number of seconds above 0, not {short(seconds)}")
        self._timeout = timeout
        self._is_started = False
        self._helper = Helper(command, cwd, environment)
        self.description = self._request(
            {"cmd": "describe"}, lambda reply: agreed(reply, expected or Expected()), start_timeout
        )
        observation = self.description.observation
        self._contract = Contract(observation.low, observation.high, observation.dtype)

    @classmethod
    def hosting(cls, env_id: str, make_kwargs: Mapping[str, Any] | None = None, **options: Any) -> Self:
        """A client of our own helper, which hosts any installed Gymnasium environment.

        make_kwargs: for gymnasium.make, as far as JSON can carry it. The options are those of the class.
        """
        return cls(hosting_command(env_id, make_kwargs), **options)

    @property
    def pid(self) -> int:
        """Of the helper."""
        return self._helper.pid

    @property
    def last_lines(self) -> tuple[str, ...]:
        """What the helper wrote to its stderr last."""
        return self._helper.last_lines

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[NDArray[Any], Info]:
        request: dict[str, Any] = {"cmd": "reset"}
        if seed is not None:
            request["seed"] = _whole("seed", seed)
        if options:
            if not self.description.takes_options:
                raise BridgeError(f"{self._helper.name} takes no options for a reset")
            request["options"] = options
        result = self._request(request, self._judge_reset, self._timeout)
        self._is_started = True
        return result

    def step(self, action: Any) -> Step:
        """One step; after the end of an episode it does what the environment does then."""
        if not self._is_started:
            raise RacerError("step before reset: reset the environment first")
        actions = self.description.actions
        value = (
            checked_array(action, actions).tolist() if isinstance(actions, Bounds) else checked_choice(action, actions)
        )
        return self._request({"cmd": "step", "action": value}, self._judge_step, self._timeout)

    def close(self) -> None:
        """Say goodbye, if there is still someone; whatever comes of it, the process is gone afterwards."""
        if self._helper.is_ended:
            return
        try:
            self._request({"cmd": "close"}, dict, min(CLOSE_TIMEOUT, self._timeout))
            self._helper.wait(CLOSE_TIMEOUT)
        except BridgeError:
            pass
        finally:
            self._helper.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._helper.end()

    def _request(self, request: Mapping[str, Any], judge: Callable[[Reply], Result], timeout: float) -> Result:
        """What the judge makes of the reply. Unless the helper refused, whatever goes wrong is its end."""
        if self._helper.is_ended:
            raise BridgeError(f"{self._helper.name} is closed: start another helper")
        message = _encoded(request)
        try:
            return self._judged(self._helper.exchange(message, timeout), judge)
        except _RefusedError as refusal:
            if request["cmd"] == "describe":
                self._helper.end()
            raise BridgeError(f"{self._helper.name} says: {refusal}") from None
        except TimeoutError:
            self._helper.end()
            raise BridgeError(
                f"{self._helper.name} gave no reply within {timeout:g} s; it is ended now{self._helper.last_words()}"
            ) from None
        except EOFError:
            self._helper.wait(CLOSE_TIMEOUT)
            self._helper.end()
            raise BridgeError(f"{self._helper.name} went away: {self._helper.obituary()}") from None
        except ContractError as error:
            self._helper.end()
            raise ContractError(f"{error}{self._helper.last_words()}") from None
        except BaseException:  # Ctrl-C between request and reply: the two are out of step now
            self._helper.end()
            raise

    def _judged(self, line: bytes, judge: Callable[[Reply], Result]) -> Result:
        try:
            return _judged(line, judge)
        except ContractError as error:
            self._helper.end()
            if not self._helper.has_flooded:
                raise
            raise ContractError(f"{error}; and more lines came than were asked for") from None

    def _judge_reset(self, reply: Reply) -> tuple[NDArray[Any], Info]:
        return self._contract.observation(field(reply, "obs")), _info(reply)

    def _judge_step(self, reply: Reply) -> Step:
        contract = self._contract
        return Step(
            contract.observation(field(reply, "obs")),
            contract.reward(field(reply, "reward")),
            contract.flag("terminated", field(reply, "terminated")),
            contract.flag("truncated", field(reply, "truncated")),
            _info(reply),
        )


def hosting_command(env_id: str, make_kwargs: Mapping[str, Any] | None = None) -> list[str]:
    """How our own helper is started: by the same interpreter."""
    safe = ["-P"] if sys.flags.safe_path else []
    options = [] if make_kwargs is None else [f"--make-kwargs={_encoded(make_kwargs).decode()}"]
    return [sys.executable, *safe, "-m", "racer_env.stdio", f"--env-id={env_id}", *options]


class _RefusedError(Exception):
    """The helper answered with an error, and lives on."""


def _whole(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise RacerError(f"{name} must be a whole number, not {short(value)}") from None


def _encoded(value: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    except TypeError as error:
        raise RacerError(f"JSON cannot carry {short(value)}: {error}") from None


def _judged(line: bytes, judge: Callable[[Reply], Result]) -> Result:
    """What the judge makes of a reply that says ok."""
    try:
        return judge(_ok(orjson.loads(line), line))
    except orjson.JSONDecodeError as error:
        wrong = str(error)
    with suppress(ValueError, RecursionError):
        judge(_ok(json.loads(line), line))  # which takes NaN for a number: the judge can say where it is
    raise ContractError(f"reply: a JSON object expected, got {short(line)}: {wrong}")


def _ok(reply: Any, line: bytes) -> Reply:
    if type(reply) is not dict:
        raise ContractError(f"reply: a JSON object expected, got {short(line)}")
    ok = Contract.flag("ok", field(reply, "ok"))
    if not ok:
        error = field(reply, "error")
        if type(error) is not str:
            raise ContractError(f"error: a text expected, got {short(error)}")
        raise _RefusedError(" ".join(error.split())[:LONGEST_REFUSAL])
    return reply


def _info(reply: Reply) -> Info:
    """Existing helpers send none."""
    info = reply.get("info", {})
    if type(info) is not dict:
        raise ContractError(f"info: an object expected, got {short(info)}")
    return info
