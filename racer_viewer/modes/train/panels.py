"""Panels of the training screen: layout, timeline, status line, events, and what the mouse does on them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

import pygame

from racer_viewer.modes.race_view import ZOOM_STEP
from racer_viewer.modes.train.run_facts import lap_words
from racer_viewer.modes.train.showcase import steps_in_words
from racer_viewer.run_history import RunEvent
from racer_viewer.translation import _, mark
from racer_viewer.ui.intents import Click, Drag, Intent, MouseMove, Release, Scroll
from racer_viewer.ui.paint import STATUS_HEIGHT, ColouredWords, draw_status_line
from racer_viewer.ui.theme import MARGIN, PADDING, TEXT_SMALL, Colour, Theme
from racer_viewer.ui.timeline import PlayState, Timeline, TimelineMark

if TYPE_CHECKING:
    from racer_viewer.modes.train.screen import TrainScreen


PACES: tuple[float | None, ...] = (1.0, 2.0, 10.0, None)
"""Paces of learning to choose from, in multiples of real time; None is full speed."""
PACE_NAMES = (mark("real time"), "2×", "10×", mark("full speed"))


def pace_index(pace: float | None) -> int:
    """Return the index of the nearest pace in `PACES`; another client may have set any number."""
    if pace is None:
        return PACES.index(None)
    known = [each for each in PACES if each is not None]
    return min(range(len(known)), key=lambda number: abs(known[number] - pace))


def pace_name(pace: float | None) -> str:
    """Return a pace as it is shown on screen."""
    return _(PACE_NAMES[PACES.index(pace)]) if pace in PACES else f"{pace:g}×"


GAP = 4
"""Distance between two panes [px]."""
SHOWCASE_SHARE, SWARM_SHARE = 0.56, 0.46
"""Part of the width that the showcase takes, and part of the height that the swarm takes above the curves."""


class TrainLayout(Enum):
    """Views of a run, and names of their panes; the layout key switches between them in this order."""

    ALL = mark("everything")
    SHOWCASE = mark("policy")
    SWARM = mark("all cars")
    CURVES = mark("curves")


def pane_rects(layout: TrainLayout, area: pygame.Rect) -> dict[TrainLayout, pygame.Rect]:
    """Return the rectangle of each visible pane within an area."""
    if layout is not TrainLayout.ALL:
        return {layout: area}
    left = pygame.Rect(area.topleft, (round(area.width * SHOWCASE_SHARE), area.height))
    right = pygame.Rect(left.right + GAP, area.y, area.right - left.right - GAP, area.height)
    upper = pygame.Rect(right.topleft, (right.width, round(right.height * SWARM_SHARE)))
    lower = pygame.Rect(right.x, upper.bottom + GAP, right.width, right.bottom - upper.bottom - GAP)
    return {TrainLayout.SHOWCASE: left, TrainLayout.SWARM: upper, TrainLayout.CURVES: lower}


def gaps(panes: dict[TrainLayout, pygame.Rect], area: pygame.Rect) -> list[pygame.Rect]:
    """Return the rectangles between the panes."""
    if TrainLayout.CURVES not in panes or len(panes) < 2:
        return []
    left, upper = panes[TrainLayout.SHOWCASE], panes[TrainLayout.SWARM]
    upright = pygame.Rect(left.right, area.y, upper.x - left.right, area.height)
    return [upright, pygame.Rect(upper.x, upper.bottom, upper.width, panes[TrainLayout.CURVES].y - upper.bottom)]


MARKED = {"first lap": mark("first lap"), "best": "", "weights": mark("weights"), "circuit": mark("circuit")}
"""Kinds of events that are marked on the timeline, with their labels."""


def update_timeline(timeline: Timeline, train: TrainScreen) -> None:
    """Set length, position, marks and texts of the timeline to the state of the run."""
    run, palette = train.run, train.app.theme.palette
    timeline.length = max(1, run.total if train.is_live else run.steps)
    timeline.position = train.policy.steps
    timeline.state = (
        PlayState.PLAYING if run.state == "learning" else PlayState.PAUSED if train.is_live else PlayState.ENDED
    )
    timeline.speed = ""
    timeline.caption, timeline.caption_colour = run.config.name, palette.player
    timeline.marks = tuple(
        TimelineMark(event.steps, _(MARKED[event.kind]), palette.good if event.kind == "best" else None)
        for event in run.history.events
        if event.kind in MARKED
    )
    timeline.warning = run.problem
    timeline.note = (
        _("Drag to race an earlier policy against the newest") if train.is_live else _("Drag to any time of the run")
    )


REFRESH_FRAMES = 8
"""Frames after which the status line is drawn again in spare time; without spare time it takes twice as many."""


class TrainStatus:
    """Status line of a run, drawn again a few times per second, in spare time if there is any.

    patient: draw it again in every frame, for films.
    """

    def __init__(self, train: TrainScreen, patient: bool = False) -> None:
        self._train, self._patient = train, patient
        self._picture = pygame.Surface((1, 1))
        self._look: tuple[Theme, int, str] = (train.app.theme, 1, "")
        self._age = 0

    def draw(self, surface: pygame.Surface) -> None:
        """Draw along the top."""
        look = self._train.app.theme, surface.get_width(), self._train.run.state
        self._age += 1
        if look != self._look or self._age >= 2 * REFRESH_FRAMES or self._patient:
            self._look = look
            self._refresh()
        surface.blit(self._picture, (0, 0))

    def draw_ahead(self) -> bool:
        """Draw the line again if it is due; return whether it was."""
        due = self._age >= REFRESH_FRAMES
        if due:
            self._refresh()
        return due

    def _refresh(self) -> None:
        theme, width, _state = self._look
        self._picture, self._age = _draw_line(theme, width, status_words(self._train)), 0


def _draw_line(theme: Theme, width: int, words: ColouredWords) -> pygame.Surface:
    plate = pygame.Surface((width, theme.px(STATUS_HEIGHT)), depth=32)
    plate.fill(theme.palette.panel[:3])
    draw_status_line(plate, theme, words)
    return plate


STATE_NAMES = {
    "starting": mark("starting"),
    "learning": mark("training"),
    "paused": mark("paused"),
    "finished": mark("finished"),
    "stopped": mark("stopped"),
    "failed": mark("failed"),
}
"""States of a run as they are shown on screen."""


def status_words(train: TrainScreen) -> ColouredWords:
    """Return the texts of the status line."""
    run, palette = train.run, train.app.theme.palette
    state = "starting" if run.state == "learning" and not run.steps else run.state  # it may have to be compiled first
    words = (
        (run.config.name, palette.text),
        (_(STATE_NAMES[state]), palette.good if state == "learning" else palette.accent),
        (_("{steps:,} of {total:,} steps").format(steps=run.steps, total=run.total), palette.text),
        (
            _("{rate:,.0f} steps/s").format(rate=run.steps_per_second) if train.is_live else "",
            palette.faint,
        ),
        (pace_name(run.pace) if train.is_live else "", palette.faint),
        (lap_words(run.history, train.circuit), palette.text),
        _policy_words(train),
    )
    return [each for each in words if each[0]]


def _policy_words(train: TrainScreen) -> tuple[str, Colour]:
    """Return which policy drives: while the run is live, the age of the newest or the ghost beside it."""
    policy, palette = train.policy, train.app.theme.palette
    if policy.beside:
        return _("ghost: {policy}").format(policy=policy.beside), palette.accent
    if policy.age is not None:
        return _("policy {age:.0f} s old").format(age=policy.age), palette.faint
    return ("", palette.faint) if policy.is_newest else (policy.driver, palette.accent)


MAX_EVENTS, EVENT_WIDTH, MIN_EVENT_WIDTH = 4, 260, 120
"""Maximum number of events shown, and maximum and minimum width of their lines at scale 1 [px]."""


class EventPanel:
    """The last events of a run, drawn again only when there are new ones."""

    def __init__(self) -> None:
        self._drawn: tuple[object, ...] = ()
        self._panel = pygame.Surface((1, 1))

    def draw(self, surface: pygame.Surface, theme: Theme, events: Sequence[RunEvent], free: pygame.Rect) -> None:
        """Draw at the bottom of an area, if that is wide enough."""
        last, margin = tuple(events[-MAX_EVENTS:]), theme.px(MARGIN)
        width = min(theme.px(EVENT_WIDTH), free.width - 2 * (margin + theme.px(PADDING)))
        if not last or width < theme.px(MIN_EVENT_WIDTH):
            return
        if (theme, last, width) != self._drawn:
            self._drawn, self._panel = (theme, last, width), _panel(theme, last, width)
        surface.blit(self._panel, self._panel.get_rect(midbottom=(free.centerx, free.bottom - margin)))


def _panel(theme: Theme, events: Sequence[RunEvent], room: int) -> pygame.Surface:
    line, padding = theme.line_height(TEXT_SMALL) + theme.px(5), theme.px(PADDING)
    words = [f"{steps_in_words(event.steps)}   {event.text}" for event in events]
    lines = [theme.truncate(each, room, TEXT_SMALL) for each in words]
    width = max(theme.width(text, TEXT_SMALL) for text in lines) + 2 * padding
    panel = theme.panel(width, line * len(lines) + padding)
    for number, text in enumerate(lines):
        colour = theme.palette.text if number == len(lines) - 1 else theme.palette.faint
        panel.blit(theme.text(text, TEXT_SMALL, colour), (padding, padding // 2 + number * line))
    return panel


SMOOTHING_STEP = 0.05
"""Change of smoothing per step of the mouse wheel."""


class TrainMouse:
    """Mouse input on the panes: a drag belongs to the pane where it began.

    position: position of the mouse [px].
    """

    def __init__(self, train: TrainScreen) -> None:
        self._train = train
        self.position: tuple[int, int] | None = None
        self._held: TrainLayout | None = None

    def handle(self, intent: Intent) -> bool:
        """Handle an intent; return whether it needs no further handling."""
        match intent:
            case MouseMove(x, y):
                self.position, self._held = (x, y), None
                return False
            case Release():
                self._held = None
            case Click(x, y):
                self._held = self._pane_at(x, y)
                self._seek(x, y)
            case Drag(dx, dy, x, y):
                self._drag(dx, dy, x, y)
            case Scroll(steps, x, y):
                self._scroll(steps, x, y)
            case _:
                return False
        return True

    def _drag(self, dx: float, dy: float, x: int, y: int) -> None:
        held = self._held or self._pane_at(x, y)
        if held is TrainLayout.SHOWCASE:
            self._train.view.camera.drag(dx, dy)
        elif held is TrainLayout.CURVES:
            self._seek(x, y)

    def _scroll(self, steps: float, x: int, y: int) -> None:
        pane = self._pane_at(x, y)
        if pane is TrainLayout.SHOWCASE:
            left, top = self._train.panes[pane].topleft
            self._train.view.camera.zoom(ZOOM_STEP**steps, (x - left, y - top))
        elif pane is TrainLayout.CURVES:
            self._train.smooth(SMOOTHING_STEP if steps > 0 else -SMOOTHING_STEP)

    def _seek(self, x: int, y: int) -> None:
        """Show the policy of the time at a pixel of a chart."""
        place = self._train.panes.get(TrainLayout.CURVES)
        steps = None if place is None else self._train.pictures.steps_at(x - place.x, y - place.y)
        if steps is not None:
            self._train.policy.choose_at(steps)

    def _pane_at(self, x: int, y: int) -> TrainLayout | None:
        return next((pane for pane, place in self._train.panes.items() if place.collidepoint(x, y)), None)
