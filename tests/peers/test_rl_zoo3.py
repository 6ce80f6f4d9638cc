"""Models of rl_zoo3 drive here, and bundled models drive in plain stable-baselines3."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from racer_env import RacerEnv
from racer_viewer.agents import load_agent
from racer_viewer.agents.load import models_folder
from racer_viewer.cli import main

pytest.importorskip("rl_zoo3", reason="python run.py --with peers installs it")
pytestmark = pytest.mark.slow

SETTINGS = """
Racer-v0:
  normalize: true
  n_envs: 4
  n_timesteps: !!float 4000
  policy: MlpPolicy
  n_steps: 128
  batch_size: 128
  n_epochs: 4
  learning_rate: lin_0.001
  policy_kwargs: "dict(net_arch=[32, 32])"
"""


def zoo(program: str, folder: Path, *arguments: str) -> str:
    """Run a program of rl_zoo3 on the racer, and return its output."""
    command = [sys.executable, "-m", f"rl_zoo3.{program}", "--algo", "ppo", "--env", "Racer-v0"]
    command += ["--gym-packages", "racer_env", "--folder", "logs", "--seed", "1", *arguments]
    if program == "train":
        command[command.index("--folder")] = "--log-folder"
    without_display = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY")}
    run = subprocess.run(command, cwd=folder, env=without_display, capture_output=True, text=True, timeout=500)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a model that rl_zoo3 has trained."""
    folder = tmp_path_factory.mktemp("zoo")
    (folder / "racer.yml").write_text(SETTINGS)
    evaluation = ("--eval-freq", "1000", "--n-eval-envs", "1", "--eval-episodes", "1")
    zoo("train", folder, "--conf-file", "racer.yml", *evaluation)
    return folder / "logs" / "ppo" / "Racer-v0_1"


def evaluation_of(model: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Return the result of `racer-viewer evaluate` on the first circuit."""
    capsys.readouterr()
    assert main(["evaluate", str(model), "--track", "track-01", "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)[model.stem]
    return result


def normalised_env(stats: Path, **options: Any) -> VecNormalize:
    env = VecNormalize.load(str(stats), DummyVecEnv([lambda: RacerEnv(**options)]))
    env.training = env.norm_reward = False
    return env


@pytest.mark.parametrize("name", ["Racer-v0", "best_model"])
def test_a_model_of_the_zoo_drives_here_exactly_as_there(name: str, trained: Path) -> None:
    agent = load_agent(trained / f"{name}.zip")
    stats = trained / "Racer-v0" / "vecnormalize.pkl"
    assert agent.info.stats_path == stats
    rolling = {"start": {"arc": 0.1, "speed": 90}}
    model = PPO.load(trained / f"{name}.zip", device="cpu")
    there, here = normalised_env(stats, **rolling), RacerEnv(**rolling)
    seen, (observation, _) = there.reset(), here.reset(seed=0)
    np.testing.assert_array_equal(there.get_original_obs()[0], observation)
    for _ in range(150):
        expected, _ = model.predict(seen, deterministic=True)
        action, _ = agent.predict(observation)
        np.testing.assert_allclose(action, expected[0], atol=1e-5)
        seen, rewards, *_ = there.step(expected)
        observation, reward, *_ = here.step(expected[0])
        np.testing.assert_allclose(reward, rewards[0], rtol=1e-6)
        np.testing.assert_array_equal(there.get_original_obs()[0], observation)


def test_the_zoo_and_evaluate_measure_the_same_reward_without_a_display(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = zoo("enjoy", trained.parents[2], "--n-timesteps", "3000", "--no-render")
    assert "Loading running average" in output
    (reward,) = set(re.findall(r"Episode Reward: (-?[\d.]+)", output))
    assert float(reward) == pytest.approx(evaluation_of(trained / "Racer-v0.zip", capsys)["reward"], abs=0.006)


@pytest.mark.parametrize(("name", "kind"), [("champion", PPO), ("sac-track-01", SAC)])
def test_a_bundled_model_drives_the_same_laps_in_plain_stable_baselines3(
    name: str, kind: type[PPO | SAC], capsys: pytest.CaptureFixture[str]
) -> None:
    model = models_folder() / f"{name}.zip"
    expected = evaluation_of(model, capsys)
    env = normalised_env(model.with_name(f"{name}_vecnormalize.pkl"))
    laps: list[int] = []
    reward, _ = evaluate_policy(
        kind.load(model, device="cpu"),
        env,
        n_eval_episodes=1,
        callback=lambda local, _: laps.append(local["infos"][0]["lap"]),
        warn=False,
    )
    assert laps[-1] - 1 == expected["laps"] >= 7
    assert reward == pytest.approx(expected["reward"], abs=0.01)
