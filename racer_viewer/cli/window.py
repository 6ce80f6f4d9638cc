"""The app's window, opened from the command line: at the menu, or at what a verb shows."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from racer_viewer.cli.options import add_common_options, check_stats_option, chosen_token, resolved
from racer_viewer.paths import data_folder

if TYPE_CHECKING:
    from racer_viewer.app.window import App
    from racer_viewer.modes.screen import BridgeAddress

NO_DISPLAY = 2
"""Exit code where a window is needed and there is no display."""


def run(options: argparse.Namespace) -> int:
    """Open the menu; without a display, film a lap."""
    return open_window(options, without_display=_film_lap)


def file_parser(program: str) -> argparse.ArgumentParser:
    """Return the parser of a command line with files in place of a verb, as desktops start programs."""
    parser = argparse.ArgumentParser(prog=program, description="Open replays, models and circuits.", allow_abbrev=False)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    add_common_options(parser)
    parser.set_defaults(run=_open_files)
    return parser


def _open_files(options: argparse.Namespace) -> int:
    """Open the window with these files: several replays are compared, others opened as if dropped one by one."""

    def show(app: App) -> None:
        from racer_viewer.app.window import open_dropped
        from racer_viewer.modes.replay_screen import open_replays

        if all(path.suffix.lower() == ".racer" for path in options.files):
            open_replays(app.context, options.files)
            return
        for path in options.files:
            open_dropped(app.context, path)

    return open_window(options, show)


def open_window(
    options: argparse.Namespace,
    show: Callable[[App], None] | None = None,
    *,
    without_display: Callable[[Path], int] | None = None,
    hint: str = "--record FILE films without one",
    bridge: BridgeAddress | None = None,
    record: Path | None = None,
) -> int:
    """Run the app until its window is closed. Nothing heavy is imported before the first frame.

    Parameters:
        show: opens the first screen as soon as the engine is ready; the menu if None
        without_display: called with the data folder where there is no display; if None, `hint` is printed
        bridge: server whose cars are driven
        record: file to film the window to
    """
    from racer_viewer.app.window import App
    from racer_viewer.ui.display import NoDisplayError

    data = data_folder(options.data_dir)
    try:
        app = App(data)
    except NoDisplayError as error:
        if without_display is not None:
            print(f"There is no display here ({error}): filming a lap instead ...", file=sys.stderr, flush=True)
            return without_display(data)
        print(f"racer-viewer: there is no display here ({error}); {hint}", file=sys.stderr)
        return NO_DISPLAY
    if record is not None:
        app.record_to(record)
    if show is not None:
        from racer_viewer.modes.waiting import when_ready

        app.context.bridge = bridge
        when_ready(app.context, lambda: show(app))
    app.run()
    return 0


def check_track(options: argparse.Namespace) -> None:
    """Look for the circuit before a window opens: an own one becomes its path, an unknown one raises a `RacerError`.

    A bridge server knows its circuits itself.
    """
    if options.track is not None and options.bridge is None:
        from racer_env.engine import load_circuit

        options.track = resolved(options.track, options)
        load_circuit(options.track)


def check_models(models: Sequence[Path], limit: int, stats: Path | None = None) -> None:
    """Raise a `RacerError` for models that cannot be loaded, or too many of them, before a window opens."""
    if models:
        from racer_env.errors import RacerError
        from racer_viewer.agents import load_agent

        if len(models) > limit:
            raise RacerError(f"at most {limit} models can drive at once, not {len(models)}")
        check_stats_option(models, stats)
        for path in models:
            load_agent(path, stats)


def bridge_address(options: argparse.Namespace) -> BridgeAddress | None:
    """Return the server of `--bridge`, checked; None without the option."""
    if options.bridge is None:
        return None
    from racer_env.bridge.ws_client import check_url
    from racer_viewer.modes.screen import BridgeAddress

    check_url(options.bridge)
    return BridgeAddress(options.bridge, chosen_token(options))


def _film_lap(data: Path) -> int:
    from racer_env.engine import circuit_name
    from racer_viewer.app.offscreen import film_lap
    from racer_viewer.films.film import FilmProgress
    from racer_viewer.render.overlays import lap_time
    from racer_viewer.warmup import prepare_engine

    prepare_engine()
    with FilmProgress("Filming a lap", known=False):
        lap = film_lap(data / "lap.gif")
    driven = f"a lap of {lap_time(lap.lap_ticks)} s" if lap.lap_ticks else "a drive without a whole lap"
    print(f"{lap.film.path}: the champion on {circuit_name(lap.circuit)}, {driven}")
    return 0
