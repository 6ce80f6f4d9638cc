"""Install what is needed into .venv beside this file, and start racer-viewer.

python run.py                 open the app
python run.py test            run all checks; with further arguments, run pytest with them
python run.py package         build the desktop app in dist; --full adds stable-baselines3 and CarRacing-v3
python run.py docs            check the links of the documents and redraw their pictures; --check only checks
python run.py install PART    install optional packages: sb3, games, dev or release
python run.py ARGUMENTS       the same as `racer-viewer ARGUMENTS`
python run.py --with PART ... any of these with optional packages: one of those, ray or peers; ray and peers are in a
                              .venv-PART of their own, and test runs only pytest then

A terminal is asked before more packages are installed than a command names; --yes answers it. Each part has a lock file
in requirements/. Python versions that are too old must be able to parse this file and print
an error: use the syntax of Python 3.6.
"""

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 14)
CTRL_C_GRACE = 30  # s; time for a program to save its work and exit after Ctrl-C

ROOT = Path(__file__).resolve().parent
LOCKS = ROOT / "requirements"
CONTENTS = {
    "app": ("the packages of the app", "nothing works without them", 100),
    "sb3": ("stable-baselines3, torch and TensorBoard", "only SAC, --engine sb3 and TensorBoard need them", 225),
    "games": ("Box2D", "only CarRacing-v3 and other games with Box2D need it", 4),
    "ray": ("Ray", "only --engine ray and tune need it", 400),
    "peers": ("rl_zoo3, sb3-contrib and minari", "only their tests need them", 100),
    "dev": ("tools for tests and packaging", "the app works without them", 75),
    "release": ("tools for releases", "the app works without them", 25),
}
"""Parts in the order of installation: their packages, what needs them, and the size of the download [MB].

A later part may replace a package of an earlier one. On Linux torch is several gigabytes if pip finds no build without
CUDA.
"""
PARTS = tuple(CONTENTS)
OWN_VENV = {"peers": ("sb3",), "ray": ("sb3",)}
"""Parts that are installed in a venv of their own, and the parts that they need there."""
DEVELOPMENT = ("sb3", "games", "dev")
"""Parts that the commands of developers need."""
TORCH_LOCKS = ("torch", "torch-cpu", "torch-cuda")

STATIC_CHECKS = (
    ("-m", "ruff", "check"),
    ("-m", "ruff", "format", "--check"),
    ("-m", "mypy"),
    ("-c", "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_logo=True))"),
)
"""Static checks; they need the packages of the usual venv."""
TESTS = ("-m", "pytest", "--numprocesses=auto", "--maxprocesses=4", "--dist=loadfile")

SCRIPTS = {"package": "desktop/build.py", "docs": "tools/docs.py"}


def main(arguments: "list[str]") -> int:
    if not OLDEST_PYTHON <= sys.version_info[:2] <= NEWEST_PYTHON:
        oldest, newest, this = ("{}.{}".format(*v) for v in (OLDEST_PYTHON, NEWEST_PYTHON, sys.version_info))
        give_up(f"this is Python {this}: install Python {oldest} to {newest} and start run.py with it.")
    extra = ""
    if arguments[:1] == ["--with"]:
        extra, arguments = known_part(arguments[1:2], "--with"), arguments[2:]
    if "--with" in arguments:
        give_up("--with must come first: python run.py --with ray ...")
    command, rest = "".join(arguments[:1]), arguments[1:]
    parts = ["app", *OWN_VENV.get(extra, ()), *([extra] if extra else ())]
    if command == "install":
        parts += [known_part([part], "install") for part in rest or [""]]
    elif command == "package" and "--full" not in rest:
        parts.append("dev")
    elif command == "test" or command in SCRIPTS:
        parts += DEVELOPMENT
    venv = Venv(extra if extra in OWN_VENV else "")
    if command == "test" or command in SCRIPTS:
        if "--yes" in rest:
            rest.remove("--yes")
        elif sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty():
            venv.ask(command, [part for part in parts if part not in ("app", extra)])
    venv.require(parts)
    if command == "install":
        return 0
    if command in SCRIPTS:
        return call(venv.python, ROOT / SCRIPTS[command], *rest)
    if command != "test":
        own_command = subprocess.list2cmdline([Path(sys.executable).name, *sys.argv[: len(sys.argv) - len(arguments)]])
        return call(
            venv.python, "-P", "-m", "racer_viewer", *arguments, env={**os.environ, "RACER_COMMAND": own_command}
        )
    if rest:
        return call(venv.python, "-m", "pytest", *rest, cwd=ROOT)
    checks = (TESTS,) if extra in OWN_VENV else (*STATIC_CHECKS, TESTS)
    exit_codes = (call(venv.python, *check, cwd=ROOT) for check in checks)
    return next(filter(None, exit_codes), 0)


