"""Training, as far as the window knows of it: the command to type."""

from __future__ import annotations

from racer_viewer.modes.message import MessageScreen
from racer_viewer.modes.screen import Stage

TEXT = """\
Training runs from the command line for now. This learns a first circuit in half a minute, and keeps the best policy:
python run.py train --headless --track track-01 --name first
When it is done, its model is listed under Watch, and can be raced under Play.
--preset champion learns all circuits; --help tells the rest."""


class TrainingScreen(MessageScreen):
    def __init__(self, app: Stage) -> None:
        super().__init__(app, "Train", TEXT)
