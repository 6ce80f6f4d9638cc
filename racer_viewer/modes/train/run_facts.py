"""The best laps of a run in words: on different circuits, times say nothing about each other.

The fastest lap of all cars is not that of the policy that is kept as the best, which has to be clean first.


What is known of all runs in a folder: found out behind a list of them, and kept up to date.

Curves of other runs, to be drawn over those of one: read behind the window."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import numpy as np

from racer_env.errors import RacerError
from racer_viewer.modes.train.showcase import steps_in_words
from racer_viewer.run_history import RunHistory
from racer_viewer.training.config import RunConfig, load_run_config
from racer_viewer.training.run_folder import run_folders
from racer_viewer.training.run_lock import running_learner
from racer_viewer.training.run_log_reader import load_history


def lap_words(curves: RunHistory, circuit: str) -> str:
    """On a circuit, whose name is said where there are others: the fastest lap, and that of the best policy."""
    fastest, kept = curves.best_lap(circuit), _lap_of_best(curves, circuit)
    where = f" on {circuit}" if len(curves.circuits) > 1 else ""
    if fastest is None:
        return f"no lap yet{where}"
    return f"fastest lap {fastest:.2f} s{where}" + (f", best policy {kept:.2f} s" if kept is not None else "")


def fastest_laps(curves: RunHistory) -> str:
    """Of all cars, on every circuit that has one; empty if there is none."""
    if len(curves.circuits) < 2:
        return lap_words(RunHistory(laps=curves.laps), "") if len(curves.laps) else ""
    laps = curves.best_laps()
    return f"fastest {'lap' if len(laps) == 1 else 'laps'} {_listed(laps)}" if laps else ""


def best_policy(curves: RunHistory) -> str:
    """The one that is kept as the best: since when, and its laps as far as they are known; empty if there is none."""
    steps = best_steps(curves)
    if steps is None:
        return ""
    words = f"best policy after {steps_in_words(steps)} steps"
    found = ((circuit, _lap_of_best(curves, circuit)) for circuit in curves.circuits or ("",))
    laps = {circuit: lap for circuit, lap in found if lap is not None}
    if not laps:
        return words
    return f"{words}: {_listed(laps) if len(curves.circuits) > 1 else f'{min(laps.values()):.2f} s'}"


def best_steps(curves: RunHistory) -> int | None:
    """That the policy which is kept as the best had learned for; None as long as none has driven cleanly."""
    return next((event.steps for event in reversed(curves.events) if event.kind == "best"), None)


def _lap_of_best(curves: RunHistory, circuit: str) -> float | None:
    """By which it was found to be the best [s]: as the learner logged it, else the fastest lap of that moment."""
    steps = best_steps(curves)
    if steps is None:
        return None
    logged = curves.values.get(f"eval/lap_{circuit}", np.full(len(curves.steps), np.nan))[curves.steps == steps]
    laps = curves.laps_on(circuit)
    there = logged[np.isfinite(logged)] if np.isfinite(logged).any() else laps[laps[:, 0] == steps, 1]
    return float(there.min()) if len(there) else None


def _listed(laps: dict[str, float]) -> str:
    return ", ".join(f"{lap:.2f} s on {circuit}" for circuit, lap in laps.items())


REFRESH_SECONDS = 2.0
"""From one look at all runs to the next."""
REST = 0.001
"""Between two runs whoever waits for the interpreter has it [s]."""


@dataclass(frozen=True, eq=False)
class RunFacts:
    """What is known of a run, or (problem) why nothing is. changed: when, in seconds since 1970."""

    folder: Path
    config: RunConfig | None
    curves: RunHistory
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


class RunScanner:
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
        return RunFacts(folder, config, load_history(folder), running_learner(folder) is not None, changed)
    except (RacerError, OSError) as error:
        return RunFacts(folder, None, RunHistory(), False, changed, str(error))


def _changed(folder: Path) -> float:
    """When; a folder that has just gone is the oldest."""
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0


COMPARED_REFRESH_SECONDS = 3.0
"""From one look at runs that still learn to the next."""


class ComparedRuns:
    """Each is read as soon as it was added; those that learn are read again and again, and once more at their end.

    folders: of the runs, in the order in which they came.
    """

    def __init__(self) -> None:
        self.folders: list[Path] = []
        self._curves: dict[Path, RunHistory] = {}
        self._learning: dict[Path, bool] = {}
        self._news, self._closed = Event(), False
        self._thread: Thread | None = None

    @property
    def curves(self) -> list[RunHistory]:
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
            self._news.wait(COMPARED_REFRESH_SECONDS)

    def _look_at(self, folder: Path) -> None:
        """A run that has gone meanwhile stays as it was read last."""
        learned_before = self._learning.get(folder, True)
        self._learning[folder] = running_learner(folder) is not None
        if learned_before:
            try:
                self._curves[folder] = load_history(folder)
            except OSError:
                return
