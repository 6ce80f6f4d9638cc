"""Starting a learner as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from racer_viewer.packaged import own_command
from racer_viewer.training.live.files import LOG_FILE
from racer_viewer.training.saved import ResumeError, folder_of, latest_model, steps_of

USAGE_ERROR = 2
"""Exit code of a learner that says itself what was wrong."""

Learner = subprocess.Popen[bytes]


def start_learner(where: Path) -> Learner:
    """In a session of its own, so that Ctrl-C in the window's terminal does not reach it.

    where: the folder of a run, or the model of it to go on from. Its standard input is its leash.
    """
    with (folder_of(where) / LOG_FILE).open("wb") as log:
        return subprocess.Popen(
            [*own_command(), "learn", str(where.absolute())],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            creationflags=_detached_on_windows(),
        )


def explain_end(folder: Path, code: int | None, begun: bool) -> str:
    """What happened to a learner that ended without a word in its story, and how to go on.

    code: of its exit, None if it is not known; begun: whether the run ever was.
    """
    words = _last_words(folder)
    if code == USAGE_ERROR and words:
        return f"{words}. {_how_to_go_on(folder)}" if begun else words
    how = "" if code is None else f" (signal {-code})" if code < 0 else f" (exit code {code})"
    said = f" Its last words: {words}." if words else ""
    return f"The learner ended unexpectedly{how}.{said} {_how_to_go_on(folder)}"


def _how_to_go_on(folder: Path) -> str:
    try:
        model = latest_model(folder)
        steps = None if model is None else steps_of(model)
    except (ResumeError, OSError):
        steps = None
    return "It had saved nothing yet." if steps is None else f"Its last checkpoint, of {steps:,} steps, can go on."


def _last_words(folder: Path) -> str:
    """The last line of a learner's output."""
    try:
        text = (folder / LOG_FILE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("racer-viewer: ") if lines else ""


def _detached_on_windows() -> int:
    if sys.platform == "win32":
        return subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
    return 0
