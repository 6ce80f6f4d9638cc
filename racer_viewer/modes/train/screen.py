"""Training, seen while it happens: the newest policy driving, all cars that learn, and the curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pygame

from racer_viewer.modes.controls import SteeringInput
from racer_viewer.modes.race_view import RaceView, save_to_replays
from racer_viewer.modes.screen import AppContext, Key, Screen, draw_keys
from racer_viewer.modes.train.end import TrainEndScreen
from racer_viewer.modes.train.menu import LARGEST_SMOOTHING, LeaveTrainingScreen, TrainMenu
from racer_viewer.modes.train.panels import (
    PACES,
    EventPanel,
    RunDecision,
    TrainLayout,
    TrainMouse,
    TrainStatus,
    gaps,
    note_on,
    pace_index,
    pace_name,
    panes,
)
from racer_viewer.modes.train.pictures import PolicySwarm, TrainPictures, TrainPictureState
from racer_viewer.modes.train.run_facts import ComparedRuns
from racer_viewer.modes.train.showcase import LIVE, Showcase, ShownPolicy, steps_in_words
from racer_viewer.run_history import RunHistory, Swarm
from racer_viewer.training.run_folder import latest_model
from racer_viewer.training.run_monitor import RunMonitor
from racer_viewer.ui.intents import Command, Controls, Intent
from racer_viewer.ui.paint import STATUS_HEIGHT, draw_centred
from racer_viewer.ui.theme import MARGIN, TEXT, TEXT_LARGE
from racer_viewer.ui.timeline import Timeline

DOT_TICKS = 24
USUAL_SHAPE = 16 / 9
"""Of a window, width to height."""


class TrainScreen(Screen):
    """A run from its first step to its last, and afterwards a timeline over all of it."""

    view: RaceView

    def __init__(self, app: AppContext, run: RunMonitor, patient: bool = False) -> None:
        """patient: everything is drawn in full, for films."""
        super().__init__(app)
        self.run = run
        self._circuits = run.config.circuits
        self.circuit = self._circuits[0]
        """That is shown, of those of the run."""
        self.showcase = self._new_showcase(app)
        self.view = RaceView(self, self.showcase.tick.snapshot, patient)
        self.policy = ShownPolicy(run, self.showcase, app.notify)
        self.layout, self.smoothing = TrainLayout.ALL, 0.6
        self._others = ComparedRuns()
        self.timeline = Timeline(1, steps_in_words, self.policy.choose_at, self._press)
        self.pictures, self._status = TrainPictures(app, patient), TrainStatus(self, patient)
        self._prepare_ground((round(app.height * USUAL_SHAPE), app.height))
        self._events, self._steering = EventPanel(), SteeringInput()
        self._waited = 0
        self._again: PolicySwarm | None = None
        self._mouse = TrainMouse(self)
        self._told_end = run.state not in LIVE
        self.places: dict[TrainLayout, pygame.Rect] = {}
        """Of the parts that are shown, as they were drawn last."""
        self.decision: RunDecision | None = None
        """As it was decided here."""
        self.on_closed: list[Callable[[], None]] = []
        """Called when it is."""

    def _new_showcase(self, app: AppContext) -> Showcase:
        run = self.run
        return Showcase(self.circuit, run.config, run.weights, app.theme.palette, app.settings.name)

    def _prepare_ground(self, size: tuple[int, int]) -> None:
        """For the view that comes first, in a window of this size; for others their first pictures do it."""
        places = panes(self.layout, self._area(size))
        self.view.scene.prepare(self.showcase.track, places[TrainLayout.SHOWCASE].height)
        self.pictures.prepare(self.showcase.track, places[TrainLayout.SWARM].size)

    @property
    def _number(self) -> int:
        """Of the circuit that is shown, as the cars of the run have it."""
        return self.run.config.tracks.index(self.circuit)

    @property
    def is_live(self) -> bool:
        """Whether it still learns, or could go on at once."""
        return self.run.state in LIVE

    def keys(self) -> Sequence[Key]:
        key, drives = self.app.key_label, self.showcase.player_drives
        learning = (
            (key(Command.PAUSE), "go on" if self.run.state == "paused" else "pause"),
            (f"{key(Command.SLOWER)} {key(Command.FASTER)}", "pace"),
        )
        circuits = ((f"{key(Command.PREVIOUS_CIRCUIT)} {key(Command.NEXT_CIRCUIT)}", "circuit"),)
        return (
            ("Esc", "menu"),
            *(learning if self.is_live else ()),
            (key(Command.LAYOUT), "view"),
            ("Left Right", "then and now"),
            (key(Command.WHEEL), "hand back" if drives else "race it"),
            (key(Command.KEEP), "save now" if self.is_live else "keep"),
            *(circuits if len(self._circuits) > 1 else ()),
            *self.view.keys(),
        )

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
                self.app.notify(f"View: {self.layout.value}")
            case Command.LEFT | Command.RIGHT if self.showcase.player_drives:
                pass  # they steer
            case Command.LEFT | Command.RIGHT:
                self.policy.choose_neighbour(1 if intent == Command.RIGHT else -1)
            case Command.PREVIOUS_CIRCUIT | Command.NEXT_CIRCUIT:
                self._show_circuit(1 if intent == Command.NEXT_CIRCUIT else -1)
            case Command.WHEEL:
                self.race_it(not self.showcase.player_drives)
            case Command.KEEP:
                self.save()
            case Command.RESTART:
                self.showcase.restart()
            case _ if not self._mouse.handle(intent):
                self.view.handle(intent)

    def draw_ahead(self) -> bool:
        showcase = TrainLayout.SHOWCASE in self.places and self.view.draw_ahead()
        return showcase or self._status.draw_ahead() or self.pictures.draw_ahead(self.places)

    def tick(self, controls: Controls) -> None:
        self._waited += 1
        self.showcase.set_weights(self.run.weights)
        self.policy.tick()
        self.view.camera.zooms = self.layout is not TrainLayout.ALL
        speed = float(self.view.after.car["speed"])
        self.view.show(self.showcase.step(self._steering.update(controls, speed)))
        self.pictures.tick(self._cars())
        note_on(self.timeline, self)
        if not self.is_live and not self._told_end:
            self._told_end = True
            self.app.push(TrainEndScreen(self.app, self))

    def _cars(self) -> Swarm | None:
        """That learn now; afterwards, cars that the chosen policy drives."""
        agent = self.showcase.newest
        if self.is_live or agent is None:
            return self.run.swarm()
        if self._again is None:
            self._again = PolicySwarm(self.showcase.track, self._number, self.run.config.rewards)
            self.pictures.forget_cars()
        return self._again.step(agent)

    def set_pace(self, number: int) -> None:
        """As fast as the machine can, or slowed down so that the eye can follow."""
        pace = PACES[min(len(PACES) - 1, max(0, number))]
        self.run.set_pace(pace)
        self.app.notify(f"Pace: {pace_name(pace)}")

    def weigh(self, weights: dict[str, float]) -> None:
        """What some parts of the reward are worth from now on."""
        self.run.set_weights(weights)
        self.app.notify("The new weights count from now on")

    def smooth(self, by: float) -> None:
        """Curves more, or less, from now on."""
        self.smoothing = min(LARGEST_SMOOTHING, max(0.0, self.smoothing + by))
        self.app.notify(f"Smoothing {self.smoothing:.2f}")

    def save(self) -> None:
        if self.is_live:
            self.run.save()
            self.app.notify("Saving what it knows now")
        else:
            save_to_replays(self.app, self.showcase.tick.followed.replay())

    def race_it(self, on: bool) -> None:
        """The person against the policy that drives."""
        self._steering.release()
        self.showcase.let_player_drive(on)
        driver = self.policy.driver
        self.app.notify(f"You race {driver}" if on else f"{driver[0].upper()}{driver[1:]} drives again")

    def confirm_close(self, then: Callable[[], None]) -> Screen | None:
        """What becomes of it? Nothing is to be asked once it has ended."""
        return LeaveTrainingScreen(self.app, self, then) if self.is_live else None

    def on_close(self) -> None:
        super().on_close()
        self._others.close()
        self.run.close()
        self.showcase.close()
        for told in self.on_closed:
            told()

    def decide(self, decision: RunDecision) -> None:
        """What becomes of the run from now on."""
        self.decision = decision
        if decision is RunDecision.DETACH:
            self.run.detach()
        else:
            self.run.stop(discard=decision is RunDecision.DISCARD)

    def best_model(self) -> Path | None:
        """The fastest so far; else the last that was saved."""
        best = self.run.folder / f"{self.run.config.name}_best.zip"
        return best if best.is_file() else latest_model(self.run.folder)

    @property
    def compared(self) -> list[RunHistory]:
        """Curves of other runs, over this one's."""
        return self._others.curves

    @property
    def compared_folders(self) -> list[Path]:
        return self._others.folders

    def compare_with(self, folder: Path) -> None:
        """Draw the curves of another run over this one's; if it learns too, they grow as well."""
        if folder != self.run.folder:
            self._others.add(folder)

    def _area(self, size: tuple[int, int]) -> pygame.Rect:
        """Between the line at the top and the timeline. The keys lie over it: it must not change with them."""
        theme = self.app.theme
        top = theme.px(STATUS_HEIGHT)
        return pygame.Rect(0, top, size[0], size[1] - top - self.timeline.height(theme))

    def draw(self, surface: pygame.Surface, share: float) -> None:
        theme, area = self.app.theme, self._area(surface.get_size())
        self.pictures.begin()
        self.showcase.set_palette(theme.palette)
        self.places = panes(self.layout, area)
        for gap in gaps(self.places, area):
            surface.fill(theme.palette.panel[:3], gap)
        if TrainLayout.SHOWCASE in self.places:
            self.view.draw(surface.subsurface(self.places[TrainLayout.SHOWCASE]), share)
        self.pictures.draw(surface, self.places, self._sight())
        if TrainLayout.CURVES not in self.places or self.layout is TrainLayout.ALL:
            self._draw_events(surface, area)
        if self.run.state == "starting" and self.app.top is self:
            self._draw_waiting(surface.subsurface(self.places.get(TrainLayout.SHOWCASE, area)))
        if self.view.keys_shown and self.view.on_top:
            draw_keys(surface.subsurface((0, 0, surface.get_width(), area.bottom)), theme, self.keys())
        self._status.draw(surface)
        self.timeline.draw(surface, theme)

    def _sight(self) -> TrainPictureState:
        at = None if self.policy.is_newest else float(self.policy.steps)
        runs = [self.run.history, *self.compared]
        return TrainPictureState(
            self.showcase.track, self.circuit, self._number, runs, self._mouse.at, self.smoothing, at
        )

    def _draw_waiting(self, surface: pygame.Surface) -> None:
        theme, y = self.app.theme, surface.get_height() // 3
        draw_centred(surface, theme, "The learner starts" + "." * (self._waited // DOT_TICKS % 4), y, TEXT_LARGE)
        draw_centred(surface, theme, "It takes some seconds to load", y + theme.px(48), TEXT)

    def _draw_events(self, surface: pygame.Surface, area: pygame.Rect) -> None:
        """Up to the moment that is shown, in the middle below."""
        until, middle = self.policy.steps, self.places.get(TrainLayout.SHOWCASE, area).centerx
        events = [event for event in self.run.history.events if event.steps <= until]
        self._events.draw(surface, self.app.theme, events, (middle, area.bottom - self.app.theme.px(MARGIN)))

    def _show_circuit(self, by: int) -> None:
        """Another one of those that it learns on."""
        if len(self._circuits) < 2:
            self.app.notify("It learns on this circuit only")
            return
        number = (self._circuits.index(self.circuit) + by) % len(self._circuits)
        self.circuit = self._circuits[number]
        self.showcase.close()
        self.showcase = self._new_showcase(self.app)
        self.policy.move_to(self.showcase)
        self._again = None
        self.view.begin_at(self.showcase.tick.snapshot)
        self.app.notify(f"Circuit {number + 1} of {len(self._circuits)}: {self.circuit}")

    def _press(self) -> None:
        """Pause the learning or go on with it; when all is over, have the policy drive again."""
        if self.run.state == "paused":
            self.run.resume()
        elif self.is_live:
            self.run.pause()
        else:
            self.showcase.restart()
