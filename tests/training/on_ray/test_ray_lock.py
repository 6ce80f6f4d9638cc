"""Requirements of `run.py --with ray`."""

import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[3]


def pins(lock: str) -> dict[str, Requirement]:
    lines = (ROOT / lock).read_text(encoding="utf-8").splitlines()
    return {each.name: each for each in map(Requirement, (line for line in lines if line[0] != "#"))}


def test_with_ray_everything_else_is_the_same_but_gymnasium() -> None:
    usual, with_ray = pins("requirements.lock"), pins("requirements-ray.lock")
    assert {name for name in usual if with_ray.get(name) != usual[name]} == {"gymnasium"}


def test_its_gymnasium_is_the_oldest_that_the_project_supports() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (wanted,) = (each for each in map(Requirement, project["dependencies"]) if each.name == "gymnasium")
    oldest = next(each.version for each in wanted.specifier if each.operator == ">=")
    assert str(pins("requirements-ray.lock")["gymnasium"].specifier) == f"=={oldest}"


def test_its_ray_is_within_the_range_of_the_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = Requirement(project["optional-dependencies"]["ray"][0])
    assert str(pins("requirements-ray.lock")["ray"].specifier).removeprefix("==") in wanted.specifier


def test_run_py_says_what_it_can_be_with() -> None:
    for arguments in (["--with"], ["--with", "sun"]):
        run = subprocess.run([sys.executable, ROOT / "run.py", *arguments], capture_output=True, text=True)
        assert run.returncode == 2
        assert run.stderr.splitlines() == ["run.py: --with needs one of: peers, ray"]


def test_run_py_says_where_its_option_goes() -> None:
    run = subprocess.run([sys.executable, ROOT / "run.py", "train", "--with", "ray"], capture_output=True, text=True)
    assert run.returncode == 2
    assert run.stderr.splitlines() == ["run.py: --with must come first: python run.py --with ray ..."]
