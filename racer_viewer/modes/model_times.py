"""What models are and how fast they drive: found out behind a list, and remembered from one time to the next."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import msgspec

from racer_env.engine import Track, load_circuit
from racer_env.errors import RacerError
from racer_viewer.agents import Agent, AgentError, AgentInfo, load_agent
from racer_viewer.folders import written_whole
from racer_viewer.replays import ENGINE_VERSION
from racer_viewer.training.evaluation import evaluate

FILE_NAME = "model-times.json"
MOST_KEPT = 2000
"""Times in the file; beyond that the oldest go."""
ENOUGH_LAPS = 2
"""The standing one and a flying one; who does not get so far is given up as `evaluate` does."""
TICKS_AT_ONCE, REST = 2, 0.0002
"""After so many ticks, about a quarter of a millisecond, whoever waits for the interpreter has it; a rest [s]."""
PATIENCE = 0.1
"""A window that has been busy for longer than this does not draw at all: there is no need to wait for it [s]."""
STOP_LIMIT = 0.2
"""The window waits no longer than this for a thread that was told to stop [s]."""


class Laps(msgspec.Struct, frozen=True):
    """Of one drive from the standing start, in seconds; None where no such lap came to its end."""

    standing: float | None
    flying: float | None
    clean: bool
    """No touch of a wall and no tick off the road."""


@dataclass(frozen=True)
class Known:
    """Of a model: what it is, or why it cannot be used; and its laps, once they are driven."""

    info: AgentInfo | None = None
    problem: str = ""
    laps: Laps | None = None


class KeptTimes:
    """The file that laps are kept in. If it is damaged or cannot be written, they are driven again: no more is lost."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._laps = msgspec.json.decode(path.read_bytes(), type=dict[str, Laps])
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            self._laps = {}

    def find(self, key: str) -> Laps | None:
        return self._laps.get(key)

    def keep(self, key: str, laps: Laps) -> None:
        self._laps[key] = laps
        kept = dict(list(self._laps.items())[-MOST_KEPT:])
        try:
            with written_whole(self._path) as temporary:
                temporary.write_bytes(msgspec.json.encode(kept))
        except OSError:
            return


class ModelTimes:
    """Looks into models, then drives those whose laps nobody knows, in a thread of its own.

    Two threads that compute share one interpreter: this one goes while the window waits for its next picture (`idle`),
    and stands while it is `busy`.

    known: what is known so far. changes: counts up with every news. going: whether there is more to come.
    wanted: the model to drive next, if it was not driven yet.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE_NAME
        self.known: dict[Path, Known] = {}
        self.changes = 0
        self.going = False
        self.wanted: Path | None = None
        self._circuit = ""
        self._thread: Thread | None = None
        self._stop = Event()
        self._turn = Event()

    def idle(self) -> None:
        """The picture is drawn: the thread has its turn."""
        self._turn.set()

    def busy(self) -> None:
        """Ticks and a picture are due."""
        self._turn.clear()

    def wait_for_turn(self) -> None:
        """From the thread."""
        self._turn.wait(PATIENCE)

    def measure(self, models: Sequence[Path], circuit: str) -> None:
        """Begin with these models on a circuit, or (after `stop`) go on."""
        self.stop()
        if circuit != self._circuit:
            self._circuit = circuit
            self.known = {path: replace(known, laps=None) for path, known in self.known.items()}
        self.changes += 1
        self.going = True
        self._stop = Event()
        work = _Work(self, tuple(models), circuit, KeptTimes(self._file), self._stop)
        self._thread = Thread(target=work.run, name="racer-model-times", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """At once; what was driven by halves is forgotten."""
        self._stop.set()
        self._turn.set()
        if self._thread is not None:
            self._thread.join(STOP_LIMIT)

    def tell(self, path: Path, known: Known) -> None:
        """From the thread: news of a model."""
        self.known[path] = known
        self.changes += 1

    def end(self) -> None:
        """From the thread: all is known."""
        self.going = False
        self.changes += 1


class _StoppedError(Exception):
    """The list was closed: nobody wants to know any more."""


@dataclass(frozen=True)
class _Work:
    """What the thread does, for some models on one circuit."""

    times: ModelTimes
    models: tuple[Path, ...]
    circuit: str
    kept: KeptTimes
    stop: Event

    def run(self) -> None:
        try:
            track = self._track()
            missing = [path for path in self.models if self._look(path, track)]
            while missing and track is not None:
                path = self.times.wanted if self.times.wanted in missing else missing[0]
                assert path is not None
                missing.remove(path)
                self._drive(path, track)
            self._rest()
            self.times.end()
        except _StoppedError:
            return

    def _track(self) -> Track | None:
        """None for a circuit that cannot be driven: whoever opens it is told why."""
        try:
            return load_circuit(self.circuit)
        except (RacerError, OSError):
            return None

    def _look(self, path: Path, track: Track | None) -> bool:
        """What it is, and its laps if they are kept. Returns whether they have to be driven."""
        self._rest()
        try:
            info = load_agent(path).info
            laps = None if track is None else self.kept.find(_key(info, track))
        except (RacerError, OSError) as error:
            self._tell(path, Known(problem=_reason(error, path)))
            return False
        self._tell(path, Known(info, laps=laps))
        return laps is None

    def _drive(self, path: Path, track: Track) -> None:
        try:
            agent = load_agent(path)
            key = _key(agent.info, track)
            laps = self.kept.find(key)  # by another file with the same weights, meanwhile
            if laps is None:
                laps = self._laps(agent, track)
                self.kept.keep(key, laps)
        except _StoppedError:
            raise
        except Exception as error:  # onnxruntime has a class of its own for every way to fail while it drives
            self._tell(path, Known(problem=_reason(error, path)))
        else:
            self._tell(path, Known(agent.info, laps=laps))

    def _laps(self, agent: Agent, track: Track) -> Laps:
        ticks = 0

        def policy(observations: Any) -> Any:
            nonlocal ticks
            ticks += 1
            if ticks % TICKS_AT_ONCE == 0:
                self._rest()
            return agent.act(observations)

        (drive,) = evaluate(policy, [track], enough_laps=ENOUGH_LAPS)
        return Laps(drive.best_standing, drive.best_flying, drive.clean)

    def _tell(self, path: Path, known: Known) -> None:
        if not self.stop.is_set():
            self.times.tell(path, known)

    def _rest(self) -> None:
        time.sleep(REST)
        self.times.wait_for_turn()
        if self.stop.is_set():
            raise _StoppedError


def _key(info: AgentInfo, track: Track) -> str:
    """The same for as long as the same weights drive the same road by the same physics, whatever files are called."""
    circuit = msgspec.json.encode(track.circuit)
    stats = info.stats_path.read_bytes() if info.stats_path is not None else b""
    digest = hashlib.sha256()
    for part in (info.path.read_bytes(), stats, circuit, str(ENGINE_VERSION).encode()):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:32]


def _reason(error: Exception, path: Path) -> str:
    """In short, for a line below the list: without the folder."""
    text = str(error) if isinstance(error, AgentError) else f"{path.name}: {error}"
    return text.replace(f"{path.parent}/", "").replace(f"{path.parent}\\", "")
