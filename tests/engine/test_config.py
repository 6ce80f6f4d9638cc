"""The ai-config JSON: defaults, and errors that name the key."""

import json
from pathlib import Path

import pytest

from racer_env.engine import Config, Simulation, load_circuit, load_config, parse_config
from racer_env.engine.circuits import assets_folder
from racer_env.engine.config import UnknownKey
from racer_env.errors import ConfigError


def test_nothing_given_means_the_defaults() -> None:
    assert parse_config(None) == parse_config({}) == parse_config("{}") == Config()
    assert Config().to_json()["weights"]["wallPenalty"] == -0.002
    assert Config().to_json()["episode"] == {"maxSteps": 3000, "stillnessTimeoutTicks": 180}


def test_what_is_left_out_keeps_its_default() -> None:
    config = parse_config({"weights": {"speedBonus": 0.5}})
    assert config.weights.speed_bonus == 0.5
    assert config.weights.progress == 1.0


def test_json_of_a_config_reads_back_the_same() -> None:
    config = parse_config({"weights": {"progress": 3}, "episode": {"maxSteps": 7}})
    assert parse_config(json.dumps(config.to_json())) == config


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"weight": {}}, "unknown key 'weight'; did you mean weights"),
        ({"weights": {"wallPenatly": -1}}, "config.weights: unknown key 'wallPenatly'; did you mean wallPenalty"),
        ({"weights": {"wall_penalty": -1}}, "did you mean wallPenalty"),
        ({"episode": {"zzz": 1}}, "known: maxSteps, stillnessTimeoutTicks"),
        ({"weights": {"progress": "1"}}, "config.weights.progress must be a number"),
        ({"weights": {"progress": True}}, "config.weights.progress must be a number"),
        ({"weights": {"progress": None}}, "config.weights.progress must be a number"),
        ({"weights": {"progress": float("nan")}}, "config.weights.progress must be finite"),
        ({"weights": {"progress": 10**400}}, "config.weights.progress must be finite"),
        ({"episode": {"maxSteps": float("inf")}}, "config.episode.maxSteps must be finite"),
        ({"episode": {"maxSteps": 1.5}}, "maxSteps"),
        ({"episode": {"maxSteps": -1}}, "Expected `int` >= 0 - at `$.episode.maxSteps`"),
        ({"episode": {"maxSteps": 10**30}}, "maxSteps"),
        ({"weights": []}, "config.weights must be an object"),
        ([1], "config must be an object"),
        ("{", "not JSON"),
        ('{"weights": {"progress": NaN}}', "not JSON"),
    ],
)
def test_a_wrong_config_names_the_key(content: object, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_config(content)  # type: ignore[arg-type]
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_whole_numbers_may_be_written_as_floats() -> None:
    limits = parse_config('{"episode": {"maxSteps": 1e3, "stillnessTimeoutTicks": 60.0}}').episode
    assert (limits.max_steps, limits.stillness_timeout_ticks) == (1000, 60)
    assert type(limits.max_steps) is int


def test_limits_of_0_end_an_episode_in_its_first_tick() -> None:
    for limit in ("maxSteps", "stillnessTimeoutTicks"):
        simulation = Simulation(load_circuit("track-01"), 1, {"episode": {limit: 0}})
        result = simulation.step([[0, 1, 0]])
        assert (bool(result.truncated[0]), bool(result.terminated[0])) == (limit == "maxSteps", limit != "maxSteps")


def test_unknown_keys_can_be_collected_instead() -> None:
    unknown: list[UnknownKey] = []
    config = parse_config({"ppo": 1, "weights": {"progres": "x", "speedBonus": 0.5}}, unknown)
    assert config == parse_config({"weights": {"speedBonus": 0.5}})
    assert [(key.place, key.key) for key in unknown] == [("config", "ppo"), ("config.weights", "progres")]
    assert str(unknown[1]) == "config.weights: unknown key 'progres'; did you mean progress?"


def test_a_config_file_is_read_and_named_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "ai-config.json"
    path.write_text('{"episode": {"maxSteps": 12}}')
    assert load_config(path).episode.max_steps == 12
    path.write_text('{"episode": {"maxStep": 12}}')
    with pytest.raises(ConfigError, match=r"ai-config\.json: .*did you mean maxSteps"):
        load_config(path)
    with pytest.raises(ConfigError, match="cannot read config"):
        load_config(tmp_path / "missing.json")


def test_weights_decide_the_reward() -> None:
    config = {"weights": {"progress": 0.0, "speedBonus": 2.0, "stillnessPenalty": 0.0}}
    simulation = Simulation(load_circuit("track-01"), 1, config)
    for _ in range(30):
        result = simulation.step([[0, 1, 0]])
    assert result.rewards[0] == pytest.approx(2.0 * simulation.cars.speed[0] / 160.0)
    simulation.configure({"weights": {"progress": 0.0, "speedBonus": -1.0}})
    assert simulation.step([[0, 1, 0]]).rewards[0] < 0.0


def test_the_bundled_file_is_the_default() -> None:
    path = assets_folder() / "ai-config.json"
    assert load_config(path) == Config()
    assert json.loads(path.read_text()) == Config().to_json(), "it names every setting"
