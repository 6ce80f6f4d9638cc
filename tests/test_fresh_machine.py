"""run.py in a folder of its own, with a real venv and pip and a stand-in for the project, without a network."""

import ast
import hashlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pip
import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tests.processes import wait_for

ROOT = Path(__file__).resolve().parents[1]
WAIT_LIMIT = 60.0
"""Time limit of a condition [s]."""

EMPTY_LOCK = "# nothing to install\n"
LOCKS = ("app", "dev", "games", "peers", "ray", "release", "sb3", "torch", "torch-cpu", "torch-cuda")
STAND_IN = {
    **{f"requirements/{name}.lock": EMPTY_LOCK for name in LOCKS},
    "README.md": "[more](docs/nowhere.md)\n",
    "pyproject.toml": """\
[project]
name = "racer-viewer"
version = "0"
[project.entry-points.racer_points]
one = "racer_viewer:main"
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
        return [stamp for stamp in self.root.glob(".venv/*.installed") if stamp.read_text()]

    def installed(self, name: str) -> list[Path]:
        """Return the descriptions of the installed packages whose name and version start with `name`."""
        return list(self.root.glob(f".venv/**/{name}*.dist-info"))

    def start(self, *arguments: str, terminal: int | None = None, **variables: str) -> subprocess.Popen[str]:
        """Start run.py from another folder, in a process group that can be sent Ctrl-C.

        terminal: file descriptor of its input and output; by default it has pipes.
        """
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))}
        pip = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "PIP_LOG": str(self.pip_log)}
        return subprocess.Popen(
            [sys.executable, str(self.root / "run.py"), *arguments],
            cwd=self.root.parent,
            env={**clean, **pip, **variables},
            stdin=terminal,
            stdout=subprocess.PIPE if terminal is None else terminal,
            stderr=subprocess.PIPE if terminal is None else terminal,
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
    for trace in (stand_in.pip_log, stand_in.root / "checks"):
        trace.unlink(missing_ok=True)
    return stand_in


def test_a_second_run_starts_without_pip(project: Project) -> None:
    second_run = project.run()
    assert (second_run.returncode, second_run.stderr) == (0, "")
    assert not project.pip_log.exists()


def test_a_changed_lock_sets_up_again(project: Project) -> None:
    lock = project.root / "requirements" / "app.lock"
    lock.write_text(wheel_in(project.root, "fresh", "1"))
    run = project.run()
    lock.write_text(EMPTY_LOCK)
    assert run.returncode == 0
    announcement, *progress = run.stderr.splitlines()
    assert announcement.startswith("Setting up")
    assert progress == ["  app 1/1: fresh 1", "  app 1/1: installing 1 packages"]
    assert project.pip_log.exists()


def test_a_failed_install_is_one_line_and_is_tried_again(project: Project) -> None:
    lock, log = project.root / "requirements" / "app.lock", project.root / ".venv" / "setup.log"
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
    assert not (project.root / ".venv" / "app.installed").read_text()
    assert project.run().stderr.startswith("Setting up")


def test_without_network_one_line_names_what_is_missing_and_what_needs_it(project: Project) -> None:
    lock = project.root / "requirements" / "games.lock"
    lock.write_text("no-such-package==1.0\n")
    run = project.run("--with", "games", "bench")
    assert (run.returncode, run.stdout) == (2, "")
    _, problem = run.stderr.splitlines()
    assert problem.startswith("run.py: pip could not install Box2D: check the network and try again; only CarRacing-v3")
    assert project.run("bench").returncode == 0, "everything else works without it"
    lock.write_text(EMPTY_LOCK)


def test_a_part_that_cannot_be_updated_does_not_stop_what_works_without_it(project: Project) -> None:
    lock = project.root / "requirements" / "release.lock"
    assert project.run("install", "release").returncode == 0
    lock.write_text("no-such-package==1.0\n")
    run = project.run("bench")
    lock.write_text(EMPTY_LOCK)
    assert run.returncode == 0
    assert "run.py: pip could not install tools for releases" in run.stderr
    assert "bench" in run.stdout
    assert project.run("bench").stderr == ""


FULL_DISK = "sys.exit('ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device')"


def test_a_full_disk_is_named(project: Project) -> None:
    lock, program = project.root / "requirements" / "app.lock", next(project.root.glob(".venv/**/pip/__main__.py"))
    usual = program.read_text(encoding="utf-8")
    lock.write_text("something==1.0\n")
    program.write_text(f"import sys\nif 'install' in sys.argv: {FULL_DISK}\n{usual}", encoding="utf-8")
    run = project.run()
    program.write_text(usual, encoding="utf-8")
    lock.write_text(EMPTY_LOCK)
    assert run.returncode == 2
    assert "the disk is full: make room and try again" in run.stderr.splitlines()[-1]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(
    ("answer", "arguments", "code"), [("y", [], 0), ("", [], 0), ("n", [], 2), (None, ["--yes"], 0)]
)
def test_a_terminal_is_asked_before_the_parts_of_a_command_are_installed(
    project: Project, answer: str | None, arguments: list[str], code: int
) -> None:
    import pty

    forget_optional_parts(project)
    terminal, theirs = pty.openpty()
    process = project.start("test", "-k", "lap", *arguments, terminal=theirs)
    os.close(theirs)
    if answer is not None:
        question = shown_until(terminal, b"[Y/n]")
        assert b"test needs more packages (stable-baselines3, torch and TensorBoard; Box2D; tools for tests" in question
        os.write(terminal, f"{answer}\n".encode())
    shown = shown_until(terminal, b"")
    assert process.wait(WAIT_LIMIT) == code
    os.close(terminal)
    forget_optional_parts(project)
    assert (project.root / "checks").exists() == (code == 0)
    if code:
        assert b"run.py: test needs packages that are not installed" in shown
    else:
        assert (project.root / "checks").read_text() == "pytest -k lap\n"
        assert b"[Y/n]" not in shown


def forget_optional_parts(project: Project) -> None:
    for stamp in project.root.glob(".venv/*.installed"):
        if stamp.stem != "app":
            stamp.unlink()


def shown_until(terminal: int, end: bytes) -> bytes:
    """Read a pseudo-terminal until a text was shown; if it is empty, until the other side is closed."""
    shown = b""
    while not end or end not in shown:
        try:
            part = os.read(terminal, 1000)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        shown += part
    return shown


def wheel_in(folder: Path, name: str, version: str, requires: str = "") -> str:
    """Write an empty wheel; return its line in a lock file."""
    wheel, info = folder / f"{name}-{version}-py3-none-any.whl", f"{name}-{version}.dist-info"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")
    return f"./{wheel.name} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


def test_only_files_with_the_hash_of_the_lock_are_installed(project: Project) -> None:
    lock, log = project.root / "requirements" / "app.lock", project.root / ".venv" / "setup.log"
    line = wheel_in(project.root, "small", "1")
    lock.write_text(line)
    right = project.run()
    assert (right.returncode, len(project.installed("small"))) == (0, 1)
    start, digest = line.strip().split("sha256:")
    lock.write_text(f"{start}sha256:{digest[::-1]}\n")
    wrong = project.run()
    assert (wrong.returncode, wrong.stderr.count("run.py: ")) == (2, 1)
    assert "DO NOT MATCH THE HASHES" in log.read_text()
    lock.write_text(EMPTY_LOCK)


NOT_FOUND = "no-such-package==1.0 --hash=sha256:" + 64 * "0" + "\n"


@pytest.mark.parametrize(
    ("cpu", "usual", "cuda", "installed"),
    [
        ("torch 1+cpu", NOT_FOUND, NOT_FOUND, "torch-1+cpu"),
        (NOT_FOUND, "torch 2", NOT_FOUND, "torch-2"),
        (NOT_FOUND, "torch 3 cuda", "cuda 1", "cuda-1"),
        (NOT_FOUND, "torch 3 cuda", NOT_FOUND, None),
        (NOT_FOUND, NOT_FOUND, EMPTY_LOCK, None),
    ],
)
def test_pytorch_is_installed_without_cuda_where_pip_finds_that_build(
    project: Project, cpu: str, usual: str, cuda: str, installed: str | None
) -> None:
    """The lock of CUDA is installed only after a PyTorch that requires it."""
    for name, content in {"torch-cpu": cpu, "torch": usual, "torch-cuda": cuda}.items():
        if len(words := content.split()) in (2, 3) and "--hash" not in content and content != EMPTY_LOCK:
            requires = "Requires-Dist: nvidia-nowhere==1\n" if "cuda" in words[2:] else ""
            content = wheel_in(project.root, words[0], words[1], requires)
        (project.root / "requirements" / f"{name}.lock").write_text(content)
    run = project.run("install", "sb3")
    for name in ("torch-cpu", "torch", "torch-cuda"):
        (project.root / "requirements" / f"{name}.lock").write_text(EMPTY_LOCK)
    assert run.returncode == (0 if installed else 2), run.stderr
    if installed:
        assert project.installed(installed)


def test_parts_are_installed_when_they_are_asked_for_and_stay_up_to_date(project: Project) -> None:
    lock = project.root / "requirements" / "dev.lock"
    lock.write_text(wheel_in(project.root, "helpful", "1"))
    assert project.run().returncode == 0
    assert not project.installed("helpful")
    run = project.run("--with", "dev", "hint")
    assert "--with dev" in run.stderr.splitlines()[-1]
    assert project.installed("helpful-1")
    lock.write_text(wheel_in(project.root, "helpful", "2"))
    run = project.run()
    assert run.stderr.splitlines()[1:] == ["  dev 1/1: helpful 2", "  dev 1/1: installing 1 packages"]
    assert project.installed("helpful-2")
    lock.write_text(EMPTY_LOCK)


@pytest.mark.parametrize("arguments", [["install"], ["install", "sun"], ["--with"], ["--with", "sun"]])
def test_an_unknown_part_is_one_line(project: Project, arguments: list[str]) -> None:
    run = project.run(*arguments)
    assert run.returncode == 2
    [line] = run.stderr.splitlines()
    own_venv = ", peers, ray" if arguments[0] == "--with" else ""
    assert line == f"run.py: {arguments[0]} needs one of: dev, games{own_venv}, release, sb3"


def test_the_project_is_importable_in_the_venv_with_its_entry_points(project: Project) -> None:
    code = (
        "import importlib.metadata as m, racer_viewer; print(racer_viewer.__path__[0], m.version('racer-viewer'), "
        "*m.entry_points(group='racer_points'))"
    )
    bin_folder = "Scripts" if sys.platform == "win32" else "bin"
    python = project.root / ".venv" / bin_folder / "python"
    printed = subprocess.run([python, "-c", code], cwd=project.root.parent, capture_output=True, text=True)
    assert str(project.root / "racer_viewer") in printed.stdout, printed.stderr
    assert "EntryPoint(name='one', value='racer_viewer:main', group='racer_points')" in printed.stdout


def test_a_missing_lock_file_is_one_line(project: Project) -> None:
    lock = project.root / "requirements" / "app.lock"
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
    assert run.stderr.splitlines()[-1].startswith("README.md:1: docs/nowhere.md: ")


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


BUILDING = """\
import time
from pathlib import Path

def build_wheel(folder, config_settings=None, metadata_directory=None):
    Path({building!r}).touch()
    while Path({hold!r}).exists():
        time.sleep(0.01)
    raise SystemExit("the build was not interrupted")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C cannot be sent to another process group")
def test_an_interrupted_set_up_is_taken_up_again(project: Project) -> None:
    hold, building, lock = (project.root / name for name in ("hold", "building", "requirements/app.lock"))
    hold.touch()
    source = project.root / "held-1.tar.gz"
    with tarfile.open(source, "w:gz") as archive:
        for name, content in {
            "backend.py": BUILDING.format(building=str(building), hold=str(hold)),
            "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
            "PKG-INFO": "Metadata-Version: 2.1\nName: held\nVersion: 1\n",
        }.items():
            entry = tarfile.TarInfo(f"held-1/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content.encode()))
    small = wheel_in(project.root, "small", "2")
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    lock.write_text(f"{small}./{source.name} --hash=sha256:{digest}\n")
    run = project.start()
    wait_until(building.exists)
    assert_ctrl_c_ends(run)
    assert not (project.root / ".venv" / "app.installed").read_text()

    hold.unlink()
    lock.write_text(small)
    assert project.run().stderr.startswith("Setting up")
    assert project.installed("small-2")
    lock.write_text(EMPTY_LOCK)


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
    extras, own_name = project["optional-dependencies"], project["name"]
    parts = {"app": [*project["dependencies"], *extras["video"]], "dev": extras["dev"] + extras["uvloop"]}
    for part in ("app", "sb3", "games", "ray", "dev", "release"):
        names = (part, "torch") if part == "sb3" else (part,)
        pins = {pin.name: pin for name in names for pin in locked(ROOT / "requirements" / f"{name}.lock")}
        for wanted in map(Requirement, parts.get(part) or extras[part]):
            if wanted.name != own_name:
                assert any(bound.operator == "<" for bound in wanted.specifier), f"{wanted} has no upper bound"
                assert str(pins[wanted.name].specifier).removeprefix("==") in wanted.specifier


def test_the_app_needs_no_torch_and_no_tools() -> None:
    names = {pin.name for pin in locked(ROOT / "requirements" / "app.lock")}
    assert len(names) < 25
    assert not names & {"torch", "stable-baselines3", "tensorboard", "box2d", "pyinstaller", "pytest", "mypy", "ruff"}


@pytest.mark.parametrize("part", ["app", "sb3", "games", "dev", "release"])
def test_a_part_needs_no_packages_but_its_own_and_those_of_the_app(part: str) -> None:
    """`run.py package` installs the part `dev` alone, for example."""
    locks = ("app", part, *(["torch"] if part == "sb3" else []))
    there = {canonicalize_name(pin.name) for lock in locks for pin in locked(ROOT / "requirements" / f"{lock}.lock")}
    for pin in locked(ROOT / "requirements" / f"{part}.lock"):
        try:
            needed = [Requirement(each) for each in metadata.requires(pin.name) or ()]
        except metadata.PackageNotFoundError:
            continue  # not installed here
        for each in needed:
            if each.marker is None or each.marker.evaluate({"extra": ""}):
                assert canonicalize_name(each.name) in there, f"{pin.name} needs {each}"


def test_parts_of_one_environment_want_the_same_versions() -> None:
    chosen: dict[str, str] = {}
    for part in ("app", "sb3", "games", "dev", "release"):
        for pin in locked(ROOT / "requirements" / f"{part}.lock"):
            assert chosen.setdefault(pin.name, str(pin.specifier)) == str(pin.specifier), pin.name


@pytest.mark.parametrize("lock", sorted((ROOT / "requirements").glob("*.lock")), ids=lambda lock: lock.stem)
def test_every_package_of_a_lock_has_one_version_and_hashes(lock: Path) -> None:
    text = re.sub("^#.*\n", "", lock.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for entry in re.split(r"\n(?! )", text.strip()):
        pin, *hashes = [line.removesuffix("\\").strip() for line in entry.splitlines()]
        assert hashes, f"{pin} has no hashes: run tools/locks.py"
        assert all(re.fullmatch("--hash=sha256:[0-9a-f]{64}", each) for each in hashes)
        (specifier,) = Requirement(pin).specifier
        assert specifier.operator == "=="
        assert "*" not in specifier.version


def test_run_py_and_the_project_want_the_same_pythons() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    source = (ROOT / "run.py").read_text(encoding="utf-8")
    accepted = [minor for minor in range(30) if f"3.{minor}" in SpecifierSet(project["requires-python"])]
    assert f"OLDEST_PYTHON, NEWEST_PYTHON = (3, {accepted[0]}), (3, {accepted[-1]})\n" in source


def locked(lock: Path) -> list[Requirement]:
    """Return the pins of a lock file."""
    lines = lock.read_text(encoding="utf-8").splitlines()
    return [Requirement(line.removesuffix("\\")) for line in lines if not line.startswith(("#", " "))]


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
