"""Resuming runs: how far, from where, and the messages if that is impossible."""

from contextlib import closing
from pathlib import Path

import pytest

from racer_env.errors import RacerError
from racer_viewer.cli import main, train
from racer_viewer.modes.train import setup, tensorboard
from racer_viewer.training import run_folder
from racer_viewer.training import run_monitor as watched_module
from racer_viewer.training.config import RunConfig, parse_run_config
from racer_viewer.training.control import ControlServer
from racer_viewer.training.run import Run
from racer_viewer.training.run_log_reader import load_history
from racer_viewer.training.run_monitor import RunMonitor
from racer_viewer.ui import display


def tiny(**changes: object) -> RunConfig:
    values: dict[str, object] = {
        "num_cars": 8, "n_steps": 16, "batch_size": 64, "n_epochs": 1, "net": [8], "timesteps": 512, "name": "tiny",
        "checkpoint_every": 256, "evaluate_every": 0, "rewards": {"episode": {"maxSteps": 50}},
    }  # fmt: skip
    return parse_run_config({**values, **changes})


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data folder with a finished run."""
    data = tmp_path_factory.mktemp("data")
    Run(tiny(), data / "runs").learn()
    return data


@pytest.fixture
def no_learner(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Folders or checkpoints for which a learner process would have been started."""
    started: list[Path] = []

    def start(where: Path) -> None:
        started.append(where)

    monkeypatch.setattr(watched_module, "start_learner", start)
    return started


def test_a_run_that_has_learned_asks_for_more_steps(data: Path, no_learner: list[Path]) -> None:
    folder = data / "runs" / "tiny"
    for timesteps in (None, 512, 100):
        with pytest.raises(
            RacerError, match=r"^tiny has trained for 512 of \d+ steps: use a larger number, for example --timesteps"
        ):
            RunMonitor.continue_run(folder, timesteps)
    assert (no_learner, RunMonitor.attach(folder).total) == ([], 512)
    assert RunMonitor.continue_run(folder / "tiny_256_steps.zip").total == 512, "from there it has some left"
    assert RunMonitor.continue_run(folder, 1024).total == 1024
    assert no_learner == [folder / "tiny_256_steps.zip", folder]
    RunMonitor.continue_run(folder / "tiny_256_steps.zip", 512)  # as it was


@pytest.mark.parametrize("headless", [True, False])
def test_the_command_line_says_so_in_one_line(
    headless: bool, data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(display, "has_display", lambda: True)
    options = ["--headless"] if headless else []
    assert main(["train", *options, "--resume", "tiny", "--data-dir", str(data)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "use a larger number, for example --timesteps 1024" in line
    assert main(["train", *options, "--resume", "nobody", "--data-dir", str(data)]) == 2
    assert "nobody" in capsys.readouterr().err


def test_a_running_run_cannot_be_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "runs" / "busy"
    folder.mkdir(parents=True)
    with closing(ControlServer(folder)):
        for run in ("busy", folder):
            assert main(["train", "--headless", "--resume", str(run), "--data-dir", str(tmp_path)]) == 2
            (line,) = capsys.readouterr().err.splitlines()
            assert "training already" in line


class StandInApp:
    """An app without a window, whose screens are recorded instead of opened."""

    @property
    def context(self) -> "StandInApp":
        return self

    def notify(self, text: str) -> None:
        """Ignore notices."""


def test_a_window_resumes_as_the_command_line_says(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []
    monkeypatch.setattr(display, "has_display", lambda: True)
    monkeypatch.setattr(train, "open_window", lambda options, show, hint: show(StandInApp()) or 0)
    monkeypatch.setattr(setup, "resume_run", lambda stage, *arguments, opened: asked.append(("resume", *arguments)))
    monkeypatch.setattr(setup, "open_run", lambda stage, *arguments, opened: asked.append(("attach", *arguments)))
    monkeypatch.setattr(tensorboard, "open_tensorboard", lambda folder, say: asked.append(("figures", folder)))
    folder = data / "runs" / "tiny"
    model = folder / "tiny_256_steps.zip"
    for arguments in (
        ["--resume", "tiny", "--timesteps", "2000"],
        ["--resume", str(model), "--tensorboard"],
        ["--attach", "tiny", "--tensorboard"],
        ["--resume", "tiny", "--timesteps", "2000", "--engine", "sb3"],
    ):
        assert main(["train", *arguments, "--data-dir", str(data)]) == 0
    assert asked == [
        ("resume", folder, 2000, None),
        ("resume", model, None, None), ("figures", folder),
        ("attach", folder), ("figures", folder),
        ("resume", folder, 2000, "sb3"),
    ]  # fmt: skip


def test_a_resumed_run_keeps_its_best_model_until_a_better_one(tmp_path: Path) -> None:
    rewards = {"episode": {"maxSteps": 1000}}
    champion = tiny(
        begin_from="champion", net=[128, 128], evaluate_every=512, log_std=-9.0, final_log_std=-9.0, learning_rate=1e-9,
        rewards=rewards,
    )  # fmt: skip
    outcome = Run(champion, tmp_path).learn()
    best = outcome.folder / "tiny_best.zip"
    kept = best.read_bytes()
    (event,) = [event for event in load_history(outcome.folder).events if event.kind == "best"][:1]
    assert event.text.startswith("New best: Meadow Ring ")
    (outcome.folder / "config.json").write_text(tiny(**{
        **{name: getattr(champion, name) for name in ("net", "log_std", "final_log_std")},
        "timesteps": 768, "evaluate_every": 256, "learning_rate": 0.5, "n_epochs": 20,
    }).to_json())  # fmt: skip
    again = Run.in_folder(outcome.folder).learn()
    assert again.best == best
    assert best.read_bytes() == kept, "what was learned since is no better, to say the least"


def test_a_run_that_cannot_begin_leaves_no_folder(tmp_path: Path) -> None:
    options = ["--name", "none", "--from", str(tmp_path / "nothing.zip"), "--timesteps", "64", "--num-cars", "4"]
    assert main(["train", "--headless", "--data-dir", str(tmp_path), *options]) == 2
    assert not (tmp_path / "runs" / "none").exists()


def test_a_run_is_attached_to_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    others = ["--headless", "--name", "other"]
    assert main(["train", "--attach", "tiny", *others, "--data-dir", str(tmp_path)]) == 2
    assert "leave out --headless and --name" in capsys.readouterr().err


def test_a_run_that_cannot_be_removed_is_an_error_and_is_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path) -> None:
        raise PermissionError(13, "somebody holds it")

    (tmp_path / "stuck").mkdir()
    monkeypatch.setattr(run_folder, "REMOVE_INTERVAL", 0.0)
    monkeypatch.setattr(run_folder.shutil, "rmtree", refuse)
    with pytest.raises(RacerError, match="could not be removed: somebody holds it"):
        run_folder.remove_run(tmp_path / "stuck")
    assert run_folder.run_folders(tmp_path) == []
