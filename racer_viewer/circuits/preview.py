"""Preview of a draft: road, walls and gates as the engine builds them, problems with their places, and figures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from racer_env.engine import Track, build_track
from racer_env.engine.centreline import CHORDS_PER_SEGMENT, Floats
from racer_env.engine.circuit_check import point_problems, track_problems
from racer_env.engine.walls import curvatures
from racer_env.errors import CircuitError, CircuitProblem, CircuitProblemKind
from racer_viewer.circuits.draft import Draft
from racer_viewer.translation import _, mark

LINE_STEP = 4.0
"""Distance between the points of a centreline that is drawn or searched [units]."""
MAX_LINE_POINTS = 10_000
CORNER_SPAN = 8.0
"""Length of road over which the radius of a corner is measured [units]."""
CORNER_STEP = 2.0
"""Distance between the places where it is measured [units]."""
UNBUILDABLE: tuple[CircuitProblemKind, ...] = ("few", "many", "far", "long")
"""Problems of control points with which no track is built."""

PROBLEM_TEXTS: dict[CircuitProblemKind, str] = {
    "few": mark("at least 4 points are needed"),
    "many": mark("too many points"),
    "narrow": mark("the road is too narrow"),
    "wide": mark("the road is too wide"),
    "far": mark("too far out"),
    "same": mark("two points in one place"),
    "short": mark("too short for a lap"),
    "long": mark("the lap is too long"),
    "tight": mark("this bend is too tight"),
    "cross": mark("the walls cross here"),
    "close": mark("too close to another part of the road"),
}


def problem_text(problem: CircuitProblem) -> str:
    """Return a short text for the place of a problem, in the user's language."""
    return _(PROBLEM_TEXTS[problem.kind])


@dataclass(frozen=True)
class CircuitFacts:
    """Figures of a circuit [units].

    tightest_radius, tightest_at: radius and place of the tightest corner of the centreline.
    narrowest, widest: road widths, from edge to edge.
    """

    length: float
    tightest_radius: float
    tightest_at: tuple[float, float]
    narrowest: float
    widest: float


def facts_of(track: Track) -> CircuitFacts:
    """Return the figures of a circuit."""
    distances = np.arange(0.0, track.length, CORNER_STEP)
    bends = np.abs(curvatures(track.centreline, distances, CORNER_SPAN))
    tightest = int(np.argmax(bends))
    x, y = track.centreline.points(distances[tightest : tightest + 1])[0]
    half_widths = track.control_points[:, 2]
    return CircuitFacts(
        track.length, 1.0 / max(float(bends[tightest]), 1e-9), (float(x), float(y)),
        2.0 * float(half_widths.min()), 2.0 * float(half_widths.max()),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Preview:
    """Circuit that a draft would be.

    track: its geometry; None if there are too few points, or far too many. Its driving tables are built when something
        drives on it, which takes longer than everything else.
    problems: why it cannot be driven, and where; unless it was checked, only what is wrong with its points.
    """

    draft: Draft
    track: Track | None
    problems: tuple[CircuitProblem, ...]
    checked: bool

    @property
    def drivable(self) -> bool:
        """True if it was checked, and cars can drive on it."""
        return self.checked and self.track is not None and not self.problems

    @cached_property
    def line(self) -> Floats:
        """The centreline as a polyline, closed with three points or more, (n, 2)."""
        return self._line[1]

    @cached_property
    def facts(self) -> CircuitFacts | None:
        return None if self.track is None else facts_of(self.track)

    def nearest_point(self, x: float, y: float) -> tuple[int, float] | None:
        """Return the index of the nearest control point, and its distance; None without any."""
        if not self.draft.points:
            return None
        points = np.array(self.draft.points, np.float64)
        distances = np.hypot(points[:, 0] - x, points[:, 1] - y)
        nearest = int(np.argmin(distances))
        return nearest, float(distances[nearest])

    def nearest_arc(self, x: float, y: float) -> tuple[float, float] | None:
        """Return the arc of the nearest point of the centreline, and its distance; None with fewer than 3 points."""
        if len(self.draft.points) < 3:
            return None
        arcs, line = self._line
        starts, ways = line[:-1], np.diff(line, axis=0)
        squares = np.maximum(np.sum(ways**2, axis=1), 1e-12)
        along = np.clip(np.sum(((x, y) - starts) * ways, axis=1) / squares, 0.0, 1.0)
        gaps = np.hypot(*(starts + along[:, None] * ways - (x, y)).T)
        nearest = int(np.argmin(gaps))
        arc = arcs[nearest] + along[nearest] * (arcs[nearest + 1] - arcs[nearest])
        return float(arc % arcs[-1]), float(gaps[nearest])

    def arc_of_point(self, index: int) -> float:
        """Return the arc of a control point."""
        return float(self.draft.centreline.arcs[index * CHORDS_PER_SEGMENT])

    @cached_property
    def _line(self) -> tuple[Floats, Floats]:
        """Arcs and points of the polyline."""
        if len(self.draft.points) < 3:
            points = np.array([point[:2] for point in self.draft.points], np.float64).reshape(-1, 2)
            return np.zeros(len(points)), points
        line = self.draft.centreline if self.track is None else self.track.centreline
        count = int(min(max(line.length / LINE_STEP, 8 * len(self.draft.points)), MAX_LINE_POINTS))
        arcs = np.linspace(0.0, line.length, count + 1)
        points = line.points(arcs)
        points[-1] = points[0]
        return arcs, points


def preview(draft: Draft, check: bool = True) -> Preview:
    """Build the road of a draft, and list its problems.

    check: look for all problems; without it only the geometry is built, which takes a few milliseconds.
    """
    points = np.array(draft.points, np.float64).reshape(-1, 3)
    problems = point_problems(points)
    if any(problem.kind in UNBUILDABLE for problem in problems):
        return Preview(draft, None, tuple(problems), check)
    try:
        track = build_track(points, draft.gates, draft.to_circuit())
    except CircuitError as error:
        x, y, _width = draft.points[0]
        return Preview(draft, None, (*problems, error.problem or CircuitProblem("same", str(error), x, y)), check)
    return Preview(draft, track, tuple(track_problems(track) if check else problems), check)
