"""The desktop app and the command line around `racer_env`."""

import os

os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # its banner would be on stdout, before the JSON of --json

__version__ = "0.1.0"
