"""The command line: `racer-viewer VERB …`. Each verb's work is in a module of its own, imported when it is called."""

import argparse
import math
import os
import sys
from collections.abc import Callable, Sequence
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

    bridge = verbs.add_parser(
        "bridge",
        help="serve the environment over WebSocket",
        description="Serve the racer over WebSocket: one environment, or a batch of cars, for every connection.",
    )
    bridge.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    bridge.add_argument("--port", type=_port, default=9876, help="port to listen on, 0 for any (default: %(default)s)")
    bridge.add_argument(
        "--token",
        help="secret that clients must send; needed for other hosts than this machine (default: RACER_BRIDGE_TOKEN)",
    )
    bridge.add_argument(
        "--max-clients",
        type=_positive(int),
        default=256,
        metavar="N",
        help="connections at once (default: %(default)s)",
    )
    bridge.add_argument(
        "--max-cars", type=_positive(int), default=1024, metavar="N", help="cars of one batch (default: %(default)s)"
    )
    bridge.add_argument(
        "--idle-timeout",
        type=_positive(float),
        default=3600.0,
        metavar="SECONDS",
        help="close a connection that is silent for so long (default: %(default)g)",
    )
    bridge.add_argument("--uvloop", action="store_true", help="use uvloop, a faster event loop, if it is installed")
    bridge.add_argument("--verbose", action="store_true", help="log every message")
    bridge.set_defaults(run=_run_bridge)

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


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to 65535, not {text!r}")
    return int(text)


def _positive(kind: Callable[[str], float]) -> Callable[[str], float]:
    def convert(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = 0
        if not 0 < value < math.inf:
            raise argparse.ArgumentTypeError(f"a number above 0 is needed, not {text!r}")
        return value

    return convert


def _run_tracks(options: argparse.Namespace) -> int:
    from racer_viewer.tracks import draw_tracks, list_tracks

    if options.svg is None:
        list_tracks(options.circuits)
    else:
        draw_tracks(options.circuits, options.svg)
    return 0


def _run_bridge(options: argparse.Namespace) -> int:
    from racer_viewer.bridge import run

    return run(options)


def _run_bench_engine(options: argparse.Namespace) -> int:
    from racer_viewer.bench.engine import run

    run(quick=options.quick, as_json=options.json)
    return 0
