"""Facts about runs: best laps in words, a scanner of all runs in a folder, and curves of runs to compare with."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import numpy as np

from racer_env.engine import circuit_name
from racer_env.errors import RacerError, in_one_line
from racer_viewer.modes.train.showcase import steps_in_words
from racer_viewer.run_history import UNKNOWN, RunHistory
from racer_viewer.training.config import RunConfig, load_run_config
from racer_viewer.training.run_folder import run_folders
from racer_viewer.training.run_lock import running_learner
from racer_viewer.training.run_log_reader import load_history
from racer_viewer.translation import _, ngettext


def lap_words(curves: RunHistory, circuit: str) -> str:
    """Describe the fastest lap of all cars on a circuit and the lap of the best policy, which has to be clean."""
    fastest, kept = curves.best_lap(circuit), _lap_of_best(curves, circuit)
    where = _(" on {circuit}").format(circuit=circuit_name(circuit)) if len(curves.circuits) > 1 else ""
    if fastest is None:
        return _without_lap(curves, where)
    return _("fastest lap {lap:.2f} s{where}").format(lap=fastest, where=where) + (
        _(", best policy {lap:.2f} s").format(lap=kept) if kept is not None else ""
    )


def _without_lap(curves: RunHistory, where: str) -> str:
    """Say that no training car has finished a lap on a circuit; with laps elsewhere, where those were driven."""
    if not len(curves.laps):
        return _("no lap in training yet")
    if (curves.lap_circuits == UNKNOWN).all():
        return _("fastest lap {lap:.2f} s, circuit not known").format(lap=curves.laps[:, 1].min())
    return _("no lap{where} yet, laps on {driven} of {count} circuits").format(
        where=where, driven=len(curves.best_laps()), count=len(curves.circuits)
    )


def fastest_laps(curves: RunHistory) -> str:
    """Describe the fastest lap of all cars on every circuit; empty if there is none."""
    if len(curves.circuits) < 2:
        return lap_words(RunHistory(laps=curves.laps), "") if len(curves.laps) else ""
    laps = curves.best_laps()
    return ngettext("fastest lap {laps}", "fastest laps {laps}", len(laps)).format(laps=_listed(laps)) if laps else ""


def best_policy(curves: RunHistory) -> str:
    """Describe the best policy: its steps, and its laps as far as they are known; empty if there is none."""
    steps = best_steps(curves)
    if steps is None:
        return ""
    words = _("best policy after {steps} steps").format(steps=steps_in_words(steps))
    found = ((circuit, _lap_of_best(curves, circuit)) for circuit in curves.circuits or ("",))
    laps = {circuit: lap for circuit, lap in found if lap is not None}
    if not laps:
        return words
    return f"{words}: {_listed(laps) if len(curves.circuits) > 1 else f'{min(laps.values()):.2f} s'}"


def best_steps(curves: RunHistory) -> int | None:
    """Return the steps of the best policy; None as long as none has driven a clean lap."""
    return next((event.steps for event in reversed(curves.events) if event.kind == "best"), None)


def _lap_of_best(curves: RunHistory, circuit: str) -> float | None:
    """Return the lap of the best policy [s]: as the learner logged it, else the fastest lap at its steps."""
    steps = best_steps(curves)
    if steps is None:
        return None
    logged = curves.values.get(f"eval/lap_{circuit}", np.full(len(curves.steps), np.nan))[curves.steps == steps]
    laps = curves.laps_on(circuit)
    there = logged[np.isfinite(logged)] if np.isfinite(logged).any() else laps[laps[:, 0] == steps, 1]
    return float(there.min()) if len(there) else None


def _listed(laps: dict[str, float]) -> str:
    return ", ".join(
        _("{lap:.2f} s on {circuit}").format(lap=lap, circuit=circuit_name(circuit)) for circuit, lap in laps.items()
    )


SCAN_INTERVAL = 2.0
"""Interval between two scans of a folder [s]."""
TURN_PAUSE = 0.001
"""Pause after each run that lets the window have the interpreter [s]."""
COMPARED_REFRESH_INTERVAL = 3.0
"""Interval at which compared runs that are still learning are read again [s]."""


@dataclass(frozen=True, eq=False)
class RunFacts:
    """Facts about a run.

    changed: time of the last change, in seconds since 1970.
    problem: why the run cannot be read; empty if it can.
    """

    folder: Path
    config: RunConfig | None
    curves: RunHistory
    learning: bool
    changed: float
    problem: str = ""

    @property
    def steps(self) -> int:
        """Steps that the run has learned for."""
        return self.curves.last_steps

    @property
    def progress(self) -> str:
        """Share of the configured steps that the run has learned for."""
        return "" if self.config is None else f"{self.steps / self.config.timesteps:.0%}"

    @property
    def is_finished(self) -> bool:
        """True if the run has reached its configured number of steps."""
        return self.config is not None and self.steps >= self.config.timesteps


class RunScanner:
    """Scanner of a folder of runs in a thread of its own, newest run first; runs that are learning are read repeatedly.

    facts: what is known so far.
    changes: counter of changes to `facts`.
    reading: True until every run was read once.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.facts: list[RunFacts] = []
        self.changes = 0
        self.reading = True
        self._stop = Event()

    def start(self) -> None:
        """Start scanning; known facts stay until they are read again."""
        self.stop()
        self._stop = Event()
        Thread(target=self._run, args=(self._stop,), name="racer-runs", daemon=True).start()

    def stop(self) -> None:
        self._stop.set()

    def _run(self, stop: Event) -> None:
        while not stop.is_set():
            self._scan(stop)
            stop.wait(SCAN_INTERVAL)

    def _scan(self, stop: Event) -> None:
        folders = self._folders()
        if any(known.folder not in folders for known in self.facts):
            self._publish([known for known in self.facts if known.folder in folders], stop)
        known = {each.folder: each for each in self.facts}
        for folder in folders:
            before = known.get(folder)
            if before is None or before.learning or before.changed != _changed(folder):
                self._publish(self._with(facts_of(folder)), stop)
            time.sleep(TURN_PAUSE)
            if stop.is_set():
                return
        self.reading = False

    def _publish(self, facts: list[RunFacts], stop: Event) -> None:
        if not stop.is_set():
            self.facts = facts
            self.changes += 1

    def _with(self, news: RunFacts) -> list[RunFacts]:
        """Return the facts with those of one run replaced in place, or inserted before all older runs."""
        if any(each.folder == news.folder for each in self.facts):
            return [news if each.folder == news.folder else each for each in self.facts]
        older = next((n for n, each in enumerate(self.facts) if each.changed < news.changed), len(self.facts))
        return [*self.facts[:older], news, *self.facts[older:]]

    def _folders(self) -> list[Path]:
        return sorted(run_folders(self.folder), key=_changed, reverse=True)


