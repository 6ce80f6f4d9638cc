"""Settings of runs on Ray, and messages where Ray is not installed."""

import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest

from racer_env.errors import ConfigError, RacerError
from racer_viewer.cli import main
from racer_viewer.cli.main import build_parser
from racer_viewer.training.config import RunConfig
from racer_viewer.training.ray.settings import RaySettings, RunnerSettings
from tests.documents import Document


def test_the_cars_of_a_config_are_shared_among_runners() -> None:
    settings = RaySettings(runners=4)
    assert settings.runner_config(RunConfig(num_cars=64)).num_cars == 16
    assert settings.run_config(RunConfig(num_cars=64)).num_cars == 64


def test_cars_per_runner_make_as_many_cars_as_all_runners_have() -> None:
    settings = RaySettings(runners=3, cars_per_runner=20)
    assert settings.runner_config(RunConfig(num_cars=64)).num_cars == 20
    assert settings.run_config(RunConfig(num_cars=64)).num_cars == 60


def test_a_run_that_goes_on_has_as_many_cars_as_before() -> None:
    settings = RaySettings(runners=3, cars_per_runner=20)
    assert settings.run_config(settings.run_config(RunConfig())).num_cars == 60


def test_more_runners_than_cores_oversubscribe_this_machine_but_not_a_cluster() -> None:
    assert RaySettings(runners=3).oversubscribes(2)
    assert not RaySettings(runners=2).oversubscribes(2)
    assert not RaySettings("auto", runners=3).oversubscribes(2)


def test_only_ppo_learns_on_ray() -> None:
    with pytest.raises(ConfigError, match="supports PPO only"):
        RaySettings().run_config(RunConfig(algo="sac"))


def test_runners_take_the_bridges_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RACER_BRIDGE_TOKEN", "secret")
    settings = RunnerSettings.create(RunConfig(), "ws://a:1, ws://b:2")
    assert [settings.bridge_of(runner) for runner in (1, 2, 3)] == ["ws://a:1", "ws://b:2", "ws://a:1"]
    assert settings.token == "secret"


@pytest.mark.parametrize("bridge", [",", "", "http://a:1", "ws://a:1,"])
def test_a_bad_bridge_address_is_an_error_before_anything_is_started(bridge: str) -> None:
    with pytest.raises(RacerError, match="ws://"):
        RunnerSettings.create(RunConfig(), bridge)


def test_without_a_bridge_the_cars_are_in_the_runner_and_no_secret_travels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RACER_BRIDGE_TOKEN", "secret")
    settings = RunnerSettings.create(RunConfig(), None)
    assert settings.bridge_of(1) is None
    assert settings.token is None


@pytest.mark.parametrize("page", ["README.md", "docs/ray.md"])
def test_the_commands_in_the_documents_are_commands(page: str) -> None:
    commands = Document(page).commands_with_ray
    assert commands
    for command in commands:
        build_parser().parse_args(shlex.split(command))


@pytest.mark.parametrize(
    "arguments",
    [["--runners", "2"], ["--cars-per-runner", "8"], ["--address", "auto"], ["--engine", "ray", "--attach", "x"]],
)
def test_options_that_do_not_go_together_are_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--engine ray" in line


def test_a_benchmark_is_of_the_picture_or_of_ray(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "train", "--preview", "--engine", "ray"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--preview" in line


@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not here")
def test_a_search_is_not_begun_from_outside_of_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "--address", "ray://127.0.0.1:10001"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--address auto" in line


def test_the_token_of_a_bridge_is_not_in_the_repr() -> None:
    assert "secret" not in repr(RunnerSettings(RunConfig(), ("ws://a:1",), "secret"))


@pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is here")
@pytest.mark.parametrize("command", [["train", "--engine", "ray"], ["tune"], ["bench", "train", "--engine", "ray"]])
def test_without_ray_one_line_says_how_to_get_it(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--data-dir", str(tmp_path), *command]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "python run.py --with ray" in line
    assert not list(tmp_path.iterdir())
