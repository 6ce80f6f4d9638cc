"""Native learner: whole runs, their models in stable-baselines3, and runs that go from one engine to the other."""

import math
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize

from racer_env.errors import ConfigError
from racer_viewer.agents import AgentError, RunningStats, load_agent, load_stats, save_stats
from racer_viewer.cli import main
from racer_viewer.training.config import RunConfig, parse_run_config
from racer_viewer.training.learner import Callback, CallbackList, LearnerError
from racer_viewer.training.metrics import DrivingStats
from racer_viewer.training.native.learner import NativeLearner
from racer_viewer.training.run import ENGINES, Run
from racer_viewer.training.run_folder import Checkpoint, ResumeError, find_checkpoint
from racer_viewer.training.run_log import RunLog
from racer_viewer.training.run_log_reader import load_history
from racer_viewer.training.run_monitor import RunMonitor
from racer_viewer.training.sb3 import SB3Learner, make_cars
from tests.processes import wait_for

TINY = {
    "num_cars": 8, "n_steps": 16, "batch_size": 64, "n_epochs": 2, "net": [8, 6], "timesteps": 512, "name": "tiny",
    "evaluate_every": 0, "threads": 2, "rewards": {"episode": {"maxSteps": 50}},
}  # fmt: skip


def tiny(**changes: object) -> RunConfig:
    return parse_run_config({**TINY, **changes})


def learned(folder: Path, config: RunConfig, *callbacks: Callback) -> NativeLearner:
    """Return a learner that has learned as its config says."""
    folder.mkdir(exist_ok=True)
    learner, group = NativeLearner(config), CallbackList(callbacks)
    group.attach(learner)
    with closing(RunLog(folder)) as log:
        learner.learn(folder, log, group)
    learner.close()
    return learner


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_same_seed_and_threads_give_the_same_weights_to_the_last_bit(threads: int, tmp_path: Path) -> None:
    config = tiny(threads=threads, timesteps=1500, tracks=["track-01", "random:3"], starts="anywhere")
    first, second, other = (learned(tmp_path, replace(config, seed=seed)) for seed in (4, 4, 5))
    ours, same, different = (each.policy_weights() for each in (first, second, other))
    for name, tensor in ours.tensors.items():
        np.testing.assert_array_equal(tensor, same.tensors[name])
    np.testing.assert_array_equal(ours.obs_mean, same.obs_mean)
    assert any((tensor != different.tensors[name]).any() for name, tensor in ours.tensors.items())


