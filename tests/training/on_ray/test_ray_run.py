"""Runs on Ray: they are like all others, and outlive what dies within them."""

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray", reason="python run.py --with ray test …")

from ray_processes import Program, wait_until

from racer_env.engine import load_circuit
from racer_viewer.agents import load_agent
from racer_viewer.bench.bridge import bridge_process
from racer_viewer.training.config import RunConfig, parse_run_config
from racer_viewer.training.evaluation import evaluate
from racer_viewer.training.learner import make_env, make_model
from racer_viewer.training.live.reading import StoryReader, load_curves
from racer_viewer.training.ray.machines import check_ray
from racer_viewer.training.ray.settings import RunnerSettings, Spread

pytestmark = pytest.mark.slow

TINY = {
    "num_cars": 8,
    "n_steps": 32,
    "batch_size": 64,
    "n_epochs": 1,
    "net": [8],
    "timesteps": 2048,
    "checkpoint_every": 512,
    "evaluate_every": 1024,
    "rewards": {"episode": {"maxSteps": 50}},
}
SETTINGS = ["--set", "n_steps=32", "--set", "n_epochs=1", "--set", "checkpoint_every=1024", "--set", "net=16,16"]


def tiny(**changes: object) -> RunConfig:
    return parse_run_config({**TINY, "name": "tiny", **changes})


def ray_run(runs: Path, runners: int = 2, bridge: str | None = None, **changes: object) -> Any:
    check_ray()
    from racer_viewer.training.ray.run import RayRun

    run = RayRun(tiny(**changes), runs, None, bridge, Spread(runners=runners))
    run.folder.mkdir(parents=True)
    return run


def make_runner(config: RunConfig) -> Any:
    """A runner in this process, without a Ray around it."""
    from racer_viewer.training.ray.algorithm import ppo_config
    from racer_viewer.training.ray.runner import CarRunner

    return CarRunner(config=ppo_config(config, Spread(), RunnerSettings(config)), worker_index=1, num_workers=1)


def test_what_a_runner_gathers_is_every_tick_once_with_the_last_observation_of_each_episode() -> None:
    runner = make_runner(tiny())
    pieces = runner.sample() + runner.sample()
    assert sum(map(len, pieces)) == 2 * 8 * 32
    ended = [piece for piece in pieces if piece.is_done]
    assert len(ended) == 8, "of 50 ticks, 64 were driven"
    for piece in ended:
        (goes_on,) = (each for each in pieces if each.id_ == piece.id_ and each is not piece)
        assert len(piece) + len(goes_on) == 50
        assert np.array_equal(goes_on.get_observations(-1), piece.get_observations(0))
        before, last = piece.get_observations(-2), piece.get_observations(-1)
        assert 0.0 < np.abs(last - before).max() < 0.5, "a tick later, and not somewhere else"
    runner.stop()


def test_the_probabilities_that_are_noted_are_those_of_the_model() -> None:
    import torch

    config = tiny()
    runner = make_runner(config)
    with torch.no_grad():
        runner.module.policy.action_net.bias.add_(0.3)
    mean, var = np.linspace(0.1, 0.9, 14), np.linspace(0.5, 2.0, 14)
    runner.module.set_normalisation(mean, var, 4.0, 10.0)
    env = make_env(config)
    model = make_model(config, env)
    model.policy.load_state_dict(runner.module.policy.state_dict())
    env.obs_rms.mean, env.obs_rms.var = mean, var  # type: ignore[union-attr]
    piece = runner.sample()[0]
    observations = torch.from_numpy(env.normalize_obs(piece.get_observations(slice(0, len(piece)))))
    _, logp, _ = model.policy.evaluate_actions(observations, torch.from_numpy(piece.get_actions()))
    assert np.allclose(piece.get_extra_model_outputs("action_logp"), logp.detach().numpy(), atol=1e-4)
    env.close()
    runner.stop()


def test_a_run_on_ray_is_a_run_like_others_and_leaves_no_process(tmp_path: Path) -> None:
    command = ["train", "--engine", "ray", "--runners", 2, "--cars-per-runner", 8, "--timesteps", 4096, *SETTINGS]
    program = Program(*command, "--name", "spread", "--data-dir", tmp_path, log=tmp_path / "log")
    try:
        assert program.wait() == 0, program.output
        wait_until(lambda: not program.others(), "all processes to end")
    finally:
        program.kill()
    assert "Finished after 4,096 steps" in program.output
    folder = tmp_path / "runs" / "spread"
    agent = load_agent(folder / "spread.zip")
    assert agent.normalised
    assert agent.info.timesteps == 4096
    assert evaluate(agent.act, [load_circuit("track-01")], enough_laps=1)[0].episodes
    curves = load_curves(folder)
    assert curves.steps.tolist() == list(range(512, 4097, 512))
    assert {"reward/progress", "racer/episodes_this_rollout", "train/value_loss"} <= set(curves.values)
    assert {event.kind for event in curves.events} >= {"begin", "checkpoint", "end"}
    assert len(curves.policies) >= 8


