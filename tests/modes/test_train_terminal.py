"""Messages at the terminal that a training window was opened from."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from racer_env.engine import Simulation, load_circuit
from racer_viewer.cli.terminal import print_run
from racer_viewer.modes.train.menu import RunDecision
from racer_viewer.modes.train.screen import TrainScreen
from racer_viewer.modes.train.setup import open_run
from racer_viewer.training.run_monitor import RunMonitor
from tests.modes.person import Person
from tests.modes.run_folders import make_logged_run, make_run
from tests.modes.xvfb_screen import LIMIT, XvfbScreen, is_there
from tests.processes import wait_for

END: dict[str, Any] = {"what": "event", "seconds": 1.0, "kind": "end", "text": ""}


@pytest.fixture(autouse=True)
def started_by_its_own_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RACER_COMMAND", raising=False)


def opened(person: Person, folder: Path, own: bool = True) -> TrainScreen:
    open_run(person.app.context, folder, opened=lambda screen: print_run(screen, own))
    return person.until_top(TrainScreen)


def words_at_its_end(person: Person, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    person.app.context.pop()
    return capsys.readouterr().out


def test_the_folder_is_printed_at_once_and_how_to_resume_at_the_end(
    person: Person, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_logged_run(person.data, "mine", [{**END, "steps": 4096, "outcome": "stopped"}])
    opened(person, folder)
    assert capsys.readouterr().out == f"Trained in {folder}\n"
    words = words_at_its_end(person, capsys)
    assert words == f"Stopped after 4,096 steps. Resume with: racer-viewer train --resume {folder}\n"


def test_a_run_that_has_finished_can_be_watched(person: Person, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make_logged_run(person.data, "mine", [{**END, "steps": 4096, "outcome": "finished"}])
    opened(person, folder)
    model = folder / "mine_best.zip"
    words = words_at_its_end(person, capsys)
    assert words == f"Finished after 4,096 steps. Watch it with: racer-viewer watch {model}\n"


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        (RunDecision.DISCARD, "Discarded after 16,384 steps"),
        (
            RunDecision.DETACH,
            "It keeps training in the background. Show it with: racer-viewer train --attach {folder}",
        ),
        (RunDecision.STOP, "Stopped after 16,384 steps. Resume with: racer-viewer train --resume {folder}"),
    ],
)
def test_the_outcome_follows_the_decision(
    decision: RunDecision,
    words: str,
    person: Person,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = make_run(person.data, "mine")
    screen = opened(person, folder, own=False)
    monkeypatch.setattr(RunMonitor, "state", "learning")
    screen.decide(decision)
    assert words_at_its_end(person, capsys) == words.format(folder=folder) + "\n"


def test_nothing_is_claimed_about_a_run_that_somebody_else_has_started(
    person: Person, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_run(person.data, "mine")
    opened(person, folder, own=False)
    monkeypatch.setattr(RunMonitor, "state", "learning")
    assert words_at_its_end(person, capsys) == f"Show it with: racer-viewer train --attach {folder}\n"


def test_a_problem_comes_with_the_way_on(person: Person, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make_run(person.data, "mine")
    screen = opened(person, folder)
    screen.run.problem = "The learner ended unexpectedly."
    assert words_at_its_end(person, capsys) == "The learner ended unexpectedly.\n", "there is nothing to go on from"
    (folder / "mine_best.zip").rename(folder / "mine_4096_steps.zip")
    screen = opened(person, folder)
    screen.run.problem = "The learner ended unexpectedly."
    words = f"The learner ended unexpectedly. Resume with: racer-viewer train --resume {folder}\n"
    assert words_at_its_end(person, capsys) == words


class Gone:
    """A terminal that was closed."""

    def write(self, text: str) -> int:
        raise BrokenPipeError

    flush = close = write


@pytest.mark.parametrize("stdout", [None, Gone()])
def test_nobody_needs_to_hear_it(stdout: object, person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", stdout)
    opened(person, make_run(person.data, "mine"))
    person.frames(2)
    person.app.context.pop()
    monkeypatch.undo()


@pytest.mark.slow
@pytest.mark.skipif(not is_there(), reason="no Xvfb or no xdotool")
def test_a_window_that_is_interrupted_has_said_where_its_run_is_and_how_to_go_on(
    screen: XvfbScreen, tmp_path: Path
) -> None:
    Simulation(load_circuit("track-01"))  # compiled here, so that the app need not
    data = tmp_path / "data"
    command = [sys.executable, "-m", "racer_viewer", "--data-dir", str(data), "train", "--name", "mine"]
    environment = {**screen.environment, "RACER_COMMAND": "python3 run.py"}
    app = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        folder = data / "runs" / "mine"
        wait_for(lambda: (folder / "policies.bin").is_file(), "the first update", LIMIT)
        app.send_signal(signal.SIGINT)
        out, err = app.communicate(timeout=LIMIT)
        first, last = out.splitlines()
        assert first == f"Training in {folder}"
        assert last.endswith(f"Resume with: python3 run.py train --resume {folder}")
        assert "Traceback" not in err
    finally:
        app.kill()
        app.wait()
