"""Ticks as the times that people read."""

from racer_env.engine import TICKS_PER_SECOND

NONE = "–"
"""Shown where there is no figure."""


def lap_time(ticks: int) -> str:
    """As 17.82, or 1:02.45 from a minute on."""
    minutes, rest = divmod(ticks, 60 * TICKS_PER_SECOND)
    seconds = rest / TICKS_PER_SECOND
    return f"{minutes}:{seconds:05.2f}" if minutes else f"{seconds:.2f}"


def signed(value: float, decimals: int = 2) -> str:
    """With its sign, a true minus; what rounds to nothing has a plus."""
    text = f"{abs(value):.{decimals}f}"
    return ("−" if value < 0.0 and float(text) else "+") + text


def signed_time(ticks: int) -> str:
    """A difference in seconds, as +0.23."""
    return signed(ticks / TICKS_PER_SECOND)
