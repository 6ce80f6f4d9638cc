"""Circuits to choose from: bundled ones, the user's own files and random ones; and the widget that chooses one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import randrange
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pygame
from numpy.typing import NDArray

from racer_env.engine import Circuit, Track, circuits, load_circuit
from racer_env.engine.circuits import read_circuit
from racer_env.errors import CircuitError, RacerError, in_one_line
from racer_viewer.circuits.library import CircuitLibrary, key_of
from racer_viewer.modes.waiting import BackgroundTask
from racer_viewer.render.overlays import lap_time
from racer_viewer.replays.records import medal_ticks, medals_of
from racer_viewer.translation import _, mark
from racer_viewer.ui.item_list import Choice
from racer_viewer.ui.paint import draw_medal
from racer_viewer.ui.theme import ORDINARY, PADDING, TEXT, TEXT_LARGE, TEXT_SMALL, Colour, Theme

if TYPE_CHECKING:
    from racer_viewer.modes.screen import AppContext
    from racer_viewer.replays.records import Medal, RecordEntry

MEDALS: dict[Medal, Colour] = {
    "author": (92, 222, 188),
    "gold": (255, 206, 72),
    "silver": (206, 212, 220),
    "bronze": (214, 142, 86),
}
"""Colours of medals, the best first."""
MEDAL_NAMES: dict[Medal, str] = {
    "author": mark("author"),
    "gold": mark("gold"),
    "silver": mark("silver"),
    "bronze": mark("bronze"),
}
DESCRIPTIONS = (
    mark("Beginner — smooth oval, wide racing"),
    mark("Fast — sweeping curves, high speed"),
    mark("Technical — tight hairpins, precision"),
    mark("Mountain — five hairpins up, one long run down"),
    mark("Flowing — long sweepers, hardly a brake"),
    mark("Endurance — straight, chicane, hairpin, esses, all in one"),
    mark("Random, easy"),
    mark("Random, medium"),
    mark("Random, hard"),
)
"""Descriptions of the bundled and the random circuits, collected here for translation."""
RANDOM = "random:"
"""Prefix of the ID of a random circuit; its seed follows."""
MAX_SEED = 100_000

user_circuits: dict[str, Circuit] = {}
"""Circuits that were opened from files since the program started, by path."""


def add_circuit(path: Path) -> Circuit:
    """Build the circuit of a file, which may take a second, and add it to the circuits to choose from."""
    track = load_circuit(path)
    assert track.circuit is not None, "a track from a file has its circuit"
    assert track.tables, "tables are built here, in the background, for all later uses"
    user_circuits[str(path)] = track.circuit
    return track.circuit


def fixed_circuits(data: Path, selected: str = "") -> dict[str, Circuit]:
    """Return bundled circuits by their ID, then those of the library in a data folder and opened files by their path.

    selected: circuit that is added if it is the path of a file; a draft of the library is none.
    """
    if selected.lower().endswith(".json") and selected not in user_circuits and key_of(selected, data) is None:
        with suppress(RacerError, OSError):
            user_circuits[selected] = read_circuit(Path(selected))
    found = {circuit.id: circuit for circuit in circuits()}
    for entry in sorted(CircuitLibrary(data).entries(), key=lambda entry: entry.name.casefold()):
        if entry.circuit is not None and entry.drivable:
            found[entry.source] = entry.circuit
    opened = {path: circuit for path, circuit in user_circuits.items() if Path(path).is_file()}
    return found | {path: circuit for path, circuit in opened.items() if key_of(path, data) is None}


def circuit_of(app: AppContext) -> str:
    """Return the ID or path of the settings' circuit; of the first circuit if that is gone."""
    selected = app.settings.circuit
    fixed = fixed_circuits(app.data, selected)
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
        self.item = Choice(_("Circuit"), _("Left and right, or click"), on_change=self._choose)
        self._records: dict[str, RecordEntry | None] = {}
        self._kind = ""
        """Difficulty or dial of the random circuit that was chosen last, as in its ID."""
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
        self._fixed = fixed_circuits(self._app.data, selected)
        self._card.forget_files()
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
        self.item.options = [*names, self.circuit.name if self._random else _("Random")]

    def _choose(self, number: int) -> None:
        """Take a fixed circuit, or for the last option a random one with a new seed, of the same kind as before."""
        kind = self._random.removeprefix(RANDOM).partition(":")[2] or self._kind
        self._kind = kind
        seed = f"{RANDOM}{randrange(MAX_SEED)}"
        self._random = "" if number < len(self._fixed) else f"{seed}:{kind}" if kind else seed
        self._name_options()
        self._app.change(circuit=self.circuit_id)
        self._on_change()

    def _record(self) -> RecordEntry | None:
        """Return the record on the chosen circuit; None with a notice if the records cannot be read."""
        try:
            return self._app.records.best(self.circuit)
        except (RacerError, OSError) as error:
            self._app.notify(in_one_line(error))
            return None


