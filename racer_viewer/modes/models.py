"""Models to choose from, and the thread that measures their lap times while a list of them is shown."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from threading import Event, Thread
from typing import Any

import msgspec

from racer_env.engine import Circuit, Track, circuit_name, load_circuit
from racer_env.errors import ConfigError, RacerError
from racer_viewer.agents import Agent, AgentError, AgentInfo, bundled_models, load_agent
from racer_viewer.agents.load import bundled_tracks
from racer_viewer.modes.circuits import RANDOM
from racer_viewer.paths import atomic_write, open_regular
from racer_viewer.replays import ENGINE_VERSION
from racer_viewer.training.config import load_run_config
from racer_viewer.training.evaluation import evaluate
from racer_viewer.training.native.corrections import MODELS
from racer_viewer.training.run_folder import HIDDEN, run_folders
from racer_viewer.translation import _

_SUFFIXES = (".zip", ".onnx")
_CHECKPOINT_ENDINGS = ("_latest", "_steps")
"""Ends of the file names of checkpoints that a run saves on its way."""
_MAX_NAMED_CIRCUITS = 2
"""Maximum number of circuits listed by name; more are counted."""

CACHE_FILE = "model-times.json"
MAX_CACHED, MAX_CACHE_BYTES = 2000, 2**20
"""Maximum number of lap times in the cache file, of which the oldest are dropped, and its maximum size [bytes]."""
MEASURED_LAPS = 2
"""Laps that are measured: a standing and a flying one."""
TICKS_PER_TURN, TURN_PAUSE = 2, 0.0002
"""Ticks (about 0.25 ms) after which the thread yields the interpreter to the window, and for how long [s]."""
TURN_TIMEOUT = 0.1
"""Maximum time that the thread waits for its turn [s]; a window that is busy for longer draws nothing anyway."""
STOP_TIMEOUT = 0.2
"""Maximum time that the window waits for the thread to stop [s]."""


@dataclass(frozen=True)
class ModelFile:
    """A model file to choose.

    name: name on screen.
    origin: where it comes from, as it is shown: that it is bundled, or the name of its run.
    key: unique name, stored in the settings.
    tracks: IDs of the circuits it was trained on; empty if unknown.
    modified: date of the file.
    problem: what is wrong with its run; empty if nothing is.
    is_bundled: it comes with the app.
    """

    name: str
    path: Path
    origin: str
    key: str
    tracks: tuple[str, ...]
    modified: datetime
    problem: str = ""
    is_bundled: bool = False


def known_models(data: Path) -> list[ModelFile]:
    """Return bundled and saved models, then the finished models of every run, newest first; names are made unique."""
    tracks = bundled_tracks()
    bundled = (_model_file(path, _("bundled"), "", tracks.get(path.stem, ())) for path in bundled_models())
    found = [replace(model, is_bundled=True) for model in bundled]
    own = sorted(path for path in (data / MODELS).glob("*.zip") if _is_model(path))
    found += [_model_file(path, _("saved"), f"{MODELS}/", ()) for path in own]
    runs = [models for folder in run_folders(data / "runs") if (models := _models_of_run(folder))]
    for models in sorted(runs, key=lambda models: max(each.modified for each in models), reverse=True):
        found += models
    count = Counter(each.name for each in found)
    return [replace(each, name=each.key) if count[each.name] > 1 else each for each in found]


def distinct_names(paths: Sequence[Path]) -> list[str]:
    """Return names for model files on one screen; files with the same name get their folder's name too."""
    count = Counter(path.stem for path in paths)
    return [f"{path.parent.name}/{path.stem}" if count[path.stem] > 1 else path.stem for path in paths]


def chosen_models(models: Sequence[ModelFile], names: Iterable[str]) -> list[ModelFile]:
    """Return the models that the settings name, each once; a name is a key or the stem of a file."""
    chosen: dict[str, ModelFile] = {}
    for name in names:
        same = [each for each in models if each.key == name] or [each for each in models if each.path.stem == name]
        if same:
            chosen[same[0].key] = same[0]
    return list(chosen.values())


def trained_on(tracks: Sequence[str]) -> str:
    """Describe the circuits of a run in a few words."""
    named = circuit_names(tracks)
    number = len({track for track in tracks if track.startswith(RANDOM)})
    parts = (
        [", ".join(named) if len(named) <= _MAX_NAMED_CIRCUITS else _("{count} circuits").format(count=len(named))]
        if named
        else []
    )
    return " + ".join([*parts, *([_("{number} random").format(number=number)] if number else [])])


