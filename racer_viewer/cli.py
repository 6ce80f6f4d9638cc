"""The command line: `racer-viewer VERB …`. Each verb's work is in a module of its own, imported when it is called."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from racer_env.errors import RacerError
from racer_viewer import __version__

USAGE_ERROR = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. What the user got wrong is one line and exit code 2."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.run is None:
        parser.print_help()
        return 0
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except RacerError as error:
        print(f"racer-viewer: {error}", file=sys.stderr)
        return USAGE_ERROR
    except BrokenPipeError:  # the reader of our output has gone, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"racer-viewer: {error}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        return 130
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="racer-viewer", description="A top-down racer to drive, watch and train.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"racer-viewer {__version__}")
    parser.set_defaults(run=None)
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND")

    tracks = verbs.add_parser(
        "tracks",
        help="list circuits, or draw them",
        description="List circuits with their length, tightest corner and medal times (best lap of a run).",
    )
    tracks.add_argument(
        "circuits",
        nargs="*",
        metavar="CIRCUIT",
        help="an id, random:SEED, random:SEED:easy|medium|hard, or a circuit file (default: all bundled ones)",
    )
    tracks.add_argument("--svg", metavar="DIR", type=Path, help="draw each of them into this folder")
    tracks.set_defaults(run=_run_tracks)

    bench = verbs.add_parser("bench", help="measure speed on this machine", description="Measure speed here.")
    subjects = bench.add_subparsers(title="what to measure", metavar="WHAT", required=True)
    engine = subjects.add_parser(
        "engine",
        help="steps per second of the simulation",
        description="Full steps per second (observation, rewards, auto-reset), against CartPole-v1 in the same run.",
    )
    engine.add_argument("--json", action="store_true", help="print the figures as JSON")
    engine.add_argument("--quick", action="store_true", help="a few seconds instead of about a minute, and noisier")
    engine.set_defaults(run=_run_bench_engine)
    return parser


def _run_tracks(options: argparse.Namespace) -> int:
    from racer_viewer.tracks import draw_tracks, list_tracks

    if options.svg is None:
        list_tracks(options.circuits)
    else:
        draw_tracks(options.circuits, options.svg)
    return 0


def _run_bench_engine(options: argparse.Namespace) -> int:
    from racer_viewer.bench.engine import run

    run(quick=options.quick, as_json=options.json)
    return 0
