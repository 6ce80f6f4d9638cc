"""Folders for the Hugging Face hub, made offline."""

import json
from pathlib import Path

import pytest
from stable_baselines3 import PPO

from racer_viewer.agents import load_agent
from racer_viewer.cli import main
from racer_viewer.training.hub import write_hub_folder


def test_the_folder_has_model_card_results_and_config(tmp_path: Path) -> None:
    results = write_hub_folder(load_agent("learning-5-clean"), tmp_path)
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    metadata, text = card.removeprefix("---\n").split("\n---\n", 1)
    assert "library_name: stable-baselines3" in metadata
    assert f"value: {results.mean_reward:.2f} +/- {results.std_reward:.2f}" in metadata
    assert "| track-01 |" in text
    assert 'PPO.load("learning-5-clean.zip")' in text
    written = json.loads((tmp_path / "results.json").read_text())
    assert (written["mean_reward"], written["n_eval_episodes"]) == (results.mean_reward, 10)
    config = json.loads((tmp_path / "config.json").read_text())
    assert (config["env_id"], config["algo"], config["policy_layers"]) == ("Racer-v0", "PPO", [64, 64])
    assert PPO.load(tmp_path / "learning-5-clean.zip", device="cpu").num_timesteps == config["timesteps"]
    assert (tmp_path / "learning-5-clean_vecnormalize.pkl").is_file()


@pytest.mark.slow
def test_the_command_adds_a_film_and_uploads_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "learning-5-clean", "--hub", str(tmp_path / "hub")]) == 0
    assert capsys.readouterr().out.strip().endswith("nothing was uploaded")
    assert (tmp_path / "hub" / "replay.mp4").stat().st_size > 10_000
