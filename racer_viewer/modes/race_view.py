"""A car on the road, seen: what playing, watching and replaying have in common.

A race on screen: what playing and watching have in common, here and on somebody else's bridge."""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from racer_env.errors import RacerError
from racer_viewer.modes.controls import Action, PlaybackSpeed
from racer_viewer.modes.drive import LONGEST, Drive, Tick, drive_of
from racer_viewer.modes.keeping import keep_replay
from racer_viewer.modes.link import Link
from racer_viewer.modes.race import Race, RaceSetup
from racer_viewer.modes.screen import AppContext, Key, MessageScreen, Screen, draw_keys
from racer_viewer.modes.waiting import open_race
from racer_viewer.render.camera import Camera, Insets, Mode
from racer_viewer.render.overlays import Overlays
from racer_viewer.render.scene import Scene, SceneOptions
from racer_viewer.snapshot import InterpolatedFrame, Snapshot
from racer_viewer.sound import car_sound
from racer_viewer.ui.intents import Command, Drag, Intent, MouseMove, Scroll
from racer_viewer.ui.item_list import Button
from racer_viewer.ui.paint import FOOTER_HEIGHT, STATUS_HEIGHT, ColouredWords, draw_status_line

if TYPE_CHECKING:
    import pygame

TOGGLED = (
    Command.RAYS,
    Command.REWARD,
    Command.INPUTS,
    Command.AGENT,
    Command.PHYSICS,
    Command.TIMING,
    Command.MAP,
    Command.GATES,
    Command.NAMES,
)
"""What is shown or not, each by a key."""
CAMERAS = {
    Mode.FOLLOW: "Camera: follows the car",
    Mode.WHOLE: "Camera: the whole circuit",
    Mode.FREE: "Camera: drag to move, wheel to zoom",
}
"""In the order in which one key goes through them."""
KEYS_TICKS = 300
"""How long the keys are shown at the bottom, from the beginning and whenever the mouse is moved."""
ZOOM_STEP = 1.15
"""Of one click of the mouse wheel."""


class DrivingScreen(Screen):
    """Draws the last two snapshots, and what lies between them."""

    def __init__(self, app: AppContext, first: Snapshot, patient: bool = False) -> None:
        """patient: every picture is drawn in full, for films."""
        super().__init__(app)
        self._scene, self._overlays = Scene(app.theme, patient), Overlays(app.theme, patient)
        self._scene.prepare(first.track, app.height)
        gc.unfreeze()  # of what was loaded before, some may have been left behind
        gc.collect()
        gc.freeze()  # what is loaded now stays: looking through it again would hold up a frame of the race
        self.before = self.after = first
        self.pace = PlaybackSpeed()
        """Where the person drives it stays as it is."""
        self._keys_ticks = KEYS_TICKS
        self.begin_at(first)

    @property
    def camera(self) -> Camera:
        return self._scene.camera

    @property
    def top_reserved(self) -> int:
        """Height of what lies at the top, where no panel may lie [px]."""
        return 0

    @property
    def bottom_reserved(self) -> int:
        """The same at the bottom, above the keys [px]."""
        return 0

    def keys(self) -> Sequence[Key]:
        toggles = [(self.app.key_label(what), what.value) for what in TOGGLED]
        return (("Esc", "pause"), (self.app.key_label(Command.CAMERA), "camera"), *toggles)

    def show(self, snapshot: Snapshot) -> None:
        """A tick has passed, and this is what there is to see now."""
        self._keys_ticks = max(0, self._keys_ticks - 1)
        self.before, self.after = self.after, snapshot
        self._scene.tick(snapshot)
        self._overlays.tick(snapshot)

    def begin_at(self, snapshot: Snapshot) -> None:
        """Something else begins: nothing moves from what was shown before to this."""
        self.before = self.after = snapshot
        self.show_keys()
        self._scene.tick(snapshot)
        self._overlays.tick(snapshot)

    def moment(self, share: float = 1.0) -> InterpolatedFrame:
        """What is to be seen when this share of the window's next tick has passed."""
        return InterpolatedFrame(self.before, self.after, self.pace.share(share))

    def handle(self, intent: Intent) -> None:
        match intent:
            case Command() if intent in TOGGLED:
                self.toggle(intent.value)
            case Command.CAMERA:
                camera, modes = self._scene.camera, list(CAMERAS)
                camera.mode = modes[(modes.index(camera.mode) + 1) % len(modes)]
                self.app.notify(CAMERAS[camera.mode])
            case MouseMove():
                self.show_keys()
            case Drag(dx=dx, dy=dy):
                self._scene.camera.drag(dx, dy)
            case Scroll(steps, x, y):
                self._scene.camera.zoom(ZOOM_STEP**steps, (x, y))
            case _:
                pass

    def toggle(self, name: str) -> None:
        """Show something over the picture, or no longer."""
        shown = self.app.settings.overlays
        others = tuple(each for each in shown if each != name)
        self.app.change(overlays=others if name in shown else (*shown, name))

    def show_keys(self) -> None:
        """For a while."""
        self._keys_ticks = KEYS_TICKS

    def hide_keys(self) -> None:
        self._keys_ticks = 0

    @property
    def keys_shown(self) -> bool:
        """Whether there is a line of keys at the bottom now."""
        return self._keys_ticks > 0

    def on_show(self) -> None:
        self.app.sound.resume()

    def on_cover(self) -> None:
        self.app.sound.pause()

    def on_close(self) -> None:
        self.app.sound.pause()

    def draw_ahead(self) -> bool:
        return self._scene.draw_ahead()

    def draw(self, surface: pygame.Surface, share: float) -> None:
        keys = self.keys_shown and self.app.top is self
        below = self.app.theme.px(FOOTER_HEIGHT) if keys else 0
        self.draw_road(surface, share, self.top_reserved, self.bottom_reserved + below)
        if keys:
            draw_keys(surface, self.app.theme, self.keys())

    def draw_road(self, surface: pygame.Surface, share: float, top: int = 0, bottom: int = 0) -> None:
        """The scene, and over it the panels, which leave so much free at the top and at the bottom [px]."""
        theme, shown = self.app.theme, self.app.settings.overlays
        if self._overlays.theme is not theme:
            self._scene.use(theme)
            self._overlays = self._overlays.with_theme(theme)
        options = SceneOptions(rays="rays" in shown, gates="gates" in shown, names="names" in shown)
        moment = self.moment(share)
        self._scene.draw(surface, moment.before, moment.after, moment.share, options)
        if self.app.top is not self:
            return
        width, height = surface.get_size()
        panels = surface.subsurface((0, top, width, height - top - bottom))
        covered = self._overlays.draw(panels, moment.after, shown, self.app.settings.units)
        self._scene.camera.insets = _insets(covered, surface.get_size(), top, bottom)


