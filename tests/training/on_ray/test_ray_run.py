"""Runs on Ray from start to end."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray", reason="python run.py --with ray test …")

from racer_env.engine import load_circuit
from racer_viewer.agents import load_agent
from racer_viewer.bench.bridge import bridge_process
from racer_viewer.training.config import preset
from racer_viewer.training.evaluation import evaluate
from racer_viewer.training.ray.settings import RaySettings
from racer_viewer.training.run_log_reader import load_history
from tests.documents import Document
from tests.training.on_ray.ray_cluster import cluster
from tests.training.on_ray.ray_processes import TIMEOUT, Program, wait_for
from tests.training.on_ray.ray_runs import SETTINGS, make_ray_run, tiny

pytestmark = pytest.mark.slow


def test_a_run_on_ray_is_a_run_like_others_and_leaves_no_process(tmp_path: Path) -> None:
    command = ["train", "--engine", "ray", "--runners", 2, "--cars-per-runner", 8, "--timesteps", 4096, *SETTINGS]
    with Program(*command, "--name", "spread", "--data-dir", tmp_path, log=tmp_path / "log") as program:
        assert program.wait() == 0, program.output
        wait_for(lambda: not program.others(), "all processes to end")
    assert "Finished after 4,096 steps" in program.output
    folder = tmp_path / "runs" / "spread"
    agent = load_agent(folder / "spread.zip")
    assert agent.normalised
    assert agent.info.timesteps == 4096
    assert evaluate(agent.act, [load_circuit("track-01")], enough_laps=1)[0].episodes
    curves = load_history(folder)
    assert curves.steps.tolist() == list(range(512, 4097, 512))
    assert {"reward/progress", "racer/episodes_this_rollout", "train/value_loss"} <= set(curves.values)
    assert {event.kind for event in curves.events} >= {"begin", "checkpoint", "end"}
    assert len(curves.policies) >= 8


@pytest.mark.usefixtures("local_ray")
def test_a_policy_learned_on_ray_drives_clean_laps(tmp_path: Path) -> None:
    """Learn for twice the steps that stable-baselines3 needs at most for its first clean lap."""
    from racer_viewer.training.ray.learner import ray_run

    config = replace(preset("ppo"), name="driver", timesteps=160_000, evaluate_every=20_000)
    run = ray_run(config, tmp_path, RaySettings(runners=2))
    run.folder.mkdir()
    outcome = run.learn()
    assert outcome.best is not None
    (driven,) = evaluate(load_agent(outcome.best).act, [load_circuit("track-01")], enough_laps=3)
    assert driven.clean
    assert driven.laps >= 3


@pytest.mark.usefixtures("local_ray")
def test_schedules_and_checkpoints_are_those_of_stable_baselines(tmp_path: Path) -> None:
    from racer_viewer.training.run import Run

    rates = {"learning_rate": 1e-3, "final_learning_rate": 2e-4, "log_std": -1.0, "final_log_std": -2.0}
    often = {"timesteps": 2048, "checkpoint_every": 512, "evaluate_every": 1024, "batch_size": 256}
    curves = []
    for name, run in (
        ("ray", make_ray_run(tmp_path, name="ray", **rates, **often)),
        ("sb3", Run(tiny(name="sb3", engine="sb3", **rates, **often), tmp_path)),
    ):
        run.learn()
        curves.append(load_history(tmp_path / name))
    of_ray, usual = curves
    for figure in ("train/learning_rate", "train/std"):
        later = usual.values[figure][1:]  # stable-baselines3 writes metrics of an update after the next rollout
        assert np.allclose(of_ray.values[figure][:-1], later, rtol=0.02), figure
    checkpoints = [[event.steps for event in each.events if event.kind == "checkpoint"] for each in curves]
    assert checkpoints[0] == checkpoints[1] == [512, 1024, 1536, 2048, 2048]
    assert {"time/fps", "train/approx_kl", "rollout/ep_rew_mean"} <= set(of_ray.values)


@pytest.mark.usefixtures("local_ray")
def test_batches_are_shuffled(tmp_path: Path) -> None:
    learned: list[Any] = []

    def watch(algorithm: Any) -> None:
        if learned:
            gathered = np.concatenate([each.batch["obs"] for each in algorithm.last.rollouts])
            assert not np.array_equal(learned[-1], gathered)
            assert np.array_equal(np.sort(learned[-1], axis=0), np.sort(gathered, axis=0))
            run.stop()
        update = algorithm.learner_group.update
        algorithm.learner_group.update = lambda batch, **options: (
            learned.append(batch["default_policy"]["obs"].copy()),
            update(batch=batch, **options),
        )[1]

    run = make_ray_run(tmp_path, on_iteration=watch)
    run.learn()
    assert len(learned) == 1


@pytest.mark.usefixtures("local_ray")
def test_the_last_evaluation_is_among_the_metrics(tmp_path: Path) -> None:
    run = make_ray_run(tmp_path, runners=1, timesteps=512, evaluate_every=10**6)
    run.learn()
    curves = load_history(run.folder)
    assert curves.steps.tolist() == [256, 512]
    assert curves.values["eval/clean_circuits"].tolist()[1:] == [0.0]


@pytest.mark.usefixtures("local_ray")
def test_runners_drive_the_cars_of_a_bridge_that_wants_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RACER_BRIDGE_TOKEN", "a-secret-of-this-test")
    with bridge_process(uvloop=False) as url:
        outcome = make_ray_run(tmp_path, bridges=f"{url},{url}", timesteps=1024).learn()
    assert outcome.finished
    assert load_history(outcome.folder).values["ray/runners"].tolist() == [2.0] * 4


def test_a_run_without_its_bridge_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    command = ["train", "--engine", "ray", "--bridge", "ws://127.0.0.1:9", "--num-cars", 8, "--data-dir", tmp_path]
    with Program(*command, "--name", "alone", log=tmp_path / "log") as program:
        assert program.wait() == 2
    last = program.output.splitlines()[-1]
    assert last.startswith("racer-viewer: no runner can drive: cannot connect to ws://127.0.0.1:9")
    assert not (tmp_path / "runs" / "alone").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="Ray has clusters on Linux only")
def test_a_run_on_a_cluster_uses_its_nodes(tmp_path: Path) -> None:
    with cluster(tmp_path / "cluster.log") as address:
        command = ["train", "--engine", "ray", "--address", address, "--runners", 2, "--num-cars", 8, *SETTINGS]
        with Program(
            *command, "--timesteps", 2048, "--data-dir", tmp_path, "--name", "far", log=tmp_path / "log"
        ) as program:
            assert program.wait() == 0, program.output
        command = ["train", "--engine", "ray", "--address", address, "--data-dir", tmp_path]
        with Program(*command, "--runners", 9, log=tmp_path / "log9") as too_many:
            assert too_many.wait() == 2
    assert too_many.output.splitlines()[-1].endswith("this Ray has 3: use fewer --runners")
    curves = load_history(tmp_path / "runs" / "far")
    assert curves.values["ray/runners"].tolist() == [2.0] * 8
    assert load_agent(tmp_path / "runs" / "far" / "far.zip").info.timesteps == 2048


def test_the_benchmark_prints_the_parts_of_an_iteration_and_nothing_else(tmp_path: Path) -> None:
    with Program("bench", "train", "--engine", "ray", "--rounds", 2, "--json", log=tmp_path / "log") as program:
        assert program.wait() == 0, program.output
    before, bracket, rest = program.output.partition("{")
    assert not before or before.startswith("Preparing the engine"), "no advice of Ray's"
    figures = json.loads(bracket + rest)
    assert figures["steps"] == 8192
    assert list(figures["parts"]) == ["1", "2"]
    for parts in figures["parts"].values():
        assert parts["driving"] < parts["gathering"]
        assert parts["steps_per_second"] > 0.3 * figures["steps"] / (parts["gathering"] + parts["learning"])
        assert parts["gathered_bytes"] > 14 * 4 * figures["steps"] / 2
    assert figures["limit"] > figures["sb3_steps_per_second"] / 10


def test_the_snippet_for_rllib_on_its_own_works() -> None:
    (snippet,) = Document("docs/ray.md").snippets("python")
    code = f"{snippet}\nalgorithm.stop()\nray.shutdown()\n"
    own = {**os.environ, "RAY_ADDRESS": "local"}
    code = f"import ray\n{code}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=own, timeout=4 * TIMEOUT)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout.split()[-1]) >= 4000


@pytest.mark.usefixtures("local_ray")
def test_stable_baselines_resumes_a_run_of_ray(tmp_path: Path) -> None:
    from racer_viewer.training.run import Run
    from racer_viewer.training.run_folder import find_checkpoint

    outcome = make_ray_run(tmp_path, runners=1, timesteps=1024).learn()
    checkpoint = find_checkpoint(outcome.folder, tmp_path)
    longer = Run(replace(checkpoint.config, timesteps=2048), tmp_path, checkpoint).learn()
    assert longer.steps == 2048
