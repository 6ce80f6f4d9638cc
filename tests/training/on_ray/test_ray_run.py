"""Runs on Ray: they are like all others, and outlive what dies within them."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("ray", reason="python run.py --with ray test …")

from ray_cluster import cluster
from ray_processes import PATIENCE, Program, wait_until

from racer_env.engine import load_circuit
from racer_env.errors import RacerError
from racer_viewer.agents import load_agent
from racer_viewer.bench.bridge import bridge_process
from racer_viewer.bench.served import served
from racer_viewer.training.config import RunConfig, parse_run_config
from racer_viewer.training.evaluation import evaluate
from racer_viewer.training.learner import make_env, make_model
from racer_viewer.training.live import WatchedRun
from racer_viewer.training.live.reading import StoryReader, load_curves
from racer_viewer.training.presets import preset
from racer_viewer.training.ray.machines import check_ray
from racer_viewer.training.ray.settings import RunnerSettings, Spread
from tests.documents import Document

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
RETURNS_VAR = 4.0
SETTINGS = ["--set", "n_steps=32", "--set", "n_epochs=1", "--set", "checkpoint_every=1024", "--set", "net=16,16"]


def tiny(**changes: object) -> RunConfig:
    return parse_run_config({**TINY, "name": "tiny", **changes})


def ray_run(runs: Path, runners: int = 2, bridge: str | None = None, **changes: object) -> Any:
    check_ray()
    from racer_viewer.training.ray.run import RayRun

    run = RayRun(tiny(**changes), runs, None, bridge, Spread(runners=runners))
    run.folder.mkdir(parents=True)
    return run


def make_runner(config: RunConfig, bridge: str | None = None) -> Any:
    """A runner in this process, without a Ray around it."""
    from racer_viewer.training.ray.algorithm import ppo_config
    from racer_viewer.training.ray.runner import CarRunner

    settings = RunnerSettings.of(config, bridge)
    return CarRunner(config=ppo_config(config, Spread(), settings), worker_index=1, num_workers=1)


def model_of(runner: Any, config: RunConfig) -> Any:
    """A model of stable-baselines3 with the runner's policy and normalisation."""
    env = make_env(config)
    model = make_model(config, env)
    model.policy.load_state_dict(runner.module.policy.state_dict())
    mean, var = np.linspace(0.1, 0.9, 14), np.linspace(0.5, 2.0, 14)
    env.obs_rms.mean, env.obs_rms.var, env.ret_rms.var = mean, var, np.array(RETURNS_VAR)  # type: ignore[union-attr]
    runner.module.set_normalisation(mean, var, RETURNS_VAR, 10.0)
    return model


def gathered_by(runner: Any) -> Any:
    return runner.sample(policy=runner.module.get_state())


def test_what_a_runner_gathers_is_what_stable_baselines_would_learn_from() -> None:
    """The same driving, put into the other engine's buffer: its advantages and probabilities are the same."""
    config = tiny(rewards={"episode": {"maxSteps": 20}})
    runner = make_runner(config)
    model = model_of(runner, config)
    batch = gathered_by(runner).batch
    observations, actions = (batch[name].reshape(32, 8, -1) for name in ("obs", "actions"))
    again, buffer, env = make_runner(config), model.rollout_buffer, model.get_env()
    again._start()
    starts = np.ones(8)
    for tick in range(32):
        seen = again._last_observations
        assert np.array_equal(seen, observations[tick]), "drives the same again"
        with torch.no_grad():
            values, logp, _ = model.policy.evaluate_actions(
                torch.from_numpy(env.normalize_obs(seen)), torch.from_numpy(actions[tick])
            )
        clipped = np.clip(actions[tick], env.action_space.low, env.action_space.high)
        after, rewards, dones, infos = again._cars.step(clipped)
        rewards = env.normalize_reward(rewards)
        for car in np.flatnonzero(dones):
            assert infos[car]["TimeLimit.truncated"]
            with torch.no_grad():
                last = torch.from_numpy(env.normalize_obs(infos[car]["terminal_observation"])[None])
                rewards[car] += config.gamma * float(model.policy.predict_values(last))
        buffer.add(env.normalize_obs(seen), actions[tick], rewards, starts, values, logp)
        again._last_observations, starts = after, dones
    with torch.no_grad():
        last_values = model.policy.predict_values(torch.from_numpy(env.normalize_obs(again._last_observations)))
    buffer.compute_returns_and_advantage(last_values, starts)
    assert np.allclose(batch["action_logp"].reshape(32, 8), buffer.log_probs, atol=1e-4)
    assert np.allclose(batch["advantages"].reshape(32, 8), buffer.advantages, atol=1e-4)
    assert np.allclose(batch["value_targets"].reshape(32, 8), buffer.returns, atol=1e-4)
    assert buffer.episode_starts.sum() > 8, "some episodes ended on the way"


