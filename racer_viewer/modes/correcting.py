"""Learning from corrections while watching: what the user drives in an agent's place, and the policy that learns it.

A session belongs to one car. Files are written and the policy is trained in a thread of its own; the screen polls for
the result and hands the car to the new policy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from racer_env.errors import RacerError, in_one_line
from racer_viewer.agents import Agent
from racer_viewer.modes.race import STOOD_STILL, Tick
from racer_viewer.modes.screen import AppContext, MessageScreen, Screen
from racer_viewer.modes.waiting import BackgroundTask
from racer_viewer.replays import Replay
from racer_viewer.training.native.corrections import MIN_TICKS, CorrectablePolicy, Correction, CorrectionFolder
from racer_viewer.translation import _, mark, ngettext
from racer_viewer.ui.intents import Command, Controls, Intent
from racer_viewer.ui.item_list import Button, Column, Row
from racer_viewer.ui.paint import ColouredWords
from racer_viewer.ui.views import Key, ListView, translated

CLOSE_TIMEOUT, POLL_INTERVAL = 3.0, 0.005
"""Maximum time that leaving waits until corrections are on the disk, and interval between two looks [s]."""
CORRECTION_KEYS: tuple[Key, ...] = (
    ("Up Down", mark("choose")),
    ("Enter", mark("undo")),
    ("Esc", mark("back")),
)
COLUMNS = (
    Column(mark("circuit"), 0.4),
    Column(mark("begins at"), 0.2, right=True),
    Column(mark("lasts"), 0.2, right=True),
)
"""Columns of the list of corrections: where, after which time of the drive, and how long."""


@dataclass(frozen=True, eq=False)
class _Learned:
    """Result of the thread. problem: what went wrong on the way, for a notice."""

    corrections: tuple[Correction, ...]
    agent: Agent
    problem: str = ""


class CorrectionSession:
    """Corrections of one car's agent, and the policy that has learned from them.

    corrections: all corrections, the oldest first, as of the last training. unsaved: whether the policy has learned
    something that no model file has.
    """

    def __init__(self, data: Path, agent: Agent) -> None:
        """Begin with the corrections of earlier sessions. Raises RacerError if the agent cannot be corrected."""
        self._policy, self._folder = CorrectablePolicy(agent), CorrectionFolder(data, agent)
        self.corrections: tuple[Correction, ...] = ()
        self.unsaved = False
        self._agent = agent
        self._begun: int | None = None
        self._additions: list[tuple[Replay, int]] = []
        self._removals: list[Correction] = []
        self._task: BackgroundTask[_Learned] | None = BackgroundTask(self._load, "racer-corrections")

    @property
    def learning(self) -> bool:
        """True while the policy is trained, or is about to be."""
        return self._task is not None

    @property
    def count(self) -> int:
        """Number of corrections, including those that are learned now."""
        return len(self.corrections) + len(self._additions) - len(self._removals)

    def begin(self, tick: Tick) -> None:
        """Note that the user takes the wheel after this tick."""
        self._begun = tick.followed.ticks

    def end(self, tick: Tick) -> str:
        """Learn from what the user has driven up to this tick; return what is wrong with it, else an empty text."""
        first, self._begun = self._begun, None
        if first is None:
            return ""
        if tick.followed.ending == STOOD_STILL:
            return _("Not learned: the car stood still")
        replay = tick.followed.replay()
        if replay is None or replay.ticks - first < MIN_TICKS:
            return _("Too short to learn from")
        self._additions.append((replay, first))
        self._start()
        return ""

    def undo(self, correction: Correction) -> None:
        """Take a correction back, and train the policy without it."""
        if correction in self.corrections and correction not in self._removals:
            self._removals.append(correction)
            self._start()

    def undo_last(self) -> bool:
        """Take the newest correction back; return False if there is none."""
        left = [each for each in self.corrections if each not in self._removals]
        if left:
            self.undo(left[-1])
        return bool(left)

    def poll(self) -> tuple[Agent, str] | None:
        """Return the newly trained agent and what went wrong, if anything; None while there is nothing new."""
        if self._task is None or not self._task.done:
            return None
        task, self._task = self._task, None
        try:
            learned = task.result()
        except RacerError as error:
            learned = _Learned(self.corrections, self._agent, in_one_line(error))
        changed = learned.corrections != self.corrections
        self.corrections, self._agent = learned.corrections, learned.agent
        self.unsaved = bool(learned.corrections) and (self.unsaved or changed)
        self._start()
        return learned.agent, learned.problem

    def save(self, data: Path) -> Path:
        """Save the corrected policy as a model; return its path."""
        path = self._policy.save(data)
        self.unsaved = False
        return path

    def discard(self) -> None:
        """Delete all corrections."""
        for correction in self.corrections:
            self._folder.remove(correction)
        self.corrections, self.unsaved = (), False

    def finish(self) -> tuple[Agent, str] | None:
        """Wait until what was driven is on the disk and learned; return what `poll` would."""
        end, latest = time.monotonic() + CLOSE_TIMEOUT, None
        while self._task is not None and time.monotonic() < end:
            found = self.poll()
            latest = found or latest
            if found is None:
                time.sleep(POLL_INTERVAL)
        return latest

    def _start(self) -> None:
        """Train with what has changed, unless the thread is still busy with earlier changes."""
        if self._task is None and (self._additions or self._removals):
            work = partial(self._change, self.corrections, tuple(self._additions), tuple(self._removals))
            self._additions, self._removals = [], []
            self._task = BackgroundTask(work, "racer-corrections")

    def _load(self) -> _Learned:
        corrections = tuple(self._folder.load())
        problem = self._folder.problems[0] if self._folder.problems else ""
        return self._learn(corrections, problem)

    def _change(
        self, before: tuple[Correction, ...], additions: Sequence[tuple[Replay, int]], removals: Sequence[Correction]
    ) -> _Learned:
        problem, corrections = "", [each for each in before if each not in removals]
        try:
            for correction in removals:
                self._folder.remove(correction)
            for replay, first in additions:
                corrections.append(self._folder.add(replay, first))
        except (RacerError, OSError) as error:
            problem = in_one_line(error)
        return self._learn(tuple(corrections), problem)

    def _learn(self, corrections: tuple[Correction, ...], problem: str) -> _Learned:
        """Train with all corrections; one that cannot be simulated again is left out and deleted."""
        usable = []
        for correction in corrections:
            try:
                self._policy.read(correction)
                usable.append(correction)
            except RacerError as error:
                problem = in_one_line(error)
                self._folder.set_aside(correction.path, error)
        return _Learned(tuple(usable), self._policy.learn(usable), problem)


class CorrectedRace(Protocol):
    """Screen of the race in which agents are corrected."""

    @property
    def focus(self) -> int: ...

    @property
    def at_wheel(self) -> bool: ...

    def agent_of(self, car: int) -> Agent | None: ...

    def hand_to(self, car: int, agent: Agent) -> None:
        """Let another agent drive a car from the next tick on."""
        ...

    def latest(self) -> Tick: ...


class Corrections:
    """Corrections of all cars of a race: what is on, what was learned, and what is shown about it."""

    def __init__(self, app: AppContext, race: CorrectedRace) -> None:
        self._app, self._race = app, race
        self.on = False
        self._sessions: dict[int, CorrectionSession] = {}
        self._driven: int | None = None
        """Car whose wheel the user has, if that is learned from."""

    @property
    def session(self) -> CorrectionSession | None:
        """Session of the followed car."""
        return self._sessions.get(self._race.focus)

    @property
    def unsaved(self) -> bool:
        return any(session.unsaved for session in self._sessions.values())

    def switch(self, on: bool) -> None:
        """Learn from what the user drives from now on, or no longer."""
        if on and self._open() is None:
            return
        self.on = on
        text = _("Take over where the agent is wrong, then hand back: it learns what you did")
        self._app.notify(text if on else _("Corrections are no longer learned"))
        if on and self._race.at_wheel:
            self.wheel_taken()

    def wheel_taken(self) -> None:
        """Note that the user drives the followed car."""
        session = self._open() if self.on else None
        if session is not None:
            self._driven = self._race.focus
            session.begin(self._race.latest())

    def wheel_returned(self, last: Tick | None = None) -> None:
        """Learn from what the user drove. last: last tick of the drive, if another race has taken its place."""
        if self._driven is None:
            return
        session, self._driven = self._sessions[self._driven], None
        problem = session.end(last or self._race.latest())
        self._app.notify(problem or _("Learning from your correction"))

    def undo_last(self) -> None:
        """Take the newest correction of the followed car back."""
        done = self.session is not None and self.session.undo_last()
        self._app.notify(_("Learning without your last correction") if done else _("There is no correction to undo"))

    def tick(self) -> None:
        """Hand cars to policies that have learned something."""
        for car, session in self._sessions.items():
            self._take(car, session.poll())

    def status(self) -> ColouredWords:
        """Return the counter of the followed car for the status line."""
        session, palette = self.session, self._app.theme.palette
        if session is None or not (self.on or session.count):
            return ()
        count = ngettext("{count} correction", "{count} corrections", session.count).format(count=session.count)
        words = [(count, palette.good if session.count else palette.faint)]
        return (*words, *([(_("learning ..."), palette.accent)] if session.learning else []))

    def keys(self) -> tuple[Key, ...]:
        key, session = self._app.key_label, self.session
        undo = ((key(Command.UNDO_CORRECTION), _("undo correction")),) if session is not None and session.count else ()
        return ((key(Command.CORRECT), _("stop learning") if self.on else _("learn from me")), *undo)

    def leave(self, leave: Callable[[], None]) -> None:
        """Leave the race; ask before that what to do with a policy that was corrected."""
        for car, session in self._sessions.items():
            self._take(car, session.finish())
        if not self.unsaved:
            leave()
            return

        def then(work: Callable[[], None]) -> None:
            self._app.pop()
            try:
                work()
            except RacerError as error:
                self._app.notify(in_one_line(error))
                return
            leave()

        app = self._app
        buttons = [
            Button(_("Save as a model"), _("It opens wherever models do"), on_press=partial(then, self._save)),
            Button(_("Keep for the next time"), _("They are learned again then"), on_press=partial(then, _nothing)),
            Button(_("Discard corrections"), on_press=partial(then, self._discard)),
            Button(_("Back"), on_press=app.pop),
        ]
        count = sum(session.count for session in self._sessions.values())
        text = ngettext(
            "The policy has learned from {count} correction, and no model has it yet.",
            "The policy has learned from {count} corrections, and no model has them yet.",
            count,
        ).format(count=count)
        app.push(MessageScreen(app, _("Save the corrected policy?"), text, buttons))

    def close(self) -> None:
        """Wait until all corrections are on the disk."""
        for session in self._sessions.values():
            session.finish()

    def _take(self, car: int, learned: tuple[Agent, str] | None) -> None:
        """Hand a car to the policy that has learned something, if it has."""
        if learned is not None:
            self._race.hand_to(car, learned[0])
            if learned[1]:
                self._app.notify(learned[1])

    def _open(self) -> CorrectionSession | None:
        """Return the session of the followed car, a new one if needed; None if its agent cannot be corrected."""
        car = self._race.focus
        agent = self._race.agent_of(car)
        if car not in self._sessions and agent is not None:
            try:
                self._sessions[car] = CorrectionSession(self._app.data, agent)
            except RacerError as error:
                self._app.notify(in_one_line(error))
        return self._sessions.get(car)

    def _save(self) -> None:
        paths = [session.save(self._app.data) for session in self._sessions.values() if session.unsaved]
        self._app.notify(_("Saved as {path}").format(path=", ".join(map(str, paths))))

    def _discard(self) -> None:
        for session in self._sessions.values():
            session.discard()


def _nothing() -> None:
    """Leave the corrections where they are."""


class CorrectionsScreen(Screen):
    """List of the followed car's corrections, each of which can be taken back."""

    def __init__(self, app: AppContext, corrections: Corrections, session: CorrectionSession) -> None:
        subtitle = _("Enter takes a correction back: the policy is trained again without it")
        super().__init__(app, ListView(_("Corrections"), columns=COLUMNS, subtitle=subtitle))
        self._corrections, self._session = corrections, session
        self._fill()

    def keys(self) -> Sequence[Key]:
        return translated(CORRECTION_KEYS)

    def tick(self, controls: Controls) -> None:
        super().tick(controls)
        self._corrections.tick()

    def handle(self, intent: Intent) -> None:
        if intent == Command.DELETE and self.list.item is not None:
            self.list.item.accept()
        else:
            super().handle(intent)

    def _fill(self) -> None:
        self.list.items = [
            Row(
                each.replay.circuit.name,
                cells=(f"{each.first / 60.0:.1f} s", f"{each.seconds:.1f} s"),
                on_press=partial(self._undo, each),
            )
            for each in self._session.corrections
        ]
        if not self.list.items:
            self.list.items = [Button(_("No corrections yet"), enabled=False)]

    def _undo(self, correction: Correction) -> None:
        self._session.undo(correction)
        self.list.items = [item for item in self.list.items if item is not self.list.item]
        self.app.notify(_("Learning without this correction"))
        if not self.list.items:
            self.app.pop()
