"""Folder of the files that come with the package."""

from pathlib import Path

_PACKAGED = Path(__file__).parent / "assets"
_IN_REPOSITORY = Path(__file__).parent.parent / "assets"


def assets_folder() -> Path:
    """Return the assets folder: inside an installed package, or at the root of a checked-out repository."""
    return _PACKAGED if _PACKAGED.is_dir() else _IN_REPOSITORY
