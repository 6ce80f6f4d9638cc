"""What the mouse does to a training: on each part of the window something else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from racer_viewer.modes.driving import ZOOM_STEP
from racer_viewer.modes.train.layout import Layout
from racer_viewer.ui.intents import Click, Drag, Intent, Point, Release, Scroll

if TYPE_CHECKING:
    from racer_viewer.modes.train.screen import TrainScreen

SMOOTHING_STEP = 0.05
"""Of one click of the mouse wheel."""


class TrainMouse:
    """What began on one part stays there, wherever the mouse is dragged to. at: where the mouse is [px]."""

    def __init__(self, train: TrainScreen) -> None:
        self._train = train
        self.at: tuple[int, int] | None = None
        self._held: Layout | None = None

    def handle(self, intent: Intent) -> bool:
        """Whether nobody else should hear of it."""
        match intent:
            case Point(x, y):
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
        if held is Layout.SHOWCASE:
            self._train.camera.drag(dx, dy)
        elif held is Layout.CURVES:
            self._show_moment(x, y)

    def _scroll(self, steps: float, x: int, y: int) -> None:
        part = self._part_at(x, y)
        if part is Layout.SHOWCASE:
            left, top = self._train.places[part].topleft
            self._train.camera.zoom(ZOOM_STEP**steps, (x - left, y - top))
        elif part is Layout.CURVES:
            self._train.smooth(SMOOTHING_STEP if steps > 0 else -SMOOTHING_STEP)

    def _show_moment(self, x: int, y: int) -> None:
        """That of the chart at these pixels, if there is one."""
        place = self._train.places.get(Layout.CURVES)
        steps = None if place is None else self._train.pictures.steps_at(x - place.x, y - place.y)
        if steps is not None:
            self._train.policy.choose_at(steps)

    def _part_at(self, x: int, y: int) -> Layout | None:
        return next((part for part, place in self._train.places.items() if place.collidepoint(x, y)), None)
