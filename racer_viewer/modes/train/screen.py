"""The training screen: the newest policy driving, all cars that learn, and the curves of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pygame

from racer_env.engine import circuit_name
from racer_viewer.modes.controls import SteeringInput
from racer_viewer.modes.race_view import RaceView, save_to_replays
from racer_viewer.modes.screen import AppContext, Screen
from racer_viewer.modes.train.end import TrainEndScreen
from racer_viewer.modes.train.menu import MAX_SMOOTHING, LeaveTrainingScreen, RunDecision, TrainMenu
from racer_viewer.modes.train.panels import (
    PACES,
    EventPanel,
    TrainLayout,
    TrainMouse,
    TrainStatus,
    gaps,
    pace_index,
    pace_name,
    pane_rects,
    update_timeline,
)
from racer_viewer.modes.train.pictures import PolicySwarm, TrainPictures, TrainPictureState
from racer_viewer.modes.train.run_facts import ComparedRuns
from racer_viewer.modes.train.showcase import LIVE, Showcase, ShownPolicy, steps_in_words
from racer_viewer.render.camera import Insets
from racer_viewer.render.explanations import CHART_EXPLANATIONS, VIEW_EXPLANATIONS, Explanation
from racer_viewer.run_history import RunHistory, Swarm
from racer_viewer.training.run_folder import latest_model
from racer_viewer.training.run_monitor import RunMonitor
from racer_viewer.translation import _
from racer_viewer.ui.intents import Command, Controls, Intent
from racer_viewer.ui.paint import FOOTER_HEIGHT, STATUS_HEIGHT, draw_centred
from racer_viewer.ui.theme import TEXT, TEXT_LARGE
from racer_viewer.ui.timeline import Timeline
from racer_viewer.ui.views import Key, draw_keys

DOT_TICKS = 24
"""Time after which the dots of a waiting text change [ticks]."""
USUAL_ASPECT_RATIO = 16 / 9
"""Width to height of a usual window; the ground is prepared for it."""


class TrainScreen(Screen):
    """A run while it learns, and afterwards a timeline of all of it."""

    view: RaceView

    def __init__(self, app: AppContext, run: RunMonitor, patient: bool = False) -> None:
        """Show a run; `patient` draws every frame in full, for films."""
        super().__init__(app)
        self.run = run
        self._circuits, self._patient = run.config.circuits, patient
        self.circuit = self._circuits[0]
        """ID of the circuit that is shown, one of the run's circuits."""
        self.showcase = self._new_showcase(app)
        self.view = RaceView(self, self.showcase.tick.snapshot, patient)
        self.policy = ShownPolicy(run, self.showcase, app.notify)
        self.layout, self.smoothing = TrainLayout.ALL, 0.6
        self._others = ComparedRuns()
        self.timeline = Timeline(1, steps_in_words, self.policy.choose_at, self._press)
        self.pictures, self._status = TrainPictures(app, patient), TrainStatus(self, patient)
        self._prepare_ground((round(app.height * USUAL_ASPECT_RATIO), app.height))
        self._events, self._steering = EventPanel(), SteeringInput()
        self._ticks = 0
        self._policy_swarm: PolicySwarm | None = None
        self._mouse = TrainMouse(self)
        self._end_shown = run.state not in LIVE
        self.panes: dict[TrainLayout, pygame.Rect] = {}
        """Rectangles of the visible panes, as they were drawn last."""
        self.decision: RunDecision | None = None
        """Decision of the user about the run; None as long as there is none."""
        self.on_closed: list[Callable[[], None]] = []
        """Callbacks for when the screen is closed."""

    def _new_showcase(self, app: AppContext) -> Showcase:
        run = self.run
        return Showcase(self.circuit, run.config, run.config.rewards, app.theme.palette, app.settings.name)

    def _prepare_ground(self, size: tuple[int, int]) -> None:
        """Prepare the ground of the first view for a window of this size."""
        panes = pane_rects(self.layout, self._area(size))
        self.view.scene.prepare(self.showcase.track, panes[TrainLayout.SHOWCASE].height)
        self.pictures.prepare(self.showcase.track, panes[TrainLayout.SWARM].size)

    @property
    def _track_number(self) -> int:
        """Index of the shown circuit among the run's tracks."""
        return self.run.config.tracks.index(self.circuit)

    @property
    def is_live(self) -> bool:
        """True while the run is starting, learning or paused."""
        return self.run.state in LIVE

    def keys(self) -> Sequence[Key]:
        key, drives = self.app.key_label, self.showcase.player_drives
        learning = (
            (key(Command.PAUSE), _("resume") if self.run.state == "paused" else _("pause")),
            (f"{key(Command.SLOWER)} {key(Command.FASTER)}", _("pace")),
        )
        circuits = ((f"{key(Command.PREVIOUS_CIRCUIT)} {key(Command.NEXT_CIRCUIT)}", _("circuit")),)
        return (
            ("Esc", _("menu")),
            *(learning if self.is_live else ()),
            (key(Command.LAYOUT), _("view")),
            ("Left Right", _("earlier / later policy")),
            (key(Command.WHEEL), _("hand back") if drives else _("race")),
            (key(Command.KEEP), _("save checkpoint") if self.is_live else _("save replay")),
            *(circuits if len(self._circuits) > 1 else ()),
            *self.view.keys(),
        )

    def repeats(self, direction: Command) -> bool:
        return direction in (Command.LEFT, Command.RIGHT) and not self.showcase.player_drives

    def space_below_keys(self) -> int:
        return self.timeline.height(self.app.theme)

    def handle(self, intent: Intent) -> None:
        if self.timeline.handle(intent):
            return
        match intent:
            case Command.BACK:
                self.app.push(TrainMenu(self.app, self))
            case Command.PAUSE:
                self._press()
            case Command.SLOWER | Command.FASTER:
                self.set_pace(pace_index(self.run.pace) + (1 if intent == Command.FASTER else -1))
            case Command.LAYOUT:
                layouts = list(TrainLayout)
                self.layout = layouts[(layouts.index(self.layout) + 1) % len(layouts)]
                self.app.notify(_("View: {view}").format(view=_(self.layout.value)))
            case Command.LEFT | Command.RIGHT if self.showcase.player_drives:
                pass  # these keys steer
            case Command.LEFT | Command.RIGHT:
                self.policy.choose_neighbour(1 if intent == Command.RIGHT else -1)
            case Command.PREVIOUS_CIRCUIT | Command.NEXT_CIRCUIT:
                self._show_circuit(1 if intent == Command.NEXT_CIRCUIT else -1)
            case Command.WHEEL:
                self.race_policy(not self.showcase.player_drives)
            case Command.KEEP:
                self.save()
            case Command.RESTART:
                self.showcase.restart()
            case _ if not self._mouse.handle(intent):
                self.view.handle(intent)

    def explanations(self) -> Sequence[Explanation]:
        views = [VIEW_EXPLANATIONS["timeline"]]
        if TrainLayout.SHOWCASE in self.panes:
            views += [VIEW_EXPLANATIONS["policy"], *super().explanations()]
        if TrainLayout.SWARM in self.panes:
            views.append(VIEW_EXPLANATIONS["swarm"])
        charts = self.pictures.charts if TrainLayout.CURVES in self.panes else ()
        return (*views, *(CHART_EXPLANATIONS[chart] for chart in charts))

    def draw_ahead(self) -> bool:
        showcase = TrainLayout.SHOWCASE in self.panes and self.view.draw_ahead()
        return showcase or self._status.draw_ahead() or self.pictures.draw_ahead(self.panes)

    def tick(self, controls: Controls) -> None:
        self._ticks += 1
        self.showcase.set_rewards(self.run.config.rewards)
        self.policy.tick()
        self.view.camera.zooms = self.layout is not TrainLayout.ALL
        speed = float(self.view.after.car["speed"])
        self.view.show(self.showcase.step(self._steering.update(controls, speed)))
        self.pictures.tick(self.cars())
        update_timeline(self.timeline, self)
        if not self.is_live and not self._end_shown:
            self._end_shown = True
            self.app.push(TrainEndScreen(self.app, self))

    def cars(self) -> Swarm | None:
        """Return the cars that learn; after the end, cars that the shown policy drives."""
        agent = self.showcase.newest
        if self.is_live or agent is None:
            return self.run.swarm()
        if self._policy_swarm is None:
            self._policy_swarm = PolicySwarm(self.showcase.track, self._track_number, self.run.config.rewards)
            self.pictures.reset_cars()
        return self._policy_swarm.step(agent)

    def set_pace(self, number: int) -> None:
        """Set the pace of learning by its index in `PACES`."""
        pace = PACES[min(len(PACES) - 1, max(0, number))]
        self.run.set_pace(pace)
        self.app.notify(_("Pace: {pace}").format(pace=pace_name(pace)))

    def set_weights(self, weights: dict[str, float], terms: dict[str, str] | None = None) -> None:
        """Change some reward weights, and all terms unless they are None, from now on."""
        self.run.set_weights(weights, terms)
        self.app.notify(
            _("The new weights apply from now on") if terms is None else _("The new reward applies from now on")
        )

    def smooth(self, by: float) -> None:
        """Change the smoothing of the curves."""
        self.smoothing = min(MAX_SMOOTHING, max(0.0, self.smoothing + by))
        self.app.notify(_("Smoothing {smoothing:.2f}").format(smoothing=self.smoothing))

    def save(self) -> None:
        """Save a checkpoint of a live run; of an ended run, a replay of the showcase."""
        if self.is_live:
            self.run.save()
            self.app.notify(_("Saving a checkpoint"))
        else:
            save_to_replays(self.app, self.showcase.tick.followed.replay())

    def race_policy(self, on: bool) -> None:
        """Let the user race against the policy, or hand the car back."""
        self._steering.release()
        self.showcase.let_player_drive(on)
        driver = self.policy.driver
        self.app.notify(
            _("You race {driver}").format(driver=driver)
            if on
            else _("{driver} drives again").format(driver=driver[0].upper() + driver[1:])
        )

    def confirm_close(self, then: Callable[[], None]) -> Screen | None:
        """Ask what becomes of a live run."""
        return LeaveTrainingScreen(self.app, self, then) if self.is_live else None

    def on_close(self) -> None:
        super().on_close()
        self._others.close()
        self.run.close()
        self.showcase.close()
        for callback in self.on_closed:
            callback()

    def decide(self, decision: RunDecision) -> None:
        """Apply what the user has decided about the run."""
        self.decision = decision
        if decision is RunDecision.DETACH:
            self.run.detach()
        else:
            self.run.stop(discard=decision is RunDecision.DISCARD)

    def best_model(self) -> Path | None:
        """Return the path of the best model; of the last checkpoint if there is no best one."""
        best = self.run.folder / f"{self.run.config.name}_best.zip"
        return best if best.is_file() else latest_model(self.run.folder)

    @property
    def compared(self) -> list[RunHistory]:
        """Curves of the runs that this one is compared with."""
        return self._others.curves

    @property
    def compared_folders(self) -> list[Path]:
        return self._others.folders

    def compare_with(self, folder: Path) -> None:
        """Draw the curves of another run too; they are updated while it learns."""
        if folder != self.run.folder:
            self._others.add(folder)

    def _area(self, size: tuple[int, int]) -> pygame.Rect:
        """Return the area between status line and line of keys or, in a film, the timeline."""
        theme = self.app.theme
        top, keys = theme.px(STATUS_HEIGHT), 0 if self._patient else theme.px(FOOTER_HEIGHT)
        return pygame.Rect(0, top, size[0], size[1] - top - keys - self.timeline.height(theme))

    def draw(self, surface: pygame.Surface, share: float) -> None:
        theme, area = self.app.theme, self._area(surface.get_size())
        self.pictures.begin()
        self.showcase.set_palette(theme.palette)
        self.panes = pane_rects(self.layout, area)
        for gap in gaps(self.panes, area):
            surface.fill(theme.palette.panel[:3], gap)
        if TrainLayout.SHOWCASE in self.panes:
            self.view.draw(surface.subsurface(self.panes[TrainLayout.SHOWCASE]), share)
        self.pictures.draw(surface, self.panes, self._picture_state())
        if TrainLayout.CURVES not in self.panes or self.layout is TrainLayout.ALL:
            self._draw_events(surface)
        if self.run.state == "starting" and self.app.top is self:
            self._draw_waiting(surface.subsurface(self.panes.get(TrainLayout.SHOWCASE, area)))
        if not self._patient:
            strip = pygame.Rect(0, area.bottom, area.width, theme.px(FOOTER_HEIGHT))
            surface.fill(theme.palette.panel[:3], strip)
            draw_keys(surface.subsurface(strip), theme, self.keys(), theme.px(self.app.sign_width))
        self._status.draw(surface)
        self.timeline.draw(surface, theme)

    def _picture_state(self) -> TrainPictureState:
        at = None if self.policy.is_newest else float(self.policy.steps)
        runs = [self.run.history, *self.compared]
        return TrainPictureState(
            self.showcase.track, self.circuit, self._track_number, runs, self._mouse.position, self.smoothing, at
        )

    def _draw_waiting(self, surface: pygame.Surface) -> None:
        theme, y = self.app.theme, surface.get_height() // 3
        draw_centred(surface, theme, _("Starting the learner") + "." * (self._ticks // DOT_TICKS % 4), y, TEXT_LARGE)
        draw_centred(surface, theme, _("This takes a few seconds"), y + theme.px(48), TEXT)

    def _draw_events(self, surface: pygame.Surface) -> None:
        """Draw the events up to the time that is shown, between the panels."""
        pane = self.panes.get(TrainLayout.SHOWCASE) or self.panes[TrainLayout.SWARM]
        insets = self.view.camera.insets if TrainLayout.SHOWCASE in self.panes else Insets()
        free = pygame.Rect(pane.x + insets.left, pane.y, pane.width - insets.left - insets.right, pane.height)
        events = [event for event in self.run.history.events if event.steps <= self.policy.steps]
        self._events.draw(surface, self.app.theme, events, free)

    def _show_circuit(self, by: int) -> None:
        """Show the next or previous circuit of the run."""
        if len(self._circuits) < 2:
            self.app.notify(_("This run has one circuit only"))
            return
        number = (self._circuits.index(self.circuit) + by) % len(self._circuits)
        self.circuit = self._circuits[number]
        self.showcase.close()
        self.showcase = self._new_showcase(self.app)
        self.policy.move_to(self.showcase)
        self._policy_swarm = None
        self.view.begin_at(self.showcase.tick.snapshot)
        self.app.notify(
            _("Circuit {number} of {count}: {circuit}").format(
                number=number + 1, count=len(self._circuits), circuit=circuit_name(self.circuit)
            )
        )

    def _press(self) -> None:
        """Pause or resume learning; after the end, restart the showcase."""
        if self.run.state == "paused":
            self.run.resume()
        elif self.is_live:
            self.run.pause()
        else:
            self.showcase.restart()