def test_a_runner_that_is_killed_is_replaced_and_the_run_goes_on(tmp_path: Path) -> None:
    run = ray_run(tmp_path, timesteps=512 * 40, checkpoint_every=0, evaluate_every=0)
    seen: list[set[int]] = []

    def watch(algorithm: Any) -> None:
        seen.append(set(algorithm.env_runner_group.foreach_env_runner("process", local_env_runner=False)))
        if len(seen) == 3:
            os.kill(min(seen[-1]), signal.SIGKILL)
        if len(seen) > 3 and len(seen[-1]) == 2 and seen[-1] != seen[0]:
            run.stop()

    run.on_iteration = watch
    outcome = run.learn()
    assert len(seen[0]) == 2
    assert len(seen[-1]) == 2
    assert len(seen[-1] - seen[0]) == 1, "one of them is new"
    assert outcome.steps > 3 * 512
    assert load_agent(outcome.model).normalised


def test_a_run_that_is_told_to_end_saves_what_it_learned_and_says_how_to_go_on(tmp_path: Path) -> None:
    command = ["train", "--engine", "ray", "--num-cars", 8, *SETTINGS, "--data-dir", tmp_path]
    program = Program(*command, "--timesteps", 10**7, "--name", "ended", log=tmp_path / "log")
    folder = tmp_path / "runs" / "ended"
    try:
        wait_until(lambda: list(folder.glob("ended_*_steps.zip")), "a checkpoint")
        program.process.terminate()
        assert program.wait() == 128 + signal.SIGTERM, program.output
        wait_until(lambda: not program.others(), "all processes to end")
    finally:
        program.kill()
    assert f"train --resume {folder} --engine ray" in program.output
    assert load_curves(folder).events[-1].text.startswith("Stopped after")


def test_a_driver_that_is_killed_leaves_nothing_running_and_goes_on_from_its_last_checkpoint(tmp_path: Path) -> None:
    command = ["train", "--engine", "ray", "--num-cars", 8, *SETTINGS, "--data-dir", tmp_path]
    program = Program(*command, "--timesteps", 10**7, "--name", "killed", log=tmp_path / "log")
    folder = tmp_path / "runs" / "killed"
    try:
        wait_until(lambda: list(folder.glob("killed_*_steps.zip")), "a checkpoint")
        program.process.kill()
        program.process.wait()
        latest = max(int(path.stem.split("_")[1]) for path in folder.glob("killed_*_steps.zip"))
        total = latest + 2048
        again = Program("train", "--engine", "ray", "--resume", folder, "--timesteps", total, log=tmp_path / "log2")
        try:
            assert again.wait() == 0, again.output
        finally:
            again.kill()
        wait_until(lambda: not program.others(), "all processes to end")  # Ray's own take about a minute
    finally:
        program.kill()
    story = StoryReader(folder)
    events = story.read_all().events
    assert [event.text for event in events if event.kind == "begin"][-1] == f"Goes on from {latest:,} steps"
    assert (np.diff(story.curves.steps) > 0.0).all()
    assert load_agent(folder / "killed.zip").info.timesteps >= total


def test_runners_drive_the_cars_of_a_bridge_that_wants_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RACER_BRIDGE_TOKEN", "a-secret-of-this-test")
    with bridge_process(uvloop=False) as url:
        outcome = ray_run(tmp_path, bridge=f"{url},{url}", timesteps=1024).learn()
    assert outcome.finished
    assert load_curves(outcome.folder).values["ray/runners"].tolist() == [2.0] * 4


def test_a_model_that_ray_taught_goes_on_with_the_other_engine(tmp_path: Path) -> None:
    from racer_viewer.training.run import Run
    from racer_viewer.training.saved import find_checkpoint

    outcome = ray_run(tmp_path, runners=1, timesteps=1024).learn()
    checkpoint = find_checkpoint(outcome.folder, tmp_path)
    longer = Run(replace(checkpoint.config, timesteps=2048), tmp_path, checkpoint).learn()
    assert longer.steps == 2048
