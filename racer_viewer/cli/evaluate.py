"""`racer-viewer evaluate`: drive saved agents and compare them in a table."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from racer_viewer.cli.options import (
    CIRCUITS_HELP,
    Subparsers,
    add_json_option,
    add_stats_option,
    check_stats_option,
    positive,
    resolved,
)
from racer_viewer.plain_text import make_console

if TYPE_CHECKING:
    from racer_viewer.agents import Agent
    from racer_viewer.training.evaluation import Evaluation

PIPED_WIDTH = 160
"""Table width where the output is not a terminal [characters]."""


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "evaluate",
        help="measure how well agents drive",
        description="Drive saved agents and measure laps, driving off the road and reward. The first episode starts at "
        "the start line, the others start elsewhere on the circuit.",
    )
    parser.add_argument("models", nargs="+", metavar="MODEL", help="a model of stable-baselines3 (.zip), or an .onnx")
    add_stats_option(parser)
    parser.add_argument(
        "--track", nargs="+", metavar="CIRCUIT", help=f"circuits to drive: {CIRCUITS_HELP} (default: all bundled ones)"
    )
    parser.add_argument(
        "--episodes", type=positive(int), default=1, metavar="N", help="episodes per circuit (default: %(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="S", help="seed of the start positions (default: %(default)s)"
    )
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Drive every model on every circuit and print the results."""
    from racer_env.engine import circuit_name, circuits, load_circuit
    from racer_viewer.agents import load_agent
    from racer_viewer.training.evaluation import evaluate
    from racer_viewer.warmup import prepare_engine

    check_stats_option(options.models, options.stats)
    agents = [load_agent(path, options.stats) for path in options.models]
    names = [resolved(name, options) for name in options.track or [circuit.id for circuit in circuits()]]
    tracks = [load_circuit(name) for name in names]
    prepare_engine()
    results = {
        name: evaluate(agent.act, tracks, options.episodes, options.seed)
        for name, agent in zip(_names(agents), agents, strict=True)
    }
    if options.json:
        plain = {name: [_to_json(each) for each in evaluations] for name, evaluations in results.items()}
        print(json.dumps(plain, indent=2))
    else:
        _print_table(results, [f"{circuit_name(name)} ({_shown(name, options)})" for name in names])
    return 0


def winner(results: dict[str, list[Evaluation]]) -> str | None:
    """Return the model with the best score over all circuits; None if there is only one model."""
    from racer_viewer.training.evaluation import score

    if len(results) < 2:
        return None
    return min(results, key=lambda name: score(results[name]))


def _names(agents: Sequence[Agent]) -> list[str]:
    """Return file names, with folders where two are the same."""
    names = [agent.name for agent in agents]
    return [name if names.count(name) == 1 else str(agent.info.path) for name, agent in zip(names, agents, strict=True)]


def _to_json(each: Evaluation) -> dict[str, Any]:
    return {
        "track": each.track,
        "episodes": len(each.episodes),
        "laps": each.laps,
        "best_standing_sec": each.best_standing,
        "best_flying_sec": each.best_flying,
        "mean_lap_sec": each.mean_lap,
        "completion": each.completion,
        "wall_ticks": each.wall_ticks,
        "off_track_ticks": each.off_track_ticks,
        "clean": each.clean,
        "reward": each.reward,
        "components": each.components,
    }


def _shown(circuit: str, options: argparse.Namespace) -> str:
    """Return the id of a circuit; that of an own one, which is a path here, with its prefix."""
    from racer_viewer.circuits.library import key_of
    from racer_viewer.paths import data_folder

    return key_of(circuit, data_folder(options.data_dir)) or circuit


def _print_table(results: dict[str, list[Evaluation]], circuits: Sequence[str]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("model", no_wrap=True)
    table.add_column("circuit")
    for name in ("laps", "standing", "flying", "mean", "done", "wall", "off", "reward"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, evaluations in results.items():
        for circuit, each in zip(circuits, evaluations, strict=True):
            laps = (each.best_standing, each.best_flying, each.mean_lap)
            table.add_row(
                name,
                circuit,
                str(each.laps),
                *("-" if lap is None else f"{lap:.2f} s" for lap in laps),
                f"{each.completion:.0%}",
                str(each.wall_ticks),
                str(each.off_track_ticks),
                f"{each.reward:.3f}",
            )
    console = make_console()
    if not console.is_terminal:
        console.width = max(console.width, PIPED_WIDTH)
    console.print(table)
    console.print("Best laps, completion, ticks at the wall and off the road, mean reward per episode.", style="dim")
    best = winner(results)
    if best is not None:
        console.print(f"Winner: {best}", markup=False, highlight=False)
