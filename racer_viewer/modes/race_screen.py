"""A race on screen: what playing and watching have in common, here and on somebody else's bridge."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from racer_env.errors import RacerError
from racer_viewer.modes.connecting import open_race
from racer_viewer.modes.drive import LONGEST, Drive, Tick, drive_of
from racer_viewer.modes.driving import DrivingScreen
from racer_viewer.modes.keeping import keep_replay
from racer_viewer.modes.link import Link
from racer_viewer.modes.message import MessageScreen
from racer_viewer.modes.race import Race, RaceSetup
from racer_viewer.modes.screen import Stage
from racer_viewer.modes.wheel import Action
from racer_viewer.sound import car_sound
from racer_viewer.ui.items import Button
from racer_viewer.ui.paint import STATUS_HEIGHT, Words, status_line

if TYPE_CHECKING:
    import pygame

PATIENCE, LONGEST_SILENCE = 0.5, 8.0
"""After which a silent bridge is mentioned, and after which it counts as gone [s]."""


class LostScreen(MessageScreen):
    """A race cannot go on; the way back leads out of it."""

    def back(self) -> None:
        self.app.pop()
        self.app.pop()


class RaceScreen(DrivingScreen):
    """Has a race driven, and shows how it stands with the bridge if there is one."""

    def __init__(self, app: Stage, setup: RaceSetup, race: Race, drive: Drive | None = None) -> None:
        """drive: has the race driven in another way than is usual for it."""
        super().__init__(app, race.snapshot())
        self.setup = setup
        self.drive: Drive = drive or drive_of(race)
        self.link: Link | None = race.link
        self._parted = False
        self._granted = self._spent = 0.0
        """Time that may go, and that went, into driving and showing it since the last picture [s]."""

    @property
    def race(self) -> Race:
        return self.drive.race

    @property
    def top_reserved(self) -> int:
        return self.app.theme.px(STATUS_HEIGHT) if self.status() or self.link else 0

    def status(self) -> Words:
        """What stands at the left of the line at the top."""
        return ()

    def advance(self, ticks: int, action: Action) -> Sequence[Tick]:
        """Drive, show and sound what came of it."""
        begin = time.perf_counter()
        try:
            self._granted += LONGEST
            driven = self.drive.advance(ticks, action, max(0.0, self._granted - self._spent))
        except RacerError as error:
            self._lose(str(error))
            return ()
        for tick in driven:
            self.show(tick.snapshot)
            self.link = tick.link
        self._spent += time.perf_counter() - begin
        if driven:
            self.app.speaker.tick(car_sound(self.after.car))
        elif self.silence > LONGEST_SILENCE and self.app.top is self:
            self._lose(f"No answer from {self.setup.bridge.url if self.setup.bridge else ''} for {self.silence:.0f} s")
        return driven

    @property
    def silence(self) -> float:
        """For how long a bridge has owed an answer [s]."""
        since = self.drive.silent_since
        return 0.0 if since is None else time.monotonic() - since

    def take(self, setup: RaceSetup, race: Race) -> None:
        """Go on with another race: on another circuit, with others, or over a new connection."""
        self.part()
        self._parted = False
        self.setup, self.drive, self.link = setup, drive_of(race), race.link
        self.begin_at(race.snapshot())

    def reopen(self, setup: RaceSetup) -> None:
        """Begin another race, and take it as soon as it is there. A bridge may have room for one at a time only."""
        if setup.bridge is not None:
            self.part()
        open_race(self.app, setup, lambda race: self.take(setup, race))

    def part(self) -> None:
        """Be done with the race that is driven."""
        if not self._parted:
            self._parted = True
            self.drive.close()

    def closed(self) -> None:
        super().closed()
        self.drive.close()

    def draw(self, surface: pygame.Surface, share: float) -> None:
        self._granted = self._spent = 0.0
        super().draw(surface, share)
        if self.app.top is self and self.top_reserved:
            status_line(surface, self.app.theme, self.status(), self._link_words())

    def _link_words(self) -> Words:
        link, palette = self.link, self.app.theme.palette
        if link is None:
            return ()
        if self.silence > PATIENCE:
            return ((link.url, palette.faint), (f"no answer for {self.silence:.0f} s", palette.accent))
        return ((link.url, palette.faint), (link.report(), palette.good if link.sure else palette.bad))

    def _lose(self, reason: str) -> None:
        """The bridge is gone: say so, and offer to try again. What was driven can still be kept."""
        reconnect = Button("Reconnect", "All begin at the start again", do=self._reconnect)
        items = [
            *([reconnect] if self.setup.bridge else []),
            Button("Save replay", "What was driven until now", do=self._keep),
            Button("Leave", do=self._leave),
        ]
        title = "Connection lost" if self.setup.bridge else "It cannot go on"
        self.app.push(LostScreen(self.app, title, reason, items))

    def _keep(self) -> None:
        keep_replay(self.app, self.race.replay())

    def _reconnect(self) -> None:
        self.app.pop()
        self.reopen(self.setup)

    def _leave(self) -> None:
        self.app.pop()
        self.app.pop()
