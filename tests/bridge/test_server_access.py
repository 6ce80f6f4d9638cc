"""Access: allowed connections, and files that clients cannot reach."""

import base64
import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import websocket

from racer_env.engine.circuits import assets_folder
from tests.bridge.conftest import RunningBridge, running_bridge
from tests.bridge.plain_client import PlainClient, plain_client
from tests.bridge.raw_websocket import raw_websocket, upgrade_request
from tests.bridge.watching import events

TOKEN = "open sésame & more"
IN_A_URL = "open%20s%C3%A9same%20%26%20more"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBridge]:
    """Server with a token, reachable from other machines."""
    with running_bridge(tmp_path_factory.mktemp("guarded"), "--host", "0.0.0.0", "--token", TOKEN) as running:
        yield RunningBridge(running.url.replace("0.0.0.0", "127.0.0.1"), running.process, running.log)


def status(bridge: RunningBridge, target: str = "/", **headers: str) -> int:
    """Return the HTTP status of an upgrade request."""
    with raw_websocket(bridge.port, upgrade=False) as raw:
        raw.send(upgrade_request(bridge.port, target, **headers))
        return int(raw.until(b"\r\n").split()[1])


def run(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "racer_viewer", *arguments]
    environment = {**os.environ, **variables}
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", env=environment, timeout=120)


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token.txt"
    path.write_text(TOKEN + "\n", encoding="utf-8")
    path.chmod(0o600)
    return path


@pytest.mark.slow
def test_a_token_file_is_used_by_server_and_client_without_a_warning(token_file: Path) -> None:
    with running_bridge(token_file.parent, "--token-file", str(token_file)) as bridge:
        assert status(bridge, Authorization="Bearer wrong") == 401
        assert status(bridge, f"/?token={IN_A_URL}") == 101
        measured = ("bench", "bridge", "--steps", "20", "--warmup", "1", "--url", bridge.url)
        assert "warning" not in bridge.log.read_text()
        result = run(*measured, "--token-file", token_file)
        assert (result.returncode, "warning" in result.stderr) == (0, False), result.stderr
        result = run(*measured, RACER_BRIDGE_TOKEN=TOKEN)
        assert (result.returncode, "warning" in result.stderr) == (0, False), result.stderr
        result = run(*measured, "--token", TOKEN)
        assert result.returncode == 0
        assert result.stderr.count("warning: other users can see --token in the list of processes") == 1
        assert TOKEN not in result.stderr


def test_a_token_on_the_command_line_of_a_server_is_warned_about(guarded: RunningBridge) -> None:
    lines = [line for line in guarded.log.read_text().splitlines() if line.startswith("warning")]
    assert lines == [
        "warning: other users can see --token in the list of processes; use --token-file FILE or RACER_BRIDGE_TOKEN"
    ]


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_token_file_that_others_can_read_is_warned_about(token_file: Path) -> None:
    token_file.chmod(0o644)
    with running_bridge(token_file.parent, "--token-file", str(token_file)) as bridge:
        assert bridge.log.read_text().count("chmod 600 makes it private") == 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot read the token file"),
        (b"", "must have one line, the token"),
        (b" \n\n", "must have one line, the token"),
        (b"one\ntwo\n", "must have one line, the token"),
        (b"a\x1b[31mb", "must have one line, the token"),
        (b"\xff\xfe", "is not text in UTF-8"),
        (b"x" * 5000, "has more than 4096 bytes"),
    ],
)
def test_a_bad_token_file_gives_an_error_of_one_line(tmp_path: Path, content: bytes | None, reason: str) -> None:
    path = tmp_path / "token.txt"
    if content is not None:
        path.write_bytes(content)
    result = run("bridge", "--port", "0", "--token-file", path)
    assert result.returncode != 0
    assert reason in result.stderr
    assert result.stderr.count("\n") == 1


