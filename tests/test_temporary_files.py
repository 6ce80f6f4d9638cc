"""Temporary files: those of killed processes are removed by the next start, those of living ones never."""

import os
import platform
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from racer_viewer.agents import load_agent
from racer_viewer.paths import atomic_write, clean_data_folder, is_running, remove_abandoned, temporary_path
from racer_viewer.replays import load_replay, save_replay
from racer_viewer.training.config import preset
from racer_viewer.training.run_folder import latest_model
from racer_viewer.training.sb3 import SB3Learner
from tests.modes.person import Person
from tests.replays.replay_drives import ring_run

WRITER = """
import sys, time
from pathlib import Path
from racer_viewer.paths import atomic_write
with atomic_write(Path(sys.argv[1])) as temporary:
    temporary.write_bytes(b"half")
    print("written", flush=True)
    time.sleep(600.0)
"""


def start_writer(path: Path) -> subprocess.Popen[str]:
    """Start a process that is writing a file; return when its temporary file exists."""
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "written\n"
    return writer


def hidden(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.startswith(".")]


def kill(writer: subprocess.Popen[str]) -> None:
    writer.kill()
    writer.communicate()


def test_files_of_killed_writers_are_removed_and_those_of_living_ones_stay(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "mine"
    killed, living = start_writer(run / "model.zip"), start_writer(run / "other.zip")
    try:
        assert len(hidden(run)) == 2
        clean_data_folder(tmp_path)
        assert len(hidden(run)) == 2
        kill(killed)
        assert latest_model(run) is None
        with atomic_write(run / "mine.json") as mine:
            clean_data_folder(tmp_path)
            assert sorted(path.name.split(".")[1] for path in hidden(run)) == ["mine", "other"]
            mine.write_text("{}")
    finally:
        kill(living)
    clean_data_folder(tmp_path)
    assert [path.name for path in run.iterdir()] == ["mine.json"]


def test_the_next_writer_in_a_folder_cleans_it(tmp_path: Path) -> None:
    kill(start_writer(tmp_path / "model.zip"))
    assert len(hidden(tmp_path)) == 1
    with atomic_write(tmp_path / "other.txt") as temporary:
        temporary.write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["other.txt"]


def test_the_window_cleans_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("SDL_AUDIODRIVER", "dummy")
    kill(start_writer(tmp_path / "runs" / "mine" / "model.zip"))
    person = Person(tmp_path)
    end = time.monotonic() + 60.0

    def advance() -> None:
        if not hidden(tmp_path / "runs" / "mine") or time.monotonic() > end:
            person.app.context.quit()

    person.app.context.screens[0].tick = lambda controls: advance()  # type: ignore[method-assign]
    person.app.run()
    assert not hidden(tmp_path / "runs" / "mine")


def test_only_abandoned_temporary_files_are_removed(tmp_path: Path) -> None:
    with temporary_path(tmp_path / "mine.zip") as mine:
        name = mine.name
    pid, host, number = name.split(".")[2].split("-")
    assert int(pid) == os.getpid()
    killed = subprocess.Popen([sys.executable, "-c", ""])
    killed.wait()
    other = f"{int(host, 16) ^ 1:08x}"
    stay = [
        ".hidden.zip", "model.zip", f".a.{killed.pid}-{host}.tmp", f"a.{killed.pid}-{host}-{number}.tmp.zip",
        f".young.{killed.pid}-{other}-{number}.tmp.zip", f".parent.{os.getppid()}-{host}-{number}.tmp.zip",
    ]  # fmt: skip
    go = [
        f".a.{killed.pid}-{host}-{number}.tmp.zip", f".b.{killed.pid}-{host}-{number}.tmp",
        f".same-pid.{pid}-{host}-{number}.tmp.zip", f".old.{os.getppid()}-{other}-{number}.tmp.zip",
    ]  # fmt: skip
    for each in (*stay, *go):
        (tmp_path / each).write_text("")
    folder = f".film.{killed.pid}-{host}-{number}.tmp"
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "1.png").write_text("")
    os.utime(tmp_path / go[-1], (0.0, 0.0))
    remove_abandoned(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(stay)
    assert platform.node() not in name


def test_a_process_is_known_to_run() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert is_running(process.pid)
    assert is_running(os.getpid())
    process.communicate(b"\n")
    assert not is_running(process.pid)
    assert not is_running(2**32 + 5)


@pytest.mark.parametrize("now", [-(10.0**9), 0.0, 6.0 * 10**9], ids=["1938", "1970", "2160"])
def test_the_clock_does_not_end_a_run(now: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: now)
    with pytest.raises((ValueError, zipfile.struct.error)):  # type: ignore[attr-defined]
        zipfile.ZipFile(tmp_path / "other.zip", "w").writestr("member", b"")
    learner = SB3Learner(preset("ppo"))
    try:
        model = learner.save(tmp_path / "model.zip")
    finally:
        learner.close()
    os.utime(model, (now, now))
    assert load_agent(model).normalised
    save_replay(ring_run(), tmp_path / "drive.racer")
    assert load_replay(tmp_path / "drive.racer").ticks == ring_run().ticks


def test_a_writer_that_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    if sys.platform == "win32":
        pytest.skip("sends SIGINT")
    writer = start_writer(tmp_path / "model.zip")
    writer.send_signal(signal.SIGINT)
    writer.communicate(timeout=60.0)
    assert not list(tmp_path.iterdir())