VERGE, WALL, ROAD, EDGE, DARK = (38, 66, 38), (96, 104, 100), (66, 69, 75), (236, 234, 226), (20, 22, 24)
"""Colours of circuits: grass, walls, road, its edges with the light squares of the start line, and the dark squares."""
CHEQUERS, ARROW = 8, 8
"""Number of squares across the start line, and half the width of the arrow ahead of it at scale 1 [px]."""
OVERSAMPLING = 2
"""Factor that pictures of circuits are drawn larger by, then scaled down smoothly."""
MAX_CACHED = 16
"""Maximum number of cached pictures."""
MAX_VERTICES = 1000
"""Maximum number of vertices of each edge of the road in a picture, about."""


@dataclass(frozen=True)
class CircuitPicture:
    """Picture of a circuit and its length [units]."""

    surface: pygame.Surface
    length: float


class CircuitCard:
    """Picture and figures of a circuit, drawn at the right of a list. Pictures are cached.

    Circuits from files, which may have 1,000 control points, are built and drawn in the background.
    """

    def __init__(self) -> None:
        self._pictures: dict[tuple[str, tuple[int, int]], CircuitPicture] = {}
        self._drawing: dict[tuple[str, tuple[int, int]], BackgroundTask[CircuitPicture]] = {}

    def draw(
        self, surface: pygame.Surface, theme: Theme, circuit: Circuit, area: pygame.Rect, best: RecordEntry | None
    ) -> None:
        left = area.right + theme.px(40)
        room = pygame.Rect(left, area.y, surface.get_width() - left - theme.px(32), area.height)
        if room.width < theme.px(220):
            return
        room.width = min(room.width, theme.px(640))
        text_height = theme.px(150)
        size = room.width, max(theme.px(120), room.height - text_height)
        picture = self._picture(circuit.id, size)
        if picture is None:
            wait = theme.text(_("Preparing the circuit ..."), TEXT, theme.palette.faint)
            surface.blit(wait, wait.get_rect(center=pygame.Rect(room.topleft, size).center))
        else:
            surface.blit(picture.surface, room.topleft)
        y = room.y + size[1] + theme.px(PADDING)
        name = theme.truncate(circuit.name, room.width, TEXT_LARGE)
        surface.blit(theme.text(name, TEXT_LARGE), (left, y))
        y += theme.line_height(TEXT_LARGE) + theme.px(2)
        description = _(circuit.description)
        line = description
        if picture is not None:
            length = picture.length
            line = _("{length:,.0f} units").format(length=length)
            if description:
                line = _("{length:,.0f} units · {description}").format(length=length, description=description)
        smaller = theme.fitting(lambda each: each.width(line, TEXT_SMALL + 1) <= room.width)
        line = smaller.truncate(line, room.width, TEXT_SMALL + 1)
        surface.blit(smaller.text(line, TEXT_SMALL + 1, theme.palette.faint), (left, y))
        y += theme.line_height(TEXT_SMALL + 1) + theme.px(8)
        self._draw_times(surface, theme, circuit, best, left, y)

    def _draw_times(
        self, surface: pygame.Surface, theme: Theme, circuit: Circuit, best: RecordEntry | None, x: int, y: int
    ) -> None:
        """Draw the record and the times that earn a medal."""
        yours = (
            _("record {lap} s ({driver})").format(lap=lap_time(best.best_lap), driver=best.driver)
            if best
            else _("no record yet")
        )
        text = theme.text(yours, TEXT, theme.palette.good if best else theme.palette.faint)
        surface.blit(text, (x, y))
        y += text.get_height() + theme.px(10)
        x += theme.px(6)
        for name, colour in MEDALS.items():
            seconds = getattr(medals_of(circuit), name, None)
            if seconds is None:
                continue
            won = best is not None and best.best_lap <= (medal_ticks(circuit, name) or 0)
            centre = x, y + text.get_height() // 2
            if won:
                draw_medal(surface, colour, centre, theme.px(9))
            else:
                pygame.draw.aacircle(surface, colour, centre, theme.px(7), theme.px(2))
            figure = theme.text(f"{seconds:.2f}", TEXT, theme.palette.text if won else theme.palette.faint)
            surface.blit(figure, (x + theme.px(13), y))
            x += figure.get_width() + theme.px(34)

    def _picture(self, name: str, size: tuple[int, int]) -> CircuitPicture | None:
        """Return the picture of a circuit ID or path; None while that of a file is being drawn."""
        key = name, size
        if key in self._pictures:
            return self._pictures[key]
        if not name.lower().endswith(".json"):
            return self._keep(key, _draw_picture(name, size))
        if key not in self._drawing:
            self._drawing[key] = BackgroundTask(lambda: _draw_picture(name, size), "racer-circuit-picture")
        return self._keep(key, self._drawing.pop(key).result()) if self._drawing[key].done else None

    def forget_files(self) -> None:
        """Draw pictures of circuit files anew: they may have changed."""
        for pictures in (self._pictures, self._drawing):
            for key in [key for key in pictures if key[0].lower().endswith(".json")]:
                del pictures[key]

    def _keep(self, key: tuple[str, tuple[int, int]], picture: CircuitPicture) -> CircuitPicture:
        if len(self._pictures) >= MAX_CACHED:
            self._pictures.clear()
        self._pictures[key] = picture
        return picture


