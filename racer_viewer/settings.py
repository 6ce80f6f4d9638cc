"""What the user has chosen, remembered from one time to the next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec

from racer_viewer.paths import atomic_write
from racer_viewer.ui.bindings import DEFAULT_BINDINGS

Units = Literal["units/s", "km/h", "mph"]
UNITS: tuple[Units, ...] = get_args(Units)
"""Of speeds on screen; a unit of the track is a metre."""
FRAME_LIMITS = (30, 60, 120, 144, 240, 0)
"""Frames a second; 0 is as many as the machine can."""

Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]


class Settings(msgspec.Struct, frozen=True, omit_defaults=True):
    """All of it. What is unknown in a file is left alone, so that older and newer versions can share one."""

    volume: Share = 0.6
    units: Units = "km/h"
    ui_scale: Annotated[float, msgspec.Meta(ge=0.6, le=2.0)] = 1.0
    colour_blind: bool = False
    frame_limit: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 60
    full_screen: bool = False
    window: tuple[int, int] = (1280, 720)
    bindings: dict[str, tuple[str, ...]] = msgspec.field(default_factory=lambda: dict(DEFAULT_BINDINGS))
    overlays: tuple[str, ...] = ("timing", "map", "rays", "names", "episodes")
    """Shown while driving or watching."""
    name: Annotated[str, msgspec.Meta(max_length=40)] = "You"
    circuit: str = "track-01"
    laps: Annotated[int, msgspec.Meta(ge=0, le=99)] = 3
    """0 for an open end."""
    opponents: tuple[str, ...] = ()
    """Models that were raced last."""
    ghost: bool = True

    def changed(self, **values: Any) -> Settings:
        return msgspec.structs.replace(self, **values)


class SettingsFile:
    """Where settings are kept. A file that cannot be read is set aside, never overwritten, and `problem` says so."""

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
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self._set_aside(str(error))
            return Settings()
        bindings = {name: settings.bindings.get(name) or keys for name, keys in DEFAULT_BINDINGS.items()}
        return settings.changed(bindings=bindings)

    def save(self, settings: Settings) -> None:
        """What cannot be written is not worth an interruption: `problem` has it."""
        try:
            with atomic_write(self.path) as temporary:
                temporary.write_bytes(msgspec.json.format(msgspec.json.encode(settings)))
        except OSError as error:
            self.problem = f"Settings could not be saved: {error.strerror or error}"

    def _set_aside(self, reason: str) -> None:
        kept = self.path.with_suffix(".damaged.json")
        self.problem = f"Settings could not be read ({reason}); the file is now {kept.name}, and these are the defaults"
        try:
            self.path.replace(kept)
        except OSError as error:
            self.problem = f"Settings could not be read: {reason}; {error.strerror or error}"
