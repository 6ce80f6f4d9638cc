"""The agents that come with the app."""

from functools import cache
from pathlib import Path

import msgspec

_PACKAGED = Path(__file__).parent.parent / "models"
_IN_REPOSITORY = Path(__file__).parents[2] / "models"

CHAMPION = "champion"
"""The one that drives everywhere."""


class _Facts(msgspec.Struct, frozen=True):
    """What models.json says of a model."""

    tracks: tuple[str, ...]


def models_folder() -> Path:
    """Inside the package once it is installed, at the top of the repository while it is worked on."""
    return _PACKAGED if _PACKAGED.is_dir() else _IN_REPOSITORY


def bundled_models() -> list[Path]:
    """The champion first, the others by name."""
    return sorted(models_folder().glob("*.zip"), key=lambda path: (path.stem != CHAMPION, path.stem))


@cache
def bundled_tracks() -> dict[str, tuple[str, ...]]:
    """Ids of the circuits that each bundled model was trained on, by the model's name."""
    facts = msgspec.json.decode((models_folder() / "models.json").read_bytes(), type=dict[str, _Facts])
    return {name: each.tracks for name, each in facts.items()}
