"""minari records drives of the environment, and gives them back."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import racer_env  # noqa: F401  # registers the environments
from racer_env.bridge.interface import STEP_KEYS

minari = pytest.importorskip("minari", reason="python run.py --with peers installs it")

EPISODES = 3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Racer-v0", "RacerDiscrete-v0"])
def test_recorded_episodes_come_back_with_their_infos(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    config = {"episode": {"maxSteps": 40}}
    env = minari.DataCollector(gymnasium.make(name, config=config, track_id="track-02"), record_infos=True)
    env.action_space.seed(2)
    driven: list[dict[str, list[Any]]] = []
    for seed in range(EPISODES):
        observation, info = env.reset(seed=seed)
        episode: dict[str, list[Any]] = {"observations": [observation], "actions": [], "rewards": [], "infos": [info]}
        ended = False
        while not ended:
            action = env.action_space.sample()
            observation, reward, terminated, truncated, info = env.step(action)
            for key, value in zip(episode, (observation, action, reward, info), strict=True):
                episode[key].append(value)
            ended = terminated or truncated
        driven.append(episode)
    env.create_dataset("racer/test-v0", algorithm_name="random")
    env.close()

    dataset = minari.load_dataset("racer/test-v0")
    assert dataset.total_episodes == EPISODES
    for loaded, episode in zip(dataset.iterate_episodes(), driven, strict=True):
        for key in ("observations", "actions", "rewards"):
            values = np.array(episode[key])
            assert getattr(loaded, key).dtype == values.dtype
            np.testing.assert_array_equal(getattr(loaded, key), values)
        assert loaded.truncations[-1]
        assert loaded.infos.keys() == set(STEP_KEYS)
        for key in STEP_KEYS:
            np.testing.assert_array_equal(loaded.infos[key], [info[key] for info in episode["infos"]])
    again = dataset.recover_environment()
    np.testing.assert_array_equal(again.reset(seed=0)[0], driven[0]["observations"][0])
    again.close()
