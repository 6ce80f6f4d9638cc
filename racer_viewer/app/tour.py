"""Guided tour: drive a lap, see what an agent sees, train one for a minute and race it, on the app's own screens.

The tour is a layer over the screens: it shows one hint after the other, and goes on when the player has done what the
hint asks for. The settings keep how far it came.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pygame

from racer_viewer.agents import CHAMPION, bundled_models
from racer_viewer.modes.play import PlayScreen, open_play
from racer_viewer.modes.results import ResultsScreen
from racer_viewer.modes.screen import AppContext, Screen
from racer_viewer.modes.train.menu import RunDecision
from racer_viewer.modes.train.panels import TrainLayout
from racer_viewer.modes.train.screen import TrainScreen
from racer_viewer.modes.train.setup import open_training
from racer_viewer.modes.watch import open_watch
from racer_viewer.replays.records import medals_of, next_medal
from racer_viewer.timing import LapTime, lap_time
from racer_viewer.training.config import preset
from racer_viewer.translation import _, mark
from racer_viewer.ui.intents import Click, Command, Intent
from racer_viewer.ui.item_list import Button
from racer_viewer.ui.theme import CORNER
from racer_viewer.ui.views import HintCard, Key, ListView

CIRCUIT = "track-01"
"""Circuit of the whole tour: short, wide and learned quickly."""
TRAINING_TICKS = 60 * 60
"""Time for which the pupil trains [ticks]."""
PUPIL_STEPS = 10_000_000
"""Configured steps of the pupil's run; more than fit into its minute."""
RACE_LAPS = 2
DONE_TICKS = 45
"""Time for which a done hint is still shown [ticks]."""
MOVING = 8.0
"""Speed from which the car drives [units/s]."""
HELD_TICKS, HELD_SHARE = 15, 0.25
"""Time [ticks] and deflection for which steering or brake have to be used."""
STAND_IN = "learning-3-slow"
"""Bundled model that is raced where no pupil could be trained."""


@dataclass(frozen=True)
class TourHint:
    """One hint of the tour.

    text: text, or a function that returns it.
    controls: names of controls or commands, and what they do.
    done: returns whether the player has done it; None if the hint waits for Enter.
    accept: label of the Enter key; empty if Enter does nothing.
    overlay: overlay that is shown, alone, and outlined.
    """

    text: str | Callable[[Tour], str] = ""
    controls: tuple[tuple[tuple[str, ...], str], ...] = ()
    done: Callable[[Tour], bool] | None = None
    accept: str = ""
    overlay: str = ""


@dataclass(frozen=True)
class TourPart:
    """A part of the tour: its screen, opened by `begin`, and its hints."""

    title: str
    begin: Callable[[Tour], None]
    hints: tuple[TourHint, ...]


