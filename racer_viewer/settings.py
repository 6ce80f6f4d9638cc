"""User settings and the file they are saved in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec

from racer_viewer.paths import atomic_write, free_path, open_regular
from racer_viewer.translation import LANGUAGES, Language
from racer_viewer.ui.bindings import DEFAULT_BINDINGS

Units = Literal["units/s", "km/h", "mph"]
UNITS: tuple[Units, ...] = get_args(Units)
"""Units of speed on screen; one unit of length is one metre."""
PlayCamera = Literal["follow", "turn"]
"""Cameras that are kept for the next race: north up, or turning with the car."""
GhostKind = Literal["record", "bronze", "silver", "gold", "author"]
GHOST_KINDS: tuple[GhostKind, ...] = get_args(GhostKind)
"""Ghosts to choose from: the record on the circuit, or one that drives the time of a medal."""
TourState = Literal["new", "begun", "skipped", "finished"]
"""States of the guided tour: neither begun nor skipped, begun, skipped, finished."""
Renderer = Literal["auto", "software", "gpu"]
RENDERERS: tuple[Renderer, ...] = get_args(Renderer)
"""Ways to bring pictures into the window; "auto" takes a graphics card for large screens only."""
Resolution = Literal["auto", "full", "half"]
RESOLUTIONS: tuple[Resolution, ...] = get_args(Resolution)
"""Resolution of the picture: "auto" is lower in very large windows and, for the ground, where drawing takes too long;
"half" is half for the ground everywhere."""
LanguageSetting = Literal["system", Language]
LANGUAGE_SETTINGS: tuple[LanguageSetting, ...] = ("system", *LANGUAGES)
"""Languages of the screens; "system" takes that of the system if there is a translation for it."""
FRAME_LIMITS = (30, 60, 120, 144, 240, 0)
"""Frame limits to choose from [frames/s]; 0 is unlimited."""

MAX_BYTES = 2**20
"""Maximum size of a settings file [bytes]."""
MAX_WINDOW_SIDE = 8192
"""Maximum width and height of a window [px]; its surface takes up to 256 MiB."""
MAX_KEYS = 16
"""Maximum number of keys of one command."""

Side = Annotated[int, msgspec.Meta(ge=1, le=MAX_WINDOW_SIDE)]
Text = Annotated[str, msgspec.Meta(max_length=4096, pattern=r"^[^\x00]*$")]
Keys = Annotated[tuple[Text, ...], msgspec.Meta(max_length=MAX_KEYS)]
Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]


class Settings(msgspec.Struct, frozen=True, omit_defaults=True):
    """All settings. Unknown fields of a file are ignored, so that older and newer versions can share it."""

    volume: Share = 0.6
    language: LanguageSetting = "system"
    units: Units = "km/h"
    ui_scale: Annotated[float, msgspec.Meta(ge=0.6, le=2.0)] = 1.0
    colour_blind: bool = False
    frame_limit: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 60
    full_screen: bool = False
    window: tuple[Side, Side] | None = None
    """Size of the window when it was last closed [px]; None before."""
    renderer: Renderer = "auto"
    resolution: Resolution = "auto"
    bindings: dict[Text, Keys] = msgspec.field(default_factory=lambda: dict(DEFAULT_BINDINGS))
    overlays: tuple[Text, ...] = ("timing", "map", "rays", "names", "episodes")
    """Overlays shown while watching."""
    play_overlays: tuple[Text, ...] = ("timing", "map", "names")
    """Overlays shown while driving."""
    name: Annotated[str, msgspec.Meta(max_length=40)] = "You"
    circuit: Text = "track-01"
    laps: Annotated[int, msgspec.Meta(ge=0, le=99)] = 3
    """Laps of a race; 0 for no limit."""
    opponents: tuple[Text, ...] = ()
    """Keys of the models raced last."""
    ghost: bool = True
    ghost_kind: GhostKind = "record"
    camera: PlayCamera = "follow"
    """Camera while driving."""
    zoom: Annotated[int, msgspec.Meta(ge=-2, le=2)] = 0
    """Levels by which the view that follows a car is closer than usual."""

    tour: TourState = "new"
    tour_part: Annotated[int, msgspec.Meta(ge=0, le=9)] = 0
    """Part of the guided tour to continue with, from 0."""
    raced: bool = False
    """True after the first race; the main menu then offers to continue on the circuit raced last."""

    def changed(self, **values: Any) -> Settings:
        """Return a copy with some values replaced."""
        return msgspec.structs.replace(self, **values)


def _reason(error: OSError) -> str:
    from racer_env.errors import os_reason  # slow to import; not needed to open the window

    return os_reason(error)


class SettingsFile:
    """The settings file. A file that cannot be read is renamed, never overwritten; `problem` then says why."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "settings.json"
        self.problem = ""

    def load(self) -> Settings:
        try:
            with open_regular(self.path) as file:
                content = file.read(MAX_BYTES + 1)
        except FileNotFoundError:
            return Settings()
        except OSError as error:
            self.problem = f"Settings could not be read: {_reason(error)}"
            return Settings()
        if len(content) > MAX_BYTES:
            self._rename_damaged(f"it is larger than {MAX_BYTES // 2**20} MiB")
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
            self.problem = f"Settings could not be saved: {_reason(error)}"

    def _rename_damaged(self, reason: str) -> None:
        kept = free_path(self.path.with_suffix(".damaged.json"))
        self.problem = f"Settings could not be read ({reason}); the file is now {kept.name}, defaults are used"
        try:
            self.path.replace(kept)
        except OSError as error:
            self.problem = f"Settings could not be read: {reason}; {_reason(error)}"
