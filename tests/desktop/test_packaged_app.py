"""The packaged app: built, moved to another folder, and run without Python in the environment."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from racer_env import RacingGameClient
from tests.modes.xvfb_screen import LIMIT, XvfbScreen, is_there
from tests.processes import wait_for

BUILD_TIMEOUT = 1200.0
"""Time limit of a build [s]."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(2 * BUILD_TIMEOUT)]

ROOT = Path(__file__).parents[2]
VERBS = (
    "tracks",
    "play",
    "watch",
    "replay",
    "train",
    "evaluate",
    "export",
    "bridge",
    "stdio",
    "games",
    "bench",
    "desktop",
)
SCREEN = (1400, 900)
MAX_SIZE = {"racer-viewer": 420, "racer-viewer-full": 950}
"""Maximum size of each app [MiB]."""


@dataclass(frozen=True)
class PackagedApp:
    """A built app, and the empty home folder of its user."""

    folder: Path
    home: Path

    @property
    def is_full(self) -> bool:
        return (self.folder / "_internal" / "torch").exists()

    @property
    def environment(self) -> dict[str, str]:
        return {"HOME": str(self.home), "LANG": "C.UTF-8"}

    def call(self, *arguments: str, timeout: float = 300.0) -> subprocess.CompletedProcess[str]:
        command = [str(self.folder / "racer-viewer"), *arguments]
        options = {"env": self.environment, "cwd": str(self.home), "encoding": "utf-8"}
        return subprocess.run(command, capture_output=True, timeout=timeout, stdin=subprocess.DEVNULL, **options)

    def files(self) -> dict[str, int]:
        return {str(path): path.lstat().st_mtime_ns for path in self.folder.rglob("*")}


