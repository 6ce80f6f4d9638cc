"""Every command and snippet of the README works as it stands there."""

import json
import re
import shlex
from pathlib import Path

import pytest

from racer_env.engine import load_circuit
from racer_viewer.cli import main

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README, re.DOTALL)
COMMANDS = [
    line.split("#")[0].removeprefix("python run.py").strip()
    for language, text in BLOCKS
    if language == ""
    for line in text.splitlines()
    if line.startswith("python run.py")
]
BENCHES = {f"bench {what}" for what in ("engine", "bridge", "train", "learn", "render", "start")}
TRIED_ELSEWHERE = {"", "--help", "test", "test --slow", "bridge"} | BENCHES
"""By test_fresh_machine.py, test_no_display.py, tests/bench and tests/bridge, and by whoever reads this."""


def test_there_are_commands_and_snippets() -> None:
    assert len(COMMANDS) > 4
    assert {"python", "json"} <= {language for language, _ in BLOCKS}


LEARNING = [command for command in COMMANDS if command.startswith(("train", "evaluate", "export"))]


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - TRIED_ELSEWHERE - set(LEARNING)))
def test_commands_run(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)) == 0


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
