"""How an environment finds someone to draw it.

The environment knows no window. Whoever can draw (the viewer does) says so with an entry point in the group
`racer_env.window`: a callable that takes whether a person watches, and returns an `EnvWindow`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from racer_env.engine import Track
from racer_env.errors import RacerError


class EnvWindow(Protocol):
    """Draws one car on its track."""

    def draw(self, track: Track, car: Mapping[str, Any]) -> NDArray[np.uint8] | None:
        """The picture (height, width, 3); None if it went to a window."""
        ...

    def close(self) -> None: ...


def open_window(visible: bool) -> EnvWindow:
    """The first window that is installed."""
    for point in entry_points(group="racer_env.window"):
        return cast(EnvWindow, point.load()(visible))
    raise RacerError("nothing that can draw is installed: install racer-viewer")
