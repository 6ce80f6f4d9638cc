"""The wheel contains everything that the app needs."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_circuits_and_agents_are_in_the_wheel(tmp_path: Path) -> None:
    build = "import sys, hatchling.build; hatchling.build.build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for folder, place in (("assets/circuits", "racer_env/assets/circuits"), ("models", "racer_viewer/models")):
        files = [path.name for path in (ROOT / folder).iterdir()]
        assert len(files) >= 3
        assert {f"{place}/{name}" for name in files} <= set(names)
    assert not any(name.startswith("tests/") for name in names)
