"""The parser of `racer-viewer VERB ...`, its errors and its exit codes."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from racer_viewer import __version__
from racer_viewer.cli import window
from racer_viewer.cli.options import LazyParser, add_common_options
from racer_viewer.plain_text import is_utf8, plain_output
from racer_viewer.runtime import foreign_environment, limit_blas_threads

PROGRAM = "racer-viewer"
VERBS = (
    "tracks", "play", "watch", "replay", "train", "tune", "evaluate", "rewards", "export", "bridge", "stdio", "games",
    "bench", "selftest", "desktop",
)  # fmt: skip
"""Verbs in the order of `--help`; each is a module of this package with `add_parser(subparsers)`."""
INTERNAL_VERBS = ("learn",)
"""Verbs that the app starts its own processes with; users never see them."""

_show_other_warning = warnings.showwarning

USAGE_ERROR = 2
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; a user's mistake is one line on stderr and exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    with plain_output():
        return _run(arguments)


def _run(arguments: Sequence[str]) -> int:
    warnings.showwarning = _show_warning
    limit_blas_threads()
    try:
        for argument in arguments:
            if not is_utf8(argument):
                return _fail(f"{argument} is not valid UTF-8: rename the file or folder, then give its new name")
        if arguments and not arguments[0].startswith("-") and arguments[0] not in VERBS + INTERNAL_VERBS:
            if not Path(arguments[0]).is_file():
                if Path(arguments[0]).suffix:
                    return _fail(f"there is no file {arguments[0]}")
                from racer_env.errors import suggestion  # slow to import; not needed to open the window

                return _fail(f"unknown command {arguments[0]!r}; {suggestion(arguments[0], VERBS)}")
            options = window.file_parser(PROGRAM).parse_args(arguments)
        else:
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
        from racer_env.errors import in_one_line  # slow to import; not needed to open the window

        return _fail(in_one_line(error))
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if problem := foreign_environment(import_failed=isinstance(error, ImportError)):
            return _fail(problem)
        from racer_env.errors import RacerError  # slow to import; not needed to open the window
        from racer_viewer.optional import SB3, MissingPartError, install_and_run_again

        if isinstance(error, ModuleNotFoundError) and error.name in SB3.modules:
            error = MissingPartError(SB3)
        if not isinstance(error, RacerError):
            raise
        if isinstance(error, MissingPartError):
            again = install_and_run_again(error.part, arguments, ask=not options.yes)
            if again is not None:
                return again
        return _fail(error)
    return code


def build_parser(verbs: Sequence[str] = VERBS) -> argparse.ArgumentParser:
    """Return the parser of the command line with these verbs; only their modules are imported."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Drive, watch and train cars on racing circuits. Without a command, open the app; with files in "
        "place of a command, open them in it: replays, models or circuits.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    add_common_options(parser)
    parser.set_defaults(run=window.run)
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=LazyParser)
    for verb in verbs:
        import_module(f"racer_viewer.cli.{verb}").add_parser(subparsers)
    return parser


def _named_verbs(arguments: Sequence[str]) -> Sequence[str]:
    """Return the verbs that these arguments need: none to open the app, all of them for `--help` or an unknown verb."""
    if not arguments:
        return ()
    return arguments[:1] if arguments[0] in VERBS + INTERNAL_VERBS else VERBS


def _show_warning(message: Warning | str, category: type[Warning], *where: Any, **options: Any) -> None:
    """Print a warning of this project as one line; those of other packages are printed as usual."""
    if category.__module__.startswith("racer_"):
        _print_problem(message)
    else:
        _show_other_warning(message, category, *where, **options)


def _fail(problem: object) -> int:
    _print_problem(problem)
    return USAGE_ERROR


def _print_problem(problem: object) -> None:
    """Print a message as one line; names in it may contain line feeds."""
    print("racer-viewer:", *str(problem).split(), file=sys.stderr)
