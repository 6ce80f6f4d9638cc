"""Components of screens that show cars: the picture of a race, and a race that is being driven."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pygame

from racer_env.errors import RacerError, in_one_line
from racer_viewer.modes.controls import Action, PlaybackSpeed
from racer_viewer.modes.drive import TIME_BUDGET, Drive
from racer_viewer.modes.race import RaceSetup, Tick
from racer_viewer.modes.screen import AppContext, MessageScreen, Screen
from racer_viewer.modes.waiting import open_race
from racer_viewer.paths import free_path
from racer_viewer.render.camera import MAX_CLOSER, Camera, Insets, Mode
from racer_viewer.render.explanations import PANEL_EXPLANATIONS, Explanation, draw_explanation
from racer_viewer.render.overlays import Overlays
from racer_viewer.render.scene import Scene, SceneOptions
from racer_viewer.replays import Replay, file_name, replay_to_bytes, save_replay
from racer_viewer.snapshot import InterpolatedFrame, Snapshot
from racer_viewer.sound import car_sound
from racer_viewer.translation import _, mark
from racer_viewer.ui.bindings import OVERLAY_LABELS
from racer_viewer.ui.intents import OVERLAY_COMMANDS, Command, Drag, Intent, MouseMove, Scroll
from racer_viewer.ui.item_list import Button
from racer_viewer.ui.paint import FOOTER_HEIGHT, STATUS_HEIGHT, ColouredWords, draw_status_line
from racer_viewer.ui.theme import MARGIN
from racer_viewer.ui.views import Key, draw_keys

if TYPE_CHECKING:
    from racer_viewer.render.overlays.panel import History

CAMERA_NOTICES = {
    Mode.FOLLOW: mark("Camera: follows the car, north up"),
    Mode.TURN: mark("Camera: turns with the car"),
    Mode.WHOLE: mark("Camera: whole circuit"),
    Mode.FREE: mark("Camera: drag to move, wheel to zoom"),
}
"""Camera modes in the order in which the camera key selects them."""
OverlaySetting = Literal["overlays", "play_overlays"]
"""Settings with the names of shown overlays: while watching, and while driving."""
KEYS_TICKS = 300
"""Time for which the key line is shown at the start and after each mouse movement [ticks]."""
PLAIN_OVERLAYS = {Command.RAYS.value, Command.GATES.value, Command.NAMES.value}
"""Names of the overlays that are drawn into the picture, without a panel."""
ZOOM_STEP = 1.15
"""Zoom factor of one step of the mouse wheel."""


class RaceView:
    """Draws the last two snapshots and everything between them: scene, overlay panels, camera and key line.

    screen: owner; panels and keys are drawn only while it is on top.
    patient: every frame is drawn in full, for films.
    overlays: setting with the names of the shown overlays.
    """

    def __init__(
        self, screen: Screen, first: Snapshot, patient: bool = False, overlays: OverlaySetting = "overlays"
    ) -> None:
        self._screen, self._app = screen, screen.app
        self._overlay_setting = overlays
        self.own_overlays: tuple[str, ...] | None = None
        """Overlays shown instead of those of the settings; changes to them are not saved."""
        theme = self._app.theme
        self.scene, self._overlays = Scene(theme, patient), Overlays(theme, patient)
        self.scene.camera.closer = self._app.settings.zoom
        if overlays == "play_overlays":
            self.scene.camera.mode = Mode(self._app.settings.camera)
        self.scene.resolution = self._app.settings.resolution
        self.scene.prepare(first.track, self._app.height)
        gc.unfreeze()  # objects frozen by an earlier race may be garbage by now
        gc.collect()
        gc.freeze()  # a later collection would otherwise delay a frame
        self.playback = PlaybackSpeed()
        self.before = self.after = first
        self._keys_ticks = KEYS_TICKS
        self._mouse, self._hover_ticks = (0, 0), 0
        """Position of the mouse in the window [px], and time for which what is below it is still explained [ticks]."""
        self._panel_top = 0
        """Distance of the panels' area from the top of the picture [px]."""
        self.panels: Sequence[pygame.Rect] = ()
        """Areas of the overlay panels drawn last, below the status line [px]."""
        self._tick(first)

    @property
    def camera(self) -> Camera:
        return self.scene.camera

    @property
    def history(self) -> History:
        """Values of the last seconds that the panels plot."""
        return self._overlays.history

    @property
    def on_top(self) -> bool:
        return self._app.top is self._screen

    def keys(self) -> tuple[Key, ...]:
        """Return the keys of the camera and the overlays."""
        label = self._app.key_label
        overlays = ((label(command), _(OVERLAY_LABELS[command])) for command in OVERLAY_COMMANDS)
        return (("?", _("explain")), (label(Command.CAMERA), _("camera")), *overlays)

    def explanations(self) -> tuple[Explanation, ...]:
        """Return the explanations of all panels and other overlays that are shown."""
        others = [each.value for each in OVERLAY_COMMANDS if each.value in PLAIN_OVERLAYS & {*self.shown_overlays}]
        return tuple(PANEL_EXPLANATIONS[name] for name in (*self._overlays.places, *others))

    def explained_at(self, x: int, y: int) -> tuple[Explanation, pygame.Rect] | None:
        """Return the explanation of the panel at a pixel of the picture, and its area; None between the panels."""
        for name, place in self._overlays.places.items():
            area = place.move(0, self._panel_top)
            if area.collidepoint(x, y):
                return PANEL_EXPLANATIONS[name], area
        return None

    def panel_area(self, name: str) -> pygame.Rect | None:
        """Return the area of an overlay's panel in the picture [px]; None if it has none."""
        place = self._overlays.places.get(name)
        return None if place is None else place.move(0, self._panel_top)

    def free_area(self, surface: pygame.Surface, upper: bool = False) -> pygame.Rect:
        """Return the area of a picture between the columns of panels, below its middle, where the followed car is [px].

        It ends above the key line. upper: return the area beside the panels of the upper half instead.
        """
        theme, width, height = self._app.theme, *surface.get_size()
        panels = [panel for panel in self.panels if not upper or panel.centery < height // 2]
        left = max((panel.right for panel in panels if panel.centerx < width // 2), default=0)
        right = min((panel.left for panel in panels if panel.centerx >= width // 2), default=width)
        margin, bottom = theme.px(MARGIN), height - theme.px(FOOTER_HEIGHT)
        top = 0 if upper else height // 2 + margin
        bottom = height // 2 if upper else bottom
        return pygame.Rect(left + margin, top + margin, right - left - 2 * margin, bottom - top - 2 * margin)

    def show(self, snapshot: Snapshot) -> None:
        """Show the snapshot of the next tick."""
        self._keys_ticks = max(0, self._keys_ticks - 1)
        self._hover_ticks = max(0, self._hover_ticks - 1)
        self.before, self.after = self.after, snapshot
        self._tick(snapshot)

    def begin_at(self, snapshot: Snapshot, show_keys: bool = True) -> None:
        """Jump to a snapshot, without motion from the one before."""
        if show_keys:
            self.show_keys()
        self.before = self.after = snapshot
        self._tick(snapshot)

    def hold(self) -> None:
        """Show the last snapshot for another window tick; the camera may still be moving."""
        self.camera.tick(self.after)

    def frame(self, share: float = 1.0) -> InterpolatedFrame:
        """Return the frame to draw when this share of the window's next tick has passed."""
        return InterpolatedFrame(self.before, self.after, self.playback.share(share))

    def handle(self, intent: Intent) -> None:
        """Handle intents for overlays, camera and mouse."""
        match intent:
            case Command() if intent in OVERLAY_COMMANDS:
                self.toggle(intent.value)
            case Command.CAMERA:
                self._change_camera()
            case MouseMove(x, y):
                self._mouse, self._hover_ticks = (x, y), KEYS_TICKS
                self.show_keys()
            case Drag(dx=dx, dy=dy):
                self.camera.drag(dx, dy)
            case Scroll(steps) if self.camera.mode in (Mode.FOLLOW, Mode.TURN):
                closer = self.camera.closer + (1 if steps > 0.0 else -1)
                self.camera.closer = min(MAX_CLOSER, max(-MAX_CLOSER, closer))
                self._app.change(zoom=self.camera.closer)
            case Scroll(steps, x, y):
                self.camera.zoom(ZOOM_STEP**steps, (x, y))
            case _:
                pass

    def _change_camera(self) -> None:
        """Switch to the next camera; the one that follows the car while driving is kept for the next race."""
        modes = list(CAMERA_NOTICES)
        mode = modes[(modes.index(self.camera.mode) + 1) % len(modes)]
        self.camera.mode = mode
        if self._overlay_setting == "play_overlays" and mode in (Mode.FOLLOW, Mode.TURN):
            self._app.change(camera=mode.value)
        self._app.notify(_(CAMERA_NOTICES[mode]))

    def toggle(self, overlay: str) -> None:
        """Show an overlay, or hide it."""
        shown = self.shown_overlays
        others = tuple(each for each in shown if each != overlay)
        now = others if overlay in shown else (*shown, overlay)
        if self.own_overlays is not None:
            self.own_overlays = now
        else:
            self._app.change(**{self._overlay_setting: now})

    @property
    def shown_overlays(self) -> tuple[str, ...]:
        """Names of the shown overlays."""
        if self.own_overlays is not None:
            return self.own_overlays
        shown: tuple[str, ...] = getattr(self._app.settings, self._overlay_setting)
        return shown

    def show_keys(self) -> None:
        self._keys_ticks = KEYS_TICKS

    def hide_keys(self) -> None:
        self._keys_ticks = 0

    @property
    def keys_shown(self) -> bool:
        return self._keys_ticks > 0

    def draw_ahead(self) -> bool:
        return self.scene.draw_ahead()

    def draw(
        self, surface: pygame.Surface, share: float, keys: Sequence[Key] = (), top: int = 0, bottom: int = 0
    ) -> None:
        """Draw the race and the key line; panels leave `top` and `bottom` free [px].

        They also leave the key line free while it is not shown, so that they stay in their places and notices cover
        nothing.
        """
        footer = self._app.theme.px(FOOTER_HEIGHT) if keys else 0
        self._draw_race(surface, share, top, bottom + footer)
        if keys and self.keys_shown and self.on_top:
            draw_keys(surface, self._app.theme, keys, self._app.theme.px(self._app.sign_width))

    def _draw_race(self, surface: pygame.Surface, share: float, top: int, bottom: int) -> None:
        theme, shown = self._app.theme, self.shown_overlays
        if self._overlays.theme is not theme:
            self.scene.use(theme)
            self._overlays = self._overlays.with_theme(theme)
        self.scene.resolution = self._app.settings.resolution
        options = SceneOptions(rays="rays" in shown, gates="gates" in shown, names="names" in shown)
        frame = self.frame(share)
        self.scene.draw(surface, frame.before, frame.after, frame.share, options)
        if not self.on_top:
            return
        width, height = surface.get_size()
        panels = surface.subsurface((0, top, width, height - top - bottom))
        self.panels = self._overlays.draw(panels, frame.after, shown, self._app.settings.units)
        self.camera.insets = _insets(self.panels, surface.get_size(), top, bottom)
        self._panel_top = top
        if self._hover_ticks:
            left, above = surface.get_abs_offset()
            found = self.explained_at(self._mouse[0] - left, self._mouse[1] - above)
            if found is not None:
                draw_explanation(surface, theme, *found)

    def _tick(self, snapshot: Snapshot) -> None:
        self.scene.tick(snapshot)
        self._overlays.tick(snapshot)


def _insets(panels: Sequence[pygame.Rect], size: tuple[int, int], top: int, bottom: int) -> Insets:
    """Return the margins covered by the columns of panels, for a view of the whole circuit."""
    middle = size[0] // 2
    left = max((panel.right for panel in panels if panel.centerx < middle), default=0)
    right = min((panel.left for panel in panels if panel.centerx >= middle), default=size[0])
    return Insets(left, top, size[0] - right, bottom)


NOTED_SILENCE, MAX_SILENCE = 0.5, 8.0
"""Time without an answer from a server after which it is shown, and after which the connection counts as lost [s]."""


class LiveRace:
    """A race that a screen drives and shows: its drive, its view, its latest tick and the connection.

    screen: owner.
    on_reopen: called with the last tick of the race before, when another race has taken its place.
    """

    def __init__(
        self,
        screen: Screen,
        setup: RaceSetup,
        drive: Drive,
        on_reopen: Callable[[Tick], None],
        overlays: OverlaySetting = "overlays",
    ) -> None:
        self._screen, self._app, self._on_reopen = screen, screen.app, on_reopen
        self.setup, self.drive, self.tick = setup, drive, drive.first
        self.view = RaceView(screen, drive.first.snapshot, overlays=overlays)
        self._granted = self._spent = 0.0
        """Time allowed for and spent on simulating since the last frame [s]."""

    @property
    def silence(self) -> float:
        """Time for which a server has not answered [s]."""
        since = self.drive.waiting_since
        return 0.0 if since is None else time.monotonic() - since

    def advance(self, ticks: int, action: Action) -> Sequence[Tick]:
        """Drive, and show and play what was driven; a failure opens a message."""
        begin = time.perf_counter()
        try:
            self._granted += TIME_BUDGET
            driven = self.drive.advance(ticks, action, max(0.0, self._granted - self._spent))
        except RacerError as error:
            self._fail(str(error))
            return ()
        for tick in driven:
            self.tick = tick
            self.view.show(tick.snapshot)
        self._spent += time.perf_counter() - begin
        if driven:
            self._app.sound.tick(car_sound(self.view.after.car))
        elif self.silence > MAX_SILENCE and self.view.on_top:
            url = self.setup.bridge.url if self.setup.bridge else ""
            self._fail(_("No answer from {url} for {seconds:.0f} s").format(url=url, seconds=self.silence))
        return driven

    def reopen(self, setup: RaceSetup) -> None:
        """Replace the race with another one. A server may have room for one race only, so the old one is closed."""
        if setup.bridge is not None:
            self.drive.close()
        setup = replace(setup, focus=self.tick.snapshot.focus)
        open_race(self._app, setup, lambda drive: self._take(setup, drive))

    def close(self) -> None:
        self.drive.close()

    def reserved_height(self, status: ColouredWords = ()) -> int:
        """Return the height of the status line at the top [px]."""
        return self._app.theme.px(STATUS_HEIGHT) if status or self.tick.bridge else 0

    def draw(self, surface: pygame.Surface, share: float, keys: Sequence[Key], status: ColouredWords = ()) -> None:
        """Draw the race, the key line and the status line."""
        self._granted = self._spent = 0.0
        top = self.reserved_height(status)
        self.view.draw(surface, share, keys, top)
        if top and self.view.on_top:
            draw_status_line(surface, self._app.theme, status, self.connection_words())

    def connection_words(self) -> ColouredWords:
        """Return the state of the connection for the right end of the status line."""
        bridge, palette = self.tick.bridge, self._app.theme.palette
        if bridge is None:
            return ()
        if self.silence > NOTED_SILENCE:
            return (
                (bridge.url, palette.faint),
                (_("no answer for {seconds:.0f} s").format(seconds=self.silence), palette.accent),
            )
        return ((bridge.url, palette.faint), (bridge.text, palette.good if bridge.exact else palette.bad))

    def _take(self, setup: RaceSetup, drive: Drive) -> None:
        self.drive.close()
        last, self.setup, self.drive, self.tick = self.tick, setup, drive, drive.first
        self.view.begin_at(drive.first.snapshot)
        self._on_reopen(last)

    def _fail(self, reason: str) -> None:
        """Show why the race cannot continue; what was driven can still be saved."""
        replay = self.tick.followed.replay()
        reconnect = Button(_("Reconnect"), _("All cars restart"), on_press=self._reconnect)
        items = [
            *([reconnect] if self.setup.bridge else []),
            Button(_("Save replay"), _("The drive so far"), on_press=lambda: save_to_replays(self._app, replay)),
            Button(_("Leave"), on_press=self._leave),
        ]
        title = _("Connection lost") if self.setup.bridge else _("The race cannot continue")
        self._app.push(MessageScreen(self._app, title, reason, items, on_back=self._leave))

    def _reconnect(self) -> None:
        self._app.pop()
        self.reopen(self.setup)

    def _leave(self) -> None:
        self._app.pop()
        self._app.pop()


def save_to_replays(app: AppContext, replay: Replay | None) -> Path | None:
    """Save a replay in the user's replay folder under a new name, and say where; return the file that has it."""
    if replay is None:
        app.notify(_("Nothing to save yet"))
        return None
    path = app.data / "replays" / file_name(replay)
    try:
        if path.is_file() and path.read_bytes() == replay_to_bytes(replay):
            app.notify(_("Already saved as {path}").format(path=path))
            return path
        path = free_path(path)
        save_replay(replay, path)
        app.notify(_("Saved as {path}").format(path=path))
    except (RacerError, OSError) as error:
        app.notify(in_one_line(error))
        return None
    return path
