"""Every command and snippet of docs/stdio.md works."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.stdio.helpers import hostile

DOCS = (Path(__file__).parent.parent.parent / "docs" / "stdio.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", DOCS, re.DOTALL)
COMMANDS = [line for language, text in BLOCKS if language == "" for line in text.splitlines()]
SNIPPETS = [text for language, text in BLOCKS if language == "python"]
[(COMMAND, SESSION)] = re.findall(r"session, `(.*?)`:\n\n```text\n(.*?)```", DOCS, re.DOTALL)


def run(command: str, requests: list[str]) -> list[Any]:
    program, *arguments = shlex.split(command)
    start = ["-m", "racer_viewer"] if program == "racer-viewer" else []
    finished = subprocess.run(
        [sys.executable, *start, *arguments],
        input="".join(line + "\n" for line in requests),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return [json.loads(line) for line in finished.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(command: str) -> None:
    replies = run(command, ['{"cmd":"describe"}', '{"cmd":"reset"}', '{"cmd":"close"}'])
    assert [reply["ok"] for reply in replies] == [True, True, True]


def test_the_example_session_is_real() -> None:
    lines = SESSION.splitlines()
    requests, replies = ([line[2:] for line in lines if line[0] == side] for side in "><")
    assert len(requests) == len(replies) > 4
    assert run(COMMAND, requests) == [json.loads(reply) for reply in replies]


@pytest.mark.parametrize("code", SNIPPETS)
def test_python_snippets_run(code: str) -> None:
    exec(compile(code.replace('["node", "helper.js"]', repr(hostile())), "stdio.md", "exec"), {})


def test_there_are_commands_and_snippets() -> None:
    assert len(COMMANDS) >= 3
    assert len(SNIPPETS) == 2
