"""The one error of this package, and how text from a foreign file is shown in it."""

from racer_env.errors import RacerError

SHOWN_CHARACTERS = 80


class AgentError(RacerError):
    """A model or its statistics cannot be used; the text says what it is and what is supported."""


def shown(value: object) -> str:
    """Text out of a file, for a message: quoted, no control characters, not too long. Of other things, the kind."""
    plain = value if isinstance(value, str) else type(value).__name__
    return repr(plain if len(plain) <= SHOWN_CHARACTERS else plain[: SHOWN_CHARACTERS - 1] + "…")
