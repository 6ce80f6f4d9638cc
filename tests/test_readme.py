"""Every command and snippet of the README works as it stands there."""

import json
import re
import shlex
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from racer_env.engine import load_circuit
from racer_viewer.agents import load_agent
from racer_viewer.app import App
from racer_viewer.cli import main
from racer_viewer.modes.driving import DrivingScreen
from racer_viewer.modes.race import Entrant, Race
from racer_viewer.replays import save_replay
from racer_viewer.training.presets import preset
from racer_viewer.training.saved import write_config
from tests.bridge.conftest import running_bridge

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README, re.DOTALL)
COMMANDS = [
    line.split("#")[0].removeprefix("python run.py").strip()
    for language, text in BLOCKS
    if language == ""
    for line in text.splitlines()
    if line.startswith("python run.py")
]
BENCHES = {f"bench {what}" for what in ("engine", "bridge", "train", "train --preview", "learn", "render", "start")}
TRIED_ELSEWHERE = {"", "--help", "test", "test --slow", "bridge"} | BENCHES
"""By test_fresh_machine.py, test_no_display.py, tests/bench and tests/bridge, and by whoever reads this."""


def test_there_are_commands_and_snippets() -> None:
    assert len(COMMANDS) > 4
    assert {"python", "json"} <= {language for language, _ in BLOCKS}


FILMING = [command for command in COMMANDS if "--record" in command]
AT_THE_TERMINAL = ("--headless", "--settings", "--record")
IN_A_WINDOW = [
    command
    for command in COMMANDS
    if command.startswith(("play", "watch", "replay", "train")) and not any(each in command for each in AT_THE_TERMINAL)
]
LEARNING = [
    command
    for command in COMMANDS
    if command.startswith(("train", "evaluate", "export")) and command not in {*FILMING, *IN_A_WINDOW}
]


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - TRIED_ELSEWHERE - {*LEARNING, *FILMING, *IN_A_WINDOW}))
def test_commands_run(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)) == 0


@pytest.fixture
def drives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the replays that the README speaks of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RACER_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("SDL_AUDIODRIVER", "dummy")
    race = Race("track-01", [Entrant("champion", (0, 0, 0), load_agent("champion"))])
    for _ in range(30):
        race.step((0.0, 0.0, 0.0))
    replay = race.replay()
    assert replay is not None
    for name in ("drive", "other"):
        save_replay(replay, tmp_path / f"{name}.racer")
    write_config(replace(preset("ppo"), name="first"), tmp_path / "mine" / "runs" / "first")


@pytest.mark.usefixtures("drives")
@pytest.mark.parametrize(
    "command",
    [pytest.param(each, marks=pytest.mark.slow) if each.startswith("train") else each for each in FILMING],
)
def test_films_are_made(command: str, tmp_path: Path) -> None:
    film = tmp_path / command.split("--record ")[1].split()[0]
    quicker = re.sub(r"--seconds \d+", "--seconds 1", re.sub(r"--timesteps \d+", "--timesteps 20000", command))
    seconds = [] if "--seconds" in command or "replay" in command else ["--seconds", "3"]
    assert main([*shlex.split(quicker), *seconds]) == 0
    assert film.stat().st_size > 1000


@pytest.mark.usefixtures("drives")
@pytest.mark.parametrize("command", sorted(set(IN_A_WINDOW) - set(FILMING)))
def test_windows_open_where_somebody_drives(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driven = []

    def until_somebody_drives(app: App) -> None:
        app.stage.room.wait()
        end = time.monotonic() + 60.0
        while not isinstance(app.stage.top, DrivingScreen):
            assert time.monotonic() < end, app.stage.top
            app.frame(1.0 / 60.0)
        driven.append(type(app.stage.top).__name__)
        app.close()

    monkeypatch.setattr(App, "run", until_somebody_drives)
    (tmp_path / "bridge").mkdir()
    with running_bridge(tmp_path / "bridge") if "--bridge" in command else nullcontext() as bridge:
        there = command.replace("ws://localhost:9876", bridge.url) if bridge else command
        assert main(shlex.split(there)) == 0
    assert [name.removesuffix("Screen").lower() for name in driven] == [command.split()[0]]


@pytest.mark.slow
def test_learning_commands_run_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(LEARNING) >= 3
    for command in LEARNING:
        quicker = re.sub(r"--timesteps \d+", "--timesteps 130000", command)
        assert main(shlex.split(quicker)) == 0


@pytest.mark.parametrize("code", [text for language, text in BLOCKS if language == "python"])
def test_python_snippets_run(code: str) -> None:
    exec(compile(code, "README.md", "exec"), {})


@pytest.mark.parametrize("text", [text for language, text in BLOCKS if language == "json"])
def test_the_example_circuit_can_be_driven(text: str, tmp_path: Path) -> None:
    path = tmp_path / "oval.json"
    path.write_text(text)
    assert load_circuit(path).length > 0
    assert "control_points" in json.loads(text)


def test_pictures_are_there() -> None:
    for picture in re.findall(r"!\[.*?\]\((.*?)\)", README):
        assert (Path(__file__).parent.parent / picture).is_file()
