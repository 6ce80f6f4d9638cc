"""Errors that users see: each says what was wrong and what to do about it."""


class RacerError(Exception):
    """Base of the project's own errors. The command line prints it as one line."""


class ConfigError(RacerError):
    """A reward or episode setting is unknown, of the wrong type, or out of range."""


class CircuitError(RacerError):
    """A circuit is unknown, unreadable, or cannot be driven."""


class ActionError(RacerError):
    """An action is not three finite numbers for each car."""


class BridgeError(RacerError):
    """A bridge cannot be reached, went away, or refused a request."""


class ContractError(BridgeError):
    """What came over a boundary is not what was agreed; the value goes no further."""


def in_one_line(error: BaseException) -> str:
    """What an error says, in one line."""
    return " ".join(str(error).split())
