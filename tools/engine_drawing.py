"""Draw `docs/engine.svg`: grid cells, centreline candidates, a beam and a ray that walks the grid, from real tables.

python tools/engine_drawing.py [TARGET]
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_env.engine import Track, load_circuit
from racer_env.engine.tables import BEAM_DIRECTIONS, SQUARE_CELLS

ROOT = Path(__file__).resolve().parent.parent
CIRCUIT, ARC, OFFSET = "track-01", 318.0, 6.0
"""Place of the car: circuit, distance from the start line and offset to the left [units]."""
BEAM_DIRECTION, WALK_ANGLE = 38, 2.62
"""Beam that is drawn, and direction of the ray that walks the grid [rad]."""
WIDTH, HEIGHT, LEGEND = 1040, 640, 168
"""Size of the drawing, and height of the legend below it [px]."""
SCALE = 4.8
"""Pixels per unit."""
CENTRE = (-26.0, -8.0)
"""Centre of the drawing relative to the car [units]."""
PAPER, ROAD, GRID, WALL, TINT = "#1f2b24", "#37463d", "#46594d", "#e8e4d8", "#a1553a"
ACCENT, BLUE, GREEN, TEXT, FAINT = "#ffb000", "#56b4e9", "#7bd389", "#e8e4d8", "#a9b5ab"

Points = NDArray[np.float64]


class Sheet:
    """SVG elements in the coordinates of the track."""

    def __init__(self, x: float, y: float) -> None:
        self._left, self._top = x - WIDTH / SCALE / 2.0, y + HEIGHT / SCALE / 2.0
        self.elements: list[str] = []

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the position of a point of the track [px]."""
        return round((x - self._left) * SCALE, 1), round((self._top - y) * SCALE, 1)

    def line(self, points: Any, colour: str, width: float, *, closed: bool = False, more: str = "") -> None:
        """Draw a line, or a filled area if it is closed."""
        pixels = " ".join("{},{}".format(*self.at(*point)) for point in points)
        shape = f'polygon points="{pixels}" fill="{colour}"' if closed else f'polyline points="{pixels}" fill="none"'
        self.elements.append(f'<{shape} stroke="{colour}" stroke-width="{width}" {more}/>')

    def box(self, x: float, y: float, side: float, colour: str, opacity: float, stroke: str = "none") -> None:
        """Draw a square from its lower left corner."""
        left, top = self.at(x, y + side)
        self.elements.append(
            f'<rect x="{left}" y="{top}" width="{side * SCALE}" height="{side * SCALE}" fill="{colour}" '
            f'fill-opacity="{opacity}" stroke="{stroke}" stroke-width="1.5"/>'
        )

    def dot(self, x: float, y: float, radius: float, colour: str) -> None:
        cx, cy = self.at(x, y)
        self.elements.append(f'<circle cx="{cx}" cy="{cy}" r="{radius}" fill="{colour}"/>')


def draw(target: Path) -> None:
    """Write the drawing."""
    track = load_circuit(CIRCUIT)
    arc = np.array([ARC])
    (x, y), (dx, dy) = track.centreline.points(arc)[0].tolist(), track.centreline.tangents(arc)[0].tolist()
    x, y = x - OFFSET * dy, y + OFFSET * dx
    sheet = Sheet(x + CENTRE[0], y + CENTRE[1])
    _draw_ground(sheet, track)
    _draw_grid(sheet, track)
    _draw_beam(sheet, track, x, y)
    _draw_walk(sheet, track, x, y)
    _draw_candidates(sheet, track, x, y)
    sheet.dot(x, y, 6.0, WALL)
    target.write_text(_page(sheet.elements), encoding="utf-8", newline="\n")
    print(target)


def _draw_ground(sheet: Sheet, track: Track) -> None:
    road = np.vstack([track.inner_road, track.outer_road[::-1]])
    sheet.line(road, ROAD, 0.0, closed=True)
    for wall in (track.inner, track.outer):
        sheet.line(wall, WALL, 2.5)


