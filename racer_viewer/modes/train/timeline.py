"""The timeline over a whole training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from racer_viewer.ui.timeline import Mark, State, Timeline

if TYPE_CHECKING:
    from racer_viewer.modes.train.screen import TrainScreen

MARKED = {"first lap": "first lap", "best": "", "weights": "weights"}
"""Events that are marked, and by which words."""


def note_on(timeline: Timeline, train: TrainScreen) -> None:
    """Bring it up to date, from its length to what is said below it."""
    run, palette = train.run, train.app.theme.palette
    timeline.length = max(1, run.total if train.lives else run.steps)
    timeline.place = train.policy.steps
    timeline.state = State.GOES if run.state == "learning" else State.STANDS if train.lives else State.ENDED
    timeline.speed = ""
    timeline.caption, timeline.caption_colour = run.config.name, palette.player
    timeline.marks = tuple(
        Mark(event.steps, MARKED[event.kind], palette.good if event.kind == "best" else None)
        for event in run.curves.events
        if event.kind in MARKED
    )
    timeline.warning = run.problem
    timeline.news = "Drag to an earlier policy: it drives beside the newest" if train.lives else "Drag to any moment"