def _insets(panels: Sequence[pygame.Rect], size: tuple[int, int], top: int, bottom: int) -> Insets:
    """What the columns of panels at both sides leave free, for a view of the whole circuit."""
    middle = size[0] // 2
    left = max((panel.right for panel in panels if panel.centerx < middle), default=0)
    right = min((panel.left for panel in panels if panel.centerx >= middle), default=size[0])
    return Insets(left, top, size[0] - right, bottom)


PATIENCE, LONGEST_SILENCE = 0.5, 8.0
"""After which a silent bridge is mentioned, and after which it counts as gone [s]."""


class LostScreen(MessageScreen):
    """A race cannot go on; the way back leads out of it."""

    def back(self) -> None:
        self.app.pop()
        self.app.pop()


class RaceScreen(DrivingScreen):
    """Has a race driven, and shows how it stands with the bridge if there is one."""

    def __init__(self, app: AppContext, setup: RaceSetup, race: Race, drive: Drive | None = None) -> None:
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

    def status(self) -> ColouredWords:
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
            self.app.sound.tick(car_sound(self.after.car))
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

    def on_close(self) -> None:
        super().on_close()
        self.drive.close()

    def draw(self, surface: pygame.Surface, share: float) -> None:
        self._granted = self._spent = 0.0
        super().draw(surface, share)
        if self.app.top is self and self.top_reserved:
            draw_status_line(surface, self.app.theme, self.status(), self._link_words())

    def _link_words(self) -> ColouredWords:
        link, palette = self.link, self.app.theme.palette
        if link is None:
            return ()
        if self.silence > PATIENCE:
            return ((link.url, palette.faint), (f"no answer for {self.silence:.0f} s", palette.accent))
        return ((link.url, palette.faint), (link.report(), palette.good if link.sure else palette.bad))

    def _lose(self, reason: str) -> None:
        """The bridge is gone: say so, and offer to try again. What was driven can still be kept."""
        reconnect = Button("Reconnect", "All begin at the start again", on_press=self._reconnect)
        items = [
            *([reconnect] if self.setup.bridge else []),
            Button("Save replay", "What was driven until now", on_press=self._keep),
            Button("Leave", on_press=self._leave),
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
