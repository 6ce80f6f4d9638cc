"""Circuits to choose from: bundled ones, the user's own files and random ones; and the widget that chooses one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import randrange
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pygame
from numpy.typing import NDArray

from racer_env.engine import Circuit, Track, circuits, load_circuit
from racer_env.errors import CircuitError, RacerError
from racer_viewer.render.overlays import lap_time
from racer_viewer.settings import Settings
from racer_viewer.ui.item_list import Choice
from racer_viewer.ui.theme import PADDING, TEXT, TEXT_LARGE, TEXT_SMALL, Colour, Theme

if TYPE_CHECKING:
    from racer_viewer.modes.screen import AppContext
    from racer_viewer.replays.records import RecordEntry

MEDALS: dict[str, Colour] = {"gold": (255, 206, 72), "silver": (206, 212, 220), "bronze": (214, 142, 86)}
"""Colours of medals, the best first."""
RANDOM = "random:"
"""Prefix of the ID of a random circuit; its seed follows."""
MAX_SEED = 100_000

user_circuits: dict[str, Circuit] = {}
"""Circuits that were opened from files since the program started, by path."""


def add_circuit(path: Path) -> Circuit:
    """Load a circuit from a file and add it to the circuits to choose from."""
    circuit = load_circuit(path).circuit
    assert circuit is not None, "a track from a file has its circuit"
    user_circuits[str(path)] = circuit
    return circuit


def fixed_circuits(selected: str) -> dict[str, Circuit]:
    """Return bundled circuits and the user's by ID or path; `selected` is added if it is the path of a circuit file."""
    if selected.lower().endswith(".json") and selected not in user_circuits:
        with suppress(RacerError, OSError):
            add_circuit(Path(selected))
    own = {path: circuit for path, circuit in user_circuits.items() if Path(path).is_file()}
    return {circuit.id: circuit for circuit in circuits()} | own


def circuit_of(settings: Settings) -> str:
    """Return the ID or path of the settings' circuit; of the first circuit if that is gone."""
    selected = settings.circuit
    fixed = fixed_circuits(selected)
    return selected if selected in fixed or is_random(selected) else next(iter(fixed))


def is_random(circuit_id: str) -> bool:
    """Return whether this is the ID of a valid random circuit."""
    try:
        return circuit_id.startswith(RANDOM) and load_circuit(circuit_id) is not None
    except CircuitError:
        return False


class CircuitPicker:
    """A list item to choose a circuit with, and a card with the chosen circuit beside the list.

    on_change: called when the user has chosen another circuit.
    """

    def __init__(self, app: AppContext, on_change: Callable[[], None] = lambda: None) -> None:
        self._app, self._on_change = app, on_change
        self._card = CircuitCard()
        self.item = Choice("Circuit", "Left and right, or click", on_change=self._choose)
        self._records: dict[str, RecordEntry | None] = {}
        self.refresh()

    @property
    def circuit(self) -> Circuit:
        """Chosen circuit."""
        if self.circuit_id in self._fixed:
            return self._fixed[self.circuit_id]
        circuit = load_circuit(self.circuit_id).circuit
        assert circuit is not None, "a random track has its circuit"
        return circuit

    @property
    def circuit_id(self) -> str:
        """ID or path of the chosen circuit, as `load_circuit` takes it."""
        number = self.item.chosen
        return list(self._fixed)[number] if number < len(self._fixed) else self._random

    def refresh(self) -> None:
        """Offer all circuits there are now, with the settings' circuit chosen."""
        self._records.clear()
        selected = self._app.settings.circuit
        self._fixed = fixed_circuits(selected)
        self._random = selected if is_random(selected) else ""
        chosen = list(self._fixed).index(selected) if selected in self._fixed else 0
        self.item.chosen = len(self._fixed) if self._random else chosen
        self._name_options()

    def draw(self, surface: pygame.Surface, area: pygame.Rect) -> None:
        """Draw the card of the chosen circuit beside a list in this area."""
        if self.circuit_id not in self._records:
            self._records[self.circuit_id] = self._record()
        circuit = msgspec.structs.replace(self.circuit, id=self.circuit_id)
        try:
            self._card.draw(surface, self._app.theme, circuit, area, self._records[self.circuit_id])
        except CircuitError as error:
            self._app.notify(str(error))

    def _name_options(self) -> None:
        names = [circuit.name for circuit in self._fixed.values()]
        self.item.options = [*names, self.circuit.name if self._random else "Random"]

    def _choose(self, number: int) -> None:
        """Take a fixed circuit, or for the last option a random one with a new seed."""
        self._random = f"{RANDOM}{randrange(MAX_SEED)}" if number == len(self._fixed) else ""
        self._name_options()
        self._app.change(circuit=self.circuit_id)
        self._on_change()

    def _record(self) -> RecordEntry | None:
        """Return the record on the chosen circuit; None with a notice if the records cannot be read."""
        try:
            return self._app.records.best(self.circuit)
        except (RacerError, OSError) as error:
            self._app.notify(str(error))
            return None


ROAD, EDGE = (196, 202, 198), (70, 78, 82)
OVERSAMPLING = 2
"""Factor that pictures of circuits are drawn larger by, then scaled down smoothly."""
MAX_CACHED = 16
"""Maximum number of cached tracks and pictures."""


class CircuitCard:
    """Picture and figures of a circuit, drawn at the right of a list. Tracks and pictures are cached."""

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
        """Draw the record and the times that earn a medal."""
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
            if len(self._pictures) >= MAX_CACHED:
                self._pictures.clear()
            self._pictures[key] = _draw_track(self._track(circuit.id), size, theme)
        return self._pictures[key]

    def _track(self, name: str) -> Track:
        """Return the track of a circuit ID or path from the cache; building one from a file takes several frames."""
        if name not in self._tracks:
            if len(self._tracks) >= MAX_CACHED:
                self._tracks.clear()
            self._tracks[name] = load_circuit(name)
        return self._tracks[name]


def _draw_track(track: Track, size: tuple[int, int], theme: Theme) -> pygame.Surface:
    """Return a picture of the road, to scale, with its start line."""
    canvas = pygame.Surface((size[0] * OVERSAMPLING, size[1] * OVERSAMPLING), pygame.SRCALPHA, 32)
    low = np.minimum(track.inner_road.min(axis=0), track.outer_road.min(axis=0))
    high = np.maximum(track.inner_road.max(axis=0), track.outer_road.max(axis=0))
    room = np.array(canvas.get_size()) - 8 * OVERSAMPLING
    scale = float((room / (high - low)).min())
    margin = 4 * OVERSAMPLING

    def to_pixels(points: NDArray[np.float64]) -> list[tuple[float, float]]:
        return [(margin + (x - low[0]) * scale, margin + (high[1] - y) * scale) for x, y in points.tolist()]

    inner, outer = to_pixels(track.inner_road), to_pixels(track.outer_road)
    for a, b, c, d in zip(inner, inner[1:], outer[1:], outer, strict=False):
        pygame.draw.polygon(canvas, ROAD, (a, b, c, d))
        pygame.draw.polygon(canvas, ROAD, (a, b, c, d), 1)
    for line in (inner, outer):
        pygame.draw.lines(canvas, EDGE, True, line, OVERSAMPLING)
    start, end = to_pixels(track.gates[0, :4].reshape(2, 2))
    pygame.draw.line(canvas, theme.palette.accent, start, end, 3 * OVERSAMPLING)
    return pygame.transform.smoothscale(canvas, size)
