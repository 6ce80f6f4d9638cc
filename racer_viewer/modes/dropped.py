"""Files that are dropped on the window: models to watch, replays to see, circuits to drive on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from racer_viewer.modes.loading import when_ready
from racer_viewer.modes.message import MessageScreen
from racer_viewer.modes.screen import Stage

TITLE = "This file cannot be opened"
WELCOME = (
    "Drop a model (.zip or .onnx) to watch it drive, a replay (.racer) to see it again, "
    "or a circuit (.json) to drive there."
)


def open_dropped(app: Stage, path: Path) -> None:
    """Do with a file what it is for; what cannot be done is said in a message."""
    openers: dict[str, Callable[[Stage, Path], None]] = {
        ".zip": _open_model,
        ".onnx": _open_model,
        ".racer": _open_replay,
        ".json": _take_circuit,
    }
    opener = openers.get(path.suffix.lower())
    if path.is_dir():
        _refuse(app, f"{path.name} is a folder. {WELCOME}")
    elif not path.is_file():
        _refuse(app, f"{path} is not there, or cannot be read.")
    elif opener is None:
        ending = f"{path.suffix} files mean nothing here" if path.suffix else "it has no ending that says what it is"
        _refuse(app, f"{path.name}: {ending}. {WELCOME}")
    else:
        when_ready(app, lambda: opener(app, path))


def _refuse(app: Stage, reason: str) -> None:
    app.push(MessageScreen(app, TITLE, reason))


def _open_model(app: Stage, path: Path) -> None:
    """A race that is being watched takes it in; else it is watched where the user was last."""
    from racer_viewer.modes.known_circuits import circuit_of
    from racer_viewer.modes.watch import open_watch

    join = getattr(app.top, "join", None)
    if join is not None:
        join(path)
    else:
        open_watch(app, [path], circuit_of(app.settings))


def _open_replay(app: Stage, path: Path) -> None:
    from racer_viewer.modes.replay_screen import open_replays

    open_replays(app, [path])


def _take_circuit(app: Stage, path: Path) -> None:
    """It is the chosen one from now on, and stays among the others until the app is closed."""
    from racer_env.errors import RacerError
    from racer_viewer.modes.choose import CircuitChooser
    from racer_viewer.modes.known_circuits import remember_circuit

    try:
        circuit = remember_circuit(path)
    except (RacerError, OSError) as error:
        _refuse(app, str(error))
        return
    app.change(circuit=str(path))
    app.say(f"{circuit.name} is among the circuits now, and chosen")
    if isinstance(app.top, CircuitChooser):
        app.top.shown()