class Tour:
    """The tour while it runs, from one of its parts on.

    part: index of the part.
    screen: screen of this part; hints are shown while it is on top.
    """

    def __init__(self, app: AppContext, part: int = 0) -> None:
        self.app = app
        self.part = min(part, len(PARTS) - 1)
        self.screen: Screen | None = None
        self.pupil: tuple[str, Path] | None = None
        """Name and model of the trained pupil."""
        self.own_lap: LapTime | None = None
        """Lap of the player in the first part; None if that was skipped."""
        self.training_ticks = 0
        """Time for which the pupil has trained [ticks]."""
        self._number = self._held = self._done_ticks = 0
        self._episode = 0
        self._card = pygame.Rect(0, 0, 0, 0)

    def begin(self) -> None:
        """Close all screens but the main menu, and open that of the first part."""
        self.app.layer = self
        self._begin_part(self.part)

    @property
    def hint(self) -> TourHint | None:
        """Hint that is shown; None after the last one of a part."""
        hints = PARTS[self.part].hints
        return hints[self._number] if self._number < len(hints) else None

    @property
    def play(self) -> PlayScreen:
        assert isinstance(self.screen, PlayScreen)
        return self.screen

    @property
    def train(self) -> TrainScreen:
        assert isinstance(self.screen, TrainScreen)
        return self.screen

    @property
    def text(self) -> str:
        """Text of the hint."""
        text = self.hint.text if self.hint is not None else ""
        return _(text) if isinstance(text, str) else text(self)

    def handle(self, intent: Intent) -> bool:
        if self.app.top is not self.screen:
            return False
        waits = self.hint is not None and bool(self.hint.accept)
        if intent == Command.BACK or (intent == Command.PAUSE and not waits):
            self.app.push(TourMenu(self.app, self))
        elif (waits and intent == Command.ACCEPT) or (isinstance(intent, Click) and self._clicked(intent)):
            self.app.sound.play("accept")
            self._next_hint()
        elif intent != Command.PAUSE:
            return False
        return True

    def tick(self) -> None:
        if self.screen is not None and self.screen not in self.app.screens:
            self.end("skipped")
            return
        if self.app.top is self.screen and self.hint is not None:
            self._tick_hint(self.hint)
        self._tick_part()

    def draw(self, surface: pygame.Surface) -> None:
        hint, theme = self.hint, self.app.theme
        self._card = pygame.Rect(0, 0, 0, 0)
        if hint is None or self.app.top is not self.screen:
            return
        view = self.screen.view if self.screen is not None else None
        outlined = view.panel_area(hint.overlay) if view is not None else None
        if outlined is not None:
            edge = theme.px(3)
            frame = outlined.inflate(2 * edge, 2 * edge)
            pygame.draw.rect(surface, theme.palette.accent, frame, edge, border_radius=theme.px(CORNER) + edge)
        area, at_top = self._area(surface)
        self._card = self._hint_card(hint).draw(surface, theme, area, at_top)

    def skip_part(self) -> None:
        """Go on with the next part; a pupil that is training stops first and is kept."""
        if isinstance(self.screen, TrainScreen):
            self._number = len(PARTS[self.part].hints)
        else:
            self.next_part()

    def next_part(self) -> None:
        """Go on with the next part, or end the tour after the last one."""
        if self.part + 1 < len(PARTS):
            self._begin_part(self.part + 1)
        else:
            self.end("finished")
            self.app.pop_to_menu()

    def end(self, state: str) -> None:
        """End the tour and keep what became of it in the settings."""
        self.app.layer = None
        finished = state == "finished"
        self.app.change(tour=state, tour_part=0 if finished else self.part)
        self.app.notify(
            _("The tour is finished. Career has your first medal to win; Help repeats the tour")
            if finished
            else _("The tour has ended. Help continues it")
        )

    @property
    def is_moving(self) -> bool:
        """True if the player's car drives."""
        return float(self.play.view.after.car["speed"]) > MOVING

    def has_used(self, name: str) -> bool:
        """Return whether the player has used a control of the car for a moment during this hint."""
        self._held += int(abs(float(self.play.view.after.car[name])) > HELD_SHARE)
        return self._held >= HELD_TICKS

    @property
    def has_restarted(self) -> bool:
        """True if the race was restarted during this hint."""
        return self.play.live.tick.episode > self._episode

    def _begin_part(self, number: int) -> None:
        self.part, self._number = number, 0
        self.app.change(tour="begun", tour_part=number)
        self.screen = None
        self.app.pop_to_menu()
        PARTS[number].begin(self)
        self.screen = self.app.top
        if self.screen is None or self.screen.view is None:  # a message says why the part cannot begin
            self.end("skipped")
        else:
            self._begin_hint()

    def _begin_hint(self) -> None:
        self._held = self._done_ticks = 0
        if isinstance(self.screen, PlayScreen):
            self._episode = self.screen.live.tick.episode
        hint = self.hint
        if hint is not None and hint.overlay and self.screen is not None and self.screen.view is not None:
            self.screen.view.own_overlays = ("timing", hint.overlay)

    def _next_hint(self) -> None:
        self._number += 1
        if self.hint is None and self.part in GO_ON_AFTER_LAST_HINT:
            self.next_part()
        else:
            self._begin_hint()

    def _tick_hint(self, hint: TourHint) -> None:
        if self._done_ticks:
            self._done_ticks += 1
            if self._done_ticks > DONE_TICKS:
                self._next_hint()
        elif hint.done is not None and hint.done(self):
            self._done_ticks = 1
            self.app.sound.play("accept")

    def _tick_part(self) -> None:
        """Remember the first lap, go on when the training time is over, and end the tour when the race is."""
        if self.part == 0 and isinstance(self.screen, PlayScreen):
            self.own_lap = self.play.live.tick.followed.shown_lap or self.own_lap
        if isinstance(self.screen, TrainScreen):
            train, is_over = self.screen, self.hint is None or self.training_ticks > TRAINING_TICKS
            self.training_ticks += int(train.run.state == "learning")
            if not train.is_live:
                self._take_pupil(train)
            elif is_over and train.decision is None:
                self._number = len(PARTS[self.part].hints)
                train.decide(RunDecision.STOP)
                self.app.notify(_("Your pupil stops training"))
        elif self.part == len(PARTS) - 1 and isinstance(self.app.top, ResultsScreen) and self.app.layer is self:
            self.end("finished")

    def _take_pupil(self, train: TrainScreen) -> None:
        model = train.best_model()
        self.pupil = None if model is None else (train.run.config.name, model)
        if model is None:
            self.app.notify(
                _("Nothing was trained: {reason}").format(reason=train.run.problem or _("the run has no model"))
            )
        self.next_part()

    def _clicked(self, click: Click) -> bool:
        return self.hint is not None and bool(self.hint.accept) and self._card.collidepoint(click.x, click.y)

    def _hint_card(self, hint: TourHint) -> HintCard:
        label = self.app.input_label
        keys = tuple((label(*names), _(does)) for names, does in hint.controls)
        accept: tuple[Key, ...] = ((label(Command.ACCEPT), _(hint.accept)),) if hint.accept else ()
        return HintCard(
            keys,
            self.text,
            _("Tour: {part}").format(part=_(PARTS[self.part].title)),
            (*accept, (label(Command.BACK), _("skip"))),
            (self._number + 1, len(PARTS[self.part].hints)),
            bool(self._done_ticks),
        )

    def _area(self, surface: pygame.Surface) -> tuple[pygame.Rect, bool]:
        """Return the free area for the card between the panels, and whether it is placed at its top."""
        screen = self.screen
        assert screen is not None
        assert screen.view is not None
        if not isinstance(screen, TrainScreen):
            return screen.view.free_area(surface), False
        pane = screen.panes.get(TrainLayout.SHOWCASE, surface.get_rect())
        return screen.view.free_area(surface.subsurface(pane), upper=True).move(pane.topleft), True


