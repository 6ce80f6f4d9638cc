"""Curves of other runs, to be drawn over those of one: read behind the window."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread

from racer_viewer.curves import Curves
from racer_viewer.training.live import load_curves, running_learner

REFRESH_SECONDS = 3.0
"""From one look at runs that still learn to the next."""


class ComparedRuns:
    """Each is read as soon as it was added; those that learn are read again and again, and once more at their end.

    folders: of the runs, in the order in which they came.
    """

    def __init__(self) -> None:
        self.folders: list[Path] = []
        self._curves: dict[Path, Curves] = {}
        self._learning: dict[Path, bool] = {}
        self._news, self._closed = Event(), False
        self._thread: Thread | None = None

    @property
    def curves(self) -> list[Curves]:
        """Of all that have been read."""
        return [self._curves[folder] for folder in self.folders if folder in self._curves]

    def add(self, folder: Path) -> None:
        """One more, unless it is there already."""
        if folder in self.folders:
            return
        self.folders.append(folder)
        self._news.set()
        if self._thread is None:
            self._thread = Thread(target=self._run, name="racer-compared-runs", daemon=True)
            self._thread.start()

    def close(self) -> None:
        self._closed = True
        self._news.set()

    def _run(self) -> None:
        while not self._closed:
            self._news.clear()
            for folder in tuple(self.folders):
                self._look_at(folder)
            self._news.wait(REFRESH_SECONDS)

    def _look_at(self, folder: Path) -> None:
        """A run that has gone meanwhile stays as it was read last."""
        learned_before = self._learning.get(folder, True)
        self._learning[folder] = running_learner(folder) is not None
        if learned_before:
            try:
                self._curves[folder] = load_curves(folder)
            except OSError:
                return
