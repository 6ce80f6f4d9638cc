"""The parser of `racer-viewer VERB ...`, its errors and its exit codes."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from racer_viewer import __version__
from racer_viewer.cli import window
from racer_viewer.cli.options import LazyParser, add_data_folder
from racer_viewer.runtime import LEARNERS, foreign_environment, training_install_hint

VERBS = (
    "tracks", "play", "watch", "replay", "train", "learn", "tune", "evaluate", "export", "bridge", "stdio", "games",
    "bench", "selftest",
)  # fmt: skip
"""Verbs in the order of `--help`; each is a module of this package with `add_parser(subparsers)`."""

_show_other_warning = warnings.showwarning

USAGE_ERROR = 2
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; a user's mistake is one line on stderr and exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    warnings.showwarning = _show_warning
    try:
        options = build_parser(_named_verbs(arguments)).parse_args(arguments)
        if problem := foreign_environment():
            return _fail(problem)
        code: int = options.run(options)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:  # the program that reads the output has ended, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _fail(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if problem := foreign_environment(import_failed=isinstance(error, ImportError)):
            return _fail(problem)
        if isinstance(error, ModuleNotFoundError) and error.name in LEARNERS:
            return _fail(training_install_hint())
        from racer_env.errors import RacerError  # slow to import; not needed to open the window

        if not isinstance(error, RacerError):
            raise
        return _fail(error)
    return code


def build_parser(verbs: Sequence[str] = VERBS) -> argparse.ArgumentParser:
    """Return the parser of the command line with these verbs; only their modules are imported."""
    parser = argparse.ArgumentParser(
        prog="racer-viewer",
        description="Drive, watch and train cars on racing circuits. Without a command, open the app.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"racer-viewer {__version__}")
    add_data_folder(parser)
    parser.set_defaults(run=window.run)
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=LazyParser)
    for verb in verbs:
        import_module(f"racer_viewer.cli.{verb}").add_parser(subparsers)
    return parser


def _named_verbs(arguments: Sequence[str]) -> Sequence[str]:
    """Return the verbs that these arguments need: none to open the app, all of them for `--help` or a typing error."""
    if not arguments:
        return ()
    return arguments[:1] if arguments[0] in VERBS else VERBS


def _show_warning(message: Warning | str, category: type[Warning], *where: Any, **options: Any) -> None:
    """Print a warning of ours as one line; those of other packages are printed as usual."""
    if category.__module__.startswith("racer_"):
        print(f"racer-viewer: {message}", file=sys.stderr)
    else:
        _show_other_warning(message, category, *where, **options)


def _fail(problem: object) -> int:
    print(f"racer-viewer: {problem}", file=sys.stderr)
    return USAGE_ERROR
