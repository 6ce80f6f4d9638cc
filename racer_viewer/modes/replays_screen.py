"""Replays: the files that were kept."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from racer_viewer.modes.lists import ListScreen
from racer_viewer.modes.loading import open_safely
from racer_viewer.modes.replay_screen import ReplayScreen
from racer_viewer.modes.screen import Stage
from racer_viewer.replays import SUFFIX, load_replay, trace_replay
from racer_viewer.ui.items import Button


class ReplaysScreen(ListScreen):
    """Newest first; Enter drives one again."""

    title = "Replays"

    def __init__(self, app: Stage) -> None:
        super().__init__(app)
        self._folder = app.data / "replays"
        files = sorted(self._folder.glob(f"*{SUFFIX}"), key=lambda path: path.stat().st_mtime, reverse=True)
        self.list.items = [Button(path.stem, str(path), do=partial(self._open, path)) for path in files]
        if not files:
            self.list.items = [Button("None yet: save one after a race", enabled=False)]

    @property
    def subtitle(self) -> str:
        return f"Kept in {self._folder}"

    def _open(self, path: Path) -> None:
        open_safely(self.app, lambda: ReplayScreen(self.app, trace_replay(load_replay(path))))
