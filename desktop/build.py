"""Build the packaged app: `python run.py package [--full]`.

The result in `dist/` is the folder of the app (on macOS also the .app) and an archive of it.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SPEC = ROOT / "desktop" / "racer-viewer.spec"
STRIPPED = ("libtorch_cpu.so", "libtorch_python.so", "libllvmlite.so", "libpython3*.so*")
"""Libraries to strip; others do not get smaller, or break, such as numpy's openblas."""
LISTED_PARTS = 20
"""Number of largest parts that are printed."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="run.py package", description="Build the app as a folder and an archive.")
    parser.add_argument(
        "--full", action="store_true", help="with stable-baselines3, TensorBoard and CarRacing-v3: three times the size"
    )
    parser.add_argument("--no-archive", action="store_true", help="build only the folder")
    parser.add_argument("--to", type=Path, default=ROOT / "dist", metavar="DIR", help="target folder (default: dist)")
    options = parser.parse_args()
    name = "racer-viewer-full" if options.full else "racer-viewer"
    build(options.full, options.to)
    folder = options.to / name
    strip(folder)
    print_sizes(folder)
    if not options.no_archive:
        print(f"Packing {name} ...", flush=True)
        archive = pack(folder)
        print(f"{archive}: {archive.stat().st_size / 2**20:,.0f} MiB")
    return 0


def build(full: bool, target: Path) -> None:
    """Run PyInstaller in a working folder of its own, so that several builds can run at once."""
    command = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level", "WARN", "--distpath", str(target)]
    with tempfile.TemporaryDirectory(prefix="racer-build-") as work:
        options = ["--workpath", work, str(SPEC), *(["--", "--full"] if full else [])]
        subprocess.run([*command, *options], check=True, cwd=ROOT)


def strip(folder: Path) -> None:
    """Remove symbols from libraries, where `strip` is available."""
    program = shutil.which("strip")
    if program is None or not sys.platform.startswith("linux"):
        return
    for pattern in STRIPPED:
        for file in folder.rglob(pattern):
            if not file.is_symlink():
                subprocess.run([program, "--strip-unneeded", str(file)], check=True)


def print_sizes(folder: Path) -> None:
    """Print the size of the app and of its largest parts."""
    inside = folder / "_internal"
    sizes = sorted(((size_of(each), each.name) for each in inside.iterdir()), reverse=True)
    total = size_of(folder)
    print(f"{folder}: {total / 2**20:,.0f} MiB")
    for size, name in sizes[:LISTED_PARTS]:
        print(f"  {size / 2**20:8,.1f} MiB  {name}")


def size_of(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.lstat().st_size for file in files if file.is_file() or file.is_symlink())


def pack(folder: Path) -> Path:
    """Pack the app into an archive that keeps executable bits: a zip on Windows, else a tar."""
    machine = {"win32": "windows", "darwin": "macos"}.get(sys.platform, "linux")
    stem = folder.with_name(f"{folder.name}-{version('racer-viewer')}-{machine}-{platform.machine().lower()}")
    if sys.platform == "win32":
        return Path(shutil.make_archive(str(stem), "zip", folder.parent, folder.name))
    packed = folder.with_suffix(".app") if sys.platform == "darwin" else folder
    target = stem.with_name(stem.name + ".tar.xz")
    with tarfile.open(target, "w:xz", preset=2) as archive:
        archive.add(packed, packed.name, filter=_anonymous)
    return target


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Remove the name of the user who built the app."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    sys.exit(main())
