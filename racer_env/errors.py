"""Exceptions of the project. Their messages say what was wrong and what to do about it."""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

MAX_QUOTE_LENGTH = 80
"""Maximum length of a wrong value in an error message [characters]."""
CircuitProblemKind = Literal["few", "many", "narrow", "wide", "far", "same", "short", "long", "tight", "cross", "close"]
"""Kinds of problems: too few or too many control points; road too narrow or too wide; point too far out, or the same as
the one before; stroke too short for a lap; lap too long; bend too tight for its walls; walls of two parts of the road
cross; road too close to another part of itself."""


class RacerError(Exception):
    """Base class of the project's errors. The command line prints the message as one line."""


class ConfigError(RacerError):
    """A reward or episode setting is unknown, of the wrong type, or out of range."""


@dataclass(frozen=True)
class CircuitProblem:
    """One reason why a circuit cannot be driven, and its place.

    reason: message as `CircuitError` has it.
    x, y: the place; of a problem of the whole circuit, its first control point.
    control_point: index of the last control point before the place; None for a problem of the whole circuit.
    """

    kind: CircuitProblemKind
    reason: str
    x: float = 0.0
    y: float = 0.0
    control_point: int | None = None


class CircuitError(RacerError):
    """A circuit is unknown, unreadable, or cannot be driven.

    problem: the reason with its place, if the circuit was read but cannot be driven.
    """

    def __init__(self, message: str, problem: CircuitProblem | None = None) -> None:
        super().__init__(message)
        self.problem = problem


class ActionError(RacerError):
    """An action is not three finite numbers for each car."""


class BridgeError(RacerError):
    """A bridge cannot be reached, closed the connection, or refused a request."""


class ContractError(BridgeError):
    """Received data breaks the protocol; the value is not passed on."""


def os_reason(error: BaseException) -> str:
    """Return why the operating system refused something, without the number of the error and the file's name."""
    reason = getattr(error, "strerror", None) if isinstance(error, OSError) else None
    return " ".join(str(reason or error).split())


def in_one_line(error: BaseException) -> str:
    """Return the message of an error as one line; errors of the operating system as `FILE: reason`."""
    file = error.filename if isinstance(error, OSError) and error.strerror else None
    return os_reason(error) if file is None else f"{_file_name(file)}: {os_reason(error)}"


def _file_name(file: object) -> str:
    return " ".join(os.fsdecode(file).split()) if isinstance(file, (str, bytes, os.PathLike)) else str(file)


def suggestion(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return a hint after an unknown word: the known word that it is close to, else `otherwise`, else all words."""
    words = list(known)
    close = closest(word, words)
    return f"did you mean {close}?" if close else otherwise or f"known: {', '.join(words)}"


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that an unknown one is close to; None without one.

    A word with another number is not close: `track-99` is no misspelling of `track-06`.
    """
    import difflib

    word = word[:MAX_QUOTE_LENGTH]
    same_numbers = [each for each in known if _numbers_in(each) == _numbers_in(word)]
    return next(iter(difflib.get_close_matches(word, same_numbers, n=1)), None)


def _numbers_in(word: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"[0-9]{1,18}", word)]


def short(value: Any) -> str:
    """Return the representation of a value in one line, shortened for an error message.

    Long texts, lists and objects are cut before they are converted: they may come from a stranger.
    """
    text = ""
    for part in _representation(value):
        text += part
        if len(text) > MAX_QUOTE_LENGTH:
            return text[: MAX_QUOTE_LENGTH - 3] + "..."
    return text


def _representation(value: Any) -> Iterator[str]:
    """Yield the representation of a value in parts; each level of nesting begins with a part of its own."""
    if type(value) is list:
        yield "["
        for index, item in enumerate(value):
            yield ", " if index else ""
            yield from _representation(item)
        yield "]"
    elif type(value) is dict:
        yield "{"
        for index, (key, item) in enumerate(value.items()):
            yield ", " if index else ""
            yield from _representation(key)
            yield ": "
            yield from _representation(item)
        yield "}"
    elif isinstance(value, (str, bytes)):
        yield repr(value[: MAX_QUOTE_LENGTH + 1])
    else:
        yield _one_line(value)


def _one_line(value: Any) -> str:
    try:
        return " ".join(repr(value).split())
    except RecursionError:
        return "something nested too deeply"
    except ValueError:  # Python converts integers to text up to a limit
        return "an integer of thousands of digits"
