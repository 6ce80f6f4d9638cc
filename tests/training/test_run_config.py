"""One dataclass is the whole run: its file and its command line."""

import json
from pathlib import Path
from typing import Any

import pytest

from racer_env.errors import ConfigError
from racer_viewer.cli.main import main
from racer_viewer.training.config import (
    LIMITS,
    PRESETS,
    RunConfig,
    load_run_config,
    parse_run_config,
    parse_settings,
    preset,
)


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
        (f"{'k' * 3000}=3", "unknown setting 'k{76}\\.\\.\\.; see train --settings$"),
        ("gamma=nan", "gamma must be from 0 to 1, not NaN"),
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
        ("seed=-1", "seed must be at least 0, not -1"),
        ("seed=4294967296", "seed must be at most 4,294,967,295, not 4,294,967,296"),
        ("device=gpu", "device: use cpu, cuda, cuda:1, mps or auto, not 'gpu'"),
        ("device=\udcff", "device: .* is not valid UTF-8"),
        ("num_cars=1000000000", "num_cars must be at most 65,536"),
        (f"n_steps={10**400}", "n_steps"),
        ("n_steps=1000000", "num_cars times n_steps must be at most"),
        ("batch_size=1", "batch_size must be at least 2 for PPO"),
        ("batch_size=100000000", "batch_size must be at most"),
        ("net=1000000", "net: .* weights are more than"),
        (f"net={','.join('8' * 100)}", "net: use at most 8 hidden layers"),
        ("learning_rate=nan", "learning_rate"),
        ("learning_rate=inf", "learning_rate must be at most"),
        ("final_learning_rate=-1", "final_learning_rate must be at least 0"),
        ("log_std=nan", "log_std"),
        ("vf_coef=nan", "vf_coef"),
        ("first_action=0,nan,0", "first_action: use numbers"),
        ("buffer_size=1000000000000", "buffer_size must be at most"),
        (f"tracks={','.join(f'random:{seed}' for seed in range(500))}", "tracks: use at most 256"),
        (f"name={'x' * 300}", "name: use at most 80 characters"),
        ("name=a\udcff", "name: .* is not valid UTF-8: rename"),
        ("begin_from=a\udcff.zip", "begin_from: .* is not valid UTF-8: rename"),
    ],
)
def test_what_is_wrong_is_named(setting: str, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        parse_run_config(parse_settings([setting]))


def test_a_rollout_of_one_sample_is_refused() -> None:
    with pytest.raises(ConfigError, match="raise num_cars or n_steps"):
        parse_run_config({"num_cars": 1, "n_steps": 1})
    assert parse_run_config({"algo": "sac", "num_cars": 1, "n_steps": 1, "batch_size": 1}).num_cars == 1


@pytest.mark.parametrize("values", [{"seed": -1}, {"device": "gpu"}, {"num_cars": 1, "n_steps": 1}, {"net": [10**6]}])
def test_wrong_settings_are_refused_before_a_run_starts(
    values: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = ["--data-dir", str(tmp_path / "data")]
    options = [f"--set={name}={value[0] if isinstance(value, list) else value}" for name, value in values.items()]
    like = tmp_path / "like.json"
    like.write_text(json.dumps(values))
    for given in (options, ["--like", str(like)]):
        assert main(["train", "--headless", "--timesteps", "64", *given, *data]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "data").exists()


def test_a_data_folder_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "file"
    data.write_text("in the way")
    assert main(["train", "--headless", "--timesteps", "64", "--data-dir", str(data)]) == 2
    assert str(data) in capsys.readouterr().err


def test_every_number_of_a_config_has_limits() -> None:
    numbers = {name for name, value in vars(RunConfig()).items() if type(value) in (int, float)}
    assert numbers == set(LIMITS)


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
