"""Run folders: names, checkpoints to resume from, and removal. Does not import torch."""

from __future__ import annotations

import re
import secrets
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from racer_env.engine import Circuit
from racer_env.engine.circuits import is_circuit_file, read_circuit
from racer_env.errors import RacerError, os_reason, suggestion
from racer_viewer.agents import AgentError, find_stats
from racer_viewer.agents.archive import Archive, read_file
from racer_viewer.agents.load import DESCRIPTION
from racer_viewer.agents.sb3_model import MAX_DESCRIPTION_BYTES, parse_fields, steps_in
from racer_viewer.circuits.library import write_circuit
from racer_viewer.paths import MAX_STEM_LENGTH, atomic_write, free_path
from racer_viewer.replays import SUFFIX, load_replay, save_replay
from racer_viewer.training.config import CIRCUITS_FOLDER, LAPS_FOLDER, Engine, RunConfig, kept_name, load_run_config

CONFIG_FILE = "config.json"
LEARNER_LOG_FILE = "learner.log"
"""Standard output and standard error of the learner process."""
REMOVE_TRIES, REMOVE_INTERVAL = 20, 0.05
"""Attempts to remove a run and time between them [s]; Windows keeps files that another process is reading."""
HIDDEN = "."
"""Prefix of temporary files, and of a folder that is being removed; no list shows them."""
_STEPS = re.compile(r"_(\d{1,18})_steps$")


class ResumeError(RacerError):
    """The run or model cannot be resumed; the text says why."""


@dataclass(frozen=True)
class Checkpoint:
    """A saved model to resume from.

    config: config of its run.
    steps: number of steps it was trained for.
    """

    model: Path
    stats: Path
    config: RunConfig
    steps: int


def find_checkpoint(where: Path, runs: Path) -> Checkpoint:
    """Resolve `--resume`: a model file, a run folder or a run's name. For a run, return its latest checkpoint."""
    folder = next((each for each in (where, runs / where) if each.is_dir()), None)
    model = where if folder is None else latest_model(folder)
    if model is None:
        raise ResumeError(f"{folder} has no checkpoint yet: there is nothing to resume")
    if not model.is_file():
        known = [each.name for each in run_folders(runs)]
        hint = f"; {suggestion(str(where), known)}" if known else ""
        raise ResumeError(f"--resume {where}: there is no such model or run{hint}")
    stats = find_stats(model)
    if stats is None:
        raise ResumeError(
            f"{model} has no statistics in it or beside it ({model.stem}_vecnormalize.pkl or .npz): "
            "without its normalisation it cannot be resumed"
        )
    config_file = model.parent / CONFIG_FILE
    if not config_file.is_file():
        raise ResumeError(f"{model} has no {CONFIG_FILE} beside it: its training settings are not known")
    return Checkpoint(model, stats, load_run_config(config_file), steps_of(model))


def run_folders(runs: Path) -> list[Path]:
    """Return the folders of all runs, sorted by name; empty if `runs` does not exist or cannot be read."""
    try:
        return sorted(each for each in runs.iterdir() if each.is_dir() and not each.name.startswith(HIDDEN))
    except OSError:
        return []


def folder_of(where: Path) -> Path:
    """Return the run folder, given the folder itself or a model in it."""
    return where.parent if where.is_file() else where


def resumed_config(where: Path, timesteps: int | None = None, engine: Engine | None = None) -> RunConfig:
    """Return the config to resume a run with. Raises ResumeError if no steps are left.

    where: run folder, to resume from its latest checkpoint or its start, or a model in it.
    timesteps, engine: new total number of steps and other engine; None keeps the old ones, except that a run on Ray
        continues in one process.
    """
    config = load_run_config(folder_of(where) / CONFIG_FILE)
    config = config if timesteps is None else replace(config, timesteps=timesteps)
    config = replace(config, engine=engine or ("auto" if config.engine == "ray" else config.engine))
    if where.is_file() or latest_model(where) is not None:
        check_steps_left(find_checkpoint(where, where.parent), config)
    return config


def check_steps_left(checkpoint: Checkpoint, config: RunConfig) -> None:
    if checkpoint.steps >= config.timesteps:
        name = config.name or checkpoint.model.parent.name
        raise ResumeError(
            f"{name} has trained for {checkpoint.steps:,} of {config.timesteps:,} steps: "
            f"use a larger number, for example --timesteps {2 * checkpoint.steps}"
        )


