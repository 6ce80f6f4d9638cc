"""Which key does what. Keys are named as pygame names them: the same names are in the settings file and on screen."""

from __future__ import annotations

from collections.abc import Mapping

from racer_viewer.ui.intents import Do

HELD = ("steer_left", "steer_right", "throttle", "brake")
"""What is held while driving; all else is pressed once."""

Bindings = Mapping[str, tuple[str, ...]]
"""Of what can be bound, its keys."""

DEFAULT_BINDINGS: dict[str, tuple[str, ...]] = {
    "steer_left": ("left", "a"),
    "steer_right": ("right", "d"),
    "throttle": ("up", "w"),
    "brake": ("down", "s"),
    Do.RESTART: ("r",),
    Do.CAMERA: ("c",),
    Do.RAYS: ("1",),
    Do.REWARD: ("2",),
    Do.INPUTS: ("3",),
    Do.AGENT: ("4",),
    Do.PHYSICS: ("5",),
    Do.TIMING: ("6",),
    Do.MAP: ("7",),
    Do.GATES: ("8",),
    Do.NAMES: ("9",),
    Do.MUTE: ("m",),
    Do.PAUSE: ("space", "p"),
    Do.SLOWER: ("-", "[-]"),
    Do.FASTER: ("=", "+", "[+]"),
    Do.TICK: (".",),
    Do.TICK_BACK: (",",),
    Do.NEXT_EPISODE: ("n",),
    Do.VARIATION: ("v",),
    Do.WHEEL: ("t",),
    Do.NEXT_CAR: ("tab",),
    Do.PREVIOUS_CIRCUIT: ("page up",),
    Do.NEXT_CIRCUIT: ("page down",),
    Do.EPISODES: ("e",),
    Do.KEEP: ("k",),
    Do.LAYOUT: ("l",),
}
"""What the user may change."""

FIXED: dict[str, tuple[str, ...]] = {
    Do.UP: ("up",),
    Do.DOWN: ("down",),
    Do.LEFT: ("left",),
    Do.RIGHT: ("right",),
    Do.ACCEPT: ("return", "enter", "space"),
    Do.BACK: ("escape", "backspace"),
    Do.DELETE: ("delete",),
    Do.HELP: ("f1", "h"),
    Do.FULL_SCREEN: ("f11",),
    Do.RECORD: ("f10",),
    Do.SCREENSHOT: ("f12",),
}
"""What is the same for all, so that nobody can lock themselves out."""

NAMES = {
    "steer_left": "Steer left",
    "steer_right": "Steer right",
    "throttle": "Throttle",
    "brake": "Brake",
    Do.RESTART: "Restart",
    Do.CAMERA: "Camera",
    Do.RAYS: "Rays",
    Do.REWARD: "Reward",
    Do.INPUTS: "Inputs",
    Do.AGENT: "Agent",
    Do.PHYSICS: "Physics",
    Do.TIMING: "Timing",
    Do.MAP: "Map",
    Do.GATES: "Gates",
    Do.NAMES: "Names",
    Do.MUTE: "Sound on/off",
    Do.PAUSE: "Stop and go on",
    Do.SLOWER: "Slower",
    Do.FASTER: "Faster",
    Do.TICK: "One tick on",
    Do.TICK_BACK: "One tick back",
    Do.NEXT_EPISODE: "Next episode",
    Do.VARIATION: "Deterministic or stochastic",
    Do.WHEEL: "Take or leave the wheel",
    Do.NEXT_CAR: "Follow another car",
    Do.PREVIOUS_CIRCUIT: "Circuit before",
    Do.NEXT_CIRCUIT: "Next circuit",
    Do.EPISODES: "Episodes",
    Do.KEEP: "Keep as a file",
    Do.LAYOUT: "What training shows",
}

_SHOWN = {"return": "Enter", "escape": "Esc", "page up": "PgUp", "page down": "PgDn"}


def key_name(key: str) -> str:
    """As it is shown on screen."""
    return _SHOWN.get(key, key.upper() if len(key) <= 3 and key != "up" else key.capitalize())


def doing(bindings: Bindings, key: str) -> list[Do]:
    """What a key does when it is pressed once."""
    every = {**FIXED, **{name: keys for name, keys in bindings.items() if name not in HELD}}
    return [Do(name) for name, keys in every.items() if key in keys]


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
