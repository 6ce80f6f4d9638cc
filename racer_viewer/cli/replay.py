"""`racer-viewer replay`: see saved drives again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from racer_viewer.cli.options import Subparsers, add_film_options, check_film_options
from racer_viewer.cli.window import open_window

if TYPE_CHECKING:
    from racer_viewer.app.window import App


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "replay",
        help="show a saved replay",
        description="Show a saved replay; several replays are compared as ghosts.",
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a .racer file")
    add_film_options(parser, "the whole replay")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Open the window with the replays; with --record, make a film instead."""
    from racer_viewer.replays import load_replay

    check_film_options(options)
    replays = [load_replay(path) for path in options.files]
    if options.record is not None:
        from racer_viewer.app.offscreen import film_replays

        return film_replays(options, replays)

    def open_replays(app: App) -> None:
        from racer_viewer.modes.replay_screen import open_replays

        open_replays(app.context, options.files)

    return open_window(options, open_replays)