def test_a_runner_tells_what_its_cars_did() -> None:
    runner = make_runner(tiny())
    first, second = gathered_by(runner), gathered_by(runner)
    for each in (first, second):
        assert each.report.steps == len(each.batch["obs"]) == 8 * 32
    assert len(first.report.driven.returns) == 0
    assert second.report.driven.lengths == [50] * 8, "of 64 ticks that were driven"
    seen = np.concatenate((second.batch["obs"][8:], runner._last_observations))
    assert np.allclose(second.observations.mean, seen.mean(axis=0, dtype=np.float64))
    runner.stop()


def test_a_runner_without_its_bridge_says_so_and_drives_when_it_is_there() -> None:
    with bridge_process(uvloop=False) as url:
        runner = make_runner(tiny(), url)
        assert gathered_by(runner).report.steps == 8 * 32
    trouble = gathered_by(runner)
    assert url.removeprefix("ws://") in trouble.text
    with served("bridge", "--port", url.rpartition(":")[2]):
        assert gathered_by(runner).report.steps == 8 * 32
    runner.stop()


def test_a_bridge_that_keeps_one_waiting_is_not_asked_in_every_iteration() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        runner = make_runner(tiny(), f"ws://127.0.0.1:{silent.getsockname()[1]}")
        trouble, begin = gathered_by(runner), time.monotonic()
        assert "cannot connect" in trouble.text
        assert gathered_by(runner) == trouble
        assert time.monotonic() - begin < 5.0


def test_a_run_on_ray_is_a_run_like_others_and_leaves_no_process(tmp_path: Path) -> None:
    command = ["train", "--engine", "ray", "--runners", 2, "--cars-per-runner", 8, "--timesteps", 4096, *SETTINGS]
    with Program(*command, "--name", "spread", "--data-dir", tmp_path, log=tmp_path / "log") as program:
        assert program.wait() == 0, program.output
        wait_until(lambda: not program.others(), "all processes to end")
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


def test_what_is_learned_on_ray_drives_clean_laps(tmp_path: Path) -> None:
    """As many steps as the other engine takes at most for its first clean lap, two times over."""
    from racer_viewer.training.ray.run import RayRun

    config = replace(preset("ppo"), name="driver", timesteps=160_000, evaluate_every=20_000)
    run = RayRun(config, tmp_path, spread=Spread(runners=2))
    run.folder.mkdir()
    outcome = run.learn()
    assert outcome.best is not None
    (driven,) = evaluate(load_agent(outcome.best).act, [load_circuit("track-01")], enough_laps=3)
    assert driven.clean
    assert driven.laps >= 3


def test_rates_fall_and_checkpoints_come_as_with_the_other_engine(tmp_path: Path) -> None:
    from racer_viewer.training.run import Run

    rates = {"learning_rate": 1e-3, "final_learning_rate": 2e-4, "log_std": -1.0, "final_log_std": -2.0}
    often = {"timesteps": 2048, "checkpoint_every": 512, "evaluate_every": 1024, "batch_size": 256}
    curves = []
    for name, run in (
        ("ray", ray_run(tmp_path, name="ray", **rates, **often)),
        ("sb3", Run(tiny(name="sb3", **rates, **often), tmp_path)),
    ):
        run.learn()
        curves.append(load_curves(tmp_path / name))
    of_ray, usual = curves
    for figure in ("train/learning_rate", "train/std"):
        later = usual.values[figure][1:]  # stable-baselines3 tells of an update after the next rollout
        assert np.allclose(of_ray.values[figure][:-1], later, rtol=0.02), figure
    checkpoints = [[event.steps for event in each.events if event.kind == "checkpoint"] for each in curves]
    assert checkpoints[0] == checkpoints[1] == [512, 1024, 1536, 2048, 2048]
    assert {"time/fps", "train/approx_kl", "rollout/ep_rew_mean"} <= set(of_ray.values)