def known_part(name: "list[str]", option: str) -> str:
    """Return the name of an optional part."""
    optional = sorted(part for part in PARTS[1:] if option == "--with" or part not in OWN_VENV)
    if "".join(name) not in optional:
        give_up(f"{option} needs one of: {', '.join(optional)}")
    return name[0]


class Venv:
    """A virtual environment beside this file.

    Each installed part has a stamp: a file with a hash of what it contains, which is empty during its installation.
    """

    def __init__(self, extra: str) -> None:
        self.extra = extra
        self.folder = ROOT / "-".join(filter(None, (".venv", extra)))
        self.python = self.folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        self.log = self.folder / "setup.log"

    def ask(self, command: str, parts: "list[str]") -> None:
        """Ask whether parts that are missing may be installed; give up if not."""
        missing = [part for part in parts if not self.stamp(part)]
        if not missing:
            return
        contents = "; ".join(CONTENTS[part][0] for part in missing)
        size = sum(CONTENTS[part][2] for part in missing)
        question = "{} needs more packages ({}), about {} MB to download. Install them now? [Y/n] "
        print(question.format(command, contents, size), end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("", "y", "yes"):
            give_up(f"{command} needs packages that are not installed: {contents}.")

    def require(self, parts: "list[str]") -> None:
        """Install these parts, and bring all installed ones up to date."""
        wanted = [part for part in PARTS if part in parts or self.stamp(part)]
        outdated = [part for part in wanted if self.stamp(part) != fingerprint(part)]
        if self.python.exists() and not outdated:
            return
        print("Setting up (first run, or after an update) ...", file=sys.stderr, flush=True)
        reuse = self.works()
        if not reuse and self.folder.exists():
            shutil.rmtree(self.folder)
        self.folder.mkdir(exist_ok=True)
        with self.log.open("w", encoding="utf-8") as log:
            if not reuse:
                outdated = wanted
                if run_logged(log, sys.executable, "-m", "venv", self.folder):
                    reason = self.reason("on Debian and Ubuntu, install python3-venv and try again")
                    give_up(f"Python could not create {self.folder.name}: {reason}. Details: {self.log}")
            for part in wanted[wanted.index(outdated[0]) :]:
                problem = self.install(part, log)
                if problem and part in parts:
                    give_up(problem)
                if problem:
                    print("run.py:", problem, file=sys.stderr)

    def install(self, part: str, log: "IO[str]") -> str:
        """Install a part; return what went wrong, if anything.

        A part whose installation was interrupted may have incomplete packages, which are replaced.
        """
        options = ("--ignore-installed",) if self.stamp(part) == "" else ()
        self.write_stamp(part, "")
        if (part == "sb3" and self.pip_torch(log, *options)) or self.pip(part, log, *options):
            packages, need, _ = CONTENTS[self.extra or part]
            reason = self.reason("check the network and try again")
            return f"pip could not install {packages}: {reason}; {need}. Details: {self.log}"
        if part == "app":
            self.link_project()
        self.write_stamp(part, fingerprint(part))
        return ""

    def reason(self, usual: str) -> str:
        """Return why the last command failed and what to do, by its output. usual: for any other output."""
        output = self.log.read_text(encoding="utf-8", errors="replace")
        if "DO NOT MATCH THE HASHES" in output:
            return "a file is not the one in the lock, so it was not installed"
        if "No space left on device" in output:
            return "the disk is full: make room and try again"
        return usual

    def pip_torch(self, log: "IO[str]", *options: str) -> int:
        """Install PyTorch: its build without CUDA where pip finds it, else its usual build, for Linux with CUDA."""
        if self.pip("torch-cpu", log, *options) == 0:
            return 0
        return self.pip("torch", log, *options) or (self.needs_cuda() and self.pip("torch-cuda", log, *options))

    def pip(self, name: str, log: "IO[str]", *options: str) -> int:
        """Install the packages of a lock file, and print their names and sizes as they are downloaded."""
        lock = LOCKS / (name + ".lock")
        pip = (self.python, "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--progress-bar=off")
        packages = [line for line in lock.read_text(encoding="utf-8").splitlines() if line and line[0] not in "# "]
        if not packages:
            return 0
        progress = Progress(name, len(packages))
        exit_code = run_logged(
            log, *pip, "--no-deps", "--no-compile", *options, "--require-hashes", "-r", lock, on_line=progress.show
        )
        progress.end()
        return exit_code

    def link_project(self) -> None:
        """Make this folder importable in the venv, and its entry points known.

        pip could do that with `install --editable`, but it would need a build backend, with a third as many packages
        again as the app.
        """
        import tomllib

        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        base = {"base": str(self.folder), "platbase": str(self.folder)}
        packages = Path(sysconfig.get_path("purelib", "venv", base))
        info = packages / "racer_viewer-{}.dist-info".format(project["version"])
        for old in packages.glob("racer_viewer-*.dist-info"):
            shutil.rmtree(old)
        points = "".join(
            f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in members.items())
            for group, members in project.get("entry-points", {}).items()
        )
        files = {
            packages / "racer_viewer.pth": f"{ROOT}\n",
            info / "METADATA": "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".format(**project),
            info / "INSTALLER": "run.py\n",
            info / "entry_points.txt": points,
        }
        info.mkdir()
        for file, content in files.items():
            file.write_text(content, encoding="utf-8")
        record = "".join(f"{file.relative_to(packages).as_posix()},,\n" for file in (*files, info / "RECORD"))
        (info / "RECORD").write_text(record, encoding="utf-8")

    def needs_cuda(self) -> bool:
        """Return whether PyTorch is installed in its build with CUDA, which must be installed too."""
        builds = self.folder.glob("lib/python3.*/site-packages/torch-*.dist-info/METADATA")
        return sys.platform == "linux" and any("Requires-Dist: nvidia-" in build.read_text("utf-8") for build in builds)

    def works(self) -> bool:
        """Return whether the venv has a working pip and this version of Python."""
        with suppress(OSError):
            pip = subprocess.run(
                [self.python, "-m", "pip", "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            return b"(python %d.%d)" % sys.version_info[:2] in pip.stdout
        return False

    def stamp(self, part: str) -> "str | None":
        """Return the stamp of a part, or None if it was never installed."""
        with suppress(FileNotFoundError):
            return (self.folder / (part + ".installed")).read_text(encoding="utf-8")
        return None

    def write_stamp(self, part: str, content: str) -> None:
        (self.folder / (part + ".installed")).write_text(content, encoding="utf-8")


def fingerprint(part: str) -> str:
    """Return a hash of everything that decides the content of a part; the project is linked by its path."""
    files = [LOCKS / (name + ".lock") for name in (part, *(TORCH_LOCKS if part == "sb3" else ()))]
    contents = [file.read_bytes() for file in (*files, ROOT / "pyproject.toml")]
    return hashlib.sha256(repr((contents, sys.version_info[:2], ROOT)).encode()).hexdigest()


class Progress:
    """Prints which package is downloaded, from pip's output: one line on a terminal, else one line per package."""

    def __init__(self, part: str, packages: int) -> None:
        self.part, self.packages, self.count = part, packages, 0
        self.package, self.shown = "", ""

    def show(self, line: str) -> None:
        """Take a line of pip's output."""
        first, _, rest = line.strip().partition(" ")
        if first == "Ignoring":  # a package of another platform
            self.packages -= 1
        elif first in ("Collecting", "Processing"):
            self.count += 1
            self.package = " ".join(re.split("==|-", Path(rest.split()[0]).name)[:2])
            self.print(self.package, final=first == "Processing")
        elif first in ("Downloading", "Using") and "(" in rest:
            self.print(f"{self.package}, {rest[rest.rindex('(') + 1 :].rstrip(')')}", final=True)
        elif first == "Installing":
            self.print(f"installing {self.count} packages", final=True)

    def print(self, text: str, final: bool) -> None:
        """Print the progress. final: whether this is all that is known of the package."""
        text = f"  {self.part} {self.count}/{self.packages}: {text}"
        if sys.stderr.isatty():
            text = text[: shutil.get_terminal_size().columns - 1]
            print("\r" + text.ljust(len(self.shown)), end="", file=sys.stderr, flush=True)
            self.shown = text
        elif final:
            print(text, file=sys.stderr, flush=True)

    def end(self) -> None:
        """Clear the line on the terminal."""
        if self.shown:
            print("\r" + " " * len(self.shown), end="\r", file=sys.stderr, flush=True)


def run_logged(log: "IO[str]", *command: Any, on_line: "Callable[[str], None]" = lambda line: None) -> int:
    """Run a command with its output in a log file and, line by line, in a function; return its exit code."""
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        encoding="utf-8", errors="replace",
    )  # fmt: skip
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    try:
        for line in process.stdout or ():
            log.write(line)
            log.flush()
            on_line(line)
        return process.wait()
    finally:
        process.terminate()
        process.wait()


def call(*command: Any, **options: Any) -> int:
    """Run a command and return its exit code. The command itself handles Ctrl-C and SIGTERM."""
    process = subprocess.Popen(command, **options)
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    try:
        exit_code = process.wait()
    except KeyboardInterrupt:
        with suppress(subprocess.TimeoutExpired):
            process.wait(CTRL_C_GRACE)
        raise
    finally:
        process.terminate()
    return exit_code if exit_code >= 0 else 128 - exit_code


def give_up(problem: str) -> None:
    print("run.py:", problem, file=sys.stderr)
    raise SystemExit(2)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        give_up(f"{error}. Check that the folder is complete and writable; if it is, delete .venv and try again.")
