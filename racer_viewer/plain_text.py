"""Text that is safe to show: no control characters or text direction overrides reach a terminal or a screen.

Names and messages may come from files and servers of strangers. Terminals execute control sequences, and overrides of
the text direction make a name look like another one.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, cast

if TYPE_CHECKING:
    from rich.console import Console

MAX_LINE_LENGTH = 2000
"""Maximum length of a line on a screen [characters]."""
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
"""Character shown instead of one that cannot be encoded, as in a file name that is not UTF-8."""

_COLOURS = re.compile(r"\x1b\[[0-9;:]*m")
"""Control sequences for colours, which are removed as a whole."""
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters other than tab and line feed, line separators, and controls of the text direction."""
_SURROGATES = re.compile(r"[\ud800-\udfff]")


def plain_text(text: str) -> str:
    """Return text without control characters; line feeds and tabs stay."""
    if text.isprintable():
        return text
    return _SURROGATES.sub(REPLACEMENT, _CONTROLS.sub("", _COLOURS.sub("", text.replace("\r\n", "\n"))))


def plain_line(text: str) -> str:
    """Return text as one line of at most MAX_LINE_LENGTH characters, without control characters."""
    if len(text) > MAX_LINE_LENGTH:
        text = text[: MAX_LINE_LENGTH - 1] + "…"
    if text.isprintable():
        return text
    return plain_text(text).replace("\n", " ").replace("\t", " ")


def is_utf8(text: str) -> bool:
    """Return False for text that cannot be encoded, as the name of a file that is not valid UTF-8."""
    return _SURROGATES.search(text) is None


class PlainStream:
    """Output stream that writes plain text only. stream: the stream to write to."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(plain_text(text))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def plain_output() -> Iterator[None]:
    """Write plain text only to stdout and stderr, within a block; consoles of `make_console` keep their colours."""
    stdout, stderr = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _plain(stdout), _plain(stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = stdout, stderr


def make_console(stderr: bool = False, markup: bool = False) -> Console:
    """Return a console that colours its own output; the texts it is given are shown as plain text."""
    from rich.console import Console
    from rich.text import Text

    class PlainConsole(Console):
        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str(plain_text(text), **options)

    stream: Any = sys.stderr if stderr else sys.stdout
    file = stream.stream if isinstance(stream, PlainStream) else None
    return PlainConsole(file=file, stderr=stderr, markup=markup)


def _plain(stream: TextIO) -> TextIO:
    """Wrap a stream, unless it is wrapped already or closed, as those of an app without a console are."""
    if stream is None or isinstance(stream, PlainStream):
        return stream
    return cast(TextIO, PlainStream(stream))
