"""`racer-viewer play`: drive yourself."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from racer_viewer.cli.options import Subparsers, add_bridge_options, add_circuit_option
from racer_viewer.cli.window import bridge_address, check_models, check_track, open_window

if TYPE_CHECKING:
    from racer_viewer.app.window import App

MAX_RIVALS = 7
MAX_LAPS = 99


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "play", help="drive a race", description="Drive against the clock, your ghost and agents."
    )
    add_circuit_option(parser)
    parser.add_argument(
        "--laps", type=_laps, metavar="N", help="laps to drive, 0 for no limit (default: the number used last)"
    )
    parser.add_argument(
        "--against", nargs="+", type=Path, default=[], metavar="MODEL", help=f"agents to race, at most {MAX_RIVALS}"
    )
    add_bridge_options(parser)
    parser.add_argument("--record", type=Path, metavar="FILE", help="film the race: .mp4, .gif or .png pictures")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Open the window with a race."""
    check_track(options)
    check_models(options.against, MAX_RIVALS)
    bridge = bridge_address(options)
    if options.record is not None:
        from racer_viewer.films.film import check_film_path

        check_film_path(options.record)

    def open_race(app: App) -> None:
        from racer_viewer.modes.circuits import circuit_of
        from racer_viewer.modes.models import distinct_names
        from racer_viewer.modes.play import open_play

        context = app.context
        laps = context.settings.laps if options.laps is None else options.laps
        rivals = list(zip(distinct_names(options.against), options.against, strict=True))
        open_play(context, options.track or circuit_of(context), rivals, laps)

    return open_window(
        options,
        open_race,
        hint="watch --record FILE films an agent without one",
        bridge=bridge,
        record=options.record,
    )


def _laps(text: str) -> int:
    if not text.isdecimal() or int(text) > MAX_LAPS:
        raise argparse.ArgumentTypeError(f"a number of laps is 0 to {MAX_LAPS}, not {text!r}")
    return int(text)
