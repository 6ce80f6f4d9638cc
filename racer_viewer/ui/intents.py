"""Intents: the app's own input events. Screens handle these and never see pygame events."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, auto
from pathlib import Path


class Command(StrEnum):
    """A command that a key or button gives once, when it is pressed. Values are the names in the settings file."""

    UP = auto()
    DOWN = auto()
    LEFT = auto()
    RIGHT = auto()
    ACCEPT = auto()
    BACK = auto()
    """Close the screen on top; while driving, pause."""
    HELP = auto()
    FULL_SCREEN = auto()
    SCREENSHOT = auto()
    MUTE = auto()
    RESTART = auto()
    PUT_BACK = auto()
    """Put the car back on the road at a standstill."""
    CAMERA = auto()
    RAYS = auto()
    REWARD = auto()
    INPUTS = auto()
    AGENT = auto()
    PHYSICS = auto()
    TIMING = auto()
    MAP = auto()
    GATES = auto()
    NAMES = auto()
    DELETE = auto()
    RECORD = auto()
    """Start or stop recording a film of the drive."""
    PAUSE = auto()
    SLOWER = auto()
    FASTER = auto()
    TICK = auto()
    """Advance one tick and pause."""
    TICK_BACK = auto()
    NEXT_EPISODE = auto()
    VARIATION = auto()
    """Switch an agent between deterministic and sampled actions."""
    WHEEL = auto()
    """Take over the car from the agent, or hand it back."""
    CORRECT = auto()
    """Learn from what the user drives in the agent's place, or no longer."""
    UNDO_CORRECTION = auto()
    NEXT_CAR = auto()
    PREVIOUS_CIRCUIT = auto()
    NEXT_CIRCUIT = auto()
    EPISODES = auto()
    COMPARE = auto()
    """Compare two laps of replays."""
    LAYOUT = auto()
    """Switch to the next view of a training run."""
    KEEP = auto()
    """Save a replay; while a run is learning, save a checkpoint."""


OVERLAY_COMMANDS = (
    Command.RAYS,
    Command.REWARD,
    Command.INPUTS,
    Command.AGENT,
    Command.PHYSICS,
    Command.TIMING,
    Command.MAP,
    Command.GATES,
    Command.NAMES,
)
"""Commands that show or hide the overlay of the same name."""


@dataclass(frozen=True)
class Modifiers:
    """Keys held while another key or the mouse is used; `ctrl` is also the command key of a Mac."""

    shift: bool = False
    ctrl: bool = False
    space: bool = False


NO_MODIFIERS = Modifiers()


@dataclass(frozen=True)
class MouseMove:
    """A move of the mouse to a position [px] with no button held."""

    x: int
    y: int


@dataclass(frozen=True)
class Click:
    """A press of the left mouse button at a position [px]."""

    x: int
    y: int
    modifiers: Modifiers = NO_MODIFIERS


@dataclass(frozen=True)
class Release:
    """A release of the left mouse button at a position [px]."""

    x: int
    y: int


@dataclass(frozen=True)
class Drag:
    """A move of the mouse by (dx, dy) to (x, y) with the left or, if `middle`, only the middle button held [px]."""

    dx: float
    dy: float
    x: int
    y: int
    middle: bool = False
    modifiers: Modifiers = NO_MODIFIERS


@dataclass(frozen=True)
class RightClick:
    """A press of the right mouse button at a position [px]; for most screens the window makes it BACK."""

    x: int
    y: int


@dataclass(frozen=True)
class RightDrag:
    """A move of the mouse by (dx, dy) to (x, y) with only the right button held [px]; for most screens a MouseMove."""

    dx: float
    dy: float
    x: int
    y: int


@dataclass(frozen=True)
class Scroll:
    """A turn of the mouse wheel, up is positive, with the mouse at (x, y) [px]."""

    steps: float
    x: int
    y: int
    modifiers: Modifiers = NO_MODIFIERS


@dataclass(frozen=True)
class KeyPress:
    """A key by its name, before bindings are applied; used to type, to choose keys and for keys of one screen."""

    key: str
    modifiers: Modifiers = NO_MODIFIERS


@dataclass(frozen=True)
class TextInput:
    """Text as the user's keyboard layout produces it."""

    text: str


@dataclass(frozen=True)
class FileDrop:
    """A file dropped on the window."""

    path: Path


@dataclass(frozen=True)
class CloseWindow:
    """A request to close the window."""


Intent = (
    Command
    | MouseMove
    | Click
    | Release
    | Drag
    | RightClick
    | RightDrag
    | Scroll
    | KeyPress
    | TextInput
    | FileDrop
    | CloseWindow
)


@dataclass(frozen=True)
class Controls:
    """Driving controls held right now: 0 or 1 from keys, anything between from sticks and triggers.

    steer: −1 is left, 1 is right.
    analogue: True if the values come from a gamepad, which needs no steering ramp.
    """

    steer: float = 0.0
    throttle: float = 0.0
    brake: float = 0.0
    analogue: bool = False


IDLE = Controls()
