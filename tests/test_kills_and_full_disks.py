"""Files that are replaced have their old or their new content, whenever their writer is killed or the disk fills up."""

import multiprocessing
import os
import random
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest

from racer_viewer.agents import load_agent, load_stats
from racer_viewer.agents.archive import Archive, read_file
from racer_viewer.agents.load import TENSORS
from racer_viewer.agents.model_writer import ModelContent, new_optimiser, save_model
from racer_viewer.agents.pickles import TensorFile
from racer_viewer.agents.stats import RunningStats, Statistics
from racer_viewer.paths import clean_data_folder
from racer_viewer.replays import load_replay, save_replay
from racer_viewer.settings import Settings, SettingsFile
from racer_viewer.training.config import load_run_config, preset
from racer_viewer.training.run_folder import latest_model, write_config
from tests.replays.replay_drives import ring_run

if sys.platform == "win32":
    pytest.skip("kills forked processes", allow_module_level=True)

import resource

FORK = multiprocessing.get_context("fork")
SHAPES = {"action_net.weight": (3, 14), "action_net.bias": (3,), "value_net.weight": (1, 14), "value_net.bias": (1,),
          "log_std": (3,)}  # fmt: skip
WEIGHT_SCALE = 2.0**16
"""Numbers per unit of a weight: a model whose noise is the exponential of a large number cannot be loaded."""
ROUNDS = 40
MAX_KILL_DELAY = 0.02
"""Maximum delay of a kill after a model was saved [s]; saving one takes about a third of it."""
MODEL = "model_1_steps.zip"


def save_numbered(path: Path, number: int) -> None:
    """Save a model all weights of which stand for a number, with statistics of that number."""
    tensors = {name: np.full(shape, number / WEIGHT_SCALE, np.float32) for name, shape in SHAPES.items()}
    stats = Statistics(RunningStats(np.full(14, float(number)), np.ones(14), 1.0))
    optimisers = {"policy.optimizer": new_optimiser(len(tensors), 1e-3)}
    save_model(ModelContent("PPO", {"num_timesteps": number}, {"net_arch": []}, tensors, optimisers, stats=stats), path)


def number_in(path: Path) -> int:
    """Return the number in a model; its weights, steps and statistics must be of the same save."""
    weights = TensorFile(Archive(read_file(path)).read(TENSORS)).read("log_std")
    agent = load_agent(path)
    assert agent.info.stats_path is not None
    observations = load_stats(agent.info.stats_path).observations
    assert observations is not None
    found = {WEIGHT_SCALE * float(weights[0]), float(agent.info.timesteps or 0), float(observations.mean[0])}
    assert len(found) == 1, f"a model of several saves: {found}"
    return int(found.pop())


def temporary_files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.startswith(".")]


def kill_at_replacement(number: int, after: bool, path: Path) -> None:
    """Save a model, and kill this process before or after a file is replaced."""
    rename, count = Path.replace, 0

    def rename_and_die(source: Path, target: Any) -> Path:
        nonlocal count
        count += 1
        if count == number and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = rename(source, target)
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    Path.replace = rename_and_die  # type: ignore[assignment, method-assign]
    save_numbered(path, 2)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", [1, 2])
def test_a_kill_between_two_writes_leaves_a_model_with_its_own_statistics(
    number: int, after: bool, tmp_path: Path
) -> None:
    run = tmp_path / "runs" / "mine"
    save_numbered(run / MODEL, 1)
    process = FORK.Process(target=kill_at_replacement, args=(number, after, run / MODEL))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert number_in(run / MODEL) == (2 if number == 2 and after else 1)
    assert latest_model(run) == run / MODEL, "no temporary file is taken for a model"
    clean_data_folder(tmp_path)
    assert not temporary_files(run)


def save_for_ever(path: Path, first: int, sender: Connection) -> None:
    for number in range(first, sys.maxsize):
        save_numbered(path, number)
        sender.send(number)


@pytest.mark.slow
def test_a_kill_at_any_time_loses_no_saved_model(tmp_path: Path) -> None:
    path, saved, chance = tmp_path / MODEL, 0, random.Random()
    for _ in range(ROUNDS):
        receiver, sender = FORK.Pipe(duplex=False)
        process = FORK.Process(target=save_for_ever, args=(path, saved + 1, sender))
        process.start()
        sender.close()
        saved = receiver.recv()
        Event().wait(chance.uniform(0.0, MAX_KILL_DELAY))
        process.kill()
        process.join()
        while receiver.poll():
            try:
                saved = receiver.recv()
            except EOFError:
                break
        found = number_in(path)
        assert saved <= found <= saved + 1
        saved = found


SAVED: dict[str, Callable[[Path, int], object]] = {
    "model_1_steps.zip": save_numbered,
    "drive.racer": lambda path, number: save_replay(replace(ring_run(), driver=f"driver {number}"), path),
    "settings.json": lambda path, number: save_settings(path, f"driver {number}"),
    "config.json": lambda path, number: write_config(preset("ppo", ("quick", "champion")[number - 1]), path.parent),
}
"""Writes a file that may be the first or the second, by its name."""
LOADED: dict[str, Callable[[Path], object]] = {
    "model_1_steps.zip": number_in,
    "drive.racer": lambda path: load_replay(path).driver,
    "settings.json": lambda path: SettingsFile(path.parent).load().name,
    "config.json": load_run_config,
}


def save_settings(path: Path, name: str) -> None:
    file = SettingsFile(path.parent)
    file.save(Settings(name=name))
    if file.problem:
        raise OSError(file.problem)


def save_on_full_disk(path: Path, limit: int) -> None:
    """Save a file when no file can become larger than a limit [bytes]; exit with 1 if that fails."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    try:
        SAVED[path.name](path, 2)
    except Exception:
        sys.exit(1)


@pytest.mark.parametrize("name", SAVED)
def test_a_disk_that_fills_up_at_any_byte_leaves_the_old_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    SAVED[name](path, 2)
    size, new = path.stat().st_size, LOADED[name](path)
    SAVED[name](path, 1)
    old = LOADED[name](path)
    assert old != new
    for limit in (0, 1, *np.linspace(2, size - 1, 10).astype(int).tolist()):
        assert exit_code(save_on_full_disk, path, limit) == 1
        assert LOADED[name](path) == old
        assert not temporary_files(tmp_path)
    assert exit_code(save_on_full_disk, path, 10 * size) == 0
    assert LOADED[name](path) == new


def exit_code(work: Callable[..., None], *arguments: object) -> int | None:
    process = FORK.Process(target=work, args=arguments)
    process.start()
    process.join()
    return process.exitcode
