"""User settings and the file they are saved in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec

from racer_viewer.paths import atomic_write
from racer_viewer.ui.bindings import DEFAULT_BINDINGS

Units = Literal["units/s", "km/h", "mph"]
UNITS: tuple[Units, ...] = get_args(Units)
"""Units of speed on screen; one unit of length is one metre."""
FRAME_LIMITS = (30, 60, 120, 144, 240, 0)
"""Frame limits to choose from [frames/s]; 0 is unlimited."""

Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]


class Settings(msgspec.Struct, frozen=True, omit_defaults=True):
    """All settings. Unknown fields of a file are ignored, so that older and newer versions can share it."""

    volume: Share = 0.6
    units: Units = "km/h"
    ui_scale: Annotated[float, msgspec.Meta(ge=0.6, le=2.0)] = 1.0
    colour_blind: bool = False
    frame_limit: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 60
    full_screen: bool = False
    window: tuple[int, int] = (1280, 720)
    bindings: dict[str, tuple[str, ...]] = msgspec.field(default_factory=lambda: dict(DEFAULT_BINDINGS))
    overlays: tuple[str, ...] = ("timing", "map", "rays", "names", "episodes")
    """Overlays shown while driving or watching."""
    name: Annotated[str, msgspec.Meta(max_length=40)] = "You"
    circuit: str = "track-01"
    laps: Annotated[int, msgspec.Meta(ge=0, le=99)] = 3
    """Laps of a race; 0 for no limit."""
    opponents: tuple[str, ...] = ()
    """Keys of the models raced last."""
    ghost: bool = True

    def changed(self, **values: Any) -> Settings:
        """Return a copy with some values replaced."""
        return msgspec.structs.replace(self, **values)


class SettingsFile:
    """The settings file. A file that cannot be read is renamed, never overwritten; `problem` then says why."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "settings.json"
        self.problem = ""

    def load(self) -> Settings:
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return Settings()
        except OSError as error:
            self.problem = f"Settings could not be read: {error.strerror or error}"
            return Settings()
        try:
            settings = msgspec.json.decode(content, type=Settings)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self._rename_damaged(str(error))
            return Settings()
        bindings = {name: settings.bindings.get(name) or keys for name, keys in DEFAULT_BINDINGS.items()}
        return settings.changed(bindings=bindings)

    def save(self, settings: Settings) -> None:
        """Write the file; on failure set `problem` instead of raising."""
        try:
            with atomic_write(self.path) as temporary:
                temporary.write_bytes(msgspec.json.format(msgspec.json.encode(settings)))
        except OSError as error:
            self.problem = f"Settings could not be saved: {error.strerror or error}"

    def _rename_damaged(self, reason: str) -> None:
        kept = self.path.with_suffix(".damaged.json")
        self.problem = f"Settings could not be read ({reason}); the file is now {kept.name}, defaults are used"
        try:
            self.path.replace(kept)
        except OSError as error:
            self.problem = f"Settings could not be read: {reason}; {error.strerror or error}"
