"""What somebody at the window has decided about a run that was learning.

How fast a run learns: as fast as it can, or slowed down so that the eye can follow.

Where the parts of a training are shown.

The timeline over a whole training.

The line at the top of a training: how far it is, and what is seen of it.

What happened last in a training, over its picture.

What the mouse does to a training: on each part of the window something else."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

import pygame

from racer_viewer.modes.race_view import ZOOM_STEP
from racer_viewer.modes.train.run_facts import lap_words
from racer_viewer.modes.train.showcase import steps_in_words
from racer_viewer.run_history import RunEvent
from racer_viewer.ui.intents import Click, Drag, Intent, MouseMove, Release, Scroll
from racer_viewer.ui.paint import STATUS_HEIGHT, ColouredWords, draw_status_line
from racer_viewer.ui.theme import PADDING, TEXT_SMALL, Colour, Theme
from racer_viewer.ui.timeline import PlayState, Timeline, TimelineMark

if TYPE_CHECKING:
    from racer_viewer.modes.train.screen import TrainScreen


class RunDecision(Enum):
    """It goes on without a window, is stopped and saved, or is stopped and removed."""

    DETACH = "learns on"
    STOP = "stopped"
    DISCARD = "discarded"


PACES: tuple[float | None, ...] = (1.0, 2.0, 10.0, None)
"""That can be chosen: times real time; None is as fast as it can."""
PACE_NAMES = ("real time", "2×", "10×", "full speed")


def pace_index(pace: float | None) -> int:
    """Of the pace that can be chosen and comes nearest: somebody else may have asked for any."""
    if pace is None:
        return PACES.index(None)
    known = [each for each in PACES if each is not None]
    return min(range(len(known)), key=lambda number: abs(known[number] - pace))


def pace_name(pace: float | None) -> str:
    return PACE_NAMES[PACES.index(pace)] if pace in PACES else f"{pace:g}×"


GAP = 4
"""Between two parts [px]."""
SHOWCASE_SHARE, SWARM_SHARE = 0.56, 0.46
"""Of the width that the showcase has beside the others, and of the height that the swarm has above the curves."""


class TrainLayout(Enum):
    """In the order in which one key goes through them."""

    ALL = "everything"
    SHOWCASE = "the policy that drives"
    SWARM = "all cars that learn"
    CURVES = "curves"


def panes(layout: TrainLayout, area: pygame.Rect) -> dict[TrainLayout, pygame.Rect]:
    """Of each part that is shown, its place within an area."""
    if layout is not TrainLayout.ALL:
        return {layout: area}
    left = pygame.Rect(area.topleft, (round(area.width * SHOWCASE_SHARE), area.height))
    right = pygame.Rect(left.right + GAP, area.y, area.right - left.right - GAP, area.height)
    upper = pygame.Rect(right.topleft, (right.width, round(right.height * SWARM_SHARE)))
    lower = pygame.Rect(right.x, upper.bottom + GAP, right.width, right.bottom - upper.bottom - GAP)
    return {TrainLayout.SHOWCASE: left, TrainLayout.SWARM: upper, TrainLayout.CURVES: lower}


def gaps(places: dict[TrainLayout, pygame.Rect], area: pygame.Rect) -> list[pygame.Rect]:
    """What the parts leave free of their area."""
    if TrainLayout.CURVES not in places or len(places) < 2:
        return []
    left, upper = places[TrainLayout.SHOWCASE], places[TrainLayout.SWARM]
    upright = pygame.Rect(left.right, area.y, upper.x - left.right, area.height)
    return [upright, pygame.Rect(upper.x, upper.bottom, upper.width, places[TrainLayout.CURVES].y - upper.bottom)]


MARKED = {"first lap": "first lap", "best": "", "weights": "weights"}
"""Events that are marked, and by which words."""


def note_on(timeline: Timeline, train: TrainScreen) -> None:
    """Bring it up to date, from its length to what is said below it."""
    run, palette = train.run, train.app.theme.palette
    timeline.length = max(1, run.total if train.is_live else run.steps)
    timeline.position = train.policy.steps
    timeline.state = (
        PlayState.PLAYING if run.state == "learning" else PlayState.PAUSED if train.is_live else PlayState.ENDED
    )
    timeline.speed = ""
    timeline.caption, timeline.caption_colour = run.config.name, palette.player
    timeline.marks = tuple(
        TimelineMark(event.steps, MARKED[event.kind], palette.good if event.kind == "best" else None)
        for event in run.history.events
        if event.kind in MARKED
    )
    timeline.warning = run.problem
    timeline.note = "Drag to an earlier policy: it drives beside the newest" if train.is_live else "Drag to any moment"


PICTURES = 8
"""Of the window from one look at the figures to the next, if there is time between them: nobody reads faster."""
STATES = {"learning": "learns", "starting": "starts"}
"""That have another word on screen."""


class TrainStatus:
    """Drawn anew some times a second, in the time that is left after a picture; if there is none, half as often.

    patient: in every picture, for films.
    """

    def __init__(self, train: TrainScreen, patient: bool = False) -> None:
        self._train, self._patient = train, patient
        self._plate = pygame.Surface((1, 1))
        self._look: tuple[Theme, int, str] = (train.app.theme, 1, "")
        self._age = 0

    def draw(self, surface: pygame.Surface) -> None:
        """Along the top."""
        look = self._train.app.theme, surface.get_width(), self._train.run.state
        self._age += 1
        if look != self._look or self._age >= 2 * PICTURES or self._patient:
            self._look = look
            self._refresh()
        surface.blit(self._plate, (0, 0))

    def draw_ahead(self) -> bool:
        """There is time before the next picture; False if there is nothing to do."""
        due = self._age >= PICTURES
        if due:
            self._refresh()
        return due

    def _refresh(self) -> None:
        theme, width, _ = self._look
        self._plate, self._age = _drawn_plate(theme, width, words_of(self._train)), 0


def _drawn_plate(theme: Theme, width: int, words: ColouredWords) -> pygame.Surface:
    plate = pygame.Surface((width, theme.px(STATUS_HEIGHT)), depth=32)
    plate.fill(theme.palette.panel[:3])
    draw_status_line(plate, theme, words)
    return plate


def words_of(train: TrainScreen) -> ColouredWords:
    run, palette = train.run, train.app.theme.palette
    words = (
        (run.config.name, palette.text),
        (STATES.get(run.state, run.state), palette.good if run.state == "learning" else palette.accent),
        (f"{run.steps:,} of {run.total:,} steps", palette.text),
        (f"{run.steps_per_second:,.0f} steps/s" if train.is_live else "", palette.faint),
        (pace_name(run.pace) if train.is_live else "", palette.faint),
        (lap_words(run.history, train.circuit), palette.text),
        _policy(train),
    )
    return [each for each in words if each[0]]


def _policy(train: TrainScreen) -> tuple[str, Colour]:
    """Which one drives; while it learns, how old that is, and which one drives beside it."""
    policy, palette = train.policy, train.app.theme.palette
    if policy.beside:
        return f"beside it {policy.beside}", palette.accent
    if policy.age is not None:
        return f"policy {policy.age:.0f} s old", palette.faint
    return ("", palette.faint) if policy.is_newest else (policy.driver, palette.accent)


SHOWN = 4
WIDTH = 260
"""Of a line, at scale 1 [px]."""


class EventPanel:
    """Drawn anew only when something has happened."""

    def __init__(self) -> None:
        self._drawn: tuple[object, ...] = ()
        self._panel = pygame.Surface((1, 1))

    def draw(
        self, surface: pygame.Surface, theme: Theme, events: Sequence[RunEvent], midbottom: tuple[int, int]
    ) -> None:
        last = tuple(events[-SHOWN:])
        if not last:
            return
        if (theme, last) != self._drawn:
            self._drawn, self._panel = (theme, last), _panel(theme, last)
        surface.blit(self._panel, self._panel.get_rect(midbottom=midbottom))


def _panel(theme: Theme, events: Sequence[RunEvent]) -> pygame.Surface:
    line, padding = theme.line_height(TEXT_SMALL) + theme.px(5), theme.px(PADDING)
    words = [f"{steps_in_words(event.steps)}   {event.text}" for event in events]
    lines = [theme.truncate(each, theme.px(WIDTH), TEXT_SMALL) for each in words]
    width = max(theme.width(text, TEXT_SMALL) for text in lines) + 2 * padding
    panel = theme.panel(width, line * len(lines) + padding)
    for number, text in enumerate(lines):
        colour = theme.palette.text if number == len(lines) - 1 else theme.palette.faint
        panel.blit(theme.text(text, TEXT_SMALL, colour), (padding, padding // 2 + number * line))
    return panel


SMOOTHING_STEP = 0.05
"""Of one click of the mouse wheel."""


class TrainMouse:
    """What began on one part stays there, wherever the mouse is dragged to. at: where the mouse is [px]."""

    def __init__(self, train: TrainScreen) -> None:
        self._train = train
        self.at: tuple[int, int] | None = None
        self._held: TrainLayout | None = None

    def handle(self, intent: Intent) -> bool:
        """Whether nobody else should hear of it."""
        match intent:
            case MouseMove(x, y):
                self.at, self._held = (x, y), None
                return False
            case Release():
                self._held = None
            case Click(x, y):
                self._held = self._part_at(x, y)
                self._show_moment(x, y)
            case Drag(dx, dy, x, y):
                self._drag(dx, dy, x, y)
            case Scroll(steps, x, y):
                self._scroll(steps, x, y)
            case _:
                return False
        return True

    def _drag(self, dx: int, dy: int, x: int, y: int) -> None:
        held = self._held or self._part_at(x, y)
        if held is TrainLayout.SHOWCASE:
            self._train.view.camera.drag(dx, dy)
        elif held is TrainLayout.CURVES:
            self._show_moment(x, y)

    def _scroll(self, steps: float, x: int, y: int) -> None:
        part = self._part_at(x, y)
        if part is TrainLayout.SHOWCASE:
            left, top = self._train.places[part].topleft
            self._train.view.camera.zoom(ZOOM_STEP**steps, (x - left, y - top))
        elif part is TrainLayout.CURVES:
            self._train.smooth(SMOOTHING_STEP if steps > 0 else -SMOOTHING_STEP)

    def _show_moment(self, x: int, y: int) -> None:
        """That of the chart at these pixels, if there is one."""
        place = self._train.places.get(TrainLayout.CURVES)
        steps = None if place is None else self._train.pictures.steps_at(x - place.x, y - place.y)
        if steps is not None:
            self._train.policy.choose_at(steps)

    def _part_at(self, x: int, y: int) -> TrainLayout | None:
        return next((part for part, place in self._train.places.items() if place.collidepoint(x, y)), None)
