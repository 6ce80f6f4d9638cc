"""Write the hashes of all files of every pinned package into the lock files.

python tools/locks.py [LOCK ...]

Versions stay as they are: edit a pin, then run this. Needs `uv` on the path and the package index.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LOCKS = Path(__file__).resolve().parents[1] / "requirements"
BY_HAND = "torch-cpu.lock"
"""Lock of a file that the package index does not list."""


def comments_and_pins(lock: Path) -> tuple[list[str], list[str]]:
    """Return the comments and the pinned requirements of a lock file, without hashes."""
    lines = [line.removesuffix("\\").rstrip() for line in lock.read_text(encoding="utf-8").splitlines()]
    comments = [line for line in lines if line.startswith("#")]
    return comments, [line for line in lines if line and not line.startswith(("#", " "))]


def with_hashes(pins: list[str]) -> list[str]:
    """Return the lines of a lock file: each pin with the hashes of its files for all platforms."""
    command = "uv pip compile - --no-deps --universal --generate-hashes --no-annotate --no-header --quiet"
    return subprocess.run(
        command.split(), input="\n".join(pins), stdout=subprocess.PIPE, text=True, check=True
    ).stdout.splitlines()


def main(names: list[str]) -> None:
    for lock in [Path(name) for name in names] or sorted(set(LOCKS.glob("*.lock")) - {LOCKS / BY_HAND}):
        comments, pins = comments_and_pins(lock)
        lock.write_text("\n".join([*comments, *with_hashes(pins), ""]), encoding="utf-8", newline="\n")
        print(f"{lock.name}: {len(pins)} packages")


if __name__ == "__main__":
    main(sys.argv[1:])