def _draw_picture(name: str, size: tuple[int, int]) -> CircuitPicture:
    track = load_circuit(name)
    return CircuitPicture(draw_track(track, size), track.length)


def draw_track(track: Track, size: tuple[int, int]) -> pygame.Surface:
    """Return a picture of the circuit, to scale: grass between the walls, the road, its start line and direction."""
    canvas = pygame.Surface((size[0] * OVERSAMPLING, size[1] * OVERSAMPLING), pygame.SRCALPHA, 32)
    corners = np.concatenate([track.inner, track.outer])
    low, high = corners.min(axis=0), corners.max(axis=0)
    margin = 6 * OVERSAMPLING
    scale = float(((np.array(canvas.get_size()) - 2 * margin) / (high - low)).min())

    def to_pixels(points: NDArray[np.float64]) -> list[tuple[float, float]]:
        every = max(1, len(points) // MAX_VERTICES)
        return [(margin + (x - low[0]) * scale, margin + (high[1] - y) * scale) for x, y in points[::every].tolist()]

    def band(edges: tuple[NDArray[np.float64], NDArray[np.float64]], colour: Colour, edge: Colour, width: int) -> None:
        inner, outer = sorted(map(to_pixels, edges), key=lambda line: max(line)[0] - min(line)[0])
        layer = pygame.Surface(canvas.get_size(), pygame.SRCALPHA, 32)
        pygame.draw.polygon(layer, colour, outer)
        pygame.draw.polygon(layer, (0, 0, 0, 0), inner)
        for line in (inner, outer):
            pygame.draw.lines(layer, edge, True, line, width)
        canvas.blit(layer, (0, 0))

    band((track.inner, track.outer), VERGE, WALL, OVERSAMPLING)
    band((track.inner_road, track.outer_road), ROAD, EDGE, 2 * OVERSAMPLING)
    x, y, heading = track.start
    across = np.array((-math.sin(heading), math.cos(heading))) * track.centreline.half_widths_at(np.zeros(1))
    start, end = np.array(to_pixels(np.array((x, y)) + np.array((-across, across))))
    _draw_start(canvas, start, end, heading)
    return pygame.transform.smoothscale(canvas, size)


def _draw_start(canvas: pygame.Surface, start: NDArray[np.float64], end: NDArray[np.float64], heading: float) -> None:
    """Draw a chequered line from `start` to `end` [px], and an arrow ahead of it in the direction of the race."""
    ahead = np.array((math.cos(heading), -math.sin(heading)))
    square = max(2.0 * OVERSAMPLING, float(np.hypot(*(end - start))) / CHEQUERS)
    count = max(2, round(float(np.hypot(*(end - start))) / square))
    across = (end - start) / count
    for row, number in itertools.product((-1, 0), range(count)):
        corner = start + across * number + ahead * square * row
        corners = (corner, corner + across, corner + across + ahead * square, corner + ahead * square)
        pygame.draw.polygon(canvas, EDGE if (row + number) % 2 else DARK, [tuple(each) for each in corners])
    middle, left = (start + end) / 2.0 + ahead * 3.0 * square, np.array((ahead[1], -ahead[0]))
    size = ARROW * OVERSAMPLING
    arrow = (middle + ahead * 1.6 * size, middle + left * size, middle + ahead * 0.5 * size, middle - left * size)
    pygame.draw.polygon(canvas, ORDINARY.accent, [tuple(each) for each in arrow])
