"""Which key does what. Keys are named as pygame names them: the same names are in the settings file and on screen."""

from __future__ import annotations

from collections.abc import Mapping

from racer_viewer.ui.intents import Command

HELD = ("steer_left", "steer_right", "throttle", "brake")
"""What is held while driving; all else is pressed once."""

Bindings = Mapping[str, tuple[str, ...]]
"""Of what can be bound, its keys."""

DEFAULT_BINDINGS: dict[str, tuple[str, ...]] = {
    "steer_left": ("left", "a"),
    "steer_right": ("right", "d"),
    "throttle": ("up", "w"),
    "brake": ("down", "s"),
    Command.RESTART: ("r",),
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
    Command.NEXT_CAR: ("tab",),
    Command.PREVIOUS_CIRCUIT: ("page up",),
    Command.NEXT_CIRCUIT: ("page down",),
    Command.EPISODES: ("e",),
    Command.KEEP: ("k",),
    Command.LAYOUT: ("l",),
}
"""What the user may change."""

FIXED: dict[str, tuple[str, ...]] = {
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
"""What is the same for all, so that nobody can lock themselves out."""

NAMES = {
    "steer_left": "Steer left",
    "steer_right": "Steer right",
    "throttle": "Throttle",
    "brake": "Brake",
    Command.RESTART: "Restart",
    Command.CAMERA: "Camera",
    Command.RAYS: "Rays",
    Command.REWARD: "Reward",
    Command.INPUTS: "Inputs",
    Command.AGENT: "Agent",
    Command.PHYSICS: "Physics",
    Command.TIMING: "Timing",
    Command.MAP: "Map",
    Command.GATES: "Gates",
    Command.NAMES: "Names",
    Command.MUTE: "Sound on/off",
    Command.PAUSE: "Stop and go on",
    Command.SLOWER: "Slower",
    Command.FASTER: "Faster",
    Command.TICK: "One tick on",
    Command.TICK_BACK: "One tick back",
    Command.NEXT_EPISODE: "Next episode",
    Command.VARIATION: "Deterministic or stochastic",
    Command.WHEEL: "Take or leave the wheel",
    Command.NEXT_CAR: "Follow another car",
    Command.PREVIOUS_CIRCUIT: "Circuit before",
    Command.NEXT_CIRCUIT: "Next circuit",
    Command.EPISODES: "Episodes",
    Command.KEEP: "Keep as a file",
    Command.LAYOUT: "What training shows",
}

_SHOWN = {"return": "Enter", "escape": "Esc", "page up": "PgUp", "page down": "PgDn"}


def key_name(key: str) -> str:
    """As it is shown on screen."""
    return _SHOWN.get(key, key.upper() if len(key) <= 3 and key != "up" else key.capitalize())


def doing(bindings: Bindings, key: str) -> list[Command]:
    """What a key does when it is pressed once."""
    every = {**FIXED, **{name: keys for name, keys in bindings.items() if name not in HELD}}
    return [Command(name) for name, keys in every.items() if key in keys]


def rebound(bindings: Bindings, name: str, key: str) -> dict[str, tuple[str, ...]]:
    """The bindings with one more meaning given to a key: it loses the other one it had, nothing is left without."""
    fixed = {each for keys in FIXED.values() for each in keys} - {"left", "right", "up", "down"}
    if key in fixed:
        return dict(bindings)
    before = bindings[name]
    changed = {**bindings, name: (key,)}
    for other, keys in bindings.items():
        if other != name and key in keys:
            changed[other] = tuple(each for each in keys if each != key) or before[:1]
    return changed
