"""A file that is written beside its place."""

from __future__ import annotations

from pathlib import Path

from racer_viewer.folders import written_whole


class _DroppedError(Exception):
    """What was written is not wanted."""


class PlacedFile:
    """Write to `temporary`, then `place` or `drop` it: there never is a part of a file in its place."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writing = written_whole(path)
        self.temporary = self._writing.__enter__()

    def place(self) -> Path:
        self._writing.__exit__(None, None, None)
        return self.path

    def drop(self) -> None:
        """Has no effect on a file that is in its place already."""
        reason = _DroppedError()
        self._writing.__exit__(_DroppedError, reason, None)