def latest_model(folder: Path) -> Path | None:
    """Return the model of a run with the most steps. The best model is for driving and not considered.

    Damaged models are skipped; if there is no other, raises ResumeError.
    """
    models = [path for path in folder.glob("*.zip") if not path.stem.endswith("_best") and path.name[0] != HIDDEN]
    found: list[tuple[int, float, Path]] = []
    problem: ResumeError | None = None
    for path in models:
        try:
            found.append((steps_of(path), path.stat().st_mtime, path))
        except ResumeError as error:
            problem = error
        except OSError:  # removed meanwhile
            continue
    if problem is not None and not found:
        raise problem
    return max(found)[-1] if found else None


def steps_of(model: Path) -> int:
    """Return the number of steps a model was trained for, from its content or else its name."""
    steps = None
    with suppress(AgentError):
        steps = steps_in(parse_fields(Archive(read_file(model)).read(DESCRIPTION, MAX_DESCRIPTION_BYTES)))
    if steps is not None:
        return steps
    named = _STEPS.search(model.stem)
    if named is None:
        raise ResumeError(f"{model} is not a model of stable-baselines3, or it is damaged")
    return int(named[1])


def free_name(config: RunConfig, runs: Path) -> str:
    """Return a name from the algorithm, the circuits and the first free number."""
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
        raise RacerError(f"run {name} exists already: choose another --name, or continue it with --resume {name}")


def keep_files(config: RunConfig, folder: Path) -> RunConfig:
    """Copy the circuit files and replays of a config to the folder of its run; return the config with the copies.

    The run keeps them when they are edited, renamed or deleted elsewhere.
    """
    kept: dict[str, str] = {}
    for name in config.circuits:
        if is_circuit_file(name) and kept_name(name, folder) == name:
            path = free_path(folder / CIRCUITS_FOLDER / f"{Path(name).stem}.json")
            write_circuit(read_circuit(Path(name)), path)
            kept[name] = str(path.absolute())
    for name in config.teach:
        if kept_name(name, folder) == name:
            path = free_path(folder / LAPS_FOLDER / f"{Path(name).stem[:MAX_STEM_LENGTH]}{SUFFIX}")
            save_replay(load_replay(Path(name)), path)
            kept[name] = str(path.absolute())
    return replace(
        config,
        tracks=tuple(kept.get(name, name) for name in config.tracks),
        teach=tuple(kept.get(name, name) for name in config.teach),
    )


def store_circuit(circuit: Circuit, folder: Path) -> str:
    """Write a circuit that a run is changed to into its folder; return its name for `load_circuit`.

    Each version has a folder of its own: the name of the file is the id of the circuit.
    """
    stem = re.sub(r"[^\w-]+", "-", circuit.id)[:MAX_STEM_LENGTH].strip("-") or "circuit"
    number, versions = 1, folder / CIRCUITS_FOLDER
    while (versions / str(number)).exists():
        number += 1
    path = versions / str(number) / f"{stem}.json"
    write_circuit(circuit, path)
    return str(path.absolute())


def write_config(config: RunConfig, folder: Path) -> None:
    """Write a run's config.json."""
    config = replace(
        config,
        tracks=tuple(kept_name(name, folder) for name in config.tracks),
        teach=tuple(kept_name(name, folder) for name in config.teach),
    )
    with atomic_write(folder / CONFIG_FILE) as temporary:
        temporary.write_text(config.to_json(), encoding="utf-8")


def remove_run(folder: Path) -> None:
    """Remove a run in which no learner runs. It disappears from `run_folders` at once, not file by file."""
    problem = "another process writes to it"
    for _ in range(REMOVE_TRIES):
        try:
            folder = _hide(folder)
            shutil.rmtree(folder)
        except FileNotFoundError:  # another process removes it too
            if not folder.exists():
                return
        except OSError as error:
            problem = os_reason(error)
        else:
            return
        time.sleep(REMOVE_INTERVAL)
    raise RacerError(f"{folder} could not be removed: {problem}")


def _hide(folder: Path) -> Path:
    """Rename a folder to a hidden name and return it; unchanged if Windows refuses because a file is open."""
    if folder.name.startswith(HIDDEN):
        return folder
    hidden = folder.with_name(f"{HIDDEN}{folder.name}-{secrets.token_hex(4)}")
    try:
        return folder.rename(hidden)
    except FileNotFoundError:
        raise
    except OSError:
        return folder