def circuit_names(tracks: Sequence[str]) -> list[str]:
    """Return the names of the circuits that are not random, each once."""
    return [circuit_name(track) for track in dict.fromkeys(tracks) if not track.startswith(RANDOM)]


def _models_of_run(run: Path) -> list[ModelFile]:
    """Return the finished models of a run by name, or its newest checkpoint if none is finished."""
    tracks, problem = _tracks_of(run)
    try:
        files = [path for path in sorted(run.iterdir()) if _is_model(path)]
    except OSError:
        return []
    models = [
        replace(_model_file(path, _("run {name}").format(name=run.name), f"{run.name}/", tracks), problem=problem)
        for path in files
    ]
    finished = [each for each in models if not each.path.stem.endswith(_CHECKPOINT_ENDINGS)]
    return finished or sorted(models, key=lambda each: each.modified)[-1:]


def _is_model(path: Path) -> bool:
    return path.suffix.lower() in _SUFFIXES and not path.name.startswith(HIDDEN) and path.is_file()


def _model_file(path: Path, origin: str, key_prefix: str, tracks: tuple[str, ...]) -> ModelFile:
    name = path.stem if path.suffix.lower() == ".zip" else path.name
    try:
        modified = datetime.fromtimestamp(path.stat().st_mtime)
    except (OSError, OverflowError, ValueError):
        modified = datetime.min
    return ModelFile(path.stem, path, origin, key_prefix + name, tracks, modified)


def _tracks_of(run: Path) -> tuple[tuple[str, ...], str]:
    """Return the circuits in a run's config, none if it is missing or damaged, and what is wrong with it."""
    path = run / "config.json"
    try:
        return load_run_config(path).tracks, ""
    except ConfigError as error:
        return (), _("run {name} is damaged: {error}").format(name=run.name, error=error) if path.exists() else ""


class ModelLaps(msgspec.Struct, frozen=True):
    """Lap times of a drive from the standing start [s]; None for a lap that was not finished."""

    standing: float | None
    flying: float | None
    clean: bool
    """True if the car neither touched a wall nor left the road."""


@dataclass(frozen=True)
class ModelFacts:
    """Facts about a model: what it is or why it cannot drive, and its lap times once they are measured."""

    info: AgentInfo | None = None
    problem: str = ""
    laps: ModelLaps | None = None


