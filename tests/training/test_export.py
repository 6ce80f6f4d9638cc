"""Exported ONNX models act like the agent."""

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from racer_viewer.agents import load_agent
from racer_viewer.cli import main
from racer_viewer.training.config import parse_run_config
from racer_viewer.training.run import Run

TINY = {"num_cars": 8, "n_steps": 16, "batch_size": 64, "timesteps": 256, "evaluate_every": 0, "learning_starts": 50}


@pytest.mark.parametrize(
    "settings",
    [
        {"algo": "ppo", "net": [16, 8], "activation": "tanh"},
        {"algo": "ppo", "net": [8], "activation": "relu"},
        {"algo": "sac", "net": [16], "activation": "relu", "buffer_size": 1000, "batch_size": 16},
    ],
)
def test_the_exported_model_gives_the_same_actions(
    settings: dict[str, object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = Run(parse_run_config({**TINY, "name": "tiny", **settings}), tmp_path).learn().model
    folder = tmp_path / "exported"
    assert main(["export", str(model), "--onnx", str(folder)]) == 0
    assert "the same actions to" in capsys.readouterr().out
    stats = json.loads((folder / "vecnorm_stats.json").read_text())
    assert {"obs_mean", "obs_var", "clip_obs", "epsilon"} <= set(stats)
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    agent = load_agent(model)
    for observation in np.random.default_rng(1).uniform(0, 1, (200, 14)).astype(np.float32):
        normalised = (observation - stats["obs_mean"]) / np.sqrt(np.array(stats["obs_var"]) + stats["epsilon"])
        clipped = np.clip(normalised, -stats["clip_obs"], stats["clip_obs"]).astype(np.float32)
        (actions,) = session.run(["actions"], {"obs": clipped[None]})
        np.testing.assert_allclose(actions[0], agent.act(observation), atol=1e-5)


def test_the_exported_file_is_valid_onnx(tmp_path: Path) -> None:
    assert main(["export", "champion", "--onnx", str(tmp_path)]) == 0
    model = onnx.load(tmp_path / "model.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert model.producer_name == "racer-viewer"


def test_a_missing_model_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(tmp_path / "no.zip"), "--onnx", str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
