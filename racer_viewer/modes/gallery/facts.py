"""Circuits of the gallery, and facts about each from the background: picture, figures, records, agents."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pygame

from racer_env.engine import Circuit, Track, circuits, load_circuit
from racer_env.engine.random_circuits import random_name
from racer_env.errors import RacerError, in_one_line
from racer_viewer.agents import AgentError, AgentInfo, load_agent
from racer_viewer.agents.load import bundled_authors
from racer_viewer.circuits.draft import Draft
from racer_viewer.circuits.library import CircuitLibrary, OwnCircuit
from racer_viewer.circuits.preview import CircuitFacts, facts_of, preview, problem_text
from racer_viewer.modes.circuits import RANDOM, draw_track
from racer_viewer.modes.models import CACHE_FILE, LapTimeCache, best_measured, known_models
from racer_viewer.modes.waiting import BackgroundTask
from racer_viewer.replays.records import RecordEntry
from racer_viewer.timing import lap_time
from racer_viewer.translation import _

if TYPE_CHECKING:
    from racer_viewer.modes.screen import AppContext

MAX_RANDOM = 12
"""Maximum number of random circuits in the gallery: the chosen one, and those with records."""
MAX_MODELS = 40
"""Maximum number of models whose lap times are looked for."""
MAX_PICTURES = 400
"""Maximum number of pictures that are kept."""

Kind = Literal["bundled", "own", "random"]
Size = tuple[int, int]


@dataclass(frozen=True)
class GalleryCircuit:
    """One circuit of the gallery.

    source: what `load_circuit` takes; also for drafts and damaged files, which it refuses.
    own: its entry in the library; None for bundled and random ones.
    changed: time at which its file was changed last, so that facts are not kept beyond that.
    """

    kind: Kind
    source: str
    name: str
    description: str = ""
    own: OwnCircuit | None = None
    changed: float = 0.0

    @property
    def drivable(self) -> bool:
        return self.own is None or self.own.drivable

    @property
    def damaged(self) -> bool:
        return self.own is not None and self.own.circuit is None

    def draft(self) -> Draft:
        """Return the circuit to edit. Raises CircuitError if it cannot be read or built."""
        if self.own is not None:
            return self.own.draft()
        circuit = load_circuit(self.source).circuit
        assert circuit is not None, "bundled and random tracks have their circuit"
        return Draft.from_circuit(circuit)


@dataclass(frozen=True)
class GalleryFacts:
    """Facts about a circuit that take a while to find out.

    facts: its figures; None for a road that cannot be built.
    problem: why it cannot be driven; empty if it can.
    agent: name and best clean lap of the best agent that was measured [s].
    """

    circuit: Circuit | None = None
    facts: CircuitFacts | None = None
    problem: str = ""
    record: RecordEntry | None = None
    agent: tuple[str, float] | None = None


def gallery_circuits(app: AppContext) -> dict[Kind, list[GalleryCircuit]]:
    """Return all circuits of the gallery. Files of the library are read, but nothing is built."""
    bundled = [GalleryCircuit("bundled", each.id, each.name, each.description) for each in circuits()]
    own = [
        GalleryCircuit("own", entry.source, entry.name, entry.circuit.description if entry.circuit else "", entry,
                       entry.changed)
        for entry in CircuitLibrary(app.data).entries()
    ]  # fmt: skip
    chosen = app.settings.circuit
    names = dict.fromkeys([chosen] if chosen.startswith(RANDOM) else [])
    try:
        names |= dict.fromkeys(key.id for key in app.records.circuits() if key.id.startswith(RANDOM))
    except (RacerError, OSError) as error:
        app.notify(in_one_line(error))
    rolled = [GalleryCircuit("random", name, random_name(name), name) for name in list(names)[:MAX_RANDOM]]
    return {"own": own, "bundled": bundled, "random": rolled}


def cropped_picture(track: Track, size: Size) -> pygame.Surface:
    """Return a picture of the road without the room beside it, at most of this size."""
    picture = draw_track(track, size)
    return picture.subsurface(picture.get_bounding_rect()).copy()


class GalleryLoader:
    """Finds facts and draws pictures of circuits, one after the other, in the background.

    facts: what is known so far, by source. changes: counter of changes to it.
    """

    def __init__(self, app: AppContext) -> None:
        self._app = app
        self.facts: dict[str, GalleryFacts] = {}
        self.changes = 0
        self._wanted: list[tuple[GalleryCircuit, Size]] = []
        self._task: BackgroundTask[tuple[GalleryFacts, pygame.Surface | None]] | None = None
        self._current: tuple[GalleryCircuit, Size] | None = None
        self._models: dict[Path, tuple[str, AgentInfo]] | None = None
        self._done: set[tuple[GalleryCircuit, Size]] = set()
        self._outdated = False
        """True if the task began before the last refresh."""

    def refresh(self) -> None:
        """Read records and lap times again; pictures of unchanged circuits are kept."""
        self._wanted.clear()
        self._done.clear()
        self._models = None
        self._outdated = True

    def picture(self, circuit: GalleryCircuit, size: Size) -> pygame.Surface | None:
        """Return the picture of a circuit; None while it is drawn. Facts and picture are found out if need be."""
        key = circuit, size
        if key not in self._done and key != self._current and key not in self._wanted:
            self._wanted.append(key)
        return _pictures.get((circuit.source, circuit.changed, size))

    def tick(self) -> None:
        """Take what was found out, and begin the next circuit."""
        if self._task is not None and self._task.done:
            assert self._current is not None
            circuit, size = self._current
            facts, picture = self._task.result()
            if not self._outdated:
                self._done.add(self._current)
            self.facts[circuit.source] = facts
            self.changes += 1
            if picture is not None:
                while len(_pictures) >= MAX_PICTURES:
                    _pictures.pop(next(iter(_pictures)))
                _pictures[circuit.source, circuit.changed, size] = picture
            self._task = self._current = None
        if self._task is None and self._wanted:
            circuit, size = self._current = self._wanted.pop(0)
            self._outdated = False
            self._task = BackgroundTask(lambda: self._find(circuit, size), "racer-gallery")

    def _find(self, gallery: GalleryCircuit, size: Size) -> tuple[GalleryFacts, pygame.Surface | None]:
        """Return facts and picture of a circuit."""
        if gallery.damaged:
            assert gallery.own is not None
            return GalleryFacts(problem=gallery.own.problem), None
        found = GalleryFacts()
        try:
            if gallery.drivable:
                track = load_circuit(gallery.source)
            else:
                built = preview(gallery.draft())
                problem = problem_text(built.problems[0]) if built.problems else ""
                if built.track is None:
                    return GalleryFacts(built.draft.to_circuit(), problem=problem), None
                track, found = built.track, GalleryFacts(problem=problem)
            circuit = track.circuit
            assert circuit is not None, "a loaded track has its circuit"
            picture = _pictures.get((gallery.source, gallery.changed, size)) or cropped_picture(track, size)
            found = replace(found, circuit=circuit, facts=facts_of(track))
            if gallery.drivable:
                found = replace(found, record=self._app.records.best(circuit))
                author = bundled_authors().get(circuit.id) if gallery.kind == "bundled" else None
                if author is not None and circuit.medals is not None and circuit.medals.author is not None:
                    found = replace(found, agent=(author.stem, circuit.medals.author))
                else:
                    cache = LapTimeCache(self._app.data / CACHE_FILE)
                    found = replace(found, agent=best_measured(self._known_models(), track, cache))
            return found, picture
        except (RacerError, OSError) as error:
            return replace(found, problem=found.problem or in_one_line(error)), None

    def _known_models(self) -> dict[Path, tuple[str, AgentInfo]]:
        """Return the names of models and what they are, read once."""
        known = self._models
        if known is None:
            known = {}
            for model in known_models(self._app.data)[:MAX_MODELS]:
                with suppress(AgentError, RacerError, OSError):
                    known[model.path] = model.name, load_agent(model.path).info
            self._models = known
        return known


_pictures: dict[tuple[str, float, Size], pygame.Surface] = {}
"""Pictures by source, time of the last change and size; they outlive the screen."""


def record_words(facts: GalleryFacts) -> str:
    """Return the record of a circuit in words; empty without one."""
    if facts.record is None:
        return ""
    return _("{lap} s by {driver}").format(lap=lap_time(facts.record.best_lap), driver=facts.record.driver)