class LapTimeCache:
    """Cache file of lap times. Times that are lost with a damaged file are measured again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            with open_regular(path) as file:
                self._laps = msgspec.json.decode(file.read(MAX_CACHE_BYTES), type=dict[str, ModelLaps])
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._laps = {}

    def find(self, key: str) -> ModelLaps | None:
        return self._laps.get(key)

    def store(self, key: str, laps: ModelLaps) -> None:
        self._laps[key] = laps
        newest = dict(list(self._laps.items())[-MAX_CACHED:])
        try:
            with atomic_write(self._path) as temporary:
                temporary.write_bytes(msgspec.json.encode(newest))
        except OSError:
            return


def best_measured(
    models: Mapping[Path, tuple[str, AgentInfo]], track: Track, cache: LapTimeCache
) -> tuple[str, float] | None:
    """Return name and lap time [s] of the model with the fastest clean lap that was measured; None without any."""
    found: list[tuple[float, str]] = []
    for name, info in models.values():
        laps = cache.find(_key(info, track))
        if laps is not None and laps.clean:
            found += [(seconds, name) for seconds in (laps.standing, laps.flying) if seconds is not None]
    return (min(found)[1], min(found)[0]) if found else None


class ModelTimer:
    """Reads models and measures their lap times on a circuit, in a thread of its own.

    The thread shares the interpreter with the window: it runs while the window waits for its next frame (`resume`)
    and waits while the window is busy (`pause`).

    facts: what is known so far.
    changes: counter of changes to `facts`.
    running: True until all models are measured.
    next_model: model to measure next.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / CACHE_FILE
        self.facts: dict[Path, ModelFacts] = {}
        self.changes = 0
        self.running = False
        self.next_model: Path | None = None
        self._circuit: str | Circuit = ""
        self._thread: Thread | None = None
        self._stop = Event()
        self._turn = Event()

    @property
    def alive(self) -> bool:
        """True while the thread exists."""
        return self._thread is not None and self._thread.is_alive()

    def resume(self) -> None:
        """Let the thread run: the frame is drawn."""
        self._turn.set()

    def pause(self) -> None:
        """Stop the thread at its next turn: ticks and a frame are due."""
        self._turn.clear()

    def wait_for_turn(self) -> None:
        """Wait in the thread until the window is idle."""
        self._turn.wait(TURN_TIMEOUT)

    def start(self, models: Sequence[Path], circuit: str | Circuit) -> None:
        """Measure these models on a circuit; facts from before `stop` are kept."""
        self.stop()
        if circuit != self._circuit:
            self._circuit = circuit
            self.facts = {path: replace(facts, laps=None) for path, facts in self.facts.items()}
        self.changes += 1
        self.running = True
        self._stop = Event()
        job = _TimingJob(self, tuple(models), circuit, LapTimeCache(self._file), self._stop)
        self._thread = Thread(target=job.run, name="racer-model-times", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and drop the lap that it is measuring."""
        self._stop.set()
        self._turn.set()
        if self._thread is not None:
            self._thread.join(STOP_TIMEOUT)

    def report(self, path: Path, facts: ModelFacts) -> None:
        """Take facts about a model from the thread."""
        self.facts[path] = facts
        self.changes += 1

    def finish(self) -> None:
        """Take from the thread that all models are measured."""
        self.running = False
        self.changes += 1


class _StoppedError(Exception):
    """Raised in the thread when it is stopped."""


@dataclass(frozen=True)
class _TimingJob:
    """Work of the thread: some models on one circuit."""

    timer: ModelTimer
    models: tuple[Path, ...]
    circuit: str | Circuit
    cache: LapTimeCache
    stop: Event

    def run(self) -> None:
        try:
            track = self._track()
            missing = [path for path in self.models if self._read(path, track)]
            while missing and track is not None:
                path = self.timer.next_model if self.timer.next_model in missing else missing[0]
                assert path is not None
                missing.remove(path)
                self._measure(path, track)
            self._yield()
            self.timer.finish()
        except _StoppedError:
            return

    def _track(self) -> Track | None:
        """Return the track; None for a circuit that cannot be driven."""
        try:
            return load_circuit(self.circuit)
        except (RacerError, OSError):
            return None

    def _read(self, path: Path, track: Track | None) -> bool:
        """Report a model and its cached lap times; return whether they have to be measured."""
        self._yield()
        try:
            info = load_agent(path).info
            laps = None if track is None else self.cache.find(_key(info, track))
        except (RacerError, OSError) as error:
            self._report(path, ModelFacts(problem=_reason(error, path)))
            return False
        self._report(path, ModelFacts(info, laps=laps))
        return laps is None

    def _measure(self, path: Path, track: Track) -> None:
        try:
            agent = load_agent(path)
            key = _key(agent.info, track)
            laps = self.cache.find(key)  # another file with the same weights may have been measured meanwhile
            if laps is None:
                laps = self._drive(agent, track)
                self.cache.store(key, laps)
        except _StoppedError:
            raise
        except (RacerError, OSError) as error:
            self._report(path, ModelFacts(problem=_reason(error, path)))
        else:
            self._report(path, ModelFacts(agent.info, laps=laps))

    def _drive(self, agent: Agent, track: Track) -> ModelLaps:
        ticks = 0

        def policy(observations: Any) -> Any:
            nonlocal ticks
            ticks += 1
            if ticks % TICKS_PER_TURN == 0:
                self._yield()
            return agent.act(observations)

        (drive,) = evaluate(policy, [track], enough_laps=MEASURED_LAPS)
        return ModelLaps(drive.best_standing, drive.best_flying, drive.clean)

    def _report(self, path: Path, facts: ModelFacts) -> None:
        if not self.stop.is_set():
            self.timer.report(path, facts)

    def _yield(self) -> None:
        time.sleep(TURN_PAUSE)
        self.timer.wait_for_turn()
        if self.stop.is_set():
            raise _StoppedError


def _key(info: AgentInfo, track: Track) -> str:
    """Return a cache key: a hash of weights, circuit and engine version, whatever the files are called."""
    circuit = msgspec.json.encode(track.circuit)
    stats = info.stats_path.read_bytes() if info.stats_path is not None else b""
    digest = hashlib.sha256()
    for part in (info.path.read_bytes(), stats, circuit, str(ENGINE_VERSION).encode()):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:32]


def _reason(error: Exception, path: Path) -> str:
    """Return an error message without the model's folder, short enough for a line."""
    text = str(error) if isinstance(error, AgentError) else f"{path.name}: {error}"
    return text.replace(f"{path.parent}/", "").replace(f"{path.parent}\\", "")
