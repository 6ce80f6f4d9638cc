"""Models of sb3-contrib drive here, and their copies drive there."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from racer_env import RacerEnv
from racer_env.engine import ANYWHERE
from racer_viewer.agents import load_agent
from racer_viewer.agents.archive import AgentError
from racer_viewer.cli import main
from racer_viewer.training.export import share

contrib = pytest.importorskip("sb3_contrib", reason="python run.py --with peers installs it")

OFF_POLICY: dict[str, Any] = {"learning_starts": 100, "buffer_size": 1000}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "trpo": ("TRPO", {"n_steps": 128}),
    "trpo-gsde": ("TRPO", {"n_steps": 128, "use_sde": True}),
    "tqc": ("TQC", OFF_POLICY),
    "tqc-gsde": ("TQC", {**OFF_POLICY, "use_sde": True}),
    "tqc-other-sizes": (
        "TQC",
        {**OFF_POLICY, "policy_kwargs": {"net_arch": {"pi": [24, 16], "qf": [32]}, "n_quantiles": 9, "n_critics": 3}},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_model_drives_here_as_there_and_so_does_its_copy(name: str, tmp_path: Path, observations: np.ndarray) -> None:
    kind, settings = MODELS[name]
    algorithm = getattr(contrib, kind)
    env = VecNormalize(DummyVecEnv([lambda: RacerEnv(start=ANYWHERE)]))
    model = algorithm("MlpPolicy", env, seed=1, device="cpu", **settings).learn(400)
    model.save(tmp_path / "mine.zip")
    env.save(str(tmp_path / "mine_vecnormalize.pkl"))
    expected, _ = model.predict(env.normalize_obs(observations), deterministic=True)

    agent = load_agent(tmp_path / "mine.zip")
    assert agent.info.algorithm == kind
    assert agent.info.timesteps == model.num_timesteps
    assert agent.normalised
    np.testing.assert_allclose(agent.act(observations), expected, atol=1e-5)
    np.testing.assert_array_equal(agent.predict(observations)[0], agent.act(observations))

    copy = share(tmp_path / "mine.zip", tmp_path / "shared" / "copy")
    loaded = algorithm.load(copy, device="cpu")
    np.testing.assert_array_equal(loaded.predict(env.normalize_obs(observations), deterministic=True)[0], expected)
    np.testing.assert_array_equal(load_agent(copy).act(observations), agent.act(observations))
    stats = VecNormalize.load(str(copy.with_name("copy_vecnormalize.pkl")), env.venv)
    np.testing.assert_array_equal(stats.normalize_obs(observations), env.normalize_obs(observations))
    algorithm.load(copy, env=stats, device="cpu").learn(200)


@pytest.mark.slow
def test_a_recurrent_model_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    env = DummyVecEnv([RacerEnv])
    model = contrib.RecurrentPPO("MlpLstmPolicy", env, n_steps=32, n_epochs=1, device="cpu").learn(32)
    model.save(tmp_path / "memory.zip")
    with pytest.raises(AgentError, match=r"is a recurrent policy, which has a memory.*; supported are PPO"):
        load_agent(tmp_path / "memory.zip")
    assert main(["evaluate", str(tmp_path / "memory.zip"), "--track", "track-01"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "recurrent policy" in line
