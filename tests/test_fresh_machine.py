"""run.py in a folder of its own, with a real venv and pip and a stand-in for the project, without a network."""

import ast
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tomllib
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pip
import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tests.processes import wait_for

ROOT = Path(__file__).resolve().parents[1]
WAIT_LIMIT = 60.0
"""Time limit of a condition [s]."""

STAND_IN = {
    "requirements.lock": "# nothing to install\n",
    "README.md": "[more](docs/nowhere.md)\n",
    "pyproject.toml": """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "racer-viewer"
version = "0"
""",
    "backend.py": """\
import time, zipfile
from pathlib import Path

def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    Path("building").touch()
    while Path("hold").exists():
        time.sleep(0.01)
    name, info = "racer_viewer-0-py3-none-any.whl", "racer_viewer-0.dist-info"
    with zipfile.ZipFile(Path(wheel_directory, name), "w") as wheel:
        wheel.writestr("racer_viewer.pth", str(Path.cwd()))
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: racer-viewer\\nVersion: 0\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return name
""",
    "racer_viewer/__main__.py": """\
import os, sys, time
from pathlib import Path

if sys.argv[1:] == ["play"]:
    try:
        Path("playing").touch()
        time.sleep(600)
    except KeyboardInterrupt:
        time.sleep(0.5)
        Path("saved").touch()
        sys.exit()
if sys.argv[1:] == ["hint"]:
    sys.exit(os.environ["RACER_COMMAND"])
print(os.getcwd(), sys.argv[1:])
sys.exit(7 if sys.argv[1:] == ["fail"] else 0)
""",
    "tool.py": """\
import os, sys
from pathlib import Path

def run(name):
    with Path("checks").open("a") as checks:
        print(name, *sys.argv[1:], file=checks)
    sys.exit(5 if name == os.environ.get("FAILING") else 0)
""",
    "ruff.py": "import tool; tool.run('ruff')\n",
    "mypy.py": "import tool; tool.run('mypy')\n",
    "importlinter/cli.py": "import tool\ndef lint_imports(no_logo): tool.run('lint-imports')\n",
    "pytest.py": "import tool; tool.run('pytest')\n",
}


