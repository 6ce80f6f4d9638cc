"""Lines in SVG drawings: paths, polygons and polylines as points. No entities are expanded, and nothing is fetched."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from xml.parsers import expat

import numpy as np

from racer_env.engine.centreline import Floats
from racer_env.errors import CircuitError

MAX_ELEMENTS, MAX_DEPTH = 20_000, 200
"""Maximum number of elements of a drawing, and of their nesting."""
MAX_WORK = 60_000
"""Maximum number of commands, numbers and points of all paths together."""
STEPS_PER_CURVE = 8
"""Chords of a Bezier curve, and of an arc for each quarter of a turn."""
PARAMETERS = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "S": 4, "Q": 4, "T": 2, "A": 7, "Z": 0}
"""Numbers that each command of a path takes."""
_NUMBER = re.compile(r"[\s,]*([-+]?(?:\d{1,40}\.?\d{0,40}|\.\d{1,40})(?:[eE][-+]?\d{1,2})?)")
_FLAG = re.compile(r"[\s,]*([01])")
_COMMAND = re.compile(r"[\s,]*([A-Za-z])")
_TRANSFORM = re.compile(r"[\s,]*(matrix|translate|scale|rotate|skewX|skewY)\s*\(([^()]{0,400})\)")

Matrix = tuple[float, float, float, float, float, float]
"""Affine transform a, b, c, d, e, f of SVG: x' = a x + c y + e, y' = b x + d y + f."""
Place = tuple[float, float]
IDENTITY: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
HIDDEN = ("defs", "clipPath", "mask", "pattern", "symbol", "marker")
"""Elements whose content is not drawn where it stands."""


def svg_lines(data: bytes) -> list[Floats]:
    """Return the lines of a drawing, each as points (n, 2) with y upwards. Raises CircuitError if it is not SVG."""
    return _Drawing().read(data)


@dataclass
class _Drawing:
    """State of the parser: the lines so far, and the transforms of the elements that are open."""

    lines: list[Floats] = field(default_factory=list)
    transforms: list[Matrix] = field(default_factory=lambda: [IDENTITY])
    hidden: int = 0
    elements: int = 0
    work: int = 0
    is_svg: bool = False

    def read(self, data: bytes) -> list[Floats]:
        parser = expat.ParserCreate()
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.StartDoctypeDeclHandler = _refuse_declarations
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        try:
            parser.Parse(data, True)
        except expat.ExpatError as error:
            raise CircuitError(f"it is not SVG: {expat.ErrorString(error.code)} in line {error.lineno}") from None
        except (ValueError, LookupError) as error:  # an unknown encoding
            raise CircuitError(f"it is not SVG: {error}") from None
        if not self.is_svg:
            raise CircuitError("it is not SVG: its first element is not <svg>")
        return self.lines

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        self.elements += 1
        self.is_svg = self.is_svg or (self.elements == 1 and name == "svg")
        if self.elements > MAX_ELEMENTS or len(self.transforms) > MAX_DEPTH:
            raise CircuitError(f"more than {MAX_ELEMENTS} elements, or nested deeper than {MAX_DEPTH}")
        self.transforms.append(_combined(self.transforms[-1], _transform_of(attributes.get("transform", ""))))
        self.hidden += name in HIDDEN
        if self.hidden:
            return
        if name == "path":
            found = self._path(attributes.get("d", ""))
        elif name in ("polygon", "polyline"):
            values = list(self._numbers(attributes.get("points", "")))
            found = [list(zip(values[0::2], values[1::2], strict=False))]
        else:
            return
        a, b, c, d, e, f = self.transforms[-1]
        for line in found:
            if len(line) > 2:
                points = np.array(line, np.float64)
                x, y = points[:, 0], points[:, 1]
                with np.errstate(all="ignore"):
                    self.lines.append(np.column_stack([a * x + c * y + e, -(b * x + d * y + f)]))

    def _end(self, name: str) -> None:
        self.transforms.pop()
        self.hidden -= name.rpartition(":")[2] in HIDDEN

    def _numbers(self, text: str) -> Iterator[float]:
        at = 0
        while found := _NUMBER.match(text, at):
            self._count()
            yield float(found[1])
            at = found.end()

    def _count(self, work: int = 1) -> None:
        self.work += work
        if self.work > MAX_WORK:
            raise CircuitError(f"more than {MAX_WORK} commands and numbers in its paths: keep only the circuit's line")

    def _path(self, text: str) -> list[list[Place]]:
        """Return the subpaths of a path. As browsers do, draw it up to the first mistake."""
        pen, at, letter = _Pen(), 0, ""
        while at < len(text):
            if found := _COMMAND.match(text, at):
                letter, at = found[1], found.end()
            elif not letter:
                break
            values: list[float] = []
            for number in range(PARAMETERS.get(letter.upper(), -1)):
                is_flag = letter in "Aa" and number in (3, 4)
                found = (_FLAG if is_flag else _NUMBER).match(text, at)
                if found is None:
                    break
                self._count()
                values.append(float(found[1]))
                at = found.end()
            if len(values) != PARAMETERS.get(letter.upper(), -1):
                break
            self._count(1 if letter in "MmLlHhVvZz" else 4 * STEPS_PER_CURVE if letter in "Aa" else STEPS_PER_CURVE)
            pen.draw(letter, values)
            letter = {"M": "L", "m": "l", "Z": "", "z": ""}.get(letter, letter)
        return pen.lines


def _refuse_declarations(name: str, system: str | None, public: str | None, has_declarations: int) -> None:
    """Refuse entities, and default attributes, which would be added to each of thousands of elements."""
    if has_declarations:
        raise CircuitError("it declares entities or attributes, which are not expanded: save it as plain SVG")


@dataclass
class _Pen:
    """Pen that draws a path. lines: its subpaths. control: last control point of a curve, for S and T."""

    lines: list[list[Place]] = field(default_factory=list)
    place: Place = (0.0, 0.0)
    control: tuple[str, Place] = ("", (0.0, 0.0))

    def draw(self, letter: str, values: list[float]) -> None:
        """Draw one command of a path."""
        kind = letter.upper()
        if kind == "A":
            end = self._absolute(letter, values[5:])
            self._arc(values[0], values[1], math.radians(values[2]), bool(values[3]), bool(values[4]), end)
        elif kind == "Z":
            if self.lines:
                self.place = self.lines[-1][0]
        elif kind in "HV":
            x, y = self.place
            dx, dy = (x, y) if letter.islower() else (0.0, 0.0)
            self._line_to((dx + values[0], y) if kind == "H" else (x, dy + values[0]))
        elif kind == "M":
            self.place = self._absolute(letter, values)
            self.lines.append([self.place])
        elif kind == "L":
            self._line_to(self._absolute(letter, values))
        else:
            self._curve(kind, [self._absolute(letter, values[i : i + 2]) for i in range(0, len(values), 2)])
            return
        self.control = ("", self.place)

    def _absolute(self, letter: str, values: list[float]) -> Place:
        x, y = self.place if letter.islower() else (0.0, 0.0)
        return x + values[0], y + values[1]

    def _line_to(self, place: Place) -> None:
        if not self.lines or (len(self.lines[-1]) > 1 and self.place == self.lines[-1][0] != self.lines[-1][-1]):
            self.lines.append([self.place])  # after Z, the next subpath begins where the last one did
        self.lines[-1].append(place)
        self.place = place

    def _curve(self, kind: str, points: list[Place]) -> None:
        """Draw a Bezier curve; S and T begin with the mirrored control point of a curve of the same degree."""
        if kind in "ST":
            (x, y), (cx, cy) = self.place, self.control[1]
            smooth = self.control[0] == ("C" if kind == "S" else "Q")
            points.insert(0, (2.0 * x - cx, 2.0 * y - cy) if smooth else (x, y))
        start, end = self.place, points[-1]
        for step in range(1, STEPS_PER_CURVE + 1):
            t = step / STEPS_PER_CURVE
            row = [start, *points]
            while len(row) > 1:
                row = [(p[0] + t * (q[0] - p[0]), p[1] + t * (q[1] - p[1])) for p, q in pairwise(row)]
            self._line_to(row[0])
        self.place = end
        self.control = ("C" if len(points) == 3 else "Q", points[-2])

    def _arc(self, rx: float, ry: float, turn: float, large: bool, sweep: bool, end: Place) -> None:
        """Draw an elliptical arc, by the formulas of the SVG standard."""
        (x1, y1), (x2, y2) = self.place, end
        rx, ry = abs(rx), abs(ry)
        cos, sin = math.cos(turn), math.sin(turn)
        dx, dy = (x1 - x2) / 2.0, (y1 - y2) / 2.0
        px, py = cos * dx + sin * dy, cos * dy - sin * dx
        if not (rx > 0.0 and ry > 0.0 and 1e-9 < math.hypot(px / rx, py / ry) < 1e9):
            self._line_to(end)
            return
        grow = max(1.0, math.hypot(px / rx, py / ry))
        rx, ry = rx * grow, ry * grow
        ux, uy = px / rx, py / ry
        square = max(0.0, 1.0 / (ux * ux + uy * uy) - 1.0)
        factor = (-1.0 if large == sweep else 1.0) * math.sqrt(square)
        cx, cy = factor * uy, -factor * ux
        first = math.atan2(uy - cy, ux - cx)
        swept = (math.atan2(-uy - cy, -ux - cx) - first) % (2.0 * math.pi)
        swept -= 0.0 if sweep else 2.0 * math.pi
        steps = max(1, math.ceil(abs(swept) / (math.pi / 2.0) * STEPS_PER_CURVE))
        mx, my = (x1 + x2) / 2.0, (y1 + y2) / 2.0
        for step in range(1, steps):
            angle = first + swept * step / steps
            ex, ey = rx * (cx + math.cos(angle)), ry * (cy + math.sin(angle))
            self._line_to((mx + cos * ex - sin * ey, my + sin * ex + cos * ey))
        self._line_to(end)


def _transform_of(text: str) -> Matrix:
    matrix, at = IDENTITY, 0
    while found := _TRANSFORM.match(text, at):
        values = [float(number) for number in _NUMBER.findall(found[2])]
        step = _STEPS[found[1]](values)
        if step is None:
            break
        matrix, at = _combined(matrix, step), found.end()
    return matrix


def _rotation(values: list[float]) -> Matrix | None:
    if len(values) not in (1, 3):
        return None
    cos, sin = math.cos(math.radians(values[0])), math.sin(math.radians(values[0]))
    x, y = values[1:] or (0.0, 0.0)
    return cos, sin, -sin, cos, x - cos * x + sin * y, y - sin * x - cos * y


def _tan(values: list[float]) -> float:
    return math.tan(math.radians(values[0])) if values else 0.0


_STEPS: dict[str, Callable[[list[float]], Matrix | None]] = {
    "matrix": lambda v: (v[0], v[1], v[2], v[3], v[4], v[5]) if len(v) == 6 else None,
    "translate": lambda v: (1.0, 0.0, 0.0, 1.0, v[0], v[1] if len(v) > 1 else 0.0) if v else None,
    "scale": lambda v: (v[0], 0.0, 0.0, v[-1], 0.0, 0.0) if v else None,
    "rotate": _rotation,
    "skewX": lambda v: (1.0, 0.0, _tan(v), 1.0, 0.0, 0.0),
    "skewY": lambda v: (1.0, _tan(v), 0.0, 1.0, 0.0, 0.0),
}


def _combined(outer: Matrix, inner: Matrix) -> Matrix:
    a, b, c, d, e, f = outer
    p, q, r, s, t, u = inner
    return a * p + c * q, b * p + d * q, a * r + c * s, b * r + d * s, a * t + c * u + e, b * t + d * u + f
