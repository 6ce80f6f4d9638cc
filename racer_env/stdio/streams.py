"""stdin and stdout, kept for the protocol: whatever an environment prints or reads, it meets other streams."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import BinaryIO

from racer_env.errors import RacerError

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