def _draw_grid(sheet: Sheet, track: Track) -> None:
    frame, cells = track.tables.frame[0], track.tables.cells
    side = float(frame["cell"])
    for column in range(int(frame["columns"]) + 1):
        x = float(frame["left"]) + column * side
        sheet.line([(x, frame["bottom"]), (x, frame["bottom"] + frame["rows"] * side)], GRID, 0.6)
    for row in range(int(frame["rows"]) + 1):
        y = float(frame["bottom"]) + row * side
        sheet.line([(frame["left"], y), (frame["left"] + frame["columns"] * side, y)], GRID, 0.6)
    for index in np.flatnonzero(cells["crossing"][:-1]):
        row, column = divmod(int(index), int(frame["columns"]))
        corner = float(frame["left"]) + column * side, float(frame["bottom"]) + row * side
        if all(-50 < pixel < limit for pixel, limit in zip(sheet.at(*corner), (WIDTH + 50, HEIGHT + 50), strict=True)):
            sheet.box(*corner, side, TINT, 0.6)


def _square(track: Track, x: float, y: float) -> tuple[Any, float, float, float]:
    """Return the square of cells that contains a point, its lower left corner and its side."""
    frame = track.tables.frame[0]
    side = float(frame["cell"]) * SQUARE_CELLS
    column, row = int((x - frame["left"]) / side), int((y - frame["bottom"]) / side)
    square = track.tables.squares[row * int(frame["square_columns"]) + column]
    return square, float(frame["left"]) + column * side, float(frame["bottom"]) + row * side, side


def _draw_candidates(sheet: Sheet, track: Track, x: float, y: float) -> None:
    tables = track.tables
    square, left, bottom, side = _square(track, x, y)
    sheet.box(left, bottom, side, BLUE, 0.12, BLUE)
    chosen = set(tables.lists[square["samples"] : square["samples"] + square["candidates"]].tolist())
    for number, sample in enumerate(tables.samples):
        sheet.dot(float(sample["x"]), float(sample["y"]), *((3.4, BLUE) if number in chosen else (1.8, FAINT)))


def _draw_beam(sheet: Sheet, track: Track, x: float, y: float) -> None:
    """Draw the left-most and the right-most ray of a beam, and the run of wall between them."""
    tables = track.tables
    square, left, bottom, side = _square(track, x, y)
    beam = tables.beams[square["beams"], BEAM_DIRECTION]
    if beam["count"] == 0 or beam["other_count"] or square["crossing"]:
        raise SystemExit("this beam has no single run, or its square is cut by a wall: choose another one")
    corners = np.array([(left, bottom), (left + side, bottom), (left + side, bottom + side), (left, bottom + side)])
    ends = []
    for angle, sign in ((BEAM_DIRECTION + 1, 1.0), (BEAM_DIRECTION, -1.0)):
        turn = angle * 2.0 * math.pi / BEAM_DIRECTIONS
        direction = np.array([math.cos(turn), math.sin(turn)])
        start = corners[np.argmax(sign * (direction[0] * corners[:, 1] - direction[1] * corners[:, 0]))]
        ends.append((start, start + _distance(track, start, direction) * direction))
    (left_start, left_end), (right_start, right_end) = ends
    sheet.line([left_start, left_end, right_end, right_start], ACCENT, 0.0, closed=True, more='fill-opacity="0.16"')
    for start, end in ends:
        sheet.line([start, end], ACCENT, 1.6)
    first, count = int(beam["first"]), int(beam["count"])
    sheet.line(tables.wall_points[:, first : first + count + 1].T, ACCENT, 6.0)
    turn = (BEAM_DIRECTION + 0.5) * 2.0 * math.pi / BEAM_DIRECTIONS
    direction = np.array([math.cos(turn), math.sin(turn)])
    end = (x, y) + _distance(track, np.array([x, y]), direction) * direction
    sheet.line([(x, y), end], ACCENT, 1.6, more='stroke-dasharray="7 5"')
    sheet.dot(*end, 4.5, ACCENT)


