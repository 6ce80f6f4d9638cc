"""Cache of the tracks that a server has built. Clients choose the tracks, so the cache is bounded."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from concurrent.futures import Future
from itertools import islice
from threading import Condition, Thread
from weakref import WeakValueDictionary

from racer_env.engine import Circuit, Track, circuits
from racer_env.engine.circuits import build_named
from racer_env.engine.random_circuits import PREFIX, parse_random_name
from racer_env.errors import BridgeError, CircuitError, closest

MAX_NAME_LENGTH = 80
"""Maximum length of a track id [characters]."""
MAX_COMPARED = 50
"""Maximum number of own tracks that an unknown id is compared with, 0.2 ms each, while all clients wait."""

Job = tuple[Future[Track], str]
"""Result of a build, and the track's id."""


class TrackNotBuiltError(Exception):
    """Tracks exist but are not built yet; building takes too long to do it while other clients wait."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(names)
        self.names = names


class TrackCache:
    """Tracks by id, each built once and shared by all sessions. Bundled tracks are never evicted or refused.

    own: further circuits by id, which the owner of the server allows.
    kept: maximum number of own and random tracks that are kept while no session uses them.
    limit: maximum number of own and random tracks in use.
    """

    def __init__(self, own: Mapping[str, Circuit] | None = None, kept: int = 16, limit: int = 128) -> None:
        self.own = dict(own or {})
        self._limit = limit
        self._kept = kept
        self._bundled = {circuit.id for circuit in circuits()}
        self._held: dict[str, Track] = {}
        self._alive: WeakValueDictionary[str, Track] = WeakValueDictionary()
        self._recent: OrderedDict[str, Track] = OrderedDict()

    def ready(self, names: tuple[str, ...]) -> list[Track]:
        """Return tracks that are built; raise TrackNotBuiltError with those that must be passed to `build`."""
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
        """Build a track, which is slow. The caller must hold it until `ready` has returned it."""
        track = self._alive.get(name)
        if track is None:
            if not self.is_bundled(name) and len(self._alive) - len(self._held) >= self._limit:
                raise BridgeError(
                    f"the bridge holds {self._limit} circuits already; use one of those or try again later"
                )
            self._check(name)
            track = self.own[name].build() if name in self.own else build_named(name)
            assert track.tables, "built here on first access, not when a client waits"
            self._alive[name] = track
            if self.is_bundled(name):
                self._held[name] = track
        return track

    def is_bundled(self, name: str) -> bool:
        return name in self._bundled

    def _check(self, name: str) -> None:
        """Raise unless a name is a bundled, own or random circuit; names from the wire are never file paths."""
        if name in self._bundled or name in self.own:
            return
        if not name.startswith(PREFIX) or len(name) > MAX_NAME_LENGTH:
            name = name[:MAX_NAME_LENGTH]
            known = ", ".join((*sorted(self._bundled), f"{PREFIX}SEED"))
            meant = closest(name, islice(self.own, MAX_COMPARED))
            raise CircuitError(f"unknown track {name!r}; {f'did you mean {meant}?' if meant else f'known: {known}'}")
        parse_random_name(name)

    def _keep(self, name: str, track: Track) -> None:
        if name in self._held:
            return
        self._recent[name] = track
        self._recent.move_to_end(name)
        if len(self._recent) > self._kept:
            self._recent.popitem(last=False)


class TrackBuilder:
    """Worker thread that builds tracks for a cache one after the other, in a fair order.

    Bundled tracks are built first: there are few of them, and each is built once. Then each client host gets one track
    in turn, however many connections it has. The thread is a daemon: the process can end while a track is being built.
    """

    def __init__(self, cache: TrackCache) -> None:
        self._cache = cache
        self._bundled: deque[Job] = deque()
        self._random: dict[str, deque[Job]] = {}
        """Jobs of each host that waits; the next host is the first key."""
        self._changed = Condition()
        self._closed = False
        Thread(target=self._work, name="racer-tracks", daemon=True).start()

    def submit(self, name: str, host: str = "") -> Future[Track]:
        """Queue a track for a client host. Cancelling the future before its turn skips the work."""
        job: Future[Track] = Future()
        with self._changed:
            queue = self._bundled if self._cache.is_bundled(name) else self._random.setdefault(host, deque())
            queue.append((job, name))
            self._changed.notify()
        return job

    def close(self) -> None:
        """End the thread after the queued tracks."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _next(self) -> Job | None:
        """Wait for the next job; return None if there is none left after `close`."""
        with self._changed:
            self._changed.wait_for(lambda: self._bundled or self._random or self._closed)
            if self._bundled:
                return self._bundled.popleft()
            if not self._random:
                return None
            host = next(iter(self._random))
            queue = self._random.pop(host)
            job = queue.popleft()
            if queue:
                self._random[host] = queue  # behind the other hosts
            return job

    def _work(self) -> None:
        while (item := self._next()) is not None:
            job, name = item
            if job.set_running_or_notify_cancel():
                try:
                    job.set_result(self._cache.build(name))
                except Exception as error:
                    job.set_exception(error)
            del job, item  # they would keep the track alive until the next job
