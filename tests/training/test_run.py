"""Runs: their files, how they end, and how they are resumed."""

import base64
import csv
import errno
import json
import signal
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3 import SAC
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from racer_env.errors import RacerError
from racer_viewer.agents import load_agent, load_stats
from racer_viewer.agents.stats_files import STATS_MEMBER
from racer_viewer.bench.bridge import bridge_process
from racer_viewer.cli import main
from racer_viewer.training import callbacks
from racer_viewer.training.callbacks import Progress
from racer_viewer.training.config import RunConfig, load_run_config, parse_run_config
from racer_viewer.training.learner import Callback, LearnerError
from racer_viewer.training.metric_files import EventsFile
from racer_viewer.training.native.learner import NativeLearner
from racer_viewer.training.run import Run
from racer_viewer.training.run_folder import ResumeError, find_checkpoint
from racer_viewer.training.run_log import RunLog
from racer_viewer.training.run_log_reader import load_history
from racer_viewer.training.sb3 import SB3Learner, make_env, make_model, restore
from tests.agents.zips import pack, unpack

TINY = {
    "num_cars": 8,
    "n_steps": 16,
    "batch_size": 64,
    "n_epochs": 1,
    "net": [8],
    "timesteps": 1024,
    "checkpoint_every": 256,
    "evaluate_every": 512,
    "rewards": {"episode": {"maxSteps": 50}},
}


def tiny(**changes: object) -> RunConfig:
    return parse_run_config({**TINY, "name": "tiny", **changes})


