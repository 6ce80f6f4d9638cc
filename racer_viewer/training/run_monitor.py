"""Starting a learner as a process of its own.

A run as a window sees it: its story so far, its cars now, its policies, and orders to it."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from racer_env.engine import parse_config
from racer_env.errors import RacerError
from racer_viewer.agents import Agent, AgentError
from racer_viewer.run_history import RunEvent, RunHistory, Swarm
from racer_viewer.runtime import program_command
from racer_viewer.training import control
from racer_viewer.training.car_feed import CarFeedMonitor
from racer_viewer.training.config import RunConfig, load_run_config
from racer_viewer.training.control import ControlClient, release_learner
from racer_viewer.training.policy_log import load_policy
from racer_viewer.training.run_folder import (
    CONFIG_FILE,
    LEARNER_LOG_FILE,
    ResumeError,
    check_name_is_free,
    folder_of,
    free_name,
    latest_model,
    remove_run,
    resumed_config,
    steps_of,
    write_config,
)
from racer_viewer.training.run_lock import check_not_running, running_learner
from racer_viewer.training.run_log_reader import FINISHED, SPEED, RunLogReader

USAGE_ERROR = 2
"""Exit code of a learner that says itself what was wrong."""

LearnerProcess = subprocess.Popen[bytes]


def start_learner(where: Path) -> LearnerProcess:
    """In a session of its own, so that Ctrl-C in the window's terminal does not reach it.

    where: the folder of a run, or the model of it to go on from. Its standard input is its leash.
    """
    with (folder_of(where) / LEARNER_LOG_FILE).open("wb") as log:
        return subprocess.Popen(
            [*program_command(), "learn", str(where.absolute())],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            creationflags=_detached_on_windows(),
        )


def explain_end(folder: Path, code: int | None, begun: bool) -> str:
    """What happened to a learner that ended without a word in its story, and how to go on.

    code: of its exit, None if it is not known; begun: whether the run ever was.
    """
    words = _last_words(folder)
    if code == USAGE_ERROR and words:
        return f"{words}. {_how_to_go_on(folder)}" if begun else words
    how = "" if code is None else f" (signal {-code})" if code < 0 else f" (exit code {code})"
    said = f" Its last words: {words}." if words else ""
    return f"The learner ended unexpectedly{how}.{said} {_how_to_go_on(folder)}"


def _how_to_go_on(folder: Path) -> str:
    try:
        model = latest_model(folder)
        steps = None if model is None else steps_of(model)
    except (ResumeError, OSError):
        steps = None
    return "It had saved nothing yet." if steps is None else f"Its last checkpoint, of {steps:,} steps, can go on."


def _last_words(folder: Path) -> str:
    """The last line of a learner's output."""
    try:
        text = (folder / LEARNER_LOG_FILE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("racer-viewer: ") if lines else ""


def _detached_on_windows() -> int:
    if sys.platform == "win32":
        return subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
    return 0


RunState = Literal["starting", "learning", "paused", "finished", "stopped", "failed"]

GOODBYE_SECONDS = 2.0
"""That a window which closes waits for its last order to be sent."""


class RunMonitor:
    """A run that learns in another process, or that has learned. Every method returns at once.

    A thread of its own keeps it up to date. It never starts a learner again by itself: if one dies, the state is
    "failed" and `problem` says what happened. One that only sleeps, or is slow, is waited for however long it takes.
    """

    def __init__(
        self,
        config: RunConfig,
        story: RunLogReader,
        learner: LearnerProcess | None = None,
        pid: int | None = None,
        is_new: bool = False,
    ) -> None:
        """Use `start`, `attach` or `continue_run`. story: as far as it goes by now; pid: of somebody else's learner."""
        self.folder, self.config = story.folder, config
        self.problem = ""
        self._learner, self._pid, self._is_new = learner, pid, is_new
        self._reader = story
        self._begins_before = story.begins if learner or story.outcome else max(0, story.begins - 1)
        """How often it had begun when this learner had not yet."""
        self._rewards: Mapping[str, Any] | None = None
        self._pace: float | None = None
        self._line, self._cars = ControlClient(self.folder), CarFeedMonitor(self.folder)
        self._ended_as: RunState | None = None
        self._ending = threading.Lock()
        self._leaving, self._detached, self._discarded = threading.Event(), False, False
        self._thread: threading.Thread | None = None
        if learner is None and pid is None:
            self._ended_as = "finished" if self._has_finished() else "stopped"
        else:
            self._thread = threading.Thread(target=self._follow, name="racer-watched-run", daemon=True)
            self._thread.start()

    @classmethod
    def start(cls, config: RunConfig, runs: Path) -> RunMonitor:
        """Begin a run in a folder of its own, by the config's name or a free one."""
        if config.name:
            check_name_is_free(config.name, runs)
        config = config if config.name else replace(config, name=free_name(config, runs))
        folder = runs / config.name
        folder.mkdir(parents=True)
        write_config(config, folder)
        return cls(config, RunLogReader(folder), start_learner(folder), is_new=True)

    @classmethod
    def attach(cls, folder: Path) -> RunMonitor:
        """See a run that learns in the background or at a terminal; if none does there, what it has learned."""
        config, story, pid = load_run_config(folder / CONFIG_FILE), RunLogReader(folder), running_learner(folder)
        story.read_all()
        return cls(config, story, pid=pid)

    @classmethod
    def continue_run(cls, where: Path, timesteps: int | None = None) -> RunMonitor:
        """Go on with a run from its latest checkpoint, or begin it anew if it has none.

        where: its folder, or the model of it to go on from. timesteps: the total to learn to; None is the one it had.
        A run that has no steps left is a RacerError.
        """
        folder = folder_of(where)
        check_not_running(folder)
        config = resumed_config(where, timesteps)
        if timesteps is not None:
            write_config(config, folder)
        story = RunLogReader(folder)
        story.read_all()
        return cls(config, story, start_learner(where))

    @property
    def state(self) -> RunState:
        if self._ended_as is not None:
            return self._ended_as
        if self._reader.begins <= self._begins_before:
            return "starting"
        return "paused" if self._reader.paused else "learning"

    @property
    def history(self) -> RunHistory:
        return self._reader.history

    @property
    def steps(self) -> int:
        """Of all cars together, up to now."""
        return max(self._cars.steps, self.history.last_steps)

    @property
    def total(self) -> int:
        """Steps to learn for."""
        return self.config.timesteps

    @property
    def steps_per_second(self) -> float:
        """In the last seconds; of cars that cannot be seen, in the last update."""
        if self._cars.are_seen or self.state == "paused":
            return self._cars.steps_per_second
        return float(next(iter(self.history.values.get(SPEED, ())[-1:]), 0.0))

    @property
    def pace(self) -> float | None:
        """Times real time that it learns at, as it was last asked here or as the learner says; None is full speed."""
        return self._pace

    @property
    def weights(self) -> Mapping[str, float]:
        """Of the parts of the reward, that it learns with now, by the keys of an ai-config."""
        weights: dict[str, float] = self.config.rewards.to_json()["weights"]
        return weights

    @property
    def pid(self) -> int | None:
        """Of the learner."""
        return self._pid if self._learner is None else self._learner.pid

    def swarm(self) -> Swarm | None:
        """All cars as they are now; None while there are none to see."""
        return self._cars.swarm()

    def policy(self, number: int = -1) -> Agent:
        """The agent of a kept policy, by its number in `curves.policies`."""
        try:
            layout, steps, offset = self._reader.policies[number]
        except IndexError:
            raise AgentError(f"{self.folder.name} has no policy number {number} yet") from None
        return load_policy(self.folder, layout, steps, offset)

    def pause(self) -> None:
        self._line.order(control.PAUSE)

    def resume(self) -> None:
        self._line.order(control.RESUME)

    def save(self) -> None:
        """A checkpoint now."""
        self._line.order(control.SAVE)

    def set_pace(self, times: float | None) -> None:
        """As many times real time; None is as fast as it can."""
        self._pace = times
        self._line.order(control.PACE, times=times)

    def set_weights(self, weights: Mapping[str, float]) -> None:
        """Other reward weights from now on, by the keys of an ai-config; those that are not there stay as they are.

        What cannot be is a ConfigError.
        """
        parse_config({"weights": dict(weights)})
        self._line.order(control.WEIGHTS, weights=dict(weights))

    def stop(self, discard: bool = False) -> None:
        """End it: what it knows is saved, or the whole folder is removed. One that has ended can still be discarded."""
        with self._ending:
            self._discarded = self._discarded or discard
            if self._ended_as is None:
                self._line.order(control.DISCARD if discard else control.STOP)
            elif discard and running_learner(self.folder) is None:
                self._remove()

    def detach(self) -> None:
        """Leave it learning in the background, at full speed; `attach` finds it again."""
        self._detached = True
        if self._learner is not None:
            release_learner(self._learner, to_go_on=True)  # it may not listen yet, and nobody may be there when it does
        self._line.order(control.DETACH)
        self._leaving.set()

    def close(self) -> None:
        """The window goes, and nobody has said what becomes of the run.

        One that it has started is stopped and saved. Another does what it does when its viewers are gone: at a terminal
        it learns on, in the background it stops and is saved.
        """
        if self._thread is None or not self._thread.is_alive():
            return
        if not self._leaving.is_set():
            if self._learner is not None:
                self.stop()
            self._leaving.set()
            if not self._line.open and self._learner is not None:
                self._learner.terminate()  # it does not listen yet
        self._thread.join(GOODBYE_SECONDS)

    def _follow(self) -> None:
        try:
            while not self._look():
                pass
        except Exception as error:  # whatever it is, the window must hear of it
            self.problem, self._ended_as = f"The run can no longer be followed: {error}", "failed"
        finally:
            self._line.close()
            self._cars.close()
            if self._learner is not None:
                release_learner(self._learner, to_go_on=False)

    def _look(self) -> bool:
        """One round; whether it was the last."""
        over = self._is_over()
        while self._reader.advance():
            pass
        self._note_weights()
        if over:
            self._finish()
            return True
        self._line.connect()
        leaving = self._leaving.is_set()
        self._line.send_orders(at_once=leaving)
        self._hear()
        if self.state != "starting":
            self._cars.look()
        return leaving and not self._discarded and self._may_leave()

    def _may_leave(self) -> bool:
        """Whether the learner knows all that it must."""
        return self._detached or self._line.open or (self._learner is None and self._line.idle)

    def _is_over(self) -> bool:
        """Whether the learner is gone; that it says nothing does not count."""
        return running_learner(self.folder) is None if self._learner is None else self._learner.poll() is not None

    def _hear(self) -> None:
        for message in self._line.news():
            if "problem" in message:
                event = RunEvent(self.steps, self._seconds, "problem", str(message["problem"]))
                self._reader.add_event(event)
            if "pace" in message:
                self._pace = message["pace"]

    @property
    def _seconds(self) -> float:
        events = self.history.events
        return events[-1].seconds if events else 0.0

    def _note_weights(self) -> None:
        rewards = self._reader.rewards
        if rewards is not None and rewards is not self._rewards:
            self._rewards = rewards
            self.config = replace(self.config, rewards=parse_config(rewards))

    def _has_finished(self) -> bool:
        """As its story says; one from before there were stories has, if it made all its steps."""
        story = self._reader
        return story.outcome == FINISHED or (not story.begins and self.steps >= self.total)

    def _finish(self) -> None:
        """The learner is gone: what became of it?"""
        self._cars.close()
        begun = self._learner is None or self._reader.begins > self._begins_before
        outcome = self._reader.outcome if begun else ""
        with self._ending:
            if self._discarded:
                self._remove()
            gone = not self.folder.exists()
            if gone and not self._discarded:
                self.problem = "Its folder is gone: it was discarded or removed, and nothing of it is left."
            if outcome or self._discarded or gone:
                self._ended_as = "finished" if outcome == FINISHED and not self._discarded else "stopped"
                return
            code = None if self._learner is None else self._learner.returncode
            self.problem = explain_end(self.folder, code, begun=self._reader.begins > 0)
            if self._never_was():
                self._remove()
            self._ended_as = "failed"

    def _remove(self) -> None:
        try:
            remove_run(self.folder)
        except RacerError as error:
            self.problem = str(error)

    def _never_was(self) -> bool:
        """Whether a new run was refused, or given up before it began: its folder is not worth keeping then."""
        refused = self._learner is not None and self._learner.returncode == USAGE_ERROR
        given_up = self._leaving.is_set() and not self._detached
        return self._is_new and not self._reader.begins and (refused or given_up)
