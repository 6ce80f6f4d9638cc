"""The command line: `racer-viewer VERB …`."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from racer_viewer import __version__
from racer_viewer.commands.bridges import add_bridge_commands
from racer_viewer.commands.driving import add_driving_commands
from racer_viewer.commands.measuring import add_measuring_commands
from racer_viewer.commands.training import add_training_commands
from racer_viewer.runtime import LEARNERS, training_install_hint

USAGE_ERROR = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. What the user got wrong is one line and exit code 2."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        code: int = options.run(options)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output has gone, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"racer-viewer: {error}", file=sys.stderr)
        return USAGE_ERROR
    except ModuleNotFoundError as error:
        if error.name not in LEARNERS:
            raise
        print(f"racer-viewer: {training_install_hint()}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        from racer_env.errors import RacerError  # here, because it is slow to import and the window should be quick

        if not isinstance(error, RacerError):
            raise
        print(f"racer-viewer: {error}", file=sys.stderr)
        return USAGE_ERROR
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="racer-viewer",
        description="A top-down racer to drive, watch and train. Without a command it opens its window.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"racer-viewer {__version__}")
    parser.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="folder for settings, records, replays (default: RACER_DATA_DIR, or yours)",
    )
    parser.set_defaults(run=_run_window)
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

    add_driving_commands(verbs)
    add_training_commands(verbs)
    add_bridge_commands(verbs)
    add_measuring_commands(verbs)
    return parser


def _run_window(options: argparse.Namespace) -> int:
    from racer_viewer.launch import run

    return run(options)


def _run_tracks(options: argparse.Namespace) -> int:
    from racer_viewer.tracks import draw_tracks, list_tracks

    if options.svg is None:
        list_tracks(options.circuits)
    else:
        draw_tracks(options.circuits, options.svg)
    return 0