@pytest.fixture(params=["native", "sb3"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_device_that_this_machine_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RacerError, match=r"device cuda:\d+ is not available here: use --device cpu"):
        Run(tiny(device=f"cuda:{torch.cuda.device_count()}"), tmp_path).learn()
    assert not list(tmp_path.iterdir())


def test_a_run_writes_config_checkpoints_best_metrics_and_a_final_model(tmp_path: Path, engine: str) -> None:
    reported: list[Progress] = []
    outcome = Run(tiny(engine=engine), tmp_path).learn(reported.append)
    assert outcome.finished
    assert outcome.steps == 1024
    names = {path.name for path in outcome.folder.iterdir()}
    assert {"config.json", "tiny.zip", "tiny_vecnormalize.pkl", "tiny_best.zip", "progress.csv"} <= names
    for steps in (256, 512, 768, 1024):
        assert {f"tiny_{steps}_steps.zip", f"tiny_{steps}_steps_vecnormalize.pkl"} <= names
    assert any(name.startswith("events.out.tfevents") for name in names)
    assert not [name for name in names if name.startswith(".")], "no temporary files"
    assert load_run_config(outcome.folder / "config.json") == tiny(engine=engine)
    assert load_agent(outcome.model).normalised
    assert reported[-1].total == 1024
    with (outcome.folder / "progress.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {"reward/progress", "racer/episodes_this_rollout", "train/loss"} <= set(rows[-1])


def test_sac_runs_too(tmp_path: Path) -> None:
    config = tiny(algo="sac", learning_starts=100, buffer_size=2000, batch_size=16, evaluate_every=0)
    outcome = Run(config, tmp_path).learn()
    assert outcome.finished
    assert load_agent(outcome.model).info.algorithm == "SAC"
    saved = SAC.load(outcome.model, device="cpu")
    assert isinstance(saved.log_ent_coef, torch.Tensor)
    assert saved.log_ent_coef.item() != 0.0, "it has learned the weight of the entropy"
    checkpoint = find_checkpoint(outcome.model, tmp_path)
    env = make_env(checkpoint.config)
    model = make_model(checkpoint.config, env)
    restore(checkpoint, model, env)
    assert isinstance(model, SAC)
    assert torch.equal(model.log_ent_coef, saved.log_ent_coef)
    for name, parameters in saved.get_parameters().items():
        for restored, original in zip(values(model.get_parameters()[name]), values(parameters), strict=True):
            assert torch.equal(torch.as_tensor(restored), torch.as_tensor(original)), name


def values(state: dict[Any, Any]) -> list[Any]:
    """Return the tensors of a policy, or the state of an optimiser for each of its tensors."""
    entries = state["state"].values() if "param_groups" in state else [state]
    return [value for entry in entries for value in entry.values()]


def test_a_stopped_run_is_saved_and_resumed(tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callbacks, "REPORT_INTERVAL", 0.0)
    first = Run(tiny(checkpoint_every=0, engine=engine), tmp_path)
    outcome = first.learn(lambda progress: first.stop() if progress.steps > 300 else None)
    assert not outcome.finished
    assert 300 < outcome.steps < 400
    assert outcome.model.name == f"tiny_{outcome.steps}_steps.zip"
    checkpoint = find_checkpoint(Path("tiny"), tmp_path)
    assert checkpoint.steps == outcome.steps
    second = Run(checkpoint.config, tmp_path, checkpoint).learn()
    assert second.finished
    assert 1024 <= second.steps < 1024 + 8 * 16
    assert (second.folder / f"progress_{outcome.steps}.csv").is_file()


def test_a_checkpoint_restores_weights_optimiser_statistics_and_counter(tmp_path: Path, engine: str) -> None:
    Run(tiny(engine=engine), tmp_path).learn()
    checkpoint = find_checkpoint(tmp_path / "tiny" / "tiny_768_steps.zip", tmp_path)
    env = make_env(checkpoint.config)
    model = make_model(checkpoint.config, env)
    before = {name: value.clone() for name, value in model.policy.state_dict().items()}
    restore(checkpoint, model, env)
    assert model.num_timesteps == checkpoint.steps == 768
    assert any(not torch.equal(before[name], value) for name, value in model.policy.state_dict().items())
    updates = 768 // (8 * 16) - 1  # the checkpoint precedes the update of its rollout
    assert model.policy.optimizer.state_dict()["state"][0]["step"] == updates * 2
    stats = load_stats(checkpoint.stats)
    assert stats.observations is not None
    np.testing.assert_array_equal(env.obs_rms.mean, stats.observations.mean)
    assert env.obs_rms.count == stats.observations.count > 768
    observations = np.random.default_rng(0).uniform(0, 1, (50, 14)).astype(np.float32)
    actions, _ = model.predict(env.normalize_obs(observations), deterministic=True)
    np.testing.assert_allclose(load_agent(checkpoint.model).act(observations), actions, atol=1e-5)


def test_a_model_without_its_statistics_cannot_be_resumed(tmp_path: Path) -> None:
    outcome = Run(tiny(), tmp_path).learn()
    assert find_checkpoint(outcome.model, tmp_path).stats == outcome.model, "the model contains its statistics"
    members = unpack(outcome.model.read_bytes())
    del members[STATS_MEMBER]
    outcome.model.write_bytes(pack(members))
    assert find_checkpoint(outcome.model, tmp_path).stats == outcome.model.with_name("tiny_vecnormalize.pkl")
    (outcome.folder / "tiny_vecnormalize.pkl").unlink()
    with pytest.raises(ResumeError, match="no statistics in it or beside it"):
        find_checkpoint(outcome.model, tmp_path)


def test_what_cannot_be_resumed_is_named(tmp_path: Path) -> None:
    with pytest.raises(ResumeError, match="no such model or run"):
        find_checkpoint(Path("nothing"), tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ResumeError, match="no checkpoint yet"):
        find_checkpoint(Path("empty"), tmp_path)
    outcome = Run(tiny(), tmp_path).learn()
    checkpoint = find_checkpoint(outcome.model, tmp_path)
    with pytest.raises(RacerError, match="use a larger number, for example --timesteps"):
        Run(checkpoint.config, tmp_path, checkpoint).learn()
    (outcome.folder / "config.json").write_text(tiny(net=[4, 4]).to_json())
    checkpoint = find_checkpoint(outcome.model, tmp_path)
    env = make_env(checkpoint.config)
    model = make_model(checkpoint.config, env)
    with pytest.raises(ResumeError, match="does not fit"):
        restore(checkpoint, model, env)
    outcome.model.write_bytes(b"PK not really")
    with pytest.raises(ResumeError, match="damaged"):
        find_checkpoint(outcome.model, tmp_path)


def test_a_name_is_used_once_and_a_free_one_is_found(tmp_path: Path) -> None:
    Run(tiny(), tmp_path).learn()
    with pytest.raises(RacerError, match="--resume tiny"):
        Run(tiny(), tmp_path)
    (tmp_path / "ppo-random-7-1").mkdir()
    assert Run(tiny(name="", tracks=["random:7"]), tmp_path).config.name == "ppo-random-7-2"


def test_a_circuit_that_is_not_there_leaves_no_run_behind(tmp_path: Path) -> None:
    with pytest.raises(RacerError, match="unknown circuit"):
        Run(tiny(tracks=["track-01", "nowhere"]), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("learner_class", [NativeLearner, SB3Learner])
def test_a_full_disk_does_not_end_a_run(
    learner_class: type[NativeLearner | SB3Learner], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = learner_class.save

    def save_or_fail(learner: Any, path: Path) -> Path:
        if "512" in path.name or "latest" in path.name:
            raise OSError(errno.ENOSPC, "No space left on device")
        return save(learner, path)

    monkeypatch.setattr(learner_class, "save", save_or_fail)
    reported: list[str] = []
    outcome = Run(tiny(), tmp_path, make_learner=learner_class).learn(lambda progress: reported.append(progress.note))
    assert outcome.finished
    assert any("could not save tiny_512_steps: No space left" in note for note in reported)
    assert (outcome.folder / "tiny_768_steps.zip").is_file()


def test_a_full_disk_under_the_metrics_is_reported_once_and_does_not_end_a_run(
    tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, updates = EventsFile.write, 0

    def write_or_fail(file: EventsFile, values: dict[str, float], steps: int) -> None:
        nonlocal updates
        updates += 1
        if updates > 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(file, values, steps)

    monkeypatch.setattr(EventsFile, "write", write_or_fail)
    outcome = Run(tiny(engine=engine), tmp_path).learn()
    assert outcome.finished
    assert updates > 4
    problems = [event.text for event in load_history(outcome.folder).events if event.kind == "problem"]
    assert problems == ["could not write metrics: No space left on device; the run continues"]
    with (outcome.folder / "progress.csv").open() as file:
        assert len(list(csv.DictReader(file))) == updates, "the other file goes on"


def test_tensorboard_reads_the_metrics_of_every_update(tmp_path: Path, engine: str) -> None:
    outcome = Run(tiny(engine=engine), tmp_path).learn()
    events = EventAccumulator(str(outcome.folder)).Reload()
    with (outcome.folder / "progress.csv").open() as file:
        rows = list(csv.DictReader(file))
    for name in ("train/value_loss", "reward/progress", "eval/clean_circuits"):
        written = [float(row[name]) for row in rows if row[name]]
        assert [each.value for each in events.Scalars(name)] == pytest.approx(written)
        assert written
    assert [each.step for each in events.Scalars("reward/progress")][:3] == [128, 256, 384]


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_and_termination_save_and_say_how_to_resume(how: signal.Signals, tmp_path: Path) -> None:
    settings = [f"--set={key}={','.join(map(str, value)) if isinstance(value, list) else value}" for key, value in
                {"net": [8], "n_steps": 16, "batch_size": 64, "evaluate_every": 0}.items()]  # fmt: skip
    command = [sys.executable, "-P", "-m", "racer_viewer", "train", "--headless"]
    resume = [*command, "--resume", "mine", "--data-dir", str(tmp_path)]
    command += ["--name", "mine", "--num-cars", "8", *settings, "--timesteps", "50000000", "--data-dir", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any("steps" in line for line in process.stderr), "it learns"
        process.send_signal(how)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + how
    assert "Traceback" not in err
    assert "Resume with: racer-viewer train --resume" in out
    folder = tmp_path / "runs" / "mine"
    assert list(folder.glob("mine_*_steps.zip"))
    steps = find_checkpoint(folder, tmp_path / "runs").steps
    resumed = subprocess.run(
        [*resume, "--timesteps", str(steps + 500)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert resumed.returncode == 0, resumed.stderr
    assert "Finished" in resumed.stdout


def test_evaluate_names_a_winner_and_speaks_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models = [str(Run(tiny(name=name, seed=seed), tmp_path).learn().model) for seed, name in enumerate(("one", "two"))]
    assert main(["evaluate", *models, "--track", "track-01", "--episodes", "2"]) == 0
    out = capsys.readouterr().out
    assert "Winner: " in out
    assert main(["evaluate", models[0], "--track", "track-01", "--json"]) == 0
    (figures,) = json.loads(capsys.readouterr().out)["one"]
    assert figures["track"] == "track-01"
    assert {"laps", "best_flying_sec", "completion", "wall_ticks", "off_track_ticks", "components"} <= set(figures)
    assert main(["evaluate", str(tmp_path / "no.zip")]) == 2


def test_the_data_folder_may_be_given_before_the_command_or_after_it(tmp_path: Path) -> None:
    tiny = ["--timesteps", "64", "--num-cars", "4", "--set", "n_steps=16", "--set", "batch_size=64", "--set", "net=8"]
    before, after = tmp_path / "before", tmp_path / "after"
    assert main(["--data-dir", str(before), "train", "--headless", "--name", "a", *tiny]) == 0
    assert main(["--data-dir", str(before), "train", "--headless", "--name", "b", "--data-dir", str(after), *tiny]) == 0
    assert (before / "runs" / "a" / "a.zip").is_file()
    assert (after / "runs" / "b" / "b.zip").is_file()


def test_it_learns_on_the_cars_of_a_bridge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with bridge_process(uvloop=False) as url:
        settings = ["--set", "n_steps=16", "--set", "batch_size=64", "--set", "net=8", "--set", "evaluate_every=0"]
        options = ["--headless", "--num-cars", "8", "--timesteps", "512", "--name", "far", "--data-dir", str(tmp_path)]
        assert main(["train", *options, *settings, "--bridge", url]) == 0
    assert "Finished after 512 steps" in capsys.readouterr().out
    assert load_agent(tmp_path / "runs" / "far" / "far.zip").info.timesteps == 512


def test_a_checkpoint_with_objects_of_an_earlier_build_is_resumed(tmp_path: Path) -> None:
    """Schedules are pickled by the name of their class, which may no longer exist: they must not be loaded."""
    outcome = Run(tiny(), tmp_path).learn()
    outdated = {":type:": "Falling", ":serialized:": base64.b64encode(b"cracer_viewer.gone\nFalling\n.").decode()}
    with zipfile.ZipFile(outcome.model) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["data"] = json.dumps({**json.loads(members["data"]), "learning_rate": outdated, "lr_schedule": outdated})
    with zipfile.ZipFile(outcome.model, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    assert load_agent(outcome.model).info.timesteps == 1024
    checkpoint = find_checkpoint(outcome.model, tmp_path)
    assert Run(replace(checkpoint.config, timesteps=1280), tmp_path, checkpoint).learn().steps == 1280


def test_a_learner_that_fails_leaves_a_checkpoint(tmp_path: Path) -> None:
    class FailingLearner(SB3Learner):
        def learn(self, folder: Path, log: RunLog, callback: Callback) -> None:
            super().learn(folder, log, callback)
            raise LearnerError("the gradient is not finite")

    run = Run(tiny(timesteps=256, checkpoint_every=0, evaluate_every=0), tmp_path, make_learner=FailingLearner)
    with pytest.raises(LearnerError, match="not finite"):
        run.learn()
    assert find_checkpoint(run.folder, tmp_path).steps == 256
