"""A user of the editor: a scripted mouse that draws on the canvas and drags what is there."""

from __future__ import annotations

import math
from itertools import pairwise

import pygame

from racer_viewer.circuits.draft import Draft
from racer_viewer.modes.editor import EditorScreen, open_editor
from tests.modes.person import Person

Pixel = tuple[int, int]


class Draughtsman:
    """A person at the canvas of the editor."""

    def __init__(self, person: Person, draft: Draft | None = None, circuit_id: str | None = None) -> None:
        self.person = person
        open_editor(person.app.context, draft or Draft(), circuit_id)
        self.screen = person.until_top(EditorScreen)
        person.picture()

    @property
    def points(self) -> tuple[tuple[float, float, float], ...]:
        return self.screen.document.points

    def pixel_of(self, x: float, y: float) -> Pixel:
        """Return the pixel of a place [units]."""
        px, py = self.screen.canvas.camera.view.to_screen(x, y)
        return round(px), round(py)

    def pixel_of_point(self, index: int) -> Pixel:
        return self.pixel_of(*self.points[index][:2])

    def stroke(self, places: list[Pixel]) -> None:
        """Hold the left button along a line."""
        self.person.button_down(*places[0])
        for before, after in pairwise(places):
            self.person.drag(after[0] - before[0], after[1] - before[1], after)
        self.release(places[-1])

    def release(self, place: Pixel) -> None:
        pygame.event.post(pygame.event.Event(pygame.MOUSEBUTTONUP, pos=place, button=pygame.BUTTON_LEFT))
        self.person.frames()

    def move(self, begin: Pixel, end: Pixel) -> None:
        """Drag something in two steps."""
        self.stroke([begin, ((begin[0] + end[0]) // 2, (begin[1] + end[1]) // 2), end])

    def checked(self) -> None:
        """Wait until all problems of the circuit are known."""
        self.person.until(lambda: self.screen.document.is_checked, "the check of the circuit")


def oval(width: float = 0.26, height: float = 0.3, count: int = 60, size: Pixel = (1280, 720)) -> list[Pixel]:
    """Return a lap around the middle of the window, clockwise; sizes as shares of the window [px]."""
    x, y = 0.5 * size[0], 0.47 * size[1]
    turns = [2.0 * math.pi * number / count for number in range(count + 1)]
    return [(round(x + width * size[0] * math.cos(t)), round(y + height * size[1] * math.sin(t))) for t in turns]
