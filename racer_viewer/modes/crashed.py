"""When a screen made a mistake: the others go on, and the user is told where it is written down."""

from __future__ import annotations

from contextlib import suppress

from racer_viewer.crash import write_report
from racer_viewer.modes.menu import MenuScreen
from racer_viewer.modes.message import MessageScreen
from racer_viewer.modes.screen import Stage
from racer_viewer.ui.items import Button

TITLE = "Something went wrong"


def show_crash(stage: Stage, error: Exception) -> None:
    """Close all screens but the menu, and tell above it what happened."""
    report = write_report(error, stage.data)
    while stage.screens:
        screen = stage.screens.pop()
        with suppress(Exception):  # it may be the one that is broken
            screen.closed()
    stage.push(MenuScreen(stage))
    where = f"All about it is in\n{report}" if report else "No report could be written: the disk may be full."
    text = f"This is our mistake, not yours: {type(error).__name__}: {error}\n{where}\nWhat you had saved is safe."
    buttons = [Button("Back to the menu", do=stage.pop), Button("Quit", do=stage.quit)]
    stage.push(MessageScreen(stage, TITLE, text, buttons))
