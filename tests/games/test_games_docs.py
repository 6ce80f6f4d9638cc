"""Commands, code and names in docs/games.md are correct."""

import re
import shlex
from pathlib import Path

import pytest

from racer_env.games import protocol
from racer_viewer.cli import main
from tests.games.conftest import RunningGames, running_games
from tests.games.plain_player import plain_player

DOCUMENT = (Path(__file__).parents[2] / "docs" / "games.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", DOCUMENT, re.DOTALL)
COMMANDS = [line for language, text in BLOCKS if language == "" for line in text.splitlines()]
SERVERS = [command for command in COMMANDS if command.startswith("racer-viewer games")]


def test_all_commands_are_tested() -> None:
    assert len(SERVERS) >= 3
    assert set(COMMANDS) - set(SERVERS) == {"racer-viewer bench games"}, "tested in tests/bench"


@pytest.mark.slow
@pytest.mark.parametrize("command", SERVERS)
def test_servers_start(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("Box2D")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("RACER_DATA_DIR", str(tmp_path))
    (tmp_path / "logs").mkdir()
    with running_games(tmp_path / "logs", *shlex.split(command)[2:]) as games:
        with plain_player(games.port) as player:
            assert player.state(0)["type"] == "STATE"
        assert games.end() == 0


@pytest.mark.slow
@pytest.mark.parametrize("code", [text for language, text in BLOCKS if language == "python"])
def test_python_snippets_run(code: str, games: RunningGames) -> None:
    found: dict[str, object] = {}
    exec(compile(code.replace("5555", str(games.port)), "games.md", "exec"), found)
    assert len(found["states"]) == 4  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name",
    [
        "HANDSHAKE",
        "SET_ACTION",
        "GET_STATE",
        "RESET",
        "GET_STATES",
        "GET_STATS",
        "CLOSE",
        "STATE",
        "STATES",
        "STATS",
        "ERROR",
    ],
)
def test_every_message_is_documented(name: str) -> None:
    assert f'"type":"{name}"' in DOCUMENT


def test_every_offer_is_documented() -> None:
    for name in protocol.OFFERS:
        assert f'"type":"{name}"' in DOCUMENT or f'"{name}":false' in DOCUMENT, name


@pytest.mark.slow
def test_every_field_of_a_state_is_documented(games: RunningGames) -> None:
    with plain_player(games.port) as player:
        state = player.state(0)
    for name in (*state, *state["telemetry"]):
        assert f'"{name}"' in DOCUMENT or f"`{name}`" in DOCUMENT, name


def test_every_documented_option_is_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["games", "--help"])
    known = capsys.readouterr().out
    for option in set(re.findall(r"--[a-z][a-z-]+", DOCUMENT)):
        assert option in known, option