@pytest.fixture(scope="module", params=list(MAX_SIZE))
def app(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> PackagedApp:
    """The app, built by the first test process that needs it, with a home folder of this process."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    place = shared / f"packaged {request.param}"
    moved, log = place / "moved to another place", place / "build.log"
    try:
        place.mkdir()
    except FileExistsError:
        wait_for(lambda: moved.exists() or log.exists(), f"the build of {request.param}", BUILD_TIMEOUT)
    else:
        full = ["--full"] if request.param.endswith("full") else []
        build = [
            sys.executable,
            str(ROOT / "desktop" / "build.py"),
            *full,
            "--no-archive",
            "--to",
            str(place / "built"),
        ]
        result = subprocess.run(build, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if result.returncode:
            log.write_text(result.stderr[-2000:])
        else:
            (place / "built" / request.param).rename(moved)
    assert moved.exists(), log.read_text()
    home = tmp_path_factory.mktemp("home")
    return PackagedApp(moved, home)


def test_everything_works_and_nothing_is_written_beside_it(app: PackagedApp) -> None:
    before = app.files()
    result = app.call("selftest", "--json")
    assert result.returncode == 0, result.stdout + result.stderr
    report = json.loads(result.stdout)
    outcomes = {check["name"]: check["outcome"] for check in report["checks"]}
    assert report["packaged"]
    assert set(outcomes.values()) == {"ok"}
    assert app.files() == before


def test_every_verb_is_there(app: PackagedApp) -> None:
    assert app.call("--version").stdout.startswith("racer-viewer ")
    for verb in VERBS:
        result = app.call(verb, "--help")
        assert result.returncode == 0, result.stderr
        assert f"usage: racer-viewer {verb}" in result.stdout


def test_a_film_is_made_where_there_is_no_display(app: PackagedApp) -> None:
    result = app.call()
    assert result.returncode == 0, result.stderr
    film = Path(result.stdout.split(": ")[0])
    assert film.is_relative_to(app.home)
    assert film.stat().st_size > 10_000


def test_other_programs_find_their_environments_in_it(app: PackagedApp) -> None:
    for env_id in ("CartPole-v1", "RacerDiscrete-v0"):
        process = subprocess.run(
            [str(app.folder / "racer-viewer"), "stdio", "--env-id", env_id],
            input='{"cmd":"describe"}\n{"cmd":"reset","seed":1}\n{"cmd":"close"}\n',
            capture_output=True,
            text=True,
            env=app.environment,
            timeout=120,
        )
        replies = [json.loads(line) for line in process.stdout.splitlines()]
        assert [reply["ok"] for reply in replies] == [True] * 3, process.stderr
        assert replies[0]["n_actions"] == {"CartPole-v1": 2, "RacerDiscrete-v0": 9}[env_id]


def test_it_learns(app: PackagedApp) -> None:
    result = app.call("train", "--headless", "--timesteps", "16384", "--name", "short")
    assert result.returncode == 0, result.stderr
    assert any((app.home / ".local" / "share" / "racer-viewer" / "runs" / "short").glob("*.zip"))


def test_it_has_stable_baselines3_or_says_what_to_get(app: PackagedApp) -> None:
    result = app.call("train", "--headless", "--engine", "sb3", "--timesteps", "4096", "--name", "compared")
    if app.is_full:
        assert result.returncode == 0, result.stderr
    else:
        assert result.returncode == 2
        [line] = result.stderr.splitlines()
        assert "the packaged app does not include them" in line


def test_games_run_in_processes_of_their_own(app: PackagedApp) -> None:
    game = [] if app.is_full else ["--game", "Racer-v0"]
    command = [str(app.folder / "racer-viewer"), "games", *game, "--port", "0", "--num-games", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=app.environment) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline().split()[2].rpartition(":")[2])
            with RacingGameClient(port=port) as client:
                shapes = [state.frame.shape for state in client.states() if state.frame is not None]
                assert len(shapes) == 2
                assert set(shapes) == {(96, 96, 3) if app.is_full else shapes[0]}
        finally:
            server.terminate()


def test_wrong_words_are_one_line(app: PackagedApp) -> None:
    result = app.call("watch", "nobody.zip")
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1, result.stderr


def test_what_is_in_it_has_its_licence_and_its_weight_is_bounded(app: PackagedApp) -> None:
    licences = {each.name for each in (app.folder / "_internal" / "licences").iterdir()}
    assert {"racer-viewer", "numpy", "numba", "pygame-ce", "gymnasium", "imageio-ffmpeg"} <= licences
    assert not {"pytest", "mypy", "hypothesis", "ruff", "pyinstaller"} & licences
    weight = sum(path.lstat().st_size for path in app.folder.rglob("*") if path.is_file()) / 2**20
    assert weight < MAX_SIZE["racer-viewer-full" if app.is_full else "racer-viewer"]


@pytest.mark.skipif(not is_there(), reason="no Xvfb or no xdotool")
def test_its_window_opens_and_takes_a_picture_of_itself(app: PackagedApp, tmp_path: Path) -> None:
    with XvfbScreen(tmp_path, SCREEN) as screen:
        environment = {**app.environment, "DISPLAY": screen.display, "SDL_AUDIODRIVER": "dummy"}
        process = subprocess.Popen([str(app.folder / "racer-viewer")], env=environment, stderr=subprocess.PIPE)
        try:
            wait_for(lambda: len(np.unique(screen.pixels.reshape(-1, 3), axis=0)) > 100, "the menu")
            screen.do("key", "F12")
            pictures = app.home / ".local" / "share" / "racer-viewer" / "screenshots"
            wait_for(lambda: any(pictures.glob("*.png")), "the picture")
            screen.do("key", "Escape", "Escape", "Return")  # skip the tour, quit, yes
            wait_for(lambda: process.poll() is not None, "the end")
        finally:
            process.kill()
            _, errors = process.communicate(timeout=LIMIT)
        assert b"Traceback" not in errors


def test_without_a_console_what_is_said_goes_to_a_file(tmp_path: Path) -> None:
    """Run from source a process without streams, as a double click on Windows does."""
    code = """
import sys
sys.stdout = sys.stderr = None
from racer_viewer.runtime import prepare
prepare()
print("said")
print("and complained", file=sys.stderr)
"""
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, cwd=tmp_path)
    [log] = tmp_path.rglob("racer-viewer.log")
    assert log.read_text(encoding="utf-8").splitlines() == ["said", "and complained"]
