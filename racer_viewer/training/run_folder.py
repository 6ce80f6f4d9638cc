"""Runs as they lie on disk: where the next one goes, and what one can go on from. Nothing here needs torch."""

from __future__ import annotations

import json
import re
import secrets
import shutil
import time
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

from racer_env.errors import RacerError
from racer_viewer.agents import find_stats
from racer_viewer.paths import atomic_write
from racer_viewer.training.config import RunConfig, load_run_config

CONFIG_FILE = "config.json"
LEARNER_LOG_FILE = "learner.log"
"""Standard output and standard error of the learner process."""
REMOVE_TRIES, REMOVE_SECONDS = 20, 0.05
"""How often, and from one try to the next, a run is removed: Windows keeps files that somebody is just reading."""
HIDDEN = "."
"""Before the name of a run that is being removed; `run_folders` leaves it out."""
_STEPS = re.compile(r"_(\d+)_steps$")


class ResumeError(RacerError):
    """There is nothing to go on from."""


@dataclass(frozen=True)
class Checkpoint:
    """A saved model to go on from, with the config of its run and the steps that it had learned for."""

    model: Path
    stats: Path
    config: RunConfig
    steps: int


def find_checkpoint(where: Path, runs: Path) -> Checkpoint:
    """What `--resume` means: a model file, the folder of a run, or a run's name; of a run, its latest checkpoint."""
    folder = next((each for each in (where, runs / where) if each.is_dir()), None)
    model = where if folder is None else latest_model(folder)
    if model is None:
        raise ResumeError(f"{folder} has no checkpoint yet to go on from")
    if not model.is_file():
        known = ", ".join(each.name for each in run_folders(runs))
        raise ResumeError(f"--resume {where}: no such model or run" + (f"; runs: {known}" if known else ""))
    stats = find_stats(model)
    if stats is None:
        raise ResumeError(
            f"{model} has no statistics beside it ({model.stem}_vecnormalize.npz or .pkl): "
            "without the normalisation that it learned with it cannot go on"
        )
    config_file = model.parent / CONFIG_FILE
    if not config_file.is_file():
        raise ResumeError(f"{model} has no {CONFIG_FILE} beside it, which says how it was learning")
    return Checkpoint(model, stats, load_run_config(config_file), steps_of(model))


def run_folders(runs: Path) -> list[Path]:
    """Of all runs, by name; none where there is no such folder, or it cannot be read."""
    try:
        return sorted(each for each in runs.iterdir() if each.is_dir() and not each.name.startswith(HIDDEN))
    except OSError:
        return []


def folder_of(where: Path) -> Path:
    """Of a run, by itself or by a model in it."""
    return where.parent if where.is_file() else where


def resumed_config(where: Path, timesteps: int | None = None) -> RunConfig:
    """Of a run that goes on, from its latest checkpoint, its beginning or a model of it, up to a total of steps.

    timesteps: the new total; None is the one it had. What cannot go on is an error that says so.
    """
    config = load_run_config(folder_of(where) / CONFIG_FILE)
    config = config if timesteps is None else replace(config, timesteps=timesteps)
    if where.is_file() or latest_model(where) is not None:
        check_steps_left(find_checkpoint(where, where.parent), config)
    return config


def check_steps_left(checkpoint: Checkpoint, config: RunConfig) -> None:
    if checkpoint.steps >= config.timesteps:
        name = config.name or checkpoint.model.parent.name
        raise ResumeError(
            f"{name} has learned {checkpoint.steps:,} of {config.timesteps:,} steps: "
            f"ask for more with --timesteps, as --timesteps {2 * checkpoint.steps}"
        )


def latest_model(folder: Path) -> Path | None:
    """The model of a run that has learned longest; the best one so far is for driving, not to go on from."""
    models = [path for path in folder.glob("*.zip") if not path.stem.endswith("_best") and path.name[0] != "."]
    return max(models, key=lambda path: (steps_of(path), path.stat().st_mtime), default=None)


def steps_of(model: Path) -> int:
    """Steps that a model had learned for, as its file says."""
    try:
        with zipfile.ZipFile(model) as archive:
            return int(json.loads(archive.read("data"))["num_timesteps"])
    except (OSError, KeyError, TypeError, ValueError, zipfile.BadZipFile):
        named = _STEPS.search(model.stem)
        if named is None:
            raise ResumeError(f"{model} is not a model of stable-baselines3, or it is damaged") from None
        return int(named[1])


def free_name(config: RunConfig, runs: Path) -> str:
    """By the algorithm and the circuits, with the first number that is free."""
    track = config.tracks[0] if len(config.tracks) == 1 else f"{len(config.tracks)}-circuits"
    stem = "".join(
        letter if letter.isalnum() or letter in "-_" else "-" for letter in f"{config.algo}-{Path(track).stem}"
    )
    number = 1
    while (runs / f"{stem}-{number}").exists():
        number += 1
    return f"{stem}-{number}"


def check_name_is_free(name: str, runs: Path) -> None:
    if (runs / name).exists():
        raise RacerError(f"there is a run {name} already: choose another --name, or go on with --resume {name}")


def write_config(config: RunConfig, folder: Path) -> None:
    """A run's config.json."""
    with atomic_write(folder / CONFIG_FILE) as temporary:
        temporary.write_text(config.to_json(), encoding="utf-8")


def remove_run(folder: Path) -> None:
    """With all that is in it; nobody may learn in it. For others it goes at once, not file by file."""
    problem = "others write there"
    for _ in range(REMOVE_TRIES):
        try:
            folder = _out_of_sight(folder)
            shutil.rmtree(folder)
        except FileNotFoundError:  # somebody else removes it too
            if not folder.exists():
                return
        except OSError as error:
            problem = error.strerror or str(error)
        else:
            return
        time.sleep(REMOVE_SECONDS)
    raise RacerError(f"{folder} could not be removed: {problem}")


def _out_of_sight(folder: Path) -> Path:
    """Where it is renamed to; its own place if Windows refuses that, since a file of it is open."""
    if folder.name.startswith(HIDDEN):
        return folder
    hidden = folder.with_name(f"{HIDDEN}{folder.name}-{secrets.token_hex(4)}")
    try:
        return folder.rename(hidden)
    except FileNotFoundError:
        raise
    except OSError:
        return folder