class PaceCallback(Callback):
    """Records how many ticks were driven between two calls, first at full speed and then as in real time."""

    def __init__(self) -> None:
        self.ticks: list[int] = []

    def on_step(self, stats: DrivingStats) -> bool:
        self.ticks.append(stats.steps // self.learner.config.num_cars)
        if sum(self.ticks) == 3 * 128:
            self.learner.ticks_per_second = 60.0
        return True


def test_callbacks_are_called_for_many_ticks_at_full_speed_and_for_each_tick_in_real_time(tmp_path: Path) -> None:
    pace = PaceCallback()
    learner = learned(tmp_path, tiny(n_steps=128, timesteps=8 * 128 * 5), pace)
    fast = pace.ticks[: next(n for n in range(len(pace.ticks)) if sum(pace.ticks[:n]) == 3 * 128)]
    assert len(fast) < 3 * 128 / 4
    assert pace.ticks[len(fast) :] == [1] * 256
    assert learner.steps == 8 * sum(pace.ticks)


def test_the_length_of_a_call_changes_nothing_that_is_learned(tmp_path: Path) -> None:
    class SlowCallback(Callback):
        def on_training_start(self) -> None:
            self.learner.ticks_per_second = 60.0

    weights = [learned(tmp_path, tiny(), *slow).policy_weights().tensors for slow in ((), (SlowCallback(),))]
    for name, tensor in weights[0].items():
        np.testing.assert_array_equal(tensor, weights[1][name])


def test_a_window_that_comes_and_goes_changes_nothing_that_is_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fewer threads learn while it shows the run."""

    class WindowCallback(Callback):
        def on_rollout_start(self) -> None:
            self.learner.watched = not self.learner.watched

    monkeypatch.setattr("racer_viewer.training.native.learner.free_threads", lambda: 3)
    config = tiny(threads=0, num_cars=64, batch_size=1024, timesteps=6000)
    weights = [learned(tmp_path, config, *window).policy_weights().tensors for window in ((), (WindowCallback(),))]
    for name, tensor in weights[0].items():
        np.testing.assert_array_equal(tensor, weights[1][name])


def test_noise_and_learning_rate_follow_their_schedules(tmp_path: Path) -> None:
    class ScheduleCallback(Callback):
        def __init__(self) -> None:
            self.seen: list[tuple[int, float]] = []

        def on_rollout_start(self) -> None:
            self.seen.append((self.learner.steps, float(self.learner.policy_weights().tensors["log_std"].max())))

    schedules, config = ScheduleCallback(), tiny(log_std=-1.0, final_log_std=-5.0, timesteps=1024)
    learned(tmp_path, config, schedules)
    assert len(schedules.seen) == 8
    for steps, log_std in schedules.seen:
        assert log_std <= -1.0 - 4.0 * steps / 1024 + 1e-6
    rates = load_history(tmp_path).values["train/learning_rate"]
    np.testing.assert_allclose(rates, 1e-3 - 8e-4 * np.arange(1, 9) / 8)


def optimiser_of(model: PPO) -> Mapping[int, Mapping[str, torch.Tensor]]:
    return model.policy.optimizer.state_dict()["state"]  # type: ignore[no-any-return]


def as_arrays(learner: NativeLearner) -> dict[str, NDArray[np.float32]]:
    return {name: each.copy() for name, each in learner.policy_weights().tensors.items()}


@pytest.mark.parametrize("values", [{}, {"net": [5], "activation": "relu"}, {"net": [4, 9, 3], "num_cars": 3}])
def test_stable_baselines3_opens_a_model_and_goes_on_learning(values: dict[str, object], tmp_path: Path) -> None:
    config = tiny(**values, rewards={})
    outcome = Run(config, tmp_path).learn()
    env = VecNormalize.load(str(outcome.model.with_name("tiny_vecnormalize.pkl")), make_cars(config))
    model = PPO.load(outcome.model, env=env)
    agent, seen = load_agent(outcome.model), np.random.default_rng(0).uniform(0, 1, (50, 14)).astype(np.float32)
    actions, _ = model.predict(env.normalize_obs(seen), deterministic=True)
    np.testing.assert_allclose(agent.act(seen), actions, atol=1e-5)
    assert (model.num_timesteps, model.n_envs, model.batch_size) == (outcome.steps, config.num_cars, 64)
    updates = math.ceil(512 / (config.num_cars * 16))
    minibatches = math.ceil(config.num_cars * 16 / 64)
    assert optimiser_of(model)[0]["step"] == updates * config.n_epochs * minibatches
    before = {name: each.clone() for name, each in model.policy.state_dict().items()}
    model.learn(2 * 16 * config.num_cars, reset_num_timesteps=False)
    assert model.num_timesteps == outcome.steps + 2 * 16 * config.num_cars
    assert all(torch.isfinite(each).all() for each in model.policy.state_dict().values())
    assert any((before[name] != each).any() for name, each in model.policy.state_dict().items())


def test_each_engine_restores_what_the_other_has_saved(tmp_path: Path) -> None:
    """Weights, optimiser, statistics and steps make a round trip from stable-baselines3 and back without a change."""
    config = tiny(rewards={})
    sb3, native, again = SB3Learner(config), NativeLearner(config), SB3Learner(config)
    with closing(sb3), closing(native), closing(again):
        group = CallbackList([])
        group.attach(sb3)
        with closing(RunLog(tmp_path)) as log:
            sb3.learn(tmp_path, log, group)
        first = sb3.save(tmp_path / "first.zip")
        native.load(Checkpoint(first, first, config, sb3.steps))
        second = native.save(tmp_path / "second.zip")
        again.load(Checkpoint(second, second, config, native.steps))
        assert sb3.steps == native.steps == again.steps == 512
        for name, tensor in sb3.model.policy.state_dict().items():
            np.testing.assert_array_equal(native.policy_weights().tensors[name], tensor)
            np.testing.assert_array_equal(again.model.policy.state_dict()[name], tensor)
        theirs, ours = optimiser_of(sb3.model), optimiser_of(again.model)
        assert len(theirs) == len(ours) == len(list(sb3.model.policy.parameters()))
        for number, state in theirs.items():
            for key, tensor in state.items():
                np.testing.assert_array_equal(ours[number][key], tensor)
        for name in ("mean", "var", "count"):
            np.testing.assert_array_equal(getattr(again.env.obs_rms, name), getattr(sb3.env.obs_rms, name))
            np.testing.assert_array_equal(getattr(again.env.ret_rms, name), getattr(sb3.env.ret_rms, name))


@pytest.mark.parametrize(("first", "second"), [("sb3", "native"), ("native", "sb3"), ("native", "native")])
def test_a_run_of_one_engine_is_resumed_by_the_other(first: str, second: str, tmp_path: Path) -> None:
    settings = [f"--set={key}={','.join(map(str, value)) if isinstance(value, list) else value}" for key, value in
                TINY.items() if key not in ("rewards", "name", "timesteps")]  # fmt: skip
    options = ["train", "--headless", "--data-dir", str(tmp_path)]
    assert main([*options, "--name", "tiny", *settings, "--timesteps", "256", "--engine", first]) == 0
    assert main([*options, "--resume", "tiny", "--timesteps", "512", "--engine", second]) == 0
    history, checkpoint = load_history(tmp_path / "runs" / "tiny"), find_checkpoint(Path("tiny"), tmp_path / "runs")
    assert (checkpoint.steps, checkpoint.config.engine) == (512, second)
    assert set(history.steps) == {128, 256, 384, 512}
    assert len(history.policies) >= 4
    assert ENGINES[first] in history.events[0].text


def test_begin_from_takes_weights_statistics_and_optimiser_but_not_the_noise(tmp_path: Path) -> None:
    source = Run(tiny(name="source"), tmp_path).learn().model
    learner = NativeLearner(tiny(log_std=-2.5))
    with closing(learner):
        learner.load_weights(str(source))
        ours, theirs = learner.policy_weights(), load_agent(source)
        assert np.allclose(ours.tensors["log_std"], -2.5)
        assert learner.steps == 0
        model = PPO.load(learner.save(tmp_path / "copy.zip"))
        assert optimiser_of(model)[0]["step"] > 0
        assert load_agent(tmp_path / "copy.zip").act(np.zeros(14)) == pytest.approx(theirs.act(np.zeros(14)))


def test_a_model_of_another_shape_or_algorithm_is_refused(tmp_path: Path) -> None:
    model = Run(tiny(), tmp_path).learn().model
    for other in (tiny(net=[8]), tiny(net=[8, 7]), tiny(net=[8, 6, 6])):
        with (
            closing(NativeLearner(other)) as learner,
            pytest.raises(ResumeError, match=r"does not fit its config\.json"),
        ):
            learner.load(Checkpoint(model, model, other, 512))
    sac = tiny(name="sac", algo="sac", learning_starts=100, buffer_size=2000, batch_size=16, timesteps=200, net=[8])
    other_kind = Run(sac, tmp_path).learn().model
    with closing(NativeLearner(tiny(net=[8]))) as learner, pytest.raises(ResumeError, match="does not fit"):
        learner.load(Checkpoint(other_kind, other_kind, tiny(net=[8]), 200))


def test_statistics_of_other_observations_are_refused(tmp_path: Path) -> None:
    """Compiled code would read beyond their end."""
    model = Run(tiny(), tmp_path).learn().model
    stats = load_stats(model)
    assert stats.observations is not None
    few = RunningStats(stats.observations.mean[:5], stats.observations.var[:5], 100.0)
    other = tmp_path / "few.npz"
    save_stats(other, replace(stats, observations=few))
    with closing(NativeLearner(tiny())) as learner, pytest.raises(AgentError, match="of 5 observations"):
        learner.load(Checkpoint(model, other, tiny(), 512))


def test_new_reward_weights_are_paid_from_the_next_call_on(tmp_path: Path) -> None:
    class RewardCallback(Callback):
        def __init__(self) -> None:
            self.wall: list[float] = []

        def on_step(self, stats: DrivingStats) -> bool:
            self.wall.append(float(stats.components[0]))
            if self.learner.steps >= 256 and self.learner.config.rewards.weights.progress != 0.0:
                rewards = self.learner.config.rewards.to_json()
                changed = {**rewards, "weights": {**rewards["weights"], "progress": 0.0}}
                self.learner.set_rewards(parse_run_config({"rewards": changed}).rewards)
                self.wall.clear()
            return True

    rewards = RewardCallback()
    learned(tmp_path, tiny(), rewards)
    assert rewards.wall
    assert not any(rewards.wall)


def test_terms_are_paid_and_logged_and_may_change_while_learning(tmp_path: Path) -> None:
    class TermsCallback(Callback):
        def __init__(self) -> None:
            self.seen: set[tuple[float, float]] = set()

        def on_step(self, stats: DrivingStats) -> bool:
            self.seen.add((round(stats.components[6] / stats.steps, 9), round(stats.components[7] / stats.steps, 9)))
            if self.learner.steps >= 256 and len(self.learner.config.rewards.formulas) == 1:
                self.learner.set_rewards(parse_run_config({"rewards": {"terms": {"own": "2", "more": "3"}}}).rewards)
            return True

    terms = TermsCallback()
    run = Run(tiny(rewards={"terms": {"own": "1"}}), tmp_path)
    run.learn(callbacks=[terms])
    assert terms.seen == {(1.0, 0.0), (2.0, 3.0)}
    values = load_history(run.folder).values
    assert values["reward/own"][0] == 1.0
    assert values["reward/more"][-1] == 3.0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "values",
    [
        {"learning_rate": 100.0, "final_learning_rate": 100.0, "max_grad_norm": 1e9},
        {"learning_rate": 100.0, "max_grad_norm": 1e9, "norm_reward": False, "rewards": {"weights": {"progress": 1e9}}},
    ],
)
def test_a_run_that_diverges_ends_with_its_last_good_policy_and_advice(
    values: dict[str, object], tmp_path: Path
) -> None:
    run = Run(tiny(timesteps=100_000, activation="relu", n_epochs=20, **values), tmp_path)
    with pytest.raises(LearnerError, match=r"^learning diverged after [\d,]+ steps: .*lower learning_rate") as error:
        run.learn()
    assert "\n" not in str(error.value)
    model = find_checkpoint(run.folder, tmp_path).model
    agent = load_agent(model)
    assert np.isfinite(agent.act(np.random.default_rng(0).uniform(0, 1, (20, 14)))).all()
    assert all(torch.isfinite(each).all() for each in PPO.load(model).policy.state_dict().values())


@pytest.mark.parametrize(
    ("values", "hint"),
    [({"algo": "sac"}, "--engine sb3 for SAC"), ({"device": "cuda"}, "--engine sb3 with --device cuda")],
)
def test_what_the_engine_cannot_train_is_refused_in_one_line(values: dict[str, object], hint: str) -> None:
    with pytest.raises(ConfigError, match=hint):
        tiny(**values, engine="native")
    assert tiny(**values).local_engine == "sb3"


def test_cars_of_a_bridge_need_the_other_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["train", "--headless", "--bridge", "ws://127.0.0.1:9", "--data-dir", str(tmp_path)]
    assert main([*options, "--engine", "native"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "use --engine sb3 with --bridge" in line
    assert not (tmp_path / "runs").exists()


HIDE_TORCH = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "stable_baselines3", "tensorboard"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
"""
WITHOUT_TORCH = (
    HIDE_TORCH
    + """
from racer_viewer.cli import main
folder, tiny = sys.argv[1], sys.argv[2:]
data = ["--data-dir", folder]
model = f"{folder}/runs/tiny/tiny.zip"
for arguments in (
    ["train", "--headless", "--name", "tiny", *tiny, "--timesteps", "256", "--set", "evaluate_every=128"],
    ["train", "--headless", "--resume", "tiny", "--timesteps", "512"],
    ["train", "--headless", "--name", "child", "--from", model, *tiny, "--timesteps", "128"],
):
    assert main([*arguments, *data]) == 0, arguments
assert main(["evaluate", model, "champion", "--track", "track-01"]) == 0
for how, target in (("--onnx", "onnx"), ("--zip", "shared.zip"), ("--folded", "folded.zip")):
    assert main(["export", model, how, f"{folder}/{target}"]) == 0
assert main(["train", "--headless", "--algo", "sac", *data]) == 2
assert not {"torch", "stable_baselines3", "tensorboard"} & set(sys.modules)
"""
)


@pytest.mark.slow
def test_without_torch_one_trains_resumes_evaluates_and_exports(tmp_path: Path) -> None:
    tiny = ["--num-cars", "8", "--set", "n_steps=16", "--set", "batch_size=64", "--net", "8"]
    result = subprocess.run(
        [sys.executable, "-P", "-c", WITHOUT_TORCH, str(tmp_path), *tiny], capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("racer-viewer:")]
    assert "--engine sb3" in line
    assert find_checkpoint(tmp_path / "runs" / "tiny", tmp_path).steps == 512


def test_the_learner_process_of_a_window_needs_no_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that Python starts with `sitecustomize` cannot import what is hidden there."""
    (tmp_path / "sitecustomize.py").write_text(HIDE_TORCH)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(Path(__file__).parents[3])]))
    check = subprocess.run([sys.executable, "-c", "import torch"], capture_output=True, text=True, timeout=60)
    assert "No module named 'torch'" in check.stderr
    run = RunMonitor.start(tiny(evaluate_every=256), tmp_path / "runs")
    wait_for(lambda: run.state not in ("starting", "learning"))
    assert run.state == "finished", run.problem
    longer = RunMonitor.continue_run(run.folder, timesteps=1024)
    wait_for(lambda: longer.state not in ("starting", "learning"))
    assert longer.state == "finished", longer.problem
    assert longer.steps == 1024
    other = RunMonitor.start(tiny(name="other", engine="sb3"), tmp_path / "runs")
    wait_for(lambda: other.state == "failed")
    assert "SAC, --engine sb3" in other.problem
    assert "Traceback" not in other.problem