def _distance(track: Track, start: Points, direction: Points) -> float:
    """Return the distance to the first wall along a ray."""
    segments = track.tables.segments
    cross = direction[0] * segments["dy"] - direction[1] * segments["dx"]
    ox, oy = segments["x"] - start[0], segments["y"] - start[1]
    along_ray = (ox * segments["dy"] - oy * segments["dx"]) / cross
    along_wall = (ox * direction[1] - oy * direction[0]) / cross
    return float(along_ray[(along_ray >= 0.0) & (along_wall >= 0.0) & (along_wall <= 1.0)].min())


def _draw_walk(sheet: Sheet, track: Track, x: float, y: float) -> None:
    """Draw the wall-free squares of cells over which a ray jumps."""
    frame, cells = track.tables.frame[0], track.tables.cells
    side, dx, dy = float(frame["cell"]), math.cos(WALK_ANGLE), math.sin(WALK_ANGLE)
    quadrant = (1 if dx < 0.0 else 0) + (2 if dy < 0.0 else 0)
    length, travelled = _distance(track, np.array([x, y]), np.array([dx, dy])), 0.0
    while travelled < length:
        px, py = x + (travelled + 1e-6) * dx, y + (travelled + 1e-6) * dy
        column, row = int((px - frame["left"]) / side), int((py - frame["bottom"]) / side)
        jump = max(1, int(cells[row * int(frame["columns"]) + column]["jump"][quadrant]))
        low_column, low_row = column - (jump - 1 if dx < 0.0 else 0), row - (jump - 1 if dy < 0.0 else 0)
        left, bottom = float(frame["left"]) + low_column * side, float(frame["bottom"]) + low_row * side
        sheet.box(left, bottom, jump * side, GREEN, 0.07, GREEN)
        to_x = ((left if dx < 0.0 else left + jump * side) - x) / dx
        to_y = ((bottom if dy < 0.0 else bottom + jump * side) - y) / dy
        travelled = min(to_x, to_y)
    sheet.line([(x, y), (x + length * dx, y + length * dy)], GREEN, 1.8)
    sheet.dot(x + length * dx, y + length * dy, 4.5, GREEN)


def _page(elements: list[str]) -> str:
    rows = (
        (TINT, "cells through which a wall passes: a walking ray tests walls only here"),
        (BLUE, "square of 4 × 4 cells around the car (white), and its candidates for the nearest centreline sample"),
        (
            ACCENT,
            "beam: all rays from the square into one of 64 sectors meet the thick run of wall; dashed: one ray",
        ),
        (GREEN, "ray that walks the grid: it jumps over wall-free squares of cells, up to a cell with a wall"),
    )
    legend = "".join(
        f'<rect x="24" y="{HEIGHT + 22 + 34 * i}" width="20" height="20" rx="4" fill="{colour}"/>'
        f'<text x="58" y="{HEIGHT + 38 + 34 * i}" font-size="17" fill="{TEXT}">{text}</text>\n'
        for i, (colour, text) in enumerate(rows)
    )
    drawing = "\n".join(elements)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT + LEGEND}" '
        "font-family=\"Inter, 'Segoe UI', Helvetica, Arial, sans-serif\">\n"
        "<title>Grid cells, centreline candidates, a beam and a ray that walks the grid</title>\n"
        f'<clipPath id="sheet"><rect width="{WIDTH}" height="{HEIGHT}"/></clipPath>\n'
        f'<rect width="{WIDTH}" height="{HEIGHT + LEGEND}" rx="16" fill="{PAPER}"/>\n'
        f'<g clip-path="url(#sheet)" stroke-linejoin="round">\n{drawing}\n</g>\n{legend}</svg>\n'
    )


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "engine.svg")
