"""Every command and snippet of the README works as it stands there."""

import json
import re
import shlex
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from racer_env.engine import load_circuit
from racer_viewer.agents import load_agent
from racer_viewer.cli import main
from racer_viewer.modes.race import Entrant, Race, RaceSetup
from racer_viewer.replays import save_replay
from racer_viewer.training.config import preset
from racer_viewer.training.run_folder import write_config
from tests.bridge.conftest import running_bridge
from tests.documents import (
    TRIED_ELSEWHERE,
    Document,
    needs_a_window,
    run_all,
    run_snippet,
    run_until_somebody_drives,
    with_steps,
)

README = Document("README.md")
COMMANDS = README.commands


def test_there_are_commands_and_snippets() -> None:
    assert len(COMMANDS) > 4
    assert {"python", "json"} <= {language for language, _ in README.blocks}


FILMING = [command for command in COMMANDS if "--record" in command]
IN_A_WINDOW = [command for command in COMMANDS if needs_a_window(command)]
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
    race = Race(RaceSetup("track-01", (Entrant("champion", (0, 0, 0), load_agent("champion")),)))
    for _ in range(30):
        tick = race.step()
    replay = tick.followed.replay()
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
    quicker = re.sub(r"--seconds \d+", "--seconds 1", with_steps(command, 20_000))
    seconds = [] if "--seconds" in command or "replay" in command else ["--seconds", "3"]
    assert main([*shlex.split(quicker), *seconds]) == 0
    assert film.stat().st_size > 1000


@pytest.mark.usefixtures("drives")
@pytest.mark.parametrize("command", sorted(set(IN_A_WINDOW) - set(FILMING)))
def test_windows_open_where_somebody_drives(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bridge").mkdir()
    with running_bridge(tmp_path / "bridge") if "--bridge" in command else nullcontext() as bridge:
        there = command.replace("ws://localhost:9876", bridge.url) if bridge else command
        assert run_until_somebody_drives(there, monkeypatch) == [command.split()[0]]


@pytest.mark.slow
def test_learning_commands_run_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(LEARNING) >= 3
    run_all(with_steps(command, 130_000) for command in LEARNING)


@pytest.mark.parametrize("code", README.snippets("python"))
def test_python_snippets_run(code: str) -> None:
    run_snippet(code, "README.md")


@pytest.mark.parametrize("text", README.snippets("json"))
def test_the_example_circuit_can_be_driven(text: str, tmp_path: Path) -> None:
    path = tmp_path / "oval.json"
    path.write_text(text)
    assert load_circuit(path).length > 0
    assert "control_points" in json.loads(text)
