"""Training, seen while it happens: the newest policy driving, all cars that learn, and the curves."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pygame

from racer_viewer.curves import Curves, Swarm
from racer_viewer.modes.driving import DrivingScreen
from racer_viewer.modes.event_panel import EventPanel
from racer_viewer.modes.keeping import keep_replay
from racer_viewer.modes.loading import open_safely
from racer_viewer.modes.policy_swarm import PolicySwarm
from racer_viewer.modes.screen import Key, Screen, Stage
from racer_viewer.modes.showcase import Showcase
from racer_viewer.modes.shown_policy import LIVE, ShownPolicy, steps_in_words
from racer_viewer.modes.train_end import TrainEndScreen
from racer_viewer.modes.train_layout import Layout, panes
from racer_viewer.modes.train_menu import LeaveTrainingScreen, TrainMenu, open_tensorboard
from racer_viewer.modes.wheel import Wheel
from racer_viewer.render.plots import CurvesView
from racer_viewer.render.swarm import SwarmScene
from racer_viewer.training.config import RunConfig
from racer_viewer.training.live import WatchedRun, load_curves, running_learner
from racer_viewer.training.saved import latest_model
from racer_viewer.ui.intents import Click, Controls, Do, Intent, Point, Scroll
from racer_viewer.ui.paint import STATUS_HEIGHT, Words, centred, footer, status_line
from racer_viewer.ui.theme import MARGIN, TEXT, TEXT_LARGE
from racer_viewer.ui.timeline import Mark, State, Timeline

PACES: tuple[float | None, ...] = (1.0, 2.0, 10.0, None)
PACE_NAMES = ("real time", "2×", "10×", "full speed")
MARKED = {"first lap": "first lap", "best": "", "weights": "weights"}
"""Events that the timeline marks, and by which words."""
SMOOTHING_STEP = 0.05
DOT_TICKS = 24
CURVES_SECONDS = 1.0
REFRESH_TICKS = 180
"""From one look at the curves of other runs to the next."""
USUAL_SHAPE = 16 / 9
"""Of a window, width to height."""


def open_training(app: Stage, config: RunConfig, compared: Sequence[Path] = (), tensorboard: bool = False) -> None:
    """Begin a run and see it, with the curves of others over its own."""

    def begin() -> TrainScreen:
        screen = _screen_of(app, WatchedRun.start(config, app.data / "runs"), compared)
        if tensorboard:
            open_tensorboard(str(screen.run.folder))
        return screen

    open_safely(app, begin)


def open_run(app: Stage, folder: Path, compared: Sequence[Path] = ()) -> None:
    """See a run that is learning, or that has learned, with the curves of others over its own."""
    open_safely(app, lambda: _screen_of(app, WatchedRun.attach(folder), compared))


def resume_run(app: Stage, folder: Path) -> None:
    """Learn on from the last that was saved."""
    open_safely(app, lambda: _screen_of(app, WatchedRun.go_on(folder)))


def _screen_of(app: Stage, run: WatchedRun, compared: Sequence[Path] = ()) -> TrainScreen:
    """A run that cannot be shown does not go on unseen."""
    try:
        screen = TrainScreen(app, run)
        for folder in compared:
            screen.compare_with(folder)
        return screen
    except BaseException:
        run.close()
        raise


class TrainScreen(DrivingScreen):
    """A run from its first step to its last, and afterwards a timeline over all of it."""

    def __init__(self, app: Stage, run: WatchedRun, patient: bool = False) -> None:
        """patient: everything is drawn in full, for films."""
        self.run, config = run, run.config
        self._circuits = list(dict.fromkeys(config.tracks))
        self._circuit = 0
        """Number of the circuit that is shown, among those of the run."""
        self.showcase = Showcase(self._circuits[0], config.rewards, app.theme.palette, app.settings.name)
        super().__init__(app, self.showcase.snapshot(), patient)
        self.policy = ShownPolicy(run, self.showcase, app.say)
        self.layout, self.pace_number, self.smoothing = Layout.ALL, len(PACES) - 1, 0.6
        self._compared_folders: list[Path] = []
        self.compared: list[Curves] = []
        """Curves of other runs, over this one's."""
        self.weights: dict[str, float] = dict(config.rewards.to_json()["weights"])
        self._swarm, self._curves = SwarmScene(app.theme, patient), CurvesView(app.theme, patient)
        self.timeline = Timeline(1, steps_in_words, self.policy.choose_at, self._press)
        self._prepare_ground((round(app.height * USUAL_SHAPE), app.height))
        self._events = EventPanel()
        self._wheel = Wheel()
        self._waited = self._drawn = 0
        self._patient = patient
        self._runs_drawn, self._runs_since = [run.curves], 0.0
        self._pictures: dict[Layout, pygame.Surface] = {}
        self._again: PolicySwarm | None = None
        self._mouse: tuple[int, int] | None = None
        self._told_end = run.state not in LIVE
        self._panes: dict[Layout, pygame.Rect] = {}

    def _prepare_ground(self, size: tuple[int, int]) -> None:
        """For the view that comes first, in a window of this size; for others their first pictures do it."""
        places = panes(self.layout, self._area(size))
        track = self.showcase.track
        self._scene.prepare(track, places[Layout.SHOWCASE].height)
        self._swarm.prepare(track, places[Layout.SWARM].height, width=places[Layout.SWARM].width)

    @property
    def lives(self) -> bool:
        """Whether it still learns, or could go on at once."""
        return self.run.state in LIVE

    def keys(self) -> Sequence[Key]:
        key = self.app.key_of
        return (
            ("Esc", "menu"),
            (key(Do.PAUSE), "go on" if self.run.state == "paused" else "pause"),
            (f"{key(Do.SLOWER)} {key(Do.FASTER)}", "pace"),
            (key(Do.LAYOUT), "view"),
            ("Left Right", "then and now"),
            (key(Do.WHEEL), "hand back" if self.showcase.person_drives else "race it"),
            (key(Do.KEEP), "save now"),
            *([(f"{key(Do.PREVIOUS_CIRCUIT)} {key(Do.NEXT_CIRCUIT)}", "circuit")] if len(self._circuits) > 1 else []),
            *super().keys()[1:],
        )

    def handle(self, intent: Intent) -> None:
        if self.timeline.handle(intent):
            return
        match intent:
            case Do.BACK:
                self.app.push(TrainMenu(self.app, self))
            case Do.PAUSE:
                self._press()
            case Do.SLOWER | Do.FASTER:
                self.set_pace(self.pace_number + (1 if intent == Do.FASTER else -1))
            case Do.LAYOUT:
                layouts = list(Layout)
                self.layout = layouts[(layouts.index(self.layout) + 1) % len(layouts)]
                self.app.say(f"View: {self.layout.value}")
            case Do.LEFT | Do.RIGHT if self.showcase.person_drives:
                pass  # they steer
            case Do.LEFT | Do.RIGHT:
                self.policy.choose_neighbour(1 if intent == Do.RIGHT else -1)
            case Do.PREVIOUS_CIRCUIT | Do.NEXT_CIRCUIT:
                self._show_circuit(1 if intent == Do.NEXT_CIRCUIT else -1)
            case Do.WHEEL:
                self.race_it(not self.showcase.person_drives)
            case Do.KEEP:
                self.save()
            case Do.RESTART:
                self.showcase.restart()
            case Point(x, y):
                self._mouse = (x, y)
                super().handle(intent)
            case Click(x, y):
                self._click(x, y)
            case Scroll(steps, x, y) if self._is_on(Layout.CURVES, x, y):
                self.smoothing = min(0.95, max(0.0, self.smoothing + SMOOTHING_STEP * (1 if steps > 0 else -1)))
                self.app.say(f"Smoothing {self.smoothing:.2f}")
            case _:
                super().handle(intent)

    def draw_ahead(self) -> bool:
        return super().draw_ahead() or self._swarm.draw_ahead()

    def tick(self, controls: Controls) -> None:
        self._waited += 1
        if self._waited % REFRESH_TICKS == 0:
            self._refresh_compared()
        self.policy.take_newest()
        speed = float(self.after.car["speed"])
        self.show(self.showcase.step(self._wheel.turn(controls, speed)))
        self._swarm.tick(self._cars())
        self._note_timeline()
        if not self.lives and not self._told_end:
            self._told_end = True
            self.app.push(TrainEndScreen(self.app, self))

    def _cars(self) -> Swarm | None:
        """That learn now; afterwards, cars that the chosen policy drives."""
        agent = self.showcase.newest
        if self.lives or agent is None:
            return self.run.swarm()
        if self._again is None:
            self._again = PolicySwarm(self.showcase.track, self.run.config.rewards)
            self._swarm.reset()
        return self._again.step(agent)

    def set_pace(self, number: int) -> None:
        """As fast as the machine can, or slowed down so that the eye can follow."""
        self.pace_number = min(len(PACES) - 1, max(0, number))
        self.run.set_pace(PACES[self.pace_number])
        self.app.say(f"Pace: {PACE_NAMES[self.pace_number]}")

    def weigh(self, weights: dict[str, float]) -> None:
        """What the parts of the reward are worth from now on."""
        self.weights.update(weights)
        self.run.set_weights(weights)
        self.app.say("The new weights count from now on")

    def save(self) -> None:
        if self.lives:
            self.run.save()
            self.app.say("Saving what it knows now")
        else:
            keep_replay(self.app, self.showcase.race.replay())

    def race_it(self, on: bool) -> None:
        """The person against the newest policy."""
        self._wheel.let_go()
        self.showcase.let_drive(on)
        self.app.say("You race the newest policy" if on else "The newest policy drives alone")

    def closing(self, then: Callable[[], None]) -> Screen | None:
        """What becomes of it? Nothing is to be asked once it has ended."""
        return LeaveTrainingScreen(self.app, self, then) if self.lives else None

    def closed(self) -> None:
        super().closed()
        self.run.close()
        self.showcase.close()

    def best_model(self) -> Path | None:
        """The fastest so far; else the last that was saved."""
        best = self.run.folder / f"{self.run.config.name}_best.zip"
        return best if best.is_file() else latest_model(self.run.folder)

    def compare_with(self, folder: Path) -> None:
        """Draw the curves of another run over this one's; if it learns too, they grow as well."""
        self._compared_folders.append(folder)
        self.compared.append(load_curves(folder))

    def _refresh_compared(self) -> None:
        for number, folder in enumerate(self._compared_folders):
            if running_learner(folder) is not None:
                self.compared[number] = load_curves(folder)

    def _area(self, size: tuple[int, int]) -> pygame.Rect:
        """Between the line at the top and the timeline. The keys lie over it: it must not change with them."""
        theme = self.app.theme
        top = theme.px(STATUS_HEIGHT)
        return pygame.Rect(0, top, size[0], size[1] - top - self.timeline.height(theme))

    def draw(self, surface: pygame.Surface, share: float) -> None:
        theme, area = self.app.theme, self._area(surface.get_size())
        surface.fill(theme.palette.panel[:3])
        self._drawn += 1
        self._panes = panes(self.layout, area)
        for part, place in self._panes.items():
            self._draw_part(part, surface, place, share)
        if Layout.CURVES not in self._panes or self.layout is Layout.ALL:
            self._draw_events(surface, area)
        if self.run.state == "starting" and self.app.top is self:
            self._draw_waiting(surface.subsurface(self._panes.get(Layout.SHOWCASE, area)))
        if self.keys_shown and self.app.top is self:
            footer(surface.subsurface((0, 0, surface.get_width(), area.bottom)), theme, self.keys())
        status_line(surface, theme, self._status())
        self.timeline.draw(surface, theme)

    def _draw_part(self, part: Layout, surface: pygame.Surface, place: pygame.Rect, share: float) -> None:
        if part is Layout.SHOWCASE:
            self.draw_road(surface.subsurface(place), share)
            return
        picture = self._pictures.get(part)
        fresh = picture is None or picture.get_size() != place.size
        if picture is None or fresh:
            picture = self._pictures[part] = pygame.Surface(place.size, depth=32)
        if fresh or self.layout is not Layout.ALL or self._drawn % 2 == (part is Layout.SWARM):
            self._draw_anew(part, picture, place)
        surface.blit(picture, place)

    def _draw_anew(self, part: Layout, picture: pygame.Surface, place: pygame.Rect) -> None:
        """Beside the showcase, swarm and curves take turns: neither is smoother at 60 pictures a second than at 30."""
        theme = self.app.theme
        if part is Layout.SWARM:
            self._swarm.use(theme)
            number = self.run.config.tracks.index(self._circuits[self._circuit])
            self._swarm.draw(picture, self.showcase.track, number=number)
            return
        if self._curves.theme is not theme:
            self._curves = CurvesView(theme, self._patient)
        picture.fill(theme.palette.panel[:3])
        at = None if self.policy.is_newest else float(self.policy.steps)
        mouse = None if self._mouse is None else (self._mouse[0] - place.x, self._mouse[1] - place.y)
        self._curves.draw(picture, picture.get_rect(), self._runs_to_draw(), mouse, self.smoothing, at)

    def _runs_to_draw(self) -> list[Curves]:
        """As they were at most a second ago: charts take their time to draw, and nobody reads faster."""
        now = time.monotonic()
        if self._patient or now - self._runs_since > CURVES_SECONDS:
            self._runs_drawn, self._runs_since = [self.run.curves, *self.compared], now
        return self._runs_drawn

    def _draw_waiting(self, surface: pygame.Surface) -> None:
        theme, y = self.app.theme, surface.get_height() // 3
        centred(surface, theme, "The learner starts" + "." * (self._waited // DOT_TICKS % 4), y, TEXT_LARGE)
        centred(surface, theme, "It takes some seconds to load", y + theme.px(48), TEXT)

    def _draw_events(self, surface: pygame.Surface, area: pygame.Rect) -> None:
        """Up to the moment that is shown, in the middle below."""
        until, middle = self.policy.steps, self._panes.get(Layout.SHOWCASE, area).centerx
        events = [event for event in self.run.curves.events if event.steps <= until]
        self._events.draw(surface, self.app.theme, events, (middle, area.bottom - self.app.theme.px(MARGIN)))

    def _status(self) -> Words:
        run, palette = self.run, self.app.theme.palette
        state = {"learning": "learns", "starting": "starts"}.get(run.state, run.state)
        laps = run.curves.laps
        best = f"best lap {laps[:, 1].min():.2f} s" if len(laps) else "no lap yet"
        age = self.policy.age
        policy = "" if age is None else f"policy {age:.0f} s old"
        if not self.policy.is_newest:
            policy = f"the policy after {steps_in_words(self.policy.steps)} steps"
        words = (
            (run.config.name, palette.text),
            (state, palette.good if run.state == "learning" else palette.accent),
            (f"{run.steps:,} of {run.total:,} steps", palette.text),
            (f"{run.steps_per_second:,.0f} steps/s" if self.lives else "", palette.faint),
            (PACE_NAMES[self.pace_number] if self.lives else "", palette.faint),
            (best, palette.text),
            (policy, palette.faint if self.policy.is_newest else palette.accent),
        )
        return [each for each in words if each[0]]

    def _show_circuit(self, by: int) -> None:
        """Another one of those that it learns on."""
        if len(self._circuits) < 2:
            self.app.say("It learns on this circuit only")
            return
        self._circuit = (self._circuit + by) % len(self._circuits)
        app, config = self.app, self.run.config
        self.showcase.close()
        name = self._circuits[self._circuit]
        self.showcase = Showcase(name, config.rewards, app.theme.palette, app.settings.name)
        self.policy.move_to(self.showcase)
        self._again = None
        self.begin_at(self.showcase.snapshot())
        app.say(f"Circuit {self._circuit + 1} of {len(self._circuits)}: {name}")

    def _press(self) -> None:
        """Pause the learning or go on with it."""
        if self.run.state == "paused":
            self.run.resume()
        elif self.lives:
            self.run.pause()

    def _click(self, x: int, y: int) -> None:
        """A moment in a chart is shown."""
        if self._is_on(Layout.CURVES, x, y):
            place = self._panes[Layout.CURVES]
            steps = self._curves.chart_at(x - place.x, y - place.y)
            if steps is not None:
                self.policy.choose_at(steps)

    def _is_on(self, part: Layout, x: int, y: int) -> bool:
        return part in self._panes and bool(self._panes[part].collidepoint(x, y))

    def _note_timeline(self) -> None:
        run, timeline, palette = self.run, self.timeline, self.app.theme.palette
        timeline.length = max(1, run.total if self.lives else run.steps)
        timeline.place = self.policy.steps
        timeline.state = State.GOES if run.state == "learning" else State.STANDS if self.lives else State.ENDED
        timeline.speed = ""
        timeline.caption, timeline.caption_colour = run.config.name, palette.player
        timeline.marks = tuple(
            Mark(event.steps, MARKED[event.kind], palette.good if event.kind == "best" else None)
            for event in run.curves.events
            if event.kind in MARKED
        )
        timeline.warning = run.problem
        timeline.news = "Drag to an earlier policy: it drives beside the newest" if self.lives else "Drag to any moment"
