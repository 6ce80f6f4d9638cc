"""Box2D, which CarRacing-v3 is built on: not every machine has it."""

from __future__ import annotations

import sys

from racer_env.errors import in_one_line

NOT_FROM = (3, 14)
"""The first Python that our extra `games` has no Box2D for."""
INSTALL = 'pip install "racer-viewer[games]"'


def box2d_missing(game: str, cause: BaseException | None) -> str:
    """What a game lacks, and how to get it. The cause is why Box2D could not be imported; None if it is not there."""
    if cause is not None and not (isinstance(cause, ModuleNotFoundError) and cause.name == "Box2D"):
        reason = f"{type(cause).__name__}: {in_one_line(cause)}"
        return f"{game} needs Box2D, which is installed but cannot be imported ({reason}): install it anew"
    missing = f"{game} needs Box2D, which is not installed"
    if sys.version_info[:2] < NOT_FROM:
        return f"{missing}: {INSTALL}"
    return f"{missing} and is ready for Python below {'.'.join(map(str, NOT_FROM))} only: {INSTALL} there"
