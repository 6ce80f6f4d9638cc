"""Client of an environment in a helper process. Every reply is checked before it is returned."""

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

from racer_env.bridge.validation import Contract, field
from racer_env.errors import BridgeError, ContractError, RacerError, short
from racer_env.stdio.process import HelperProcess
from racer_env.stdio.schema import Bounds, Expected, check_array, check_choice, check_description

START_TIMEOUT, REPLY_TIMEOUT, CLOSE_TIMEOUT = 120.0, 30.0, 2.0
"""Time limits for the first reply, for every other reply, and for closing [s]."""
MAX_REFUSAL_LENGTH = 2000
"""Maximum length of a helper's error in a message [characters]."""

Info = dict[str, Any]
Reply = dict[str, Any]
Result = TypeVar("Result")


class StdioStep(NamedTuple):
    """Result of one step, in the order of Gymnasium."""

    observation: NDArray[Any]
    reward: float
    terminated: bool
    truncated: bool
    info: Info


class StdioClient:
    """Environment in a helper process: this package's own helper, or any program that implements the protocol.

    command: the helper's command line as a list; `StdioClient.hosting` uses this package's own helper.
    expected: the description that the helper must give.
    timeout, start_timeout: time limits for a reply and for the first reply [s].
    cwd, environment: working directory and environment variables of the process, as for subprocess.Popen.

    An invalid reply raises ContractError; a timeout or an exit of the helper raises BridgeError. Both end the process.
    A request that the helper refuses raises BridgeError too, but the process continues.
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
        self._helper = HelperProcess(command, cwd, environment)
        self.description = self._request(
            {"cmd": "describe"}, lambda reply: check_description(reply, expected or Expected()), start_timeout
        )
        self._parser = ReplyParser(self.description.observation)

    @classmethod
    def hosting(cls, env_id: str, make_kwargs: Mapping[str, Any] | None = None, **options: Any) -> Self:
        """Start this package's own helper, which hosts any installed Gymnasium environment.

        make_kwargs: arguments for gymnasium.make; JSON values only.
        options: further arguments of the class.
        """
        return cls(hosting_command(env_id, make_kwargs), **options)

    @property
    def pid(self) -> int:
        """Process id of the helper."""
        return self._helper.pid

    @property
    def last_lines(self) -> tuple[str, ...]:
        """Last lines that the helper wrote to stderr."""
        return self._helper.last_lines

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[NDArray[Any], Info]:
        request: dict[str, Any] = {"cmd": "reset"}
        if seed is not None:
            request["seed"] = orjson.Fragment(_integer_to_json("seed", seed))  # orjson itself is limited to 64 bits
        if options:
            if not self.description.takes_options:
                raise BridgeError(f"{self._helper.name} takes no reset options")
            request["options"] = options
        result = self._request(request, self._parser.reset, self._timeout)
        self._is_started = True
        return result

    def step(self, action: Any) -> StdioStep:
        """Take one step; after the end of an episode, the result is up to the environment."""
        if not self._is_started:
            raise RacerError("step before reset: reset the environment first")
        actions = self.description.actions
        value = check_array(action, actions).tolist() if isinstance(actions, Bounds) else check_choice(action, actions)
        return self._request({"cmd": "step", "action": value}, self._parser.step, self._timeout)

    def close(self) -> None:
        """Ask the helper to exit, and kill it if it does not."""
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

    def _request(self, request: Mapping[str, Any], parse: Callable[[Reply], Result], timeout: float) -> Result:
        """Send a request and return its parsed reply; on any failure but a refusal, end the helper."""
        if self._helper.is_ended:
            raise BridgeError(f"{self._helper.name} is closed: start another helper")
        message = _encode(request)
        try:
            return self._parse(self._helper.exchange(message, timeout), parse)
        except _RefusalError as refusal:
            if request["cmd"] == "describe":
                self._helper.end()
            raise BridgeError(f"{self._helper.name} refused the request: {refusal}") from None
        except TimeoutError:
            self._helper.end()
            raise BridgeError(
                f"{self._helper.name} gave no reply within {timeout:g} s and was ended{self._helper.stderr_summary()}"
            ) from None
        except EOFError:
            self._helper.wait(CLOSE_TIMEOUT)
            self._helper.end()
            raise BridgeError(f"{self._helper.name} exited: {self._helper.exit_summary()}") from None
        except ContractError as error:
            self._helper.end()
            raise ContractError(f"{error}{self._helper.stderr_summary()}") from None
        except BaseException:  # Ctrl-C: a later reply could not be matched to its request
            self._helper.end()
            raise

    def _parse(self, line: bytes, parse: Callable[[Reply], Result]) -> Result:
        try:
            return parse_reply(line, parse)
        except ContractError as error:
            self._helper.end()
            if not self._helper.has_extra_lines:
                raise
            raise ContractError(f"{error}; the helper sent more lines than requested") from None


class ReplyParser:
    """Checks the fields of replies.

    observation: bounds, shape and type of observations.
    """

    def __init__(self, observation: Bounds) -> None:
        self._contract = Contract(observation.low, observation.high, observation.dtype)

    def reset(self, reply: Reply) -> tuple[NDArray[Any], Info]:
        return self._contract.observation(field(reply, "obs")), _info(reply)

    def step(self, reply: Reply) -> StdioStep:
        contract = self._contract
        return StdioStep(
            contract.observation(field(reply, "obs")),
            contract.reward(field(reply, "reward")),
            contract.flag("terminated", field(reply, "terminated")),
            contract.flag("truncated", field(reply, "truncated")),
            _info(reply),
        )


def parse_reply(line: bytes, parse: Callable[[Reply], Result]) -> Result:
    """Decode a reply and return the result of `parse`; raise ContractError if it is invalid."""
    try:
        return parse(_check_ok(orjson.loads(line), line))
    except orjson.JSONDecodeError as error:
        problem = str(error)
    with suppress(ValueError, RecursionError):
        parse(_check_ok(json.loads(line), line))  # accepts NaN, so the error can name the field that has it
    raise ContractError(f"reply: a JSON object expected, got {short(line)}: {problem}")


def hosting_command(env_id: str, make_kwargs: Mapping[str, Any] | None = None) -> list[str]:
    """Return the command line of this package's own helper, for the same interpreter."""
    safe = ["-P"] if sys.flags.safe_path else []
    options = [] if make_kwargs is None else [f"--make-kwargs={_encode(make_kwargs).decode()}"]
    return [sys.executable, *safe, "-m", "racer_env.stdio", f"--env-id={env_id}", *options]


class _RefusalError(Exception):
    """The helper answered with an error and continues."""


def _integer_to_json(name: str, value: Any) -> str:
    try:
        return str(operator.index(value))
    except (TypeError, ValueError):  # not an integer, or thousands of digits
        raise RacerError(f"{name} must be a whole number, not {short(value)}") from None


def _encode(value: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    except TypeError as error:
        raise RacerError(f"JSON cannot carry {short(value)}: {error}") from None


def _check_ok(reply: Any, line: bytes) -> Reply:
    """Return the reply; raise _RefusalError if it is an error of the helper."""
    if type(reply) is not dict:
        raise ContractError(f"reply: a JSON object expected, got {short(line)}")
    ok = Contract.flag("ok", field(reply, "ok"))
    if not ok:
        error = field(reply, "error")
        if type(error) is not str:
            raise ContractError(f"error: a text expected, got {short(error)}")
        raise _RefusalError(" ".join(error.split())[:MAX_REFUSAL_LENGTH])
    return reply


def _info(reply: Reply) -> Info:
    """Return the info of a reply; it is optional."""
    info = reply.get("info", {})
    if type(info) is not dict:
        raise ContractError(f"info: an object expected, got {short(info)}")
    return info
