"""What options of several commands have in common: kinds of values, the data folder, films."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from pathlib import Path

LEAST_SIZE, LARGEST_SIZE = 64, 8192
"""Of a film, either side [px]."""


def positive(kind: Callable[[str], float]) -> Callable[[str], float]:
    """A type of option that is above zero."""

    def convert(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = 0
        if not 0 < value < math.inf:
            raise argparse.ArgumentTypeError(f"a number above 0 is needed, not {text!r}")
        return value

    return convert


def port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to 65535, not {text!r}")
    return int(text)


def add_data_folder(parser: argparse.ArgumentParser, content: str) -> None:
    """`--data-dir` behind a command; what was given before the command counts too."""
    parser.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        default=argparse.SUPPRESS,
        help=f"folder for {content} (default: RACER_DATA_DIR, or yours)",
    )


def add_film_options(parser: argparse.ArgumentParser, length: str) -> None:
    parser.add_argument(
        "--record", type=Path, metavar="FILE", help="make a film without a window: an .mp4, a .gif or .png pictures"
    )
    parser.add_argument("--seconds", type=positive(float), metavar="S", help=f"length of the film (default: {length})")
    parser.add_argument("--size", type=_size, metavar="WxH", help="of the film in pixels (default: 1280x720)")


def _size(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)x(\d+)", text)
    size = (int(found[1]), int(found[2])) if found else (0, 0)
    if not all(LEAST_SIZE <= side <= LARGEST_SIZE for side in size):
        raise argparse.ArgumentTypeError(
            f"a size is written as 1280x720, each side {LEAST_SIZE} to {LARGEST_SIZE}; not {text!r}"
        )
    return size