def test_every_command_with_a_token_takes_a_file() -> None:
    for verb in (["bridge"], ["play"], ["watch"], ["bench", "bridge"]):
        text = run(*verb, "--help").stdout
        assert "--token-file FILE" in text
        assert "RACER_BRIDGE_TOKEN" in text
        assert "list of processes" in " ".join(text.split())


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example", "https://evil.example", "http://localhost:3000", "http://127.0.0.1", "null", "file://",
        "", "http://127.0.0.1:{port}.evil.example", "http://localhost.evil.example:{port}", "http://127.0.0.1@evil:{port}",
        "http://user@evil.example:{port}", "chrome-extension://abcdef", "http://[", "//", "http://127.0.0.1:x",
    ],
)  # fmt: skip
def test_a_page_of_another_origin_is_refused(bridge: RunningBridge, origin: str) -> None:
    assert status(bridge, Origin=origin.format(port=bridge.port)) == 403


@pytest.mark.parametrize("name", ["evil.example", "127.0.0.1.nip.io", "localhost.evil.example", "192.168.0.5"])
def test_a_page_whose_name_points_at_this_machine_is_refused(bridge: RunningBridge, name: str) -> None:
    """DNS rebinding: the page's own domain resolves to this machine, so Origin and Host agree."""
    host = f"{name}:{bridge.port}"
    assert status(bridge, Origin=f"http://{host}", Host=host) == 403


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::1]"])
def test_a_client_that_names_the_server_itself_as_its_origin_is_let_in(bridge: RunningBridge, name: str) -> None:
    host = f"{name}:{bridge.port}"
    assert status(bridge, Origin=f"http://{host}", Host=host) == 101


def test_a_client_without_an_origin_is_let_in(bridge: RunningBridge) -> None:
    with plain_client(bridge.url, suppress_origin=True) as client:
        client.reset()


@pytest.fixture(scope="module")
def open_to_pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBridge]:
    """Server that pages of three origins may use."""
    allowed = ("http://localhost:3000", "https://play.example/", "http://Named.example")
    options = [word for origin in allowed for word in ("--allow-origin", origin)]
    with running_bridge(tmp_path_factory.mktemp("pages"), *options) as running:
        yield running


@pytest.mark.parametrize(
    "origin", ["http://localhost:3000", "https://play.example", "https://play.example:443", "http://named.example"]
)
def test_a_page_of_an_allowed_origin_is_let_in(open_to_pages: RunningBridge, origin: str) -> None:
    with plain_client(open_to_pages.url, origin=origin) as client:
        client.reset()


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:3001", "https://localhost:3000", "http://127.0.0.1:3000", "http://localhost", "null", "",
        "http://play.example", "https://play.example:444", "https://play.example.evil.example", "http://x@localhost:3000",
        "https://evil.example", "http://[", "http://localhost:x", "localhost:3000", "http://named.example:81",
    ],
)  # fmt: skip
def test_a_page_of_another_origin_than_the_allowed_ones_is_refused(open_to_pages: RunningBridge, origin: str) -> None:
    assert status(open_to_pages, Origin=origin) == 403


def test_the_origin_of_the_server_itself_stays_allowed(open_to_pages: RunningBridge) -> None:
    host = f"127.0.0.1:{open_to_pages.port}"
    assert status(open_to_pages, Origin=f"http://{host}", Host=host) == 101
    assert status(open_to_pages) == 101


def test_an_allowed_origin_does_not_replace_the_token(tmp_path: Path) -> None:
    page = "http://localhost:3000"
    with running_bridge(tmp_path, "--token", "secret", "--allow-origin", page) as bridge:
        assert status(bridge, Origin=page) == 401
        assert status(bridge, "/?token=secret", Origin=page) == 101


@pytest.mark.parametrize(
    "origin", ["*", "null", "localhost:3000", "http://", "http://a/page", "http://u@a", "http://a:x"]
)
def test_an_origin_that_is_none_is_a_mistake_of_the_command_line(tmp_path: Path, origin: str) -> None:
    command = [sys.executable, "-P", "-m", "racer_viewer", "bridge", "--port", "0", "--allow-origin", origin]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 2
    assert result.stderr == f"racer-viewer: an origin is written as http://localhost:3000, not {origin!r}\n"


