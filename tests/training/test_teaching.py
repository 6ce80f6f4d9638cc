"""Runs that learn from laps: a clone first, then PPO with a term that fades out."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from racer_env.engine import load_circuit
from racer_env.errors import ConfigError
from racer_viewer.agents import load_agent
from racer_viewer.replays import ReplayError, load_lessons, save_replay
from racer_viewer.training.config import RunConfig, load_run_config, preset
from racer_viewer.training.evaluation import Evaluation, evaluate
from racer_viewer.training.run import Run
from racer_viewer.training.run_folder import find_checkpoint
from racer_viewer.training.run_log_reader import load_history
from tests.replays.replay_drives import ring_run
from tests.training.noisy_drives import noisy_drive

CLONING = 20_000
"""Steps that cars drive while a policy is cloned here."""


@pytest.fixture
def laps(tmp_path: Path) -> str:
    path = tmp_path / "my laps.racer"
    save_replay(noisy_drive(0), path)
    return str(path)


def taught(laps: str, **values: object) -> RunConfig:
    config = replace(preset("ppo"), name="pupil", teach=(laps,), clone_steps=CLONING, timesteps=CLONING, threads=1)
    return replace(config, **values)  # type: ignore[arg-type]


def drive(model: Path) -> Evaluation:
    return evaluate(load_agent(model).act, [load_circuit("track-01")], enough_laps=2)[0]


def train(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "racer_viewer", "train", "--headless", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, encoding="utf-8")


def test_a_run_clones_the_driver_and_keeps_the_laps(laps: str, tmp_path: Path) -> None:
    result = Run(taught(laps), tmp_path / "runs").learn()
    clone = result.folder / "pupil_clone.zip"
    evaluation = drive(clone)
    assert evaluation.clean
    assert evaluation.best_flying is not None
    assert '"./laps/my laps.racer"' in (result.folder / "config.json").read_text(encoding="utf-8")
    Path(laps).unlink()
    assert load_lessons(load_run_config(result.folder / "config.json").teach)
    history = load_history(result.folder)
    held_out = history.values["clone/held_out_loss"]
    assert held_out[np.isfinite(held_out)][-1] < 0.1
    assert [event.text for event in history.events if event.kind == "clone"] == ["Cloned from 3 laps"]


def test_ppo_goes_on_from_the_clone_and_a_run_can_be_resumed(laps: str, tmp_path: Path) -> None:
    result = Run(taught(laps), tmp_path / "runs").learn()
    assert result.model is not None
    before = load_agent(result.model)
    config = taught(laps, timesteps=CLONING + 30_000, teach=load_run_config(result.folder / "config.json").teach)
    checkpoint = find_checkpoint(result.folder, tmp_path / "runs")
    resumed = Run(config, tmp_path / "runs", replace(checkpoint, config=config)).learn()
    assert resumed.steps >= CLONING + 30_000
    assert resumed.model is not None
    seen = np.zeros((1, 14), np.float32)
    assert not np.array_equal(before.act(seen), load_agent(resumed.model).act(seen))
    history = load_history(result.folder)
    assert len([event for event in history.events if event.kind == "clone"]) == 1


def test_the_same_seed_gives_the_same_run(laps: str, tmp_path: Path) -> None:
    models = []
    for name in ("one", "two"):
        result = Run(taught(laps, name=name, timesteps=CLONING + 16_000), tmp_path / "runs").learn()
        assert result.model is not None
        models.append(load_agent(result.model))
    seen = np.random.default_rng(0).random((20, 14)).astype(np.float32)
    assert np.array_equal(models[0].act(seen), models[1].act(seen))


def test_the_weight_of_the_laps_fades_out() -> None:
    config = RunConfig(teach_weight=0.4, teach_until=0.5)
    assert [config.teach_weights(remaining) for remaining in (1.0, 0.75, 0.5, 0.1)] == pytest.approx([0.4, 0.2, 0, 0])
    assert RunConfig(teach_until=0.0).teach_weights(1.0) == 0.0


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"engine": "sb3"}, "only the native engine learns from laps"),
        ({"engine": "ray"}, "only the native engine learns from laps"),
        ({"algo": "sac"}, "only the native engine learns from laps"),
        ({"begin_from": "champion"}, "not with both"),
    ],
)
def test_settings_that_exclude_each_other_are_errors(values: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        taught("lap.racer", **values)


def test_a_replay_without_a_lap_is_named(tmp_path: Path) -> None:
    path = tmp_path / "short.racer"
    save_replay(ring_run(60), path)
    with pytest.raises(ReplayError, match=r"short\.racer: it has no finished lap to learn from"):
        load_lessons([str(path)])


@pytest.mark.slow
def test_the_command_line_clones_laps(laps: str, tmp_path: Path) -> None:
    given = ["--clone-only", "--clone-steps", str(CLONING), "--data-dir", tmp_path]
    run = train("--name", "pupil", "--teach", laps, *given)
    assert run.returncode == 0, run.stderr
    assert "Finished after" in run.stdout
    assert drive(tmp_path / "runs" / "pupil" / "pupil_clone.zip").clean


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["--teach", "nothing.racer"], "nothing.racer"),
        (["--clone-only"], "--clone-only needs --teach REPLAY"),
    ],
)
def test_mistakes_on_the_command_line_are_explained(given: list[str], problem: str, tmp_path: Path) -> None:
    run = train(*given, "--data-dir", tmp_path)
    assert run.returncode == 2
    assert problem in run.stderr
    assert len(run.stderr.strip().splitlines()) == 1
