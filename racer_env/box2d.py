"""Messages for machines without Box2D, which CarRacing-v3 needs."""

from __future__ import annotations

import sys

from racer_env.errors import in_one_line

FIRST_UNSUPPORTED_PYTHON = (3, 14)
"""First Python version for which the extra `games` has no Box2D."""
INSTALL = 'pip install "racer-viewer[games]"'


def box2d_missing(game: str, cause: BaseException | None) -> str:
    """Return what is missing and how to install it.

    cause: error of the import of Box2D; None if it is not installed.
    """
    if cause is not None and not (isinstance(cause, ModuleNotFoundError) and cause.name == "Box2D"):
        reason = f"{type(cause).__name__}: {in_one_line(cause)}"
        return f"{game} needs Box2D, which is installed but cannot be imported ({reason}): reinstall it"
    missing = f"{game} needs Box2D, which is not installed"
    if sys.version_info[:2] < FIRST_UNSUPPORTED_PYTHON:
        return f"{missing}: {INSTALL}"
    version = ".".join(map(str, FIRST_UNSUPPORTED_PYTHON))
    return f"{missing} and is available for Python below {version} only: {INSTALL} there"
