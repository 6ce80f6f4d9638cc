"""The models that can drive: those that come with the app, and those of the user's runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from racer_env.engine import circuits
from racer_env.errors import ConfigError
from racer_viewer.agents import bundled_models
from racer_viewer.agents.bundled import bundled_tracks
from racer_viewer.training.config import load_run_config
from racer_viewer.training.saved import run_folders

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
