"""What somebody at the window has decided about a run that was learning."""

from __future__ import annotations

from enum import Enum


class Fate(Enum):
    """It goes on without a window, is stopped and saved, or is stopped and removed."""

    LEARNS_ON = "learns on"
    STOPPED = "stopped"
    DISCARDED = "discarded"