def facts_of(folder: Path) -> RunFacts:
    """Read the facts about a run."""
    changed = _changed(folder)
    try:
        config = load_run_config(folder / "config.json")
        return RunFacts(folder, config, load_history(folder), running_learner(folder) is not None, changed)
    except (RacerError, OSError) as error:
        return RunFacts(folder, None, RunHistory(), False, changed, in_one_line(error))


def _changed(folder: Path) -> float:
    """Return the time of a folder's last change; 0 if it is gone."""
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0


class ComparedRuns:
    """Curves of other runs, read in a thread; those of runs that are learning are read until they end.

    folders: folders of the runs, in the order they were added.
    """

    def __init__(self) -> None:
        self.folders: list[Path] = []
        self._curves: dict[Path, RunHistory] = {}
        self._learning: dict[Path, bool] = {}
        self._added, self._closed = Event(), False
        self._thread: Thread | None = None

    @property
    def curves(self) -> list[RunHistory]:
        """Curves of all runs that have been read."""
        return [self._curves[folder] for folder in self.folders if folder in self._curves]

    def add(self, folder: Path) -> None:
        """Add a run, unless it was added before."""
        if folder in self.folders:
            return
        self.folders.append(folder)
        self._added.set()
        if self._thread is None:
            self._thread = Thread(target=self._run, name="racer-compared-runs", daemon=True)
            self._thread.start()

    def close(self) -> None:
        self._closed = True
        self._added.set()

    def _run(self) -> None:
        while not self._closed:
            self._added.clear()
            for folder in tuple(self.folders):
                self._read(folder)
            self._added.wait(COMPARED_REFRESH_INTERVAL)

    def _read(self, folder: Path) -> None:
        """Read the curves of a run; those of a run that was deleted stay as they are."""
        learned_before = self._learning.get(folder, True)
        self._learning[folder] = running_learner(folder) is not None
        if learned_before:
            try:
                self._curves[folder] = load_history(folder)
            except OSError:
                return
