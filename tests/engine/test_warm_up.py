"""Warm-up: progress reports, background thread, and machine code that is never older than its source."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import racer_env
from racer_env.engine import warm_up, warm_up_in_background

MEASURE = """
import time
start = time.perf_counter()
from racer_env.engine import warm_up
from racer_env.engine.warm_up import is_ready
before = is_ready()
warm_up()
print(int(before), int(is_ready()), time.perf_counter() - start)
"""


def test_progress_is_reported_in_stages_up_to_the_end() -> None:
    reports: list[tuple[str, float]] = []
    warm_up(lambda text, done: reports.append((text, done)))
    assert [done for _, done in reports] == sorted({done for _, done in reports})
    assert reports[0][1] == 0.0
    assert reports[-1] == ("The engine is ready", 1.0)
    assert all("Compiling" in text for text, _ in reports[:-1])


def test_it_runs_in_the_background() -> None:
    thread = warm_up_in_background()
    thread.join(timeout=120)
    assert not thread.is_alive()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Copy the package into its own folder, without compiled code."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(racer_env.__file__).parent, tmp_path / "racer_env", ignore=ignore)
    return tmp_path


def start(folder: Path) -> tuple[bool, bool, float]:
    """Start a new process; return whether machine code was on disk before and after, and the seconds until ready."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    result = subprocess.run(
        [sys.executable, "-c", MEASURE], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    before, after, seconds = result.stdout.split()
    return before == "1", after == "1", float(seconds)


@pytest.mark.slow
def test_a_second_start_loads_the_machine_code_and_a_changed_part_is_compiled_again(copy: Path) -> None:
    *first, cold = start(copy)
    *second, warm = start(copy)
    assert (first, second) == ([False, True], [True, True])
    assert warm < cold / 2
    rays = copy / "racer_env" / "engine" / "rays.py"
    rays.write_text(rays.read_text(encoding="utf-8") + "\n# changed\n", encoding="utf-8")
    assert start(copy)[0] is False, "the tick is in another file than the rays compiled into it"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="blocks the folders with POSIX means")
def test_it_works_without_a_writable_cache_folder(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (copy / "racer_env" / "engine" / "__pycache__").write_text("a file where a folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/nowhere")
    monkeypatch.setenv("HOME", "/dev/null")
    assert start(copy)[:2] == (False, False)
    assert start(copy)[:2] == (False, False)
