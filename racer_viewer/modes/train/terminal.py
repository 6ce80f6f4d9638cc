"""What is said at the terminal that a window which trains was opened from: where the run is, and how to go on."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from racer_env.errors import RacerError
from racer_viewer.modes.train.panels import RunDecision
from racer_viewer.modes.train.screen import TrainScreen
from racer_viewer.runtime import command_hint
from racer_viewer.training.run_folder import latest_model


def tell_terminal(screen: TrainScreen, own: bool = True) -> None:
    """One line now, and one when it is left, whether somebody reads them or not. own: it was started here."""
    _say(f"{'Learning' if screen.is_live else 'Learned'} in {screen.run.folder}")
    screen.on_closed.append(lambda: _say(last_words(screen, own)))


def last_words(screen: TrainScreen, own: bool) -> str:
    """What became of a run whose screen is closed. One that was told to stop may still be busy with saving."""
    run, folder, after = screen.run, screen.run.folder, f"after {screen.run.steps:,} steps"
    if screen.decision is RunDecision.DISCARD:
        return f"Discarded {after}"
    see_it = f"See it with: {command_hint('train', '--attach', folder)}"
    if screen.decision is RunDecision.DETACH:
        return f"It learns on without a window. {see_it}"
    if run.problem:
        return run.problem if _saved(folder) is None else f"{run.problem} {_how_to_go_on(folder)}"
    if run.state == "finished":
        model = _best(screen)
        return f"Finished {after}" + (f". Watch it with: {command_hint('watch', model)}" if model else "")
    if screen.is_live and not own and screen.decision is not RunDecision.STOP:
        return see_it  # whoever started it decides what becomes of it
    if run.state == "starting" and _saved(folder) is None:
        return "Given up before it began: nothing of it is left"
    return f"Stopped {after}. {_how_to_go_on(folder)}"


def _how_to_go_on(folder: Path) -> str:
    return f"Go on with: {command_hint('train', '--resume', folder)}"


def _saved(folder: Path) -> Path | None:
    with suppress(RacerError, OSError):
        return latest_model(folder)
    return None


def _best(screen: TrainScreen) -> Path | None:
    with suppress(RacerError, OSError):
        return screen.best_model()
    return None


def _say(text: str) -> None:
    """A terminal that is closed while the window is open is no reason to stop."""
    with suppress(OSError, ValueError):
        print(text, flush=True)
