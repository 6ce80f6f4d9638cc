"""Physics panel: surface, slip and forces of the followed car."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pygame

from racer_env.engine.car import (
    BRAKE_FORCE,
    DRAG,
    DT,
    ENGINE_FORCE,
    GRIP,
    MASS,
    MAX_SPEED,
    MAX_WHEEL_ANGLE,
    ROAD,
    ROLLING_RESISTANCE,
    SHOULDER,
    SPEED_FACTOR,
    STANDING_SPEED,
    STEERING_FADE,
    TRACTION_AT_MAX_SPEED,
    TRACTION_AT_REST,
)
from racer_viewer.render.overlays.inputs import SPEED_UNITS
from racer_viewer.render.overlays.panel import EDGE, ROW, Panel, PanelInput, TextPainter, blend, fill_bar
from racer_viewer.timing import signed
from racer_viewer.translation import _, mark
from racer_viewer.ui.theme import TEXT_SMALL, Colour

SURFACES = (mark("road"), mark("runoff"), mark("shoulder"))
"""Surface names by surface code."""
FORCES = (mark("engine"), mark("brake"), mark("drag"))
FORCE_REACH = 60.0
"""Force at the end of a bar [kN]."""
KILO = 1000.0
MOTIONS = (mark("slip"), mark("yaw"), mark("along"), mark("to left"), mark("friction"))
LABEL_WIDTH, LABEL_GAP, MOTION_END, FIGURE = 56, 4, 96, "00.0 kN"
"""Width of the labels and right end of the motion values, at scale 1 [px]; and the widest number right of a bar."""
PICTURE_WIDTH, PICTURE_HEIGHT = 70, 92
"""Size of the car picture at scale 1 [px]."""
HEIGHT = 2 * EDGE + (1 + len(MOTIONS) + len(FORCES)) * ROW + 10
COMPACT_HEIGHT = 2 * EDGE + (1 + 1 + len(FORCES)) * ROW
CAR_LENGTH, CAR_WIDTH, WHEEL_LENGTH, WHEEL_WIDTH = 38, 19, 11, 5
"""Sizes in the car picture at scale 1 [px]."""
CAR_PLACE = 0.66
"""Vertical position of the car's centre as a share of the picture's height."""
ARROW = 58.0
"""Length of the velocity arrow at top speed, at scale 1 [px]."""
FRICTION_ARROW, FRICTION_REACH = 30.0, 300.0
"""Longest friction arrow at scale 1 [px], and the force it stands for [kN]."""


@dataclass(frozen=True)
class Forces:
    """Forces on the car [kN]: engine forwards, brake and drag backwards; drag includes rolling resistance.

    friction: lateral tyre force, positive to the left; it turns the car around a bend.
    """

    engine: float
    brake: float
    drag: float
    friction: float


def forces_on(car: Any) -> Forces:
    """Return the forces by the formulas of `racer_env.engine.car`: resistance stops a car but never pushes it back."""
    speed, surface = float(car["speed"]), int(car["surface"])
    factor = SPEED_FACTOR[surface]
    brake, drag = float(car["brake"]) * BRAKE_FORCE, DRAG * speed * speed / factor + ROLLING_RESISTANCE
    stopping = MASS * speed / DT if speed > STANDING_SPEED else 0.0
    share = min(1.0, stopping / (brake + drag))
    engine = float(car["throttle"]) * ENGINE_FORCE * factor
    traction = TRACTION_AT_REST - (TRACTION_AT_REST - TRACTION_AT_MAX_SPEED) * min(speed / MAX_SPEED, 1.0)
    held = GRIP[surface] * traction
    friction = -MASS * along_and_left(car)[1] * held / (1.0 - held) / DT
    return Forces(engine / KILO, brake * share / KILO, drag * share / KILO, friction / KILO)


def along_and_left(car: Any) -> tuple[float, float]:
    """Return the longitudinal speed and the lateral speed to the left [units/s]."""
    vx, vy, heading = float(car["vx"]), float(car["vy"]), float(car["heading"])
    sin, cos = math.sin(heading), math.cos(heading)
    return vx * cos + vy * sin, -vx * sin + vy * cos


class PhysicsPanel(Panel):
    """Numbers, bars, and a top view with velocity and friction. The compact form has surface, slip and forces only."""

    EVERY, PHASE = 3, 1

    def __init__(self, painter: TextPainter, compact: bool) -> None:
        super().__init__(painter, COMPACT_HEIGHT if compact else HEIGHT)
        self._compact = compact
        self.title(_("PHYSICS"))
        self._friction_colour = self.palette.series[1]
        rows = MOTIONS[:1] if compact else MOTIONS
        colours = {"along": self.palette.accent, "to left": self.palette.accent, "friction": self._friction_colour}
        self._motion_top = self.top + self.row
        self._figure_end = self.left + self.px(MOTION_END)
        for row, name in enumerate(rows):
            colour = colours.get(name, self.palette.text)
            painter.text(self.plate, _(name), self.left, self._motion_top + row * self.row, colour)
        force_top = self._motion_top + len(rows) * self.row + (0 if compact else self.px(8))
        left = self.left + self.px(LABEL_WIDTH)
        width = self.right - painter.number_width(FIGURE) - self.px(4) - left
        self.bars = [self.bar_in_row(left, force_top + row * self.row, width) for row in range(len(FORCES))]
        """Bars of engine, brake and drag."""
        for name, bar in zip(FORCES, self.bars, strict=True):
            width = self.px(LABEL_WIDTH - LABEL_GAP)
            painter.label(self.plate, _(name), self.left, self._beside(bar), width, self.palette.text)
            painter.text_right(self.plate, "kN", self.right, self._beside(bar), self.palette.faint)
            self.groove(bar)
        self._force_end = self.right - self.theme.width(" kN", TEXT_SMALL)
        self._force_colours: tuple[Colour, ...] = (self.palette.good, self.palette.bad, self.palette.faint)
        self._middle = pygame.Vector2(
            self.right - self.px(PICTURE_WIDTH) // 2, self._motion_top + self.px(PICTURE_HEIGHT * CAR_PLACE)
        )

    def draw_moving(self, board: pygame.Surface, view: PanelInput) -> None:
        car = view.snapshot.car
        surface = int(car["surface"])
        colour = (
            self.palette.good if surface == ROAD else self.palette.accent if surface == SHOULDER else self.palette.bad
        )
        surface_text = _("{surface}, grip {grip:.0f} %").format(
            surface=_(SURFACES[surface]), grip=100.0 * GRIP[surface]
        )
        self.painter.text_right(board, surface_text, self.right, self.top, colour)
        forces = forces_on(car)
        self._draw_forces(board, forces)
        self._draw_figure(board, 0, f"{math.degrees(float(car['slip_angle'])):.1f}", "°")
        if not self._compact:
            self._draw_motion(board, car, forces, view.units)

    def _draw_motion(self, board: pygame.Surface, car: Any, forces: Forces, units: str) -> None:
        along, left = along_and_left(car)
        factor = SPEED_UNITS[units]
        self._draw_figure(board, 1, signed(math.degrees(float(car["yaw_rate"])), 0), "°/s")
        self._draw_figure(board, 2, signed(along * factor, 1), units)
        self._draw_figure(board, 3, signed(left * factor, 1), units)
        self._draw_figure(board, 4, signed(forces.friction, 0), "kN")
        self._draw_car(board, car)
        self._draw_arrow(board, pygame.Vector2(-left, -along) * (self.px(ARROW) / MAX_SPEED), self.palette.accent)
        reach = min(1.0, max(-1.0, forces.friction / FRICTION_REACH)) * self.px(FRICTION_ARROW)
        self._draw_arrow(board, pygame.Vector2(-reach, 0.0), self._friction_colour)

    def _draw_figure(self, board: pygame.Surface, row: int, text: str, unit: str) -> None:
        top = self._motion_top + row * self.row
        self.painter.number(board, text, self._figure_end, top, self.palette.text)
        self.painter.text(board, unit, self._figure_end + self.px(3), top, self.palette.faint)

    def _draw_forces(self, board: pygame.Surface, forces: Forces) -> None:
        values = forces.engine, forces.brake, forces.drag
        for bar, value, colour in zip(self.bars, values, self._force_colours, strict=True):
            fill_bar(board, bar, value / FORCE_REACH, colour)
            self.painter.number(board, f"{value:.1f}", self._force_end, self._beside(bar), self.palette.text)

    def _draw_car(self, board: pygame.Surface, car: Any) -> None:
        """Draw the car from above, heading up, with steered front wheels."""
        x, y = self._middle
        wheel = float(car["steer"]) * MAX_WHEEL_ANGLE / (1.0 + STEERING_FADE * float(car["speed"]))
        front, side = self.px(CAR_LENGTH) * 0.3, self.px(CAR_WIDTH) * 0.5
        for dx, dy, turn in ((-side, front, 0.0), (side, front, 0.0), (-side, -front, wheel), (side, -front, wheel)):
            _draw_box(board, self.palette.faint, (x + dx, y + dy), self.px(WHEEL_WIDTH), self.px(WHEEL_LENGTH), turn)
        body = pygame.Rect(0, 0, self.px(CAR_WIDTH - 3), self.px(CAR_LENGTH))
        body.center = round(x), round(y)
        pygame.draw.rect(board, blend(self.palette.panel[:3], self.palette.faint, 0.5), body, border_radius=self.px(4))

    def _draw_arrow(self, board: pygame.Surface, way: pygame.Vector2, colour: Colour) -> None:
        """Draw an arrow from the car's centre."""
        width = self.px(2)
        if way.length() < 4.0 * width:
            return
        along = way.normalize()
        end = self._middle + way
        across, head = pygame.Vector2(-along.y, along.x) * width * 2.0, end - along * width * 3.5
        pygame.draw.line(board, colour, self._middle, head, width)
        pygame.draw.polygon(board, colour, (end, head + across, head - across))

    def _beside(self, bar: pygame.Rect) -> int:
        """Return the top of small text in the row of a bar."""
        return bar.centery - self.theme.line_height(TEXT_SMALL) // 2


def _draw_box(
    board: pygame.Surface, colour: Colour, middle: tuple[float, float], width: int, length: int, turn: float
) -> None:
    """Draw a box that points up, rotated clockwise by `turn` [rad]."""
    ahead = pygame.Vector2(math.sin(turn), -math.cos(turn)) * (length / 2.0)
    right = pygame.Vector2(math.cos(turn), math.sin(turn)) * (width / 2.0)
    corners = [pygame.Vector2(middle) + ahead * a + right * b for a, b in ((1, 1), (1, -1), (-1, -1), (-1, 1))]
    pygame.draw.polygon(board, colour, corners)
