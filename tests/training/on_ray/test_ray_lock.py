"""Requirements of `run.py --with ray`."""

import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[3]


def pins(*parts: str) -> dict[str, Requirement]:
    """Return the pinned requirements of the lock files of some parts by name, without their hashes."""
    texts = ((ROOT / "requirements" / f"{part}.lock").read_text(encoding="utf-8") for part in parts)
    lines = (line for text in texts for line in text.splitlines())
    pinned = (line.removesuffix(" \\") for line in lines if line and not line.startswith(("#", " ")))
    return {each.name: each for each in map(Requirement, pinned)}


def test_with_ray_everything_else_is_the_same_but_gymnasium() -> None:
    usual, ray = pins("app", "sb3", "torch", "games", "dev"), pins("ray")
    assert {name for name in usual.keys() & ray if ray[name] != usual[name]} == {"gymnasium"}


def test_its_gymnasium_is_the_oldest_that_the_project_supports() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (wanted,) = (each for each in map(Requirement, project["dependencies"]) if each.name == "gymnasium")
    oldest = next(each.version for each in wanted.specifier if each.operator == ">=")
    assert str(pins("ray")["gymnasium"].specifier) == f"=={oldest}"


def test_its_ray_is_within_the_range_of_the_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = Requirement(project["optional-dependencies"]["ray"][0])
    assert str(pins("ray")["ray"].specifier).removeprefix("==") in wanted.specifier


def test_run_py_says_where_its_option_goes() -> None:
    run = subprocess.run([sys.executable, ROOT / "run.py", "train", "--with", "ray"], capture_output=True, text=True)
    assert run.returncode == 2
    assert run.stderr.splitlines() == ["run.py: --with must come first: python run.py --with ray ..."]
