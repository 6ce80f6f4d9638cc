"""The models that can drive: those that come with the app, and those of the user's runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from racer_viewer.agents import bundled_models

_UNFINISHED = ("_latest", "_steps")
"""Ends of the names of models that a run saves on its way."""


@dataclass(frozen=True)
class ModelFile:
    """A model to choose. `name` is short, and what settings remember; `of` is where it comes from."""

    name: str
    path: Path
    of: str


def known_models(data: Path) -> list[ModelFile]:
    """Bundled ones first, then the best and the last of every run, newest run first."""
    found = [ModelFile(path.stem, path, "bundled") for path in bundled_models()]
    runs = [folder for folder in (data / "runs").glob("*") if folder.is_dir()]
    for run in sorted(runs, key=lambda folder: folder.stat().st_mtime, reverse=True):
        models = [path for path in run.glob("*.zip") if not path.stem.endswith(_UNFINISHED)]
        found += [ModelFile(path.stem, path, f"run {run.name}") for path in sorted(models)]
    return found
