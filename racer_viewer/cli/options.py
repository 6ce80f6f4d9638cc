"""Options that several verbs share: value types, the data folder, bridges and films."""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from racer_viewer.paths import data_folder

MAX_TOKEN_SIZE = 4096
"""Maximum size of a token file [bytes]."""
CIRCUITS_HELP = "circuit id, own:ID or the name of a circuit of your own, random:SEED, or a circuit file"
"""Description of a circuit argument."""
Subparsers: TypeAlias = "argparse._SubParsersAction[LazyParser]"
MIN_FILM_SIZE, MAX_FILM_SIZE = 64, 8192
"""Limits of a film's width and height [px]."""


class LazyParser(argparse.ArgumentParser):
    """A parser of a verb: it takes the common options, and adds further options when it is first used.

    Training options are generated from `RunConfig`, whose import takes half a second: opening the app must not pay it.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        add_common_options(self, default=argparse.SUPPRESS)  # keep values that were given before the verb
        self.add_later: Callable[[], None] | None = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self.add_later is not None:
            add, self.add_later = self.add_later, None
            add()
        return super().parse_known_args(args, namespace)


def positive(kind: Callable[[str], float]) -> Callable[[str], float]:
    """Return an option type for numbers above 0."""

    def convert(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = 0
        if not 0 < value < math.inf:
            raise argparse.ArgumentTypeError(f"must be a number greater than 0, not {text!r}")
        return value

    return convert


def port(text: str) -> int:
    """Convert a TCP port."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to 65535, not {text!r}")
    return int(text)


def add_json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the results as JSON")


def add_common_options(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """Add `--data-dir` and `--yes`, which every verb takes before and after its name."""
    parser.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        default=default,
        help="folder for settings, records, replays and runs, if the command uses any "
        "(default: RACER_DATA_DIR, or the user's data folder)",
    )
    parser.add_argument(
        "--yes", action="store_true", default=default, help="install packages that the command needs without asking"
    )


def add_stats_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--stats",
        type=Path,
        metavar="FILE",
        help="normalisation statistics of the model, .pkl, .npz or .json (default: found in or beside the model)",
    )


def check_stats_option(models: Sequence[object], stats: Path | None) -> None:
    """Raise a `RacerError` if one statistics file is given for several models."""
    if stats is not None and len(models) != 1:
        from racer_env.errors import RacerError

        raise RacerError(f"--stats is for one model, not for {len(models)}")


def add_circuit_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--track", metavar="CIRCUIT", help=f"{CIRCUITS_HELP} (default: the one used last)")


def resolved(circuit: str, options: argparse.Namespace) -> str:
    """Return what `load_circuit` takes for a circuit of the command line, with own ones in the data folder."""
    from racer_viewer.circuits.library import resolve_circuit

    return resolve_circuit(circuit, data_folder(options.data_dir))


def add_bridge_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--bridge", metavar="URL", help="drive cars of a bridge server, such as ws://localhost:9876")
    add_token_options(parser, "token of the bridge server, if it needs one")


def add_token_options(parser: argparse.ArgumentParser, meaning: str) -> None:
    """Add `--token` and `--token-file`, for `chosen_token`."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help=f"file with the {meaning} (default: the variable RACER_BRIDGE_TOKEN)",
    )
    group.add_argument(
        "--token", help="the token itself; other users of this machine can see it in the list of processes"
    )


def chosen_token(options: argparse.Namespace) -> str | None:
    """Return the token of the options, else that of RACER_BRIDGE_TOKEN. Warn if other users can see it."""
    from racer_env.bridge.ws_client import TOKEN_VARIABLE

    if options.token_file is not None:
        return _read_token(options.token_file)
    if options.token:
        _warn(f"other users can see --token in the list of processes; use --token-file FILE or {TOKEN_VARIABLE}")
    return options.token or os.environ.get(TOKEN_VARIABLE) or None


def _read_token(path: Path) -> str:
    """Return the token in a file; raise RacerError unless it is one line of text."""
    from racer_env.errors import RacerError, os_reason

    try:
        with path.open("rb") as file:
            content = file.read(MAX_TOKEN_SIZE + 1)
            others_may_read = os.name == "posix" and os.fstat(file.fileno()).st_mode & 0o044
        token = content.decode().strip()
    except OSError as error:
        raise RacerError(f"cannot read the token file {path}: {os_reason(error)}") from None
    except UnicodeDecodeError:
        raise RacerError(f"the token file {path} is not text in UTF-8") from None
    if len(content) > MAX_TOKEN_SIZE:
        raise RacerError(f"the token file {path} has more than {MAX_TOKEN_SIZE} bytes")
    if not token or not token.isprintable():
        raise RacerError(f"the token file {path} must have one line, the token")
    if others_may_read:
        _warn(f"other users can read the token file {path}; chmod 600 makes it private")
    return token


def _warn(text: str) -> None:
    print(f"warning: {text}", file=sys.stderr)


def add_film_options(parser: argparse.ArgumentParser, length: str) -> None:
    parser.add_argument(
        "--record", type=Path, metavar="FILE", help="make a film without a window: .mp4, .gif or .png pictures"
    )
    parser.add_argument("--seconds", type=positive(float), metavar="S", help=f"length of the film (default: {length})")
    parser.add_argument("--size", type=_size, metavar="WxH", help="size of the film in pixels (default: 1280x720)")


def check_film_options(options: argparse.Namespace) -> None:
    """Raise a `RacerError` if options of a film are given without one."""
    if options.record is None and (options.seconds is not None or options.size is not None):
        from racer_env.errors import RacerError

        raise RacerError("--seconds and --size are for a film: add --record FILE")


def _size(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)x(\d+)", text)
    size = (int(found[1]), int(found[2])) if found else (0, 0)
    if not all(MIN_FILM_SIZE <= side <= MAX_FILM_SIZE for side in size):
        raise argparse.ArgumentTypeError(
            f"a size is written as 1280x720, each side {MIN_FILM_SIZE} to {MAX_FILM_SIZE}; not {text!r}"
        )
    return size
