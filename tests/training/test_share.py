"""Exported zips drive like the original and contain no paths of the machine."""

import base64
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from stable_baselines3 import PPO, SAC

from racer_viewer.agents import load_agent
from racer_viewer.cli import main
from racer_viewer.training.config import parse_run_config
from racer_viewer.training.run import Run

TINY = {"num_cars": 8, "n_steps": 16, "batch_size": 64, "timesteps": 256, "evaluate_every": 0, "learning_starts": 50}


@pytest.mark.parametrize("algo", ["ppo", "sac"])
def test_it_drives_the_same_is_smaller_and_loads_in_stable_baselines(algo: str, tmp_path: Path) -> None:
    values = {**TINY, "name": "tiny", "algo": algo, "buffer_size": 1000, "net": [64, 64]}
    model = Run(parse_run_config(values), tmp_path).learn().model
    shared = tmp_path / "shared" / "mine.zip"
    assert main(["export", str(model), "--zip", str(shared)]) == 0
    agent, original = load_agent(shared), load_agent(model)
    assert agent.normalised
    observations = np.random.default_rng(1).uniform(0, 1, (50, 14)).astype(np.float32)
    np.testing.assert_array_equal(agent.act(observations), original.act(observations))
    assert shared.stat().st_size < 0.8 * model.stat().st_size
    loaded = (PPO if algo == "ppo" else SAC).load(shared, device="cpu")
    assert agent.normaliser is not None
    actions, _ = loaded.predict(agent.normaliser.apply(observations), deterministic=True)
    np.testing.assert_allclose(actions, agent.act(observations), atol=1e-5)


def test_neither_what_is_saved_nor_what_is_shared_names_a_path_of_the_machine(tmp_path: Path) -> None:
    model = Run(parse_run_config({**TINY, "name": "tiny"}), tmp_path).learn().model
    shared = tmp_path / "shared.zip"
    assert main(["export", str(model), "--zip", str(shared)]) == 0
    here = str(Path(__file__).parents[2]).encode()
    for path in (model, shared):
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        fields = json.loads(members["data"]).values()
        pickles = [
            base64.b64decode(each[":serialized:"])
            for each in fields
            if isinstance(each, dict) and ":serialized:" in each
        ]
        assert len(pickles) > 3
        assert not any(here in content for content in (*members.values(), *pickles))
    assert "system_info.txt" not in members


def test_a_model_is_not_written_over_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = Run(parse_run_config({**TINY, "name": "tiny"}), tmp_path).learn().model
    content = model.read_bytes()
    assert main(["export", str(model), "--zip", str(model)]) == 2
    assert "choose another name" in capsys.readouterr().err
    assert model.read_bytes() == content
