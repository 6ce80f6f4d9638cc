"""Mouse and gamepad cursor on the canvas: three tools, panning, zooming and widths."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum

import pygame

from racer_viewer.circuits.draft import Draft
from racer_viewer.modes.editor.canvas import Canvas, Drawing, Target
from racer_viewer.modes.editor.document import CircuitDocument
from racer_viewer.modes.race_view import ZOOM_STEP
from racer_viewer.translation import mark
from racer_viewer.ui.intents import (
    NO_MODIFIERS,
    Click,
    Drag,
    Intent,
    Modifiers,
    MouseMove,
    Release,
    RightClick,
    RightDrag,
    Scroll,
)
from racer_viewer.ui.theme import Theme

CLICK_REACH = 3
"""Distance up to which a press and a release are a click, not a drag, at scale 1 [px]."""
STROKE_STEP = 2.0
"""Distance between two points of a stroke [px]."""


class Tool(Enum):
    """Effect of a press on the canvas: edit points, draw a line, or add points."""

    EDIT = mark("edit")
    FREEHAND = mark("freehand")
    POINTS = mark("points")


class EditorMouse:
    """Mouse on the canvas.

    tool: chosen tool; a circuit without points begins with a line that is drawn freehand.
    position: place of the mouse or the cursor [px]; None before it was moved.
    target: what a press would take.
    stroke: line that is being drawn [units].
    box: rectangle that is being selected [px].
    grabbed: True while a gamepad holds what its cursor took.
    """

    def __init__(self, document: CircuitDocument, canvas: Canvas, theme: Callable[[], Theme]) -> None:
        self._document, self._canvas, self._theme = document, canvas, theme
        self.tool = Tool.EDIT if document.points else Tool.FREEHAND
        self.position: tuple[int, int] | None = None
        self.target = Target()
        self.stroke: list[tuple[float, float]] = []
        self.box: pygame.Rect | None = None
        self.grabbed = False
        self._pressed: tuple[int, int] | None = None
        """Place of the press that is being held [px]."""
        self._moving: Draft | None = None
        """Circuit before the selected points were dragged."""
        self._width_of: int | None = None
        """Point whose width is dragged."""
        self._far = False
        """True if the mouse was moved far enough since the press to be a drag."""
        self._gesture = 0
        """Number of presses so far; edits of one press are one edit."""

    @property
    def busy(self) -> bool:
        """True while something is drawn or dragged."""
        return self._pressed is not None

    def use(self, tool: Tool) -> None:
        """Choose a tool; what is being drawn or dragged ends."""
        self.cancel()
        self.tool = tool

    def cancel(self) -> bool:
        """Drop the stroke or the selection rectangle; return False if there was nothing to drop."""
        was_busy = self.busy
        self.stroke, self.box = [], None
        self._pressed = self._moving = self._width_of = None
        self.grabbed = False
        return was_busy

    def handle(self, intent: Intent) -> bool:
        """Handle an intent of the mouse; return False for others."""
        match intent:
            case MouseMove(x, y):
                self.hover(x, y)
            case Click(x, y, modifiers):
                self.press(x, y, modifiers)
            case Drag(dx=dx, dy=dy, x=x, y=y, middle=middle, modifiers=modifiers):
                if middle or modifiers.space:
                    self._canvas.camera.pan(dx, dy)
                else:
                    self.drag_to(x, y, modifiers)
            case Release(x, y):
                self.release(x, y)
            case RightClick(x, y):
                self.hover(x, y)
                if self.target.kind == "point":
                    self._document.delete([self.target.index])
                    self.hover(x, y)
            case RightDrag(dx, dy):
                self._canvas.camera.pan(dx, dy)
            case Scroll(steps, x, y, modifiers):
                self._scroll(steps, x, y, modifiers)
            case _:
                return False
        return True

    def hover(self, x: int, y: int) -> None:
        """Move without a button held."""
        self.position = x, y
        if self.busy and not self.grabbed:
            self.cancel()  # the release went to another window
        self.target = Target() if self.tool is Tool.FREEHAND else self._canvas.target_at(x, y, self._theme())
        if self.tool is Tool.POINTS and self.target.kind != "point":
            self.target = Target()

    def press(self, x: int, y: int, modifiers: Modifiers = NO_MODIFIERS) -> None:
        """Press the left button."""
        if modifiers.space:
            return
        self.hover(x, y)
        self._gesture += 1
        self._pressed, self._far = (x, y), False
        if self.tool is Tool.FREEHAND:
            self.stroke = [self._world(x, y)]
        elif self.target.kind == "point":
            self._take_point(self.target.index, modifiers)
        elif self.tool is Tool.POINTS:
            self._document.add(*self._world(x, y), merge=self._merge)
            self._moving = self._document.draft
        elif self.target.kind == "width":
            self._width_of = self.target.index
        elif self.target.kind == "line":
            self._document.insert_at(self.target.arc, merge=self._merge)
            self._moving = self._document.draft
        else:
            self.box = pygame.Rect(x, y, 0, 0)

    def drag_to(self, x: int, y: int, modifiers: Modifiers = NO_MODIFIERS) -> None:
        """Move with the left button held."""
        self.position = x, y
        if self._pressed is None:
            return
        self._far = self._far or math.dist(self._pressed, (x, y)) > self._theme().px(CLICK_REACH)
        if not self._far:
            return
        if self.stroke:
            if math.dist(self._canvas.camera.view.to_screen(*self.stroke[-1]), (x, y)) >= STROKE_STEP:
                self.stroke.append(self._world(x, y))
        elif self._moving is not None:
            (x0, y0), (x1, y1) = self._world(*self._pressed), self._world(x, y)
            snaps = self._document.snaps != modifiers.ctrl
            self._document.move_from(self._moving, x1 - x0, y1 - y0, self._merge, snaps)
        elif self._width_of is not None:
            point = self._document.points[self._width_of]
            self._document.set_half_width(self._width_of, math.dist((point.x, point.y), self._world(x, y)))
        elif self.box is not None:
            x0, y0 = self._pressed
            self.box = pygame.Rect(min(x0, x), min(y0, y), abs(x - x0), abs(y - y0))

    def release(self, x: int, y: int) -> None:
        """Release the left button."""
        if self._pressed is None:
            return
        if self.stroke:
            self._end_stroke()
        elif self.box is not None:
            self._document.select(self._canvas.points_in(self.box) if self._far else [])
        elif self._moving is not None and not self._far and self._closes():
            self.tool = Tool.EDIT
        self.cancel()
        self._document.history.seal()
        self.hover(x, y)

    def drawing(self) -> Drawing:
        """Return what is drawn over the circuit for the mouse."""
        ahead = None
        if self.tool is Tool.POINTS and self.position is not None and not self.busy:
            ahead = self._document.snapped(*self._world(*self.position))
        return Drawing(self.target, self.stroke, self.box, to_pointer=ahead)

    @property
    def _merge(self) -> str:
        return f"drag {self._gesture}"

    def _closes(self) -> bool:
        """Return whether a click on the first point ends adding points."""
        return self.tool is Tool.POINTS and self.target.kind == "point" and self.target.index == 0

    def _take_point(self, index: int, modifiers: Modifiers) -> None:
        selected = self._document.selected
        if modifiers.shift:
            self._document.select(selected ^ {index})
            return
        if index not in selected:
            self._document.select([index])
        self._moving = self._document.draft

    def _end_stroke(self) -> None:
        """Make the circuit of a stroke; a click on an empty canvas begins to add points instead."""
        if self._far:
            if self._document.draw(self.stroke):
                self.tool = Tool.EDIT
        elif not self._document.points:
            self.tool = Tool.POINTS
            self._document.add(*self.stroke[0])

    def _scroll(self, steps: float, x: int, y: int, modifiers: Modifiers) -> None:
        """Change the width of the point below the mouse or, with Shift, of the selected ones; else zoom."""
        target = self._canvas.target_at(x, y, self._theme())
        if modifiers.shift:
            self._document.widen(steps)
        elif target.kind in ("point", "width"):
            chosen = self._document.selected
            self._document.widen(steps, chosen if target.index in chosen else [target.index])
        else:
            self._canvas.camera.zoom(ZOOM_STEP**steps, (x, y))

    def _world(self, x: float, y: float) -> tuple[float, float]:
        return self._canvas.camera.view.to_world(x, y)
