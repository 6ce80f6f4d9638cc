"""The desktop app and the command line around `racer_env`."""

__version__ = "0.1.0"
