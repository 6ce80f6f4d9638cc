"""`racer-viewer watch`: watch agents drive."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from racer_viewer.cli.options import (
    Subparsers,
    add_bridge_options,
    add_circuit_option,
    add_film_options,
    add_stats_option,
    check_film_options,
)
from racer_viewer.cli.window import bridge_address, check_models, check_track, open_window

if TYPE_CHECKING:
    from racer_viewer.app.window import App

MAX_AGENTS = 8


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "watch",
        help="watch agents drive",
        description="Watch trained agents drive, one or several against each other. With corrections switched on (F), "
        "an agent learns from what you do at the wheel (T).",
    )
    parser.add_argument(
        "models",
        nargs="*",
        type=Path,
        metavar="MODEL",
        help="a saved model of stable-baselines3 (.zip), an .onnx, or the name of a bundled model such as champion "
        "(default: choose from a list)",
    )
    add_stats_option(parser)
    add_circuit_option(parser)
    parser.add_argument(
        "--stochastic", action="store_true", help="sample actions as in training, instead of the most likely ones"
    )
    add_bridge_options(parser)
    add_film_options(parser, "the first two laps")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Open the window with agents that drive, or with the list of agents; with --record, make a film instead."""
    check_film_options(options)
    check_track(options)
    check_models(options.models, MAX_AGENTS, options.stats)
    bridge = bridge_address(options)
    if options.record is not None:
        from racer_viewer.app.offscreen import film_watch

        return film_watch(options, bridge)

    def open_agents(app: App) -> None:
        from racer_viewer.modes.choose import WatchSetupScreen
        from racer_viewer.modes.circuits import circuit_of
        from racer_viewer.modes.waiting import open_safely
        from racer_viewer.modes.watch import open_watch

        context = app.context
        if options.models:
            circuit = options.track or circuit_of(context)
            open_watch(context, options.models, circuit, options.stochastic, options.stats)
            return
        if options.track is not None:
            context.change(circuit=options.track)
        open_safely(context, lambda: WatchSetupScreen(context))

    return open_window(options, open_agents, bridge=bridge)