def _drive(tour: Tour) -> None:
    open_play(tour.app, CIRCUIT, [], laps=0)


def _watch(tour: Tour) -> None:
    open_watch(tour.app, [_bundled(CHAMPION)], CIRCUIT)


def _train(tour: Tour) -> None:
    """Start a run."""
    tour.training_ticks = 0
    open_training(tour.app, replace(preset("ppo"), tracks=(CIRCUIT,), timesteps=PUPIL_STEPS))


def _race(tour: Tour) -> None:
    name, model = tour.pupil or (STAND_IN, _bundled(STAND_IN))
    open_play(tour.app, CIRCUIT, [(name, model)], RACE_LAPS)


def _bundled(name: str) -> Path:
    return next(path for path in bundled_models() if path.stem == name)


def _first_lap(tour: Tour) -> str:
    """Describe the lap of the player, with the time that earns a medal."""
    tick = tour.play.live.tick
    lap, circuit = tick.laps[-1], tick.snapshot.track.circuit
    assert circuit is not None
    goal = next_medal(circuit, lap.ticks if lap.clean else None)
    values = {"lap": lap_time(lap.ticks), "fault": lap.fault}
    text = (
        _("Your lap: {lap} s.") if lap.clean else _("Your lap: {lap} s, invalid: {fault}. Only laps on the road count.")
    )
    if goal is None:
        return text.format(**values)
    seconds = getattr(medals_of(circuit), goal)
    return text.format(**values) + " " + _("{seconds:.2f} s earns {medal}.").format(seconds=seconds, medal=_(goal))


def _training_progress(tour: Tour) -> str:
    """Describe what the pupil can do so far, and how long it still trains."""
    seconds = max(0, TRAINING_TICKS - tour.training_ticks) // 60
    lap = tour.train.run.history.best_lap(CIRCUIT)
    text = _("Your pupil trains for another {seconds} s. ").format(seconds=seconds)
    if lap is None:
        return text + _("It has not finished a lap yet.")
    text += _("Its fastest lap so far: {lap:.2f} s.").format(lap=lap)
    if tour.own_lap is None:
        return text
    return (
        text
        + " "
        + _("Yours: {lap} s. It gets faster for as long as you wait.").format(lap=lap_time(tour.own_lap.ticks))
    )


