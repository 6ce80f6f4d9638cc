"""The distributions: what is in the wheel, and the wheel in an empty environment."""

import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NOT_IN_APP = ("torch", "stable_baselines3", "tensorboard", "Box2D", "pytest")


def call(*command: object, **options: object) -> str:
    """Run a command and return its output; fail with all of it."""
    run = subprocess.run(
        [str(each) for each in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600,
        **options,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout
    return run.stdout


def test_circuits_and_agents_are_in_the_wheel(tmp_path: Path) -> None:
    build = "import sys, hatchling.build; hatchling.build.build_wheel(sys.argv[1])"
    call(sys.executable, "-c", build, tmp_path, cwd=ROOT)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for folder, place in (("assets/circuits", "racer_env/assets/circuits"), ("models", "racer_viewer/models")):
        files = [path.name for path in (ROOT / folder).iterdir()]
        assert len(files) >= 3
        assert {f"{place}/{name}" for name in files} <= set(names)
    assert {f"racer_viewer/translation/{each}/LC_MESSAGES/racer_viewer.mo" for each in ("de", "fr")} <= set(names)
    assert not any(name.startswith("tests/") for name in names)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("twine") is None, reason="python run.py --with release installs it")
def test_distributions_pass_the_checks_of_the_index_and_work_in_an_empty_environment(tmp_path: Path) -> None:
    dist, home = tmp_path / "dist", tmp_path / "home"
    home.mkdir()
    call(sys.executable, "-m", "build", "--no-isolation", "--outdir", dist, ROOT)
    (wheel,), (source,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    assert call(sys.executable, "-m", "twine", "check", "--strict", wheel, source).count("PASSED") == 2
    call(sys.executable, "-m", "check_wheel_contents", wheel)
    with tarfile.open(source) as archive:
        members = {name.partition("/")[2] for name in archive.getnames()}
    assert {"run.py", "requirements/app.lock", "tests/test_wheel.py", "assets/circuits/track-01.json"} <= members

    venv.create(home / "env", with_pip=True)
    programs = home / "env" / ("Scripts" if sys.platform == "win32" else "bin")
    pip = (programs / "python", "-m", "pip", "install", "--no-input", "--no-deps", "--quiet")
    call(*pip, "--require-hashes", "-r", ROOT / "requirements" / "app.lock")
    call(*pip, wheel)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "RACER_"))}
    options = {"cwd": home, "env": {**clean, "HOME": str(home), "RACER_DATA_DIR": str(home / "data")}}
    absent = "import importlib.util, sys; sys.exit(any(map(importlib.util.find_spec, sys.argv[1:])))"
    call(programs / "python", "-c", absent, *NOT_IN_APP, **options)
    report = json.loads(call(programs / "racer-viewer", "selftest", "--json", **options))
    assert report["ok"], report
    assert not report["packaged"]
