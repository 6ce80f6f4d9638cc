"""The models that can drive: those that come with the app, and those of the user's runs.

What models are and how fast they drive: found out behind a list, and remembered from one time to the next."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from threading import Event, Thread
from typing import Any

import msgspec

from racer_env.engine import Track, circuits, load_circuit
from racer_env.errors import ConfigError, RacerError
from racer_viewer.agents import Agent, AgentError, AgentInfo, bundled_models, load_agent
from racer_viewer.agents.load import bundled_tracks
from racer_viewer.paths import atomic_write
from racer_viewer.replays import ENGINE_VERSION
from racer_viewer.training.config import load_run_config
from racer_viewer.training.evaluation import evaluate
from racer_viewer.training.run_folder import run_folders

_ENDINGS = (".zip", ".onnx")
_UNFINISHED = ("_latest", "_steps")
"""Ends of the names of models that a run saves on its way."""
_RANDOM = "random:"
_SPELLED_OUT = 2
"""So many circuits are named; of more, how many they are."""


@dataclass(frozen=True)
class ModelFile:
    """A model to choose.

    name: as it is shown. of: where it comes from. key: what settings remember, another one for every model.
    tracks: ids of the circuits that it was trained on; empty if nobody knows. modified: of the file.
    """

    name: str
    path: Path
    of: str
    key: str
    tracks: tuple[str, ...]
    modified: datetime


def known_models(data: Path) -> list[ModelFile]:
    """Bundled ones first, then the best and the last of every run, newest run first. Names are not there twice."""
    tracks = bundled_tracks()
    found = [_model_file(path, "bundled", "", tracks.get(path.stem, ())) for path in bundled_models()]
    runs = [models for folder in run_folders(data / "runs") if (models := _of_run(folder))]
    for models in sorted(runs, key=lambda models: max(each.modified for each in models), reverse=True):
        found += models
    count = Counter(each.name for each in found)
    return [replace(each, name=each.key) if count[each.name] > 1 else each for each in found]


def distinct_names(paths: Sequence[Path]) -> list[str]:
    """Of model files on one screen: with its folder, where others have the same name."""
    count = Counter(path.stem for path in paths)
    return [f"{path.parent.name}/{path.stem}" if count[path.stem] > 1 else path.stem for path in paths]


def chosen_models(models: Sequence[ModelFile], remembered: Iterable[str]) -> list[ModelFile]:
    """Those that settings remember, each once; by its file's name alone where that is all they have."""
    chosen: dict[str, ModelFile] = {}
    for word in remembered:
        same = [each for each in models if each.key == word] or [each for each in models if each.path.stem == word]
        if same:
            chosen[same[0].key] = same[0]
    return list(chosen.values())


def trained_on(tracks: Sequence[str]) -> str:
    """The circuits of a training in a few words."""
    named = circuit_names(tracks)
    number = len({track for track in tracks if track.startswith(_RANDOM)})
    parts = [", ".join(named) if len(named) <= _SPELLED_OUT else f"{len(named)} circuits"] if named else []
    return " + ".join([*parts, *([f"{number} random"] if number else [])])


def circuit_names(tracks: Sequence[str]) -> list[str]:
    """Of those that are not random, each once."""
    names = {circuit.id: circuit.name for circuit in circuits()}
    fixed = dict.fromkeys(track for track in tracks if not track.startswith(_RANDOM))
    return [names.get(track, Path(track).stem) for track in fixed]


def _of_run(run: Path) -> list[ModelFile]:
    """Its finished models by name; of a run that has none yet, the newest that it saved on its way."""
    tracks = _tracks_of(run)
    try:
        files = [path for path in sorted(run.iterdir()) if path.suffix.lower() in _ENDINGS and path.is_file()]
    except OSError:
        return []
    models = [_model_file(path, f"run {run.name}", f"{run.name}/", tracks) for path in files]
    finished = [each for each in models if not each.path.stem.endswith(_UNFINISHED)]
    return finished or sorted(models, key=lambda each: each.modified)[-1:]


def _model_file(path: Path, of: str, before: str, tracks: tuple[str, ...]) -> ModelFile:
    name = path.stem if path.suffix.lower() == ".zip" else path.name
    try:
        modified = datetime.fromtimestamp(path.stat().st_mtime)
    except (OSError, OverflowError, ValueError):
        modified = datetime.min
    return ModelFile(path.stem, path, of, before + name, tracks, modified)


def _tracks_of(run: Path) -> tuple[str, ...]:
    """As its config says; a run whose config is lost or damaged can still drive."""
    try:
        return load_run_config(run / "config.json").tracks
    except ConfigError:
        return ()


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
            with atomic_write(self._path) as temporary:
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
