"""The tracks that a server has built, within bounds: clients choose them, so they must not fill the memory."""

from __future__ import annotations

from collections import OrderedDict
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from weakref import WeakValueDictionary

from racer_env.engine import Track, circuits
from racer_env.engine.circuits import build_named
from racer_env.engine.random_circuits import PREFIX, parse_random_name
from racer_env.errors import BridgeError, CircuitError

LONGEST_NAME = 80


class TrackNotBuiltError(Exception):
    """These tracks exist but must be built first, which takes too long to do while others wait."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(names)
        self.names = names


class TrackShelf:
    """Tracks by id, each built once and shared by all who drive on it. Bundled ones stay for good.

    kept: so many others stay although nobody drives on them.
    limit: so many may be in use at once.
    """

    def __init__(self, kept: int = 16, limit: int = 128) -> None:
        self._limit = limit
        self._kept = kept
        self._bundled = {circuit.id for circuit in circuits()}
        self._held: dict[str, Track] = {}
        self._alive: WeakValueDictionary[str, Track] = WeakValueDictionary()
        self._recent: OrderedDict[str, Track] = OrderedDict()

    def ready(self, names: tuple[str, ...]) -> list[Track]:
        """The tracks, or TrackNotBuiltError with those to give to `build`."""
        found = [self._alive.get(name) for name in names]
        missing = tuple(dict.fromkeys(name for name, track in zip(names, found, strict=True) if track is None))
        if missing:
            for name in missing:
                self._check(name)
            raise TrackNotBuiltError(missing)
        for name, track in zip(names, found, strict=True):
            self._keep(name, track)  # type: ignore[arg-type]
        return found  # type: ignore[return-value]

    def build(self, name: str) -> Track:
        """Build a track: the slow part. Hold on to it until `ready` was asked for it."""
        track = self._alive.get(name)
        if track is None:
            if len(self._alive) >= self._limit:
                raise BridgeError(f"the bridge holds {self._limit} circuits already: drive on one of those, or later")
            self._check(name)
            track = build_named(name)
            assert track.tables, "built on first sight: here, where nobody waits"
            self._alive[name] = track
            if name in self._bundled:
                self._held[name] = track
        return track

    def _check(self, name: str) -> None:
        """By id only: a name that comes over the wire is never looked for among files."""
        if name in self._bundled:
            return
        if not name.startswith(PREFIX) or len(name) > LONGEST_NAME:
            known = ", ".join(sorted(self._bundled))
            raise CircuitError(f"unknown track {name[:LONGEST_NAME]!r}; known: {known}, {PREFIX}SEED")
        parse_random_name(name)

    def _keep(self, name: str, track: Track) -> None:
        if name in self._held:
            return
        self._recent[name] = track
        self._recent.move_to_end(name)
        if len(self._recent) > self._kept:
            self._recent.popitem(last=False)


class TrackBuilder:
    """Builds tracks for a shelf one after the other, beside those who wait for them.

    Its thread is a daemon: nobody who ends the process waits until a track is built.
    """

    def __init__(self, shelf: TrackShelf) -> None:
        self._shelf = shelf
        self._orders: SimpleQueue[tuple[Future[Track], str] | None] = SimpleQueue()
        Thread(target=self._work, name="racer-tracks", daemon=True).start()

    def order(self, name: str) -> Future[Track]:
        """The track, as soon as it is built. An order that is cancelled in time costs nothing."""
        order: Future[Track] = Future()
        self._orders.put((order, name))
        return order

    def close(self) -> None:
        """Build nothing more after what was ordered."""
        self._orders.put(None)

    def _work(self) -> None:
        while (next_order := self._orders.get()) is not None:
            order, name = next_order
            if order.set_running_or_notify_cancel():
                try:
                    order.set_result(self._shelf.build(name))
                except Exception as error:
                    order.set_exception(error)
            del order, next_order  # they would keep the track alive until somebody orders the next