PARTS = (
    TourPart(
        mark("drive a lap"),
        _drive,
        (
            TourHint("", ((("throttle",), mark("to drive")),), lambda tour: tour.is_moving),
            TourHint("", ((("steer_left", "steer_right"), mark("to steer")),), lambda tour: tour.has_used("steer")),
            TourHint("", ((("brake",), mark("to brake, then to reverse")),), lambda tour: tour.has_used("brake")),
            TourHint(
                mark("Starts again from the line, whatever happened."),
                (((Command.RESTART,), mark("to restart")),),
                lambda tour: tour.has_restarted,
            ),
            TourHint(
                mark("Drive one lap. On the road it counts; over the grass it does not."),
                ((("throttle",), mark("to drive")), ((Command.PUT_BACK,), mark("back on the road"))),
                lambda tour: bool(tour.play.live.tick.laps),
            ),
            TourHint(_first_lap, accept=mark("next: what an agent sees")),
        ),
    ),
    TourPart(
        mark("what an agent sees"),
        _watch,
        (
            TourHint(
                mark(
                    "The champion drives, a neural network. Nine rays measure the distance to the walls: with speed and"
                    " position they are all that it knows."
                ),
                accept=mark("continue"),
                overlay="rays",
            ),
            TourHint(
                mark("The reward is what it learned from: progress along the circuit pays, walls and grass cost."),
                accept=mark("continue"),
                overlay="reward",
            ),
            TourHint(
                mark(
                    "Sixty times a second the network turns its inputs into steering and pedals. The fan shows which"
                    " rays decide now."
                ),
                accept=mark("next: train your own"),
                overlay="agent",
            ),
        ),
    ),
    TourPart(
        mark("train an agent"),
        _train,
        (
            TourHint(
                mark("Your pupil knows nothing yet. 64 cars try anything; what earns more reward is done more often."),
                accept=mark("continue"),
            ),
            TourHint(
                mark(
                    "Here drives what it has learned so far, at the right are all cars. The reward per second should"
                    " rise, the lap times should fall."
                ),
                accept=mark("continue"),
            ),
            TourHint(_training_progress, accept=mark("race it now")),
        ),
    ),
    TourPart(
        mark("race your pupil"),
        _race,
        (
            TourHint(
                mark("Your pupil starts ahead of you. Two laps; position and gaps are at the top."),
                ((("throttle",), mark("to drive")), (("steer_left", "steer_right"), mark("to steer"))),
                lambda tour: tour.play.live.tick.followed.distance > 0.0,
            ),
        ),
    ),
)
"""Parts of the tour in their order."""
GO_ON_AFTER_LAST_HINT = (0, 1)
"""Parts that end with their last hint; training ends when the run has stopped, the race with its results."""


class TourMenu(Screen):
    """Menu of the tour, over its paused screen."""

    def __init__(self, app: AppContext, tour: Tour) -> None:
        self._tour = tour
        following = _(PARTS[tour.part + 1].title) if tour.part + 1 < len(PARTS) else _("end of the tour")
        items = [
            Button(_("Continue the tour"), on_press=app.pop),
            Button(_("Skip this part"), _("Next: {part}").format(part=following), on_press=self._skip),
            Button(_("End the tour"), _("Help continues it at any time"), on_press=self._end),
        ]
        super().__init__(app, ListView(_("Guided tour"), items, subtitle=_(PARTS[tour.part].title), darkness=170))

    def handle(self, intent: Intent) -> None:
        if intent == Command.PAUSE:
            self.app.pop()
        else:
            super().handle(intent)

    def _skip(self) -> None:
        self.app.pop()
        self._tour.skip_part()

    def _end(self) -> None:
        self._tour.end("skipped")
        self.app.pop_to_menu()


def start_tour(app: AppContext) -> None:
    """Start the tour over the main menu, or continue it where it was left; the engine must be ready."""
    Tour(app, app.settings.tour_part).begin()
