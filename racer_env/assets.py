"""Where the files that come with the package are."""

from pathlib import Path

_PACKAGED = Path(__file__).parent / "assets"
_IN_REPOSITORY = Path(__file__).parent.parent / "assets"


def assets_folder() -> Path:
    """Inside the package once it is installed, at the top of the repository while it is worked on."""
    return _PACKAGED if _PACKAGED.is_dir() else _IN_REPOSITORY
