"""All episodes that were watched this time: see one again, or keep it as a file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from racer_viewer.modes.episodes import Episode, episode_of
from racer_viewer.modes.keeping import keep_replay
from racer_viewer.modes.lists import ListScreen
from racer_viewer.modes.loading import open_safely
from racer_viewer.modes.replay_screen import ReplayScreen
from racer_viewer.modes.screen import MENU_KEYS, Key, Stage
from racer_viewer.render.overlays import lap_time
from racer_viewer.replays import trace_replay
from racer_viewer.ui.intents import Do, Intent
from racer_viewer.ui.item_list import Column
from racer_viewer.ui.items import Button, Row

if TYPE_CHECKING:
    from racer_viewer.modes.watch import WatchScreen


class EpisodesScreen(ListScreen):
    """The newest first, beginning with those that are driven now."""

    title = "Episodes"
    list_width = 0

    def __init__(self, app: Stage, watch: WatchScreen) -> None:
        super().__init__(app)
        running = [episode_of(car, watch.number, "goes on") for car in watch.race.cars if car.ticks]
        self._episodes = [*watch.episodes, *running][::-1]
        self.list.columns = (
            Column("driver", 0.28),
            Column("episode", 0.09, right=True),
            Column("circuit", 0.2),
            Column("reward", 0.11, right=True),
            Column("laps", 0.07, right=True),
            Column("best", 0.1, right=True),
            Column("ended", 0.15),
        )
        self.list.items = [Row(e.driver, cells=_cells(e), do=partial(self._see, e)) for e in self._episodes]
        if not self._episodes:
            self.list.items = [Button("None yet", enabled=False)]

    def keys(self) -> Sequence[Key]:
        keep = self.app.key_of(Do.KEEP), "keep as a replay"
        return (MENU_KEYS[0], ("Enter", "see it again"), keep, ("Esc", "back"))

    def handle(self, intent: Intent) -> None:
        if intent == Do.KEEP and self._episodes:
            keep_replay(self.app, self._episodes[self.list.chosen].replay)
        else:
            super().handle(intent)

    def _see(self, episode: Episode) -> None:
        replay = episode.replay
        if replay is not None:
            open_safely(self.app, lambda: ReplayScreen(self.app, [trace_replay(replay)]))


def _cells(episode: Episode) -> tuple[str, ...]:
    best = "–" if episode.best is None else lap_time(episode.best)
    return (str(episode.number), episode.circuit, f"{episode.reward:.3f}", str(episode.laps), best, episode.ending)
