"""The agents that come with the app."""

from pathlib import Path

_PACKAGED = Path(__file__).parent.parent / "models"
_IN_REPOSITORY = Path(__file__).parents[2] / "models"

CHAMPION = "champion"
"""The one that drives everywhere."""


def models_folder() -> Path:
    """Inside the package once it is installed, at the top of the repository while it is worked on."""
    return _PACKAGED if _PACKAGED.is_dir() else _IN_REPOSITORY


def bundled_models() -> list[Path]:
    """The champion first, the others by name."""
    return sorted(models_folder().glob("*.zip"), key=lambda path: (path.stem != CHAMPION, path.stem))
