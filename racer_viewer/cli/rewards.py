"""`racer-viewer rewards`: score a reward on good and bad drives before training with it."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

from racer_viewer.cli.options import CIRCUITS_HELP, Subparsers, add_json_option, resolved

if TYPE_CHECKING:
    from racer_env.engine import Config
    from racer_viewer.training.reward_lab import LabDrive, LabReport


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "rewards",
        help="score a reward on good and bad drives",
        description="Score a reward on good and bad drives before training with it; warn where it prefers a bad one.",
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="an ai-config.json (default: the default rewards)")
    parser.add_argument(
        "--track", default="track-01", metavar="CIRCUIT", help=f"{CIRCUITS_HELP} (default: %(default)s)"
    )
    parser.add_argument("--units", action="store_true", help="pay progress per 1,000 units, as the presets for PPO do")
    parser.add_argument("replays", nargs="*", type=Path, metavar="REPLAY", help="replays on this circuit to score too")
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the ranking and the warnings."""
    from racer_env.engine import Config, load_circuit, load_config
    from racer_viewer.training.reward_lab import paid_on, reference_drives, score_reward
    from racer_viewer.warmup import prepare_engine

    config = load_config(options.config) if options.config else Config()
    prepare_engine()
    track = load_circuit(resolved(options.track, options))
    drives = [*(_replayed(path, track) for path in options.replays), *reference_drives(track)]
    report = score_reward(paid_on(config, track, options.units), drives)
    if options.json:
        print(json.dumps(_to_json(report, config), indent=2))
    else:
        _print(report, options.track)
    return 0


def _replayed(path: Path, track: object) -> LabDrive:
    from racer_env.engine import Track
    from racer_env.engine.scoring import record_drive
    from racer_env.errors import RacerError
    from racer_viewer.replays import load_replay
    from racer_viewer.replays.trace import is_track_of
    from racer_viewer.training.reward_lab import PERSON, LabDrive

    assert isinstance(track, Track)
    replay = load_replay(path)
    if not is_track_of(track, replay.circuit):
        raise RacerError(f"{path} was recorded on {replay.circuit.name}: choose that circuit with --track")
    drive = record_drive(track, replay.actions, replay.start, replay.seed, replay.put_back)
    return LabDrive(PERSON, drive, replay.driver or path.stem)


def _to_json(report: LabReport, config: Config) -> dict[str, object]:
    keys = [component.wire_name for component in config.components]
    return {
        "ranking": [
            {
                "kind": each.kind,
                "name": each.label,
                "episode": each.episode,
                "per_second": each.per_second,
                "per_lap": None if math.isnan(each.per_lap) else each.per_lap,
                "ended": each.ended,
                "components_per_second": dict(zip(keys, each.components, strict=True)),
            }
            for each in report.scores
        ],
        "warnings": [
            {"worse": each.worse.kind, "better": each.better.kind, "text": str(each)} for each in report.warnings
        ],
    }


def _print(report: LabReport, circuit: str) -> None:
    from rich.table import Table

    from racer_viewer.plain_text import make_console
    from racer_viewer.training.reward_lab import main_warnings

    table = Table(box=None, pad_edge=False, header_style="bold", title=f"Reward on {circuit}", title_justify="left")
    table.add_column("drive", no_wrap=True)
    for name in ("per episode", "per second", "per lap"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in report.scores:
        lap = "-" if math.isnan(each.per_lap) else f"{each.per_lap:+.4g}"
        table.add_row(each.label, f"{each.episode:+.4g}", f"{each.per_second:+.4g}", lap)
    console = make_console()
    console.print(table)
    console.print(
        "A learner maximises the reward of an episode: a drive goes on as it is until the time is up, "
        "or ends by standing still.",
        style="dim",
    )
    for warning in main_warnings(report):
        console.print(f"Warning: {warning}", markup=False, highlight=False, style="yellow")
    if not report.warnings:
        console.print("No worse drive earns more than a better one.")
