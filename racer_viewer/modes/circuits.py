"""What medals look like.

The circuits that can be chosen: those that come with the app, the user's own files, and random ones.

A circuit as a picture with its figures: for choosing one."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pygame
from numpy.typing import NDArray

from racer_env.engine import Circuit, Track, circuits, load_circuit
from racer_env.errors import CircuitError, RacerError
from racer_viewer.render.overlays import lap_time
from racer_viewer.settings import Settings
from racer_viewer.ui.theme import PADDING, TEXT, TEXT_LARGE, TEXT_SMALL, Colour, Theme

if TYPE_CHECKING:
    from racer_viewer.replays.records import RecordEntry

MEDALS: dict[str, Colour] = {"gold": (255, 206, 72), "silver": (206, 212, 220), "bronze": (214, 142, 86)}
"""Colours, the best first."""


RANDOM = "random:"

_own_circuits: dict[str, Circuit] = {}
"""The user's, by the paths of their files: those that were given since the program began."""


def remember_circuit(path: Path) -> Circuit:
    """From now on this file is among the circuits to choose from, if it can be driven."""
    circuit = load_circuit(path).circuit
    assert circuit is not None, "a track from a file has its circuit"
    _own_circuits[str(path)] = circuit
    return circuit


def fixed_circuits(also: str) -> dict[str, Circuit]:
    """Bundled ones and the user's, by what they are found by; also that of the settings if it is a file's path."""
    if also.lower().endswith(".json") and also not in _own_circuits:
        with suppress(RacerError, OSError):
            remember_circuit(Path(also))
    own = {path: circuit for path, circuit in _own_circuits.items() if Path(path).is_file()}
    return {circuit.id: circuit for circuit in circuits()} | own


def circuit_of(settings: Settings) -> str:
    """What the settings' circuit is found by; the first of all where that is gone."""
    wanted = settings.circuit
    fixed = fixed_circuits(wanted)
    return wanted if wanted in fixed or is_random(wanted) else next(iter(fixed))


def is_random(name: str) -> bool:
    """Whether it names a random circuit that there is."""
    try:
        return name.startswith(RANDOM) and load_circuit(name) is not None
    except CircuitError:
        return False


ROAD, EDGE = (196, 202, 198), (70, 78, 82)
SMOOTHING = 2
TRACKS_KEPT = 16


class CircuitCard:
    """Draws the circuit that is chosen, at the right of the list. Tracks and pictures that were made once are kept."""

    def __init__(self) -> None:
        self._tracks: dict[str, Track] = {}
        self._pictures: dict[tuple[str, tuple[int, int]], pygame.Surface] = {}

    def draw(
        self, surface: pygame.Surface, theme: Theme, circuit: Circuit, area: pygame.Rect, best: RecordEntry | None
    ) -> None:
        left = area.right + theme.px(40)
        room = pygame.Rect(left, area.y, surface.get_width() - left - theme.px(32), area.height)
        if room.width < theme.px(220):
            return
        room.width = min(room.width, theme.px(640))
        text_height = theme.px(120)
        picture = self._picture(circuit, (room.width, max(theme.px(120), room.height - text_height)), theme)
        surface.blit(picture, room.topleft)
        y = room.y + picture.get_height() + theme.px(PADDING)
        name = theme.truncate(circuit.name, room.width, TEXT_LARGE)
        surface.blit(theme.text(name, TEXT_LARGE), (left, y))
        y += theme.line_height(TEXT_LARGE) + theme.px(2)
        length = f"{self._track(circuit.id).length:,.0f} units"
        line = f"{length} · {circuit.description}"
        surface.blit(
            theme.text(theme.truncate(line, room.width, TEXT_SMALL + 1), TEXT_SMALL + 1, theme.palette.faint), (left, y)
        )
        y += theme.line_height(TEXT_SMALL + 1) + theme.px(8)
        self._draw_times(surface, theme, circuit, best, left, y)

    def _draw_times(
        self, surface: pygame.Surface, theme: Theme, circuit: Circuit, best: RecordEntry | None, x: int, y: int
    ) -> None:
        """Your best lap, and what earns a medal."""
        yours = f"record {lap_time(best.best_lap)} s ({best.driver})" if best else "no record yet"
        text = theme.text(yours, TEXT, theme.palette.good if best else theme.palette.faint)
        surface.blit(text, (x, y))
        x += text.get_width() + theme.px(24)
        if circuit.medals is None:
            return
        for name, colour in MEDALS.items():
            pygame.draw.aacircle(surface, colour, (x, y + text.get_height() // 2), theme.px(6))
            figure = theme.text(f"{getattr(circuit.medals, name):.2f}", TEXT)
            surface.blit(figure, (x + theme.px(12), y))
            x += figure.get_width() + theme.px(32)

    def _picture(self, circuit: Circuit, size: tuple[int, int], theme: Theme) -> pygame.Surface:
        key = circuit.id, size
        if key not in self._pictures:
            if len(self._pictures) > 16:
                self._pictures.clear()
            self._pictures[key] = _drawn(self._track(circuit.id), size, theme)
        return self._pictures[key]

    def _track(self, name: str) -> Track:
        """By a circuit's id or a file's path; a file takes as long to build as five pictures of the window."""
        if name not in self._tracks:
            if len(self._tracks) >= TRACKS_KEPT:
                self._tracks.clear()
            self._tracks[name] = load_circuit(name)
        return self._tracks[name]


def _drawn(track: Track, size: tuple[int, int], theme: Theme) -> pygame.Surface:
    """The road as wide as it is, to scale, with its start line."""
    canvas = pygame.Surface((size[0] * SMOOTHING, size[1] * SMOOTHING), pygame.SRCALPHA, 32)
    low = np.minimum(track.inner_road.min(axis=0), track.outer_road.min(axis=0))
    high = np.maximum(track.inner_road.max(axis=0), track.outer_road.max(axis=0))
    room = np.array(canvas.get_size()) - 8 * SMOOTHING
    scale = float((room / (high - low)).min())
    margin = 4 * SMOOTHING

    def place(points: NDArray[np.float64]) -> list[tuple[float, float]]:
        return [(margin + (x - low[0]) * scale, margin + (high[1] - y) * scale) for x, y in points.tolist()]

    inner, outer = place(track.inner_road), place(track.outer_road)
    for a, b, c, d in zip(inner, inner[1:], outer[1:], outer, strict=False):
        pygame.draw.polygon(canvas, ROAD, (a, b, c, d))
        pygame.draw.polygon(canvas, ROAD, (a, b, c, d), 1)
    for line in (inner, outer):
        pygame.draw.lines(canvas, EDGE, True, line, SMOOTHING)
    start, end = place(track.gates[0, :4].reshape(2, 2))
    pygame.draw.line(canvas, theme.palette.accent, start, end, 3 * SMOOTHING)
    return pygame.transform.smoothscale(canvas, size)
