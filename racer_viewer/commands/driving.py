"""`play`, `watch` and `replay` on the command line."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from racer_viewer.commands.values import add_data_folder, add_film_options


def add_driving_commands(verbs: Any) -> None:
    play = _verb(verbs, "play", "drive yourself", "Drive yourself, against the clock, your ghost and agents.")
    _add_circuit(play)
    play.add_argument(
        "--laps", type=_laps, metavar="N", help="laps to drive, 0 for an open end (default: as last time)"
    )
    play.add_argument("--against", nargs="+", type=Path, default=[], metavar="MODEL", help="agents to race, at most 7")
    _add_bridge(play)
    play.add_argument("--record", type=Path, metavar="FILE", help="film it: an .mp4, a .gif or .png pictures")
    play.set_defaults(run=_run_play)

    watch = _verb(
        verbs, "watch", "watch agents drive", "Watch trained agents drive, one or several against each other."
    )
    watch.add_argument(
        "models",
        nargs="*",
        type=Path,
        metavar="MODEL",
        help="a saved PPO or SAC model (.zip), an .onnx, or a bundled name as champion (default: choose from a list)",
    )
    _add_circuit(watch)
    watch.add_argument(
        "--stochastic", action="store_true", help="draw actions as in training, instead of the best ones"
    )
    _add_bridge(watch)
    add_film_options(watch, "the first two laps")
    watch.set_defaults(run=_run_watch)

    replay = _verb(verbs, "replay", "see a kept drive again", "See a kept drive again; several are compared as ghosts.")
    replay.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a .racer file")
    add_film_options(replay, "all of it")
    replay.set_defaults(run=_run_replay)


def _verb(verbs: Any, name: str, about: str, description: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=about, description=description)
    add_data_folder(parser, "settings, records, replays")
    return parser


def _add_circuit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--track", metavar="CIRCUIT", help="an id, random:SEED, or a circuit file (default: the one of last time)"
    )


def _add_bridge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--bridge", metavar="URL", help="drive on the cars of a bridge, as ws://localhost:9876")
    parser.add_argument("--token", help="of that bridge, if it asks for one (default: RACER_BRIDGE_TOKEN)")


def _laps(text: str) -> int:
    if not text.isdecimal() or int(text) > 99:
        raise argparse.ArgumentTypeError(f"a number of laps is 0 to 99, not {text!r}")
    return int(text)


def _run_play(options: argparse.Namespace) -> int:
    from racer_viewer.launch import play

    return play(options)


def _run_watch(options: argparse.Namespace) -> int:
    from racer_viewer.launch import watch

    return watch(options)


def _run_replay(options: argparse.Namespace) -> int:
    from racer_viewer.launch import replay

    return replay(options)
