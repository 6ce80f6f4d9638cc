"""Commands that need packages which are not installed: run.py installs them, after a question on a terminal."""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from racer_viewer.cli import main
from racer_viewer.optional import PARTS

ROOT = Path(__file__).parents[2]
RUN_PY = """\
import json, os, sys
print(json.dumps([sys.argv[1:], os.environ["RACER_INSTALLED"]]))
sys.exit(7)
"""
without_ray = pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is here")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source with a run.py that prints its arguments instead of installing."""
    folder = tmp_path_factory.mktemp("source")
    for package in ("racer_env", "racer_viewer"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "run.py").write_text(RUN_PY)
    return folder


def command_of(source: Path, **variables: str) -> tuple[list[str], dict[str, str]]:
    code = f"import sys; sys.path.insert(0, {str(source)!r}); from racer_viewer.cli import main; sys.exit(main())"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RACER_")}
    return [sys.executable, "-P", "-c", code], {**clean, **variables}


@without_ray
def test_without_a_terminal_packages_are_installed_and_the_command_runs_again(source: Path) -> None:
    command, environment = command_of(source, RACER_COMMAND="python run.py")
    command += ["tune", "--trials", "2"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert run.returncode == 7, run.stderr
    assert json.loads(run.stdout) == [["--with", "ray", "tune", "--trials", "2"], "ray"]


@without_ray
@pytest.mark.parametrize("variables", [{}, {"RACER_COMMAND": "python run.py", "RACER_INSTALLED": "ray"}])
def test_nothing_is_installed_without_run_py_or_a_second_time(source: Path, variables: dict[str, str]) -> None:
    command, environment = command_of(source, **variables)
    run = subprocess.run([*command, "tune"], env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert (run.returncode, run.stdout) == (2, "")
    [line] = run.stderr.splitlines()
    assert "not installed: use python run.py --with ray …, or pip install" in line


@without_ray
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(("answer", "options", "code"), [("y", [], 7), ("", [], 7), ("n", [], 2), (None, ["--yes"], 7)])
def test_a_terminal_is_asked_once(source: Path, answer: str | None, options: list[str], code: int) -> None:
    import pty

    command, environment = command_of(source, RACER_COMMAND="python run.py")
    terminal, theirs = pty.openpty()
    process = subprocess.Popen(
        [*command, "tune", *options], env=environment, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, text=True
    )
    os.close(theirs)
    if answer is not None:
        shown = b""
        while b"[Y/n]" not in shown:
            shown += os.read(terminal, 1000)
        assert b"--engine ray and tune need more packages, about" in shown
        os.write(terminal, f"{answer}\n".encode())
    stdout, _ = process.communicate(timeout=60)
    os.close(terminal)
    assert process.returncode == code
    assert ("--with" in stdout) == (code == 7)


def test_a_part_whose_installation_was_interrupted_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    part = PARTS["video"]
    assert part.is_installed
    (tmp_path / "video.installed").touch()
    assert not part.is_installed
    (tmp_path / "video.installed").write_text("complete")
    assert part.is_installed


@without_ray
def test_the_packaged_app_says_where_to_get_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.frozen", True, raising=False)
    assert main(["tune"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "the packaged app does not include them: get the source" in line
    assert "pip" not in line
