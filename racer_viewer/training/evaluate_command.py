"""`racer-viewer evaluate`: how well saved agents drive, as a table with a winner."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from racer_env.engine import circuits, load_circuit
from racer_viewer.agents import Agent, load_agent
from racer_viewer.training.evaluation import Evaluation, Score, evaluate, score
from racer_viewer.warmup import prepare_engine

PIPED_WIDTH = 160
"""Characters of a line that goes to a file or another program."""


def run(options: argparse.Namespace) -> int:
    """Drive every model on every circuit and print what came of it."""
    agents = [load_agent(path) for path in options.models]
    prepare_engine()
    tracks = [load_circuit(name) for name in options.track or [circuit.id for circuit in circuits()]]
    results = {
        name: evaluate(agent.act, tracks, options.episodes, options.seed)
        for name, agent in zip(_names(agents), agents, strict=True)
    }
    if options.json:
        print(
            json.dumps(
                {name: [_plain(each) for each in evaluations] for name, evaluations in results.items()}, indent=2
            )
        )
    else:
        _print(results)
    return 0


def winner(results: dict[str, list[Evaluation]]) -> str | None:
    """The model with the best score over all circuits; None where there is only one."""
    if len(results) < 2:
        return None
    totals: dict[str, Score] = {name: score(evaluations) for name, evaluations in results.items()}
    return min(totals, key=lambda name: totals[name])


def _names(agents: Sequence[Agent]) -> list[str]:
    """By file name; with the folder where two are called the same."""
    names = [agent.name for agent in agents]
    return [name if names.count(name) == 1 else str(agent.info.path) for name, agent in zip(names, agents, strict=True)]


def _plain(each: Evaluation) -> dict[str, Any]:
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


def _print(results: dict[str, list[Evaluation]]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("model", "circuit"):
        table.add_column(name, no_wrap=True)
    for name in ("laps", "standing", "flying", "mean", "done", "wall", "off", "reward"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, evaluations in results.items():
        for each in evaluations:
            figures = (each.best_standing, each.best_flying, each.mean_lap)
            table.add_row(
                name,
                each.track,
                str(each.laps),
                *("-" if lap is None else f"{lap:.2f} s" for lap in figures),
                f"{each.completion:.0%}",
                str(each.wall_ticks),
                str(each.off_track_ticks),
                f"{each.reward:.3f}",
            )
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, PIPED_WIDTH)
    console.print(table)
    console.print("Best laps, completion, ticks at the wall and off the road, mean reward of an episode.", style="dim")
    best = winner(results)
    if best is not None:
        console.print(f"Winner: {best}", markup=False, highlight=False)
