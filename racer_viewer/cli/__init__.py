"""The command line: one module per verb, with its options, its help and what it runs."""

from racer_viewer.cli.main import main

__all__ = ["main"]
