"""`play`, `watch` and `replay` on the command line: their options."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

DEFAULT_SIZE = (1280, 720)
LEAST_SIZE, LARGEST_SIZE = 64, 8192
"""Of a film, either side [px]."""


def add_driving_commands(verbs: Any, positive: Callable[[Callable[[str], float]], Callable[[str], float]]) -> None:
    """`positive` makes a type of option that is above zero."""
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
    add_film_options(watch, positive, "the first two laps")
    watch.set_defaults(run=_run_watch)

    replay = _verb(verbs, "replay", "see a kept drive again", "See a kept drive again; several are compared as ghosts.")
    replay.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a .racer file")
    add_film_options(replay, positive, "all of it")
    replay.set_defaults(run=_run_replay)


def _verb(verbs: Any, name: str, about: str, description: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=about, description=description)
    add_data_folder(parser, "settings, records, replays")
    return parser


def add_data_folder(parser: argparse.ArgumentParser, content: str) -> None:
    """`--data-dir` behind a command; what was given before the command counts too."""
    parser.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        default=argparse.SUPPRESS,
        help=f"folder for {content} (default: RACER_DATA_DIR, or yours)",
    )


def _add_circuit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--track", metavar="CIRCUIT", help="an id, random:SEED, or a circuit file (default: the one of last time)"
    )


def _add_bridge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--bridge", metavar="URL", help="drive on the cars of a bridge, as ws://localhost:9876")
    parser.add_argument("--token", help="of that bridge, if it asks for one (default: RACER_BRIDGE_TOKEN)")


def add_film_options(
    parser: argparse.ArgumentParser, positive: Callable[[Callable[[str], float]], Callable[[str], float]], length: str
) -> None:
    parser.add_argument(
        "--record", type=Path, metavar="FILE", help="make a film without a window: an .mp4, a .gif or .png pictures"
    )
    parser.add_argument("--seconds", type=positive(float), metavar="S", help=f"length of the film (default: {length})")
    parser.add_argument(
        "--size", type=_size, default=DEFAULT_SIZE, metavar="WxH", help="of the film in pixels (default: 1280x720)"
    )


def _laps(text: str) -> int:
    if not text.isdecimal() or int(text) > 99:
        raise argparse.ArgumentTypeError(f"a number of laps is 0 to 99, not {text!r}")
    return int(text)


def _size(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)x(\d+)", text)
    size = (int(found[1]), int(found[2])) if found else (0, 0)
    if not all(LEAST_SIZE <= side <= LARGEST_SIZE for side in size):
        raise argparse.ArgumentTypeError(
            f"a size is written as 1280x720, each side {LEAST_SIZE} to {LARGEST_SIZE}; not {text!r}"
        )
    return size


def _run_play(options: argparse.Namespace) -> int:
    from racer_viewer.launch import play

    return play(options)


def _run_watch(options: argparse.Namespace) -> int:
    from racer_viewer.launch import watch

    return watch(options)


def _run_replay(options: argparse.Namespace) -> int:
    from racer_viewer.launch import replay

    return replay(options)
