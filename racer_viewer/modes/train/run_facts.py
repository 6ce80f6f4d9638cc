"""What is known of all runs in a folder: found out behind a list of them, and kept up to date."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

from racer_env.errors import RacerError
from racer_viewer.curves import Curves
from racer_viewer.training.config import RunConfig, load_run_config
from racer_viewer.training.live import load_curves, running_learner
from racer_viewer.training.saved import run_folders

REFRESH_SECONDS = 2.0
"""From one look at all runs to the next."""
REST = 0.001
"""Between two runs whoever waits for the interpreter has it [s]."""


@dataclass(frozen=True, eq=False)
class RunFacts:
    """What is known of a run, or (problem) why nothing is. changed: when, in seconds since 1970."""

    folder: Path
    config: RunConfig | None
    curves: Curves
    learning: bool
    changed: float
    problem: str = ""

    @property
    def steps(self) -> int:
        """That it has learned for."""
        return self.curves.last_steps

    @property
    def is_finished(self) -> bool:
        """Whether it has learned for as long as it was told to."""
        return self.config is not None and self.steps >= self.config.timesteps


class RunsLookout:
    """Looks through a folder in a thread of its own, newest run first; again and again at runs that learn.

    facts: what is known so far. changes: counts up with every news. reading: whether there is a run that was not
    looked at yet.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.facts: list[RunFacts] = []
        self.changes = 0
        self.reading = True
        self._stop = Event()

    def start(self) -> None:
        """Look from now on; what is known already stays until it is looked at again."""
        self.stop()
        self._stop = Event()
        Thread(target=self._run, args=(self._stop,), name="racer-runs", daemon=True).start()

    def stop(self) -> None:
        """At once."""
        self._stop.set()

    def _run(self, stop: Event) -> None:
        while not stop.is_set():
            self._look(stop)
            stop.wait(REFRESH_SECONDS)

    def _look(self, stop: Event) -> None:
        folders = self._folders()
        if any(known.folder not in folders for known in self.facts):
            self._tell([known for known in self.facts if known.folder in folders], stop)
        known = {each.folder: each for each in self.facts}
        for folder in folders:
            before = known.get(folder)
            if before is None or before.learning or before.changed != _changed(folder):
                self._tell(self._with(facts_of(folder)), stop)
            time.sleep(REST)
            if stop.is_set():
                return
        self.reading = False

    def _tell(self, facts: list[RunFacts], stop: Event) -> None:
        if not stop.is_set():
            self.facts = facts
            self.changes += 1

    def _with(self, news: RunFacts) -> list[RunFacts]:
        """A run that was known keeps its place; a new one comes before all that are older."""
        if any(each.folder == news.folder for each in self.facts):
            return [news if each.folder == news.folder else each for each in self.facts]
        older = next((n for n, each in enumerate(self.facts) if each.changed < news.changed), len(self.facts))
        return [*self.facts[:older], news, *self.facts[older:]]

    def _folders(self) -> list[Path]:
        return sorted(run_folders(self.folder), key=_changed, reverse=True)


def facts_of(folder: Path) -> RunFacts:
    changed = _changed(folder)
    try:
        config = load_run_config(folder / "config.json")
        return RunFacts(folder, config, load_curves(folder), running_learner(folder) is not None, changed)
    except (RacerError, OSError) as error:
        return RunFacts(folder, None, Curves(), False, changed, str(error))


def _changed(folder: Path) -> float:
    """When; a folder that has just gone is the oldest."""
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0
