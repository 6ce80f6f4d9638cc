"""One dataclass is the whole run: its file and its command line."""

import json
from pathlib import Path

import pytest

from racer_env.errors import ConfigError
from racer_viewer.training.config import PRESETS, load_run_config, parse_run_config, parse_settings, preset


def test_a_config_comes_back_from_its_file(tmp_path: Path) -> None:
    config = parse_run_config(
        {"tracks": ["track-02", "random:7"], "net": [32], "rewards": {"weights": {"speedBonus": 0.5}}, "name": "mine"}
    )
    path = tmp_path / "config.json"
    path.write_text(config.to_json())
    assert load_run_config(path) == config
    assert json.loads(path.read_text())["rewards"]["weights"]["speedBonus"] == 0.5


def test_settings_of_the_command_line_become_values_of_their_types() -> None:
    config = parse_run_config(parse_settings(["net=128,64", "learning_rate=3e-4", "norm_reward=false", "n_steps=32"]))
    assert config.net == (128, 64)
    assert config.learning_rate == 3e-4
    assert config.norm_reward is False
    assert config.n_steps == 32


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("numcars=3", "did you mean num_cars"),
        ("net=a,b", "net: Expected `int`"),
        ("net=", "net: expected sizes"),
        ("gamma=1.5", "gamma must be from 0 to 1"),
        ("algo=td3", "algo: Invalid enum value"),
        ("seed=1.5", "seed: Expected `int`"),
        ("learning_rate=0", "learning_rate must be above 0"),
        ("timesteps=0", "timesteps must be at least 1"),
        ("name=../up", "name: use letters"),
        ("tracks=", "at least one circuit"),
        ("gamma", "key=value"),
    ],
)
def test_what_is_wrong_is_named(setting: str, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        parse_run_config(parse_settings([setting]))


@pytest.mark.parametrize("content", ["", "{", "[]", '{"gama": 1}', '{"rewards": {"weight": {}}}'])
def test_a_wrong_file_is_an_error(content: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(content)
    with pytest.raises(ConfigError):
        load_run_config(path)


def test_every_preset_is_a_config() -> None:
    for algo, names in PRESETS.items():
        for name in names:
            assert preset(algo, name).algo == algo
    with pytest.raises(ConfigError, match="known: quick"):
        preset("ppo", "fast")
    with pytest.raises(ConfigError, match="known: ppo, sac"):
        preset("td3")