@dataclass(frozen=True)
class Project:
    root: Path
    pip_log: Path

    @property
    def stamps(self) -> list[Path]:
        return list(self.root.glob(".venv/*.sha256"))

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        """Start run.py from another folder, in a process group that can be sent Ctrl-C."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))}
        pip = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "PIP_LOG": str(self.pip_log)}
        return subprocess.Popen(
            [sys.executable, str(self.root / "run.py"), *arguments],
            cwd=self.root.parent,
            env={**clean, **pip, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=None if sys.platform == "win32" else handle_ctrl_c,
        )

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments, **variables)
        stdout, stderr = process.communicate(timeout=WAIT_LIMIT)
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project of a few lines, whose venv has a copy of pip: installing pip takes seconds."""
    folder = tmp_path_factory.mktemp("fresh machine")
    root = folder / "racer [1]"
    for name, content in STAND_IN.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    for name in ("run.py", "tools/docs.py", "desktop/build.py"):
        (root / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    venv.create(root / ".venv", symlinks=sys.platform != "win32")
    packages = sysconfig.get_path("purelib", vars={"base": str(root / ".venv")})
    shutil.copytree(Path(pip.__file__).parent, Path(packages, "pip"))
    return Project(root, pip_log=folder / "pip.log")


@pytest.fixture
def project(stand_in: Project) -> Project:
    """The stand-in, installed, without traces of earlier runs."""
    first_run = stand_in.run()
    assert first_run.returncode == 0, first_run.stderr
    for trace in (stand_in.pip_log, stand_in.root / "building", stand_in.root / "checks"):
        trace.unlink(missing_ok=True)
    return stand_in


def test_a_second_run_starts_without_pip(project: Project) -> None:
    second_run = project.run()
    assert (second_run.returncode, second_run.stderr) == (0, "")
    assert not project.pip_log.exists()


def test_a_changed_lock_sets_up_again(project: Project) -> None:
    append(project.root / "requirements.lock", "# one more line\n")
    run = project.run()
    assert run.returncode == 0
    assert run.stderr.startswith("Setting up")
    assert run.stderr.count("\n") == 1
    assert project.pip_log.exists()


def test_a_failed_install_is_one_line_and_is_tried_again(project: Project) -> None:
    lock, log = project.root / "requirements.lock", project.root / ".venv" / "setup.log"
    installed = lock.read_text()
    lock.write_text("no-such-package==1.0\n")
    run = project.run()
    lock.write_text(installed)
    announcement, problem = run.stderr.splitlines()
    assert (run.returncode, run.stdout) == (2, "")
    assert announcement.startswith("Setting up")
    assert "network" in problem
    assert str(log) in problem
    assert "no-such-package" in log.read_text()
    assert not project.stamps
    assert project.run().stderr.startswith("Setting up")


def test_a_missing_lock_file_is_one_line(project: Project) -> None:
    lock = project.root / "requirements.lock"
    hidden = lock.rename(project.root / "hidden.lock")
    run = project.run()
    hidden.rename(lock)
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1
    assert str(lock) in run.stderr


@pytest.mark.slow
def test_an_environment_without_its_python_is_made_anew(project: Project) -> None:
    shutil.rmtree(project.root / ".venv" / ("Scripts" if sys.platform == "win32" else "bin"))
    assert project.run().returncode == 0
    assert project.run().stderr == ""


def test_other_arguments_go_to_the_app_in_the_folder_of_the_caller(project: Project) -> None:
    assert project.run("bench", "two words").stdout == f"{project.root.parent} ['bench', 'two words']\n"


def test_the_app_knows_the_command_that_started_it(project: Project) -> None:
    script = project.root / "run.py"  # in a folder with a space
    assert project.run("hint").stderr == f'{Path(sys.executable).name} "{script}"\n'


def test_the_exit_code_is_that_of_the_app(project: Project) -> None:
    assert project.run("fail").returncode == 7


def test_documents_are_checked_without_the_app(project: Project) -> None:
    run = project.run("docs", "--check")
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith("README.md:1: docs/nowhere.md: ")


def test_packaging_is_no_command_of_the_app(project: Project) -> None:
    run = project.run("package", "--help")
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("usage: run.py package ")


def test_the_checks_run_in_order(project: Project) -> None:
    assert project.run("test").returncode == 0
    checks = (project.root / "checks").read_text().splitlines()
    assert checks == [
        "ruff check",
        "ruff format --check",
        "mypy",
        "lint-imports",
        "pytest --numprocesses=auto --maxprocesses=4 --dist=loadfile",
    ]


def test_the_first_failing_check_ends_the_run(project: Project) -> None:
    assert project.run("test", FAILING="mypy").returncode == 5
    assert (project.root / "checks").read_text().splitlines()[-1] == "mypy"


def test_arguments_for_pytest_run_pytest_alone(project: Project) -> None:
    assert project.run("test", "-k", "a lap").returncode == 0
    assert (project.root / "checks").read_text() == "pytest -k a lap\n"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C cannot be sent to another process group")
def test_an_interrupted_set_up_is_taken_up_again(project: Project) -> None:
    hold, building, pyproject = (project.root / name for name in ("hold", "building", "pyproject.toml"))
    installed = pyproject.read_text()
    append(pyproject, "# one more line\n")
    hold.touch()
    run = project.start()
    wait_until(building.exists)
    assert_ctrl_c_ends(run)
    assert not project.stamps

    hold.unlink()
    pyproject.write_text(installed)
    assert project.run().stderr.startswith("Setting up")


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C cannot be sent to another process group")
def test_the_app_has_time_to_save_after_ctrl_c(project: Project) -> None:
    run = project.start("play")
    wait_until((project.root.parent / "playing").exists)
    assert_ctrl_c_ends(run)
    assert (project.root.parent / "saved").exists()


@pytest.mark.parametrize("version", ["3, 6, 15", "3, 10, 13", "3, 15, 0", "4, 0, 0"])
def test_an_unsupported_python_is_one_line(version: str) -> None:
    pretend = f"import pathlib, runpy, subprocess, sys; sys.version_info = ({version})"
    script = f"{pretend}; runpy.run_path('run.py', run_name='__main__')"
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1
    assert "3.11 to 3.14" in run.stderr


def test_an_old_python_can_read_run_py() -> None:
    ast.parse((ROOT / "run.py").read_text(encoding="utf-8"), feature_version=(3, 6))


def test_the_lock_pins_every_requirement_within_its_range() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    locked = [Requirement(line) for line in (ROOT / "requirements.lock").read_text().splitlines() if line[0] != "#"]
    pins = {requirement.name.lower(): str(requirement.specifier) for requirement in locked}
    assert all(pin.startswith("==") and "*" not in pin for pin in pins.values())
    for wanted in map(Requirement, [*project["dependencies"], *project["optional-dependencies"]["dev"]]):
        assert any(bound.operator == "<" for bound in wanted.specifier), f"{wanted} has no upper bound"
        assert pins[wanted.name].removeprefix("==") in wanted.specifier


def test_run_py_and_the_project_want_the_same_pythons() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    source = (ROOT / "run.py").read_text(encoding="utf-8")
    accepted = [minor for minor in range(30) if f"3.{minor}" in SpecifierSet(project["requires-python"])]
    assert f"OLDEST_PYTHON, NEWEST_PYTHON = (3, {accepted[0]}), (3, {accepted[-1]})\n" in source


def append(file: Path, text: str) -> None:
    file.write_text(file.read_text() + text)


def handle_ctrl_c() -> None:
    """Handle SIGINT: a shell's background jobs ignore it, and children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def assert_ctrl_c_ends(run: subprocess.Popen[str]) -> None:
    os.killpg(run.pid, signal.SIGINT)
    _, stderr = run.communicate(timeout=WAIT_LIMIT)
    assert run.returncode == 130
    assert "Traceback" not in stderr


def wait_until(condition: Callable[[], bool]) -> None:
    wait_for(condition, "the process gets this far", WAIT_LIMIT)
