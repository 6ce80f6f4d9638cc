"""Licence texts of everything in the packaged app."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path

FOLDER = "licences"
"""Folder of the texts inside the app."""
PREFIXES = ("license", "licence", "copying", "notice", "authors")


def licence_files(collected: Iterable[str], own: Path, written: Path) -> Iterator[tuple[str, str]]:
    """Yield file and target folder of every text, in PyInstaller's format of data files.

    Parameters:
        collected: files of the app
        own: licence of this project
        written: folder for generated texts of packages that only name their licence
    """
    yield str(own), f"{FOLDER}/racer-viewer"
    python = Path(sysconfig.get_path("stdlib")) / "LICENSE.txt"
    if python.is_file():
        yield str(python), f"{FOLDER}/Python"
    files = set(collected)
    for package in distributions():
        own_files = (str(package.locate_file(file)) for file in package.files or ())
        if package.name != "racer-viewer" and not files.isdisjoint(own_files):
            yield from _texts_of(package, written)


def _texts_of(package: Distribution, written: Path) -> Iterator[tuple[str, str]]:
    target = f"{FOLDER}/{package.name}"
    texts = [file for file in package.files or () if file.name.lower().startswith(PREFIXES) and file.suffix != ".py"]
    for text in texts:
        yield str(package.locate_file(text)), "/".join((target, *text.parent.parts[1:]))
    if not texts:
        facts = package.metadata.json
        licence = facts.get("license_expression") or facts.get("license") or "see its home page"
        home = facts.get("home_page") or facts.get("project_url") or ""
        written.mkdir(parents=True, exist_ok=True)
        file = written / f"{package.name}.txt"
        file.write_text(f"{package.name} {package.version}: {licence}\n{home}\n", encoding="utf-8")
        yield str(file), target
