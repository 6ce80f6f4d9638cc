"""Keeping what was driven, as a replay file among the user's own."""

from __future__ import annotations

from racer_env.errors import RacerError
from racer_viewer.modes.screen import AppContext
from racer_viewer.paths import free_path
from racer_viewer.replays import Replay, file_name, save_replay


def keep_replay(app: AppContext, replay: Replay | None) -> None:
    """Save it under a name of its own, and say where; None is what was driven before the first tick."""
    if replay is None:
        app.notify("There is nothing yet that could be kept")
        return
    path = free_path(app.data / "replays" / file_name(replay))
    try:
        save_replay(replay, path)
        app.notify(f"Saved as {path}")
    except (RacerError, OSError) as error:
        app.notify(str(error))