@pytest.mark.parametrize("target", ["/other", "//", "/index.html", "/..", "*", "/%2e", "http://127.0.0.1/x", "//["])
def test_there_is_nothing_at_other_paths(bridge: RunningBridge, target: str) -> None:
    assert status(bridge, target) == 404


def test_a_refusal_says_why(bridge: RunningBridge) -> None:
    with pytest.raises(websocket.WebSocketBadStatusException) as refusal:
        PlainClient(bridge.url, origin="http://evil.example")
    assert b"web pages of this origin are not allowed" in refusal.value.resp_body
    assert events(bridge.log, "refused")[-1]["status"] == 403


def test_clients_without_the_token_are_refused(guarded: RunningBridge) -> None:
    with pytest.raises(websocket.WebSocketBadStatusException) as refusal:
        PlainClient(guarded.url)
    assert refusal.value.status_code == 401
    assert b"requires a token" in refusal.value.resp_body


@pytest.mark.parametrize(
    "authorization",
    ["Bearer", "Bearer ", "Bearer wrong", "Bearer " + TOKEN[:-1], "Bearer " + TOKEN + "x", "Basic " + TOKEN, TOKEN],
)
def test_a_wrong_token_is_refused(guarded: RunningBridge, authorization: str) -> None:
    assert status(guarded, Authorization=authorization) == 401


def test_the_password_of_a_url_is_no_token(guarded: RunningBridge) -> None:
    secret = base64.b64encode(f"user:{TOKEN}".encode()).decode()
    assert status(guarded, Authorization=f"Basic {secret}") == 401


@pytest.mark.parametrize("query", ["?token=", "?token=wrong", "?token", "?", "?Token=x&token=%FF", f"?x={IN_A_URL}"])
def test_a_wrong_token_in_the_url_is_refused(guarded: RunningBridge, query: str) -> None:
    assert status(guarded, "/" + query) == 401


def test_with_the_token_a_client_is_let_in(guarded: RunningBridge) -> None:
    assert status(guarded, Authorization=f"Bearer {TOKEN}") == 101
    assert status(guarded, Authorization=f"bearer {TOKEN}") == 101
    with plain_client(f"{guarded.url}/?token={IN_A_URL}") as client:
        client.reset()


def test_the_token_does_not_admit_pages_of_other_origins(guarded: RunningBridge) -> None:
    assert status(guarded, f"/?token={IN_A_URL}", Origin="http://evil.example") == 403


def test_the_token_is_not_in_the_log(guarded: RunningBridge) -> None:
    assert status(guarded, f"/?token={IN_A_URL}") == 101
    log = guarded.log.read_text()
    assert IN_A_URL not in log
    assert TOKEN not in log


def test_a_file_is_never_read_for_a_track(bridge: RunningBridge, tmp_path: Path) -> None:
    circuit = tmp_path / "mine.json"
    circuit.write_bytes((assets_folder() / "circuits/track-01.json").read_bytes())
    bundled = assets_folder() / "circuits" / "track-02.json"
    names = [
        str(circuit), str(circuit.with_suffix("")), circuit.as_uri(), str(bundled), os.path.relpath(circuit),
        "/etc/passwd", "../x.json", "./track-01", "track-01/../track-01", "circuits/track-01", "track-01.json",
        "random:../../etc/passwd", "random:1:../easy", "\0", "C:\\x.json", "~/x.json", "track-01\0",
    ]  # fmt: skip
    with plain_client(bridge.url) as client:
        for name in names:
            for request in (
                {"type": "reset", "trackId": name},
                {"type": "reset", "trackIds": ["track-01", name]},
                {"type": "batch_reset", "trackIds": [name]},
                {"type": "track", "trackId": name},
            ):
                assert client.refusal(request), name


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_file_is_not_even_opened(bridge: RunningBridge, tmp_path: Path) -> None:
    """A process that opened the pipe would hang, and opening it for writing would succeed."""
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    with plain_client(bridge.url) as client:
        assert client.refusal({"type": "reset", "trackId": str(pipe)})
        with pytest.raises(OSError, match=os.strerror(errno.ENXIO)):  # it has no reader
            os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
