"""Exceptions of the project. Their messages say what was wrong and what to do about it."""


class RacerError(Exception):
    """Base class of the project's errors. The command line prints the message as one line."""


class ConfigError(RacerError):
    """A reward or episode setting is unknown, of the wrong type, or out of range."""


class CircuitError(RacerError):
    """A circuit is unknown, unreadable, or cannot be driven."""


class ActionError(RacerError):
    """An action is not three finite numbers for each car."""


class BridgeError(RacerError):
    """A bridge cannot be reached, closed the connection, or refused a request."""


class ContractError(BridgeError):
    """Received data breaks the protocol; the value is not passed on."""


def in_one_line(error: BaseException) -> str:
    """Return the message of an error as one line."""
    return " ".join(str(error).split())
