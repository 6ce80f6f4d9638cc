"""The tracks that a server has built, within bounds: clients choose them, so they must not fill the memory."""

from __future__ import annotations

from collections import OrderedDict
from weakref import WeakValueDictionary

from racer_env.engine import Track, circuits
from racer_env.engine.circuits import build_named
from racer_env.engine.random_circuits import PREFIX
from racer_env.errors import BridgeError, CircuitError


class TrackNotBuiltError(Exception):
    """These tracks exist but must be built first, which takes too long to do while others wait."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(names)
        self.names = names


class TrackShelf:
    """Tracks by id, each built once and shared by all who drive on it.

    kept: so many stay although nobody drives on them, besides those that are held.
    limit: so many may be in use at once.
    """

    def __init__(self, kept: int = 16, limit: int = 128) -> None:
        self._limit = limit
        self._kept = kept
        self._held: dict[str, Track] = {}
        self._alive: WeakValueDictionary[str, Track] = WeakValueDictionary()
        self._recent: OrderedDict[str, Track] = OrderedDict()

    def ready(self, names: tuple[str, ...]) -> list[Track]:
        """The tracks, or TrackNotBuiltError with those to give to `build`."""
        found = [self._alive.get(name) for name in names]
        missing = tuple(dict.fromkeys(name for name, track in zip(names, found, strict=True) if track is None))
        if missing:
            raise TrackNotBuiltError(missing)
        for name, track in zip(names, found, strict=True):
            self._keep(name, track)  # type: ignore[arg-type]
        return found  # type: ignore[return-value]

    def build(self, names: tuple[str, ...]) -> list[Track]:
        """Build tracks: the slow part. Hold on to the result until `ready` was asked for them."""
        return [self._build(name) for name in names]

    def hold(self, name: str) -> None:
        """Build a track and keep it for good."""
        self._held[name] = self._build(name)

    def _build(self, name: str) -> Track:
        track = self._alive.get(name)
        if track is None:
            if len(self._alive) >= self._limit:
                raise BridgeError(f"the bridge holds {self._limit} circuits already: drive on one of those, or later")
            track = _named(name)
            self._alive[name] = track
        return track

    def _keep(self, name: str, track: Track) -> None:
        self._recent[name] = track
        self._recent.move_to_end(name)
        if len(self._recent) > self._kept:
            self._recent.popitem(last=False)


def _named(name: str) -> Track:
    """By id only: a name that comes over the wire is never looked for among files."""
    known = [circuit.id for circuit in circuits()]
    if name not in known and not name.startswith(PREFIX):
        raise CircuitError(f"unknown track {name[:80]!r}; known: {', '.join(known)}, {PREFIX}SEED")
    track = build_named(name)
    assert track.tables, "built on first sight: here, where nobody waits"
    return track
