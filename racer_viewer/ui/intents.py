"""What a person wants: the app's own words for keys, buttons and the mouse. Screens know these and no pygame events."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, auto
from pathlib import Path


class Command(StrEnum):
    """Something to do once, when it is pressed."""

    UP = auto()
    DOWN = auto()
    LEFT = auto()
    RIGHT = auto()
    ACCEPT = auto()
    BACK = auto()
    """One screen back; while driving, pause."""
    HELP = auto()
    FULL_SCREEN = auto()
    SCREENSHOT = auto()
    MUTE = auto()
    RESTART = auto()
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
    """Begin or end a film of what is driven."""
    PAUSE = auto()
    SLOWER = auto()
    FASTER = auto()
    TICK = auto()
    """One tick on, and stand."""
    TICK_BACK = auto()
    NEXT_EPISODE = auto()
    VARIATION = auto()
    """Whether an agent does what it holds best, or draws its actions as in training."""
    WHEEL = auto()
    """Take the wheel, or hand it back."""
    NEXT_CAR = auto()
    PREVIOUS_CIRCUIT = auto()
    NEXT_CIRCUIT = auto()
    EPISODES = auto()
    LAYOUT = auto()
    """What of a training is shown."""
    KEEP = auto()
    """As a replay file."""


@dataclass(frozen=True)
class MouseMove:
    """The mouse moved here [px]."""

    x: int
    y: int


@dataclass(frozen=True)
class Click:
    x: int
    y: int


@dataclass(frozen=True)
class Release:
    """The mouse's button was let go, here [px]."""

    x: int
    y: int


@dataclass(frozen=True)
class Drag:
    """The mouse moved by so much with its button held, and is here now [px]."""

    dx: int
    dy: int
    x: int
    y: int


@dataclass(frozen=True)
class Scroll:
    """The mouse wheel, up is positive, with the mouse here [px]."""

    steps: float
    x: int
    y: int


@dataclass(frozen=True)
class KeyPress:
    """A key by its name, before it means anything: for choosing keys."""

    key: str


@dataclass(frozen=True)
class TextInput:
    """Letters as the user's keyboard has them: for names."""

    text: str


@dataclass(frozen=True)
class FileDrop:
    """A file was dropped on the window."""

    path: Path


@dataclass(frozen=True)
class CloseWindow:
    """The window should close."""


Intent = Command | MouseMove | Click | Release | Drag | Scroll | KeyPress | TextInput | FileDrop | CloseWindow


@dataclass(frozen=True)
class Controls:
    """What is held right now: keys are 0 or 1, sticks and triggers anything between.

    steer: −1 is left and 1 is right. analogue: whether it comes from a stick, which needs no ramp.
    """

    steer: float = 0.0
    throttle: float = 0.0
    brake: float = 0.0
    analogue: bool = False


IDLE = Controls()
