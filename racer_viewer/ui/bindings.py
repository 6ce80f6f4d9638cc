"""Key bindings: which keys give which command. Keys have pygame's names, in the settings file too."""

from __future__ import annotations

from collections.abc import Mapping

from racer_viewer.translation import mark
from racer_viewer.ui.intents import Command

HELD_CONTROLS = ("steer_left", "steer_right", "throttle", "brake")
"""Bindings that count while the key is held; all others are commands, given once."""

Bindings = Mapping[str, tuple[str, ...]]
"""Maps the name of a control or command to its keys."""

DEFAULT_BINDINGS: dict[str, tuple[str, ...]] = {
    "steer_left": ("left", "a"),
    "steer_right": ("right", "d"),
    "throttle": ("up", "w"),
    "brake": ("down", "s"),
    Command.RESTART: ("r",),
    Command.PUT_BACK: ("b",),
    Command.CAMERA: ("c",),
    Command.RAYS: ("1",),
    Command.REWARD: ("2",),
    Command.INPUTS: ("3",),
    Command.AGENT: ("4",),
    Command.PHYSICS: ("5",),
    Command.TIMING: ("6",),
    Command.MAP: ("7",),
    Command.GATES: ("8",),
    Command.NAMES: ("9",),
    Command.MUTE: ("m",),
    Command.PAUSE: ("space", "p"),
    Command.SLOWER: ("-", "[-]"),
    Command.FASTER: ("=", "+", "[+]"),
    Command.TICK: (".",),
    Command.TICK_BACK: (",",),
    Command.NEXT_EPISODE: ("n",),
    Command.VARIATION: ("v",),
    Command.WHEEL: ("t",),
    Command.CORRECT: ("f",),
    Command.UNDO_CORRECTION: ("u",),
    Command.NEXT_CAR: ("tab",),
    Command.PREVIOUS_CIRCUIT: ("page up",),
    Command.NEXT_CIRCUIT: ("page down",),
    Command.EPISODES: ("e",),
    Command.KEEP: ("k",),
    Command.COMPARE: ("x",),
    Command.LAYOUT: ("l",),
}
"""Bindings that the user may change, with their default keys."""

FIXED_BINDINGS: dict[str, tuple[str, ...]] = {
    Command.UP: ("up",),
    Command.DOWN: ("down",),
    Command.LEFT: ("left",),
    Command.RIGHT: ("right",),
    Command.ACCEPT: ("return", "enter", "space"),
    Command.BACK: ("escape", "backspace"),
    Command.DELETE: ("delete",),
    Command.HELP: ("f1", "h"),
    Command.FULL_SCREEN: ("f11",),
    Command.RECORD: ("f10",),
    Command.SCREENSHOT: ("f12",),
}
"""Bindings that cannot be changed, so that menus stay usable with any settings."""

BINDING_LABELS = {
    "steer_left": mark("Steer left"),
    "steer_right": mark("Steer right"),
    "throttle": mark("Throttle"),
    "brake": mark("Brake"),
    Command.RESTART: mark("Restart"),
    Command.PUT_BACK: mark("Back on the road"),
    Command.CAMERA: mark("Camera"),
    Command.RAYS: mark("Rays"),
    Command.REWARD: mark("Reward"),
    Command.INPUTS: mark("Inputs"),
    Command.AGENT: mark("Agent"),
    Command.PHYSICS: mark("Physics"),
    Command.TIMING: mark("Timing"),
    Command.MAP: mark("Map"),
    Command.GATES: mark("Gates"),
    Command.NAMES: mark("Names"),
    Command.MUTE: mark("Sound on / off"),
    Command.PAUSE: mark("Pause / resume"),
    Command.SLOWER: mark("Slower"),
    Command.FASTER: mark("Faster"),
    Command.TICK: mark("One tick forward"),
    Command.TICK_BACK: mark("One tick back"),
    Command.NEXT_EPISODE: mark("Next episode"),
    Command.VARIATION: mark("Deterministic / stochastic"),
    Command.WHEEL: mark("Take over / hand back"),
    Command.CORRECT: mark("Learn from me"),
    Command.UNDO_CORRECTION: mark("Undo correction"),
    Command.NEXT_CAR: mark("Follow next car"),
    Command.PREVIOUS_CIRCUIT: mark("Previous circuit"),
    Command.NEXT_CIRCUIT: mark("Next circuit"),
    Command.EPISODES: mark("Episodes"),
    Command.KEEP: mark("Save replay"),
    Command.COMPARE: mark("Compare laps"),
    Command.LAYOUT: mark("Training view"),
}

OVERLAY_LABELS = {
    Command.RAYS: mark("rays"),
    Command.REWARD: mark("reward"),
    Command.INPUTS: mark("inputs"),
    Command.AGENT: mark("agent"),
    Command.PHYSICS: mark("physics"),
    Command.TIMING: mark("timing"),
    Command.MAP: mark("map"),
    Command.GATES: mark("gates"),
    Command.NAMES: mark("names"),
}
"""Descriptions of the overlay keys in the line of keys."""

PAD_LABELS: dict[str, str] = {
    "steer_left": mark("Stick"),
    "steer_right": mark("Stick"),
    "throttle": "RT",
    "brake": "LT",
    Command.ACCEPT: "A",
    Command.BACK: "B",
    Command.RESTART: "X",
    Command.CAMERA: "Y",
    Command.PUT_BACK: "LB",
    Command.RAYS: "RB",
    Command.HELP: "Back",
}
"""Names of gamepad buttons and axes as they are shown on screen, by control or command."""

_KEY_LABELS = {"return": "Enter", "escape": "Esc", "page up": "PgUp", "page down": "PgDn"}


def key_name(key: str) -> str:
    """Return a key's name as it is shown on screen."""
    return _KEY_LABELS.get(key, key.upper() if len(key) <= 3 and key != "up" else key.capitalize())


def commands_for(bindings: Bindings, key: str) -> list[Command]:
    """Return the commands that a key press gives."""
    bound = {name: keys for name, keys in bindings.items() if name not in HELD_CONTROLS}
    return [Command(name) for name, keys in {**FIXED_BINDINGS, **bound}.items() if key in keys]


def rebind(bindings: Bindings, name: str, key: str) -> dict[str, tuple[str, ...]]:
    """Return bindings with `key` bound to `name` alone.

    Fixed keys cannot be rebound. A control that would lose its only key gets the key that `name` had before.
    """
    fixed = {each for keys in FIXED_BINDINGS.values() for each in keys} - {"left", "right", "up", "down"}
    if key in fixed:
        return dict(bindings)
    before = bindings[name]
    changed = {**bindings, name: (key,)}
    for other, keys in bindings.items():
        if other != name and key in keys:
            changed[other] = tuple(each for each in keys if each != key) or before[:1]
    return changed