def disturbed(run: Any, disturb: Callable[[int], None]) -> list[set[int]]:
    """Learn, do something to one of two runners, and end when another one is in its place: processes of all
    iterations.
    """
    seen: list[set[int]] = []

    def watch(algorithm: Any) -> None:
        seen.append(set(algorithm.env_runner_group.foreach_env_runner("process", local_env_runner=False)))
        if len(seen) == 3:
            disturb(min(seen[-1]))
        if len(seen) > 3 and len(seen[-1]) == 2 and seen[-1] != seen[0]:
            run.stop()

    run.on_iteration = watch
    run.learn()
    return seen


@pytest.mark.skipif(sys.platform == "win32", reason="Windows knows no such signals")
@pytest.mark.parametrize("order", ["SIGKILL", "SIGSTOP"])
def test_a_runner_that_dies_or_hangs_is_replaced_and_the_run_goes_on(
    order: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from racer_viewer.training.ray import algorithm

    monkeypatch.setattr(algorithm, "LEAST_SILENCE_SECONDS", 5.0)
    run = ray_run(tmp_path, timesteps=10**7, checkpoint_every=0, evaluate_every=0)
    seen = disturbed(run, lambda runner: os.kill(runner, getattr(signal, order)))
    assert len(seen[0]) == len(seen[-1]) == 2
    assert len(seen[-1] - seen[0]) == 1, "one of them is new"
    curves = load_curves(run.folder)
    assert curves.last_steps > 3 * 256
    problems = [event.text for event in curves.events if event.kind == "problem"]
    assert "1 of 2 runners had died, and was started anew" in problems
    if order == "SIGSTOP":
        assert problems[0] == "1 of 2 runners died, and will be replaced"
    (model,) = run.folder.glob("*_steps.zip")
    assert load_agent(model).normalised


def test_what_is_learned_from_is_shuffled(tmp_path: Path) -> None:
    run, learned = ray_run(tmp_path), []

    def watch(algorithm: Any) -> None:
        if learned:
            gathered = np.concatenate([each.batch["obs"] for each in algorithm.last.gathered])
            assert not np.array_equal(learned[-1], gathered)
            assert np.array_equal(np.sort(learned[-1], axis=0), np.sort(gathered, axis=0))
            run.stop()
        update = algorithm.learner_group.update
        algorithm.learner_group.update = lambda batch, **options: (
            learned.append(batch["default_policy"]["obs"].copy()),
            update(batch=batch, **options),
        )[1]

    run.on_iteration = watch
    run.learn()
    assert len(learned) == 1


def test_the_last_evaluation_is_among_the_figures(tmp_path: Path) -> None:
    run = ray_run(tmp_path, runners=1, timesteps=512, evaluate_every=10**6)
    run.learn()
    curves = load_curves(run.folder)
    assert curves.steps.tolist() == [256, 512]
    assert curves.values["eval/clean_circuits"].tolist()[1:] == [0.0]


def test_a_runner_that_there_is_no_room_for_is_asked_for_ever_more_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time all others wait for its answer."""
    from racer_viewer.training.ray import algorithm as module

    asked, now = list[int](), [0]
    monkeypatch.setattr(module.PPO, "restore_env_runners", lambda algorithm, group: asked.append(now[0]) or [])
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    algorithm = object.__new__(module.RacerPPO)
    group = SimpleNamespace(
        num_healthy_remote_workers=lambda: 2 if now[0] > 200 else 1, num_remote_env_runners=lambda: 2
    )
    for second in range(300):
        now[0] = second
        algorithm.restore_env_runners(group)
    assert asked[:9] == [0, 1, 3, 7, 15, 31, 63, 123, 183]
    assert asked[9:] == list(range(243, 300)), "once all are there, RLlib itself asks nobody"


def test_runners_that_are_lost_late_are_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray takes longer to see that a machine is gone than there is patience for runners that do not gather."""
    from racer_viewer.training.ray import run as module
    from racer_viewer.training.ray.algorithm import Iteration

    monkeypatch.setattr(module, "RETRY_SECONDS", 0.0)
    run, told = ray_run(tmp_path), []
    run._watch = SimpleNamespace(tell_problem=told.append)
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    run._note_troubles(Iteration([SimpleNamespace(runner=1, process="1 on a")], [], 0, 0.1))
    now[0] = 100.0
    run._note_troubles(Iteration([], [], 2, 99.0))
    assert told == ["2 of 2 runners died, and will be replaced"]
    monkeypatch.setattr(run, "save_now", lambda: told.append("saved"))
    now[0] = 161.0
    with pytest.raises(RacerError, match="no runner drives any more"):
        run._note_troubles(Iteration([], [], 0, 0.0))
    assert told[-1] == "saved"


def test_a_run_that_is_told_to_end_saves_what_it_learned_and_says_how_to_go_on(tmp_path: Path) -> None:
    command = ["train", "--engine", "ray", "--runners", 2, "--num-cars", 8, *SETTINGS, "--data-dir", tmp_path]
    folder = tmp_path / "runs" / "ended"
    with Program(*command, "--timesteps", 10**7, "--name", "ended", log=tmp_path / "log") as program:
        wait_until(lambda: list(folder.glob("ended_*_steps.zip")), "a checkpoint")
        seen = WatchedRun.attach(folder)
        wait_until(lambda: seen.steps_per_second > 0.0, "a window to see how fast it is")
        assert len(seen.curves.policies)
        seen.detach()
        program.process.terminate()
        assert program.wait() == 128 + signal.SIGTERM, program.output
        wait_until(lambda: not program.others(), "all processes to end")
    assert f"train --resume {folder} --engine ray --runners 2" in program.output
    assert load_curves(folder).events[-1].text.startswith("Stopped after")


def test_a_driver_that_is_killed_leaves_nothing_running_and_goes_on_from_its_last_checkpoint(tmp_path: Path) -> None:
    command = ["train", "--engine", "ray", "--num-cars", 8, *SETTINGS, "--data-dir", tmp_path]
    folder = tmp_path / "runs" / "killed"
    with Program(*command, "--timesteps", 10**7, "--name", "killed", log=tmp_path / "log") as program:
        wait_until(lambda: list(folder.glob("killed_*_steps.zip")), "a checkpoint")
        program.process.kill()
        program.process.wait()
        latest = max(int(path.stem.split("_")[1]) for path in folder.glob("killed_*_steps.zip"))
        total = latest + 2048
        with Program(
            "train", "--engine", "ray", "--resume", folder, "--timesteps", total, log=tmp_path / "log2"
        ) as again:
            assert again.wait() == 0, again.output
        wait_until(lambda: not program.others(), "all processes to end")  # Ray's own take about a minute
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


def test_a_run_without_its_bridge_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    command = ["train", "--engine", "ray", "--bridge", "ws://127.0.0.1:9", "--num-cars", 8, "--data-dir", tmp_path]
    with Program(*command, "--name", "alone", log=tmp_path / "log") as program:
        assert program.wait() == 2
    last = program.output.splitlines()[-1]
    assert last.startswith("racer-viewer: no runner drives: cannot connect to ws://127.0.0.1:9")
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
    assert too_many.output.splitlines()[-1].endswith("this Ray has 3: ask for fewer --runners")
    curves = load_curves(tmp_path / "runs" / "far")
    assert curves.values["ray/runners"].tolist() == [2.0] * 8
    assert load_agent(tmp_path / "runs" / "far" / "far.zip").info.timesteps == 2048


def test_the_benchmark_tells_the_parts_of_an_iteration_and_nothing_else(tmp_path: Path) -> None:
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
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=own, timeout=4 * PATIENCE)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout.split()[-1]) >= 4000


def test_a_model_that_ray_taught_goes_on_with_the_other_engine(tmp_path: Path) -> None:
    from racer_viewer.training.run import Run
    from racer_viewer.training.saved import find_checkpoint

    outcome = ray_run(tmp_path, runners=1, timesteps=1024).learn()
    checkpoint = find_checkpoint(outcome.folder, tmp_path)
    longer = Run(replace(checkpoint.config, timesteps=2048), tmp_path, checkpoint).learn()
    assert longer.steps == 2048
