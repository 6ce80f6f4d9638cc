"""`racer-viewer export`: write an agent for other programs or other people."""

from __future__ import annotations

import argparse
from pathlib import Path

from racer_viewer.cli.options import Subparsers


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "export",
        help="write an agent as ONNX, or as a model to share",
        description="Write an agent for other programs or other people, and check that it still drives the same.",
    )
    parser.add_argument("model", type=Path, metavar="MODEL", help="a saved PPO or SAC model (.zip)")
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument(
        "--onnx",
        type=Path,
        metavar="DIR",
        help="folder for model.onnx (input obs [1, 14], normalised; output actions [1, 3]) and vecnorm_stats.json",
    )
    target.add_argument(
        "--zip",
        type=Path,
        metavar="FILE",
        help="a model for stable-baselines3 without the optimiser's state and the paths of this machine",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Export the model and print the result of the check."""
    from racer_viewer.training.export import export, share

    if options.zip is not None:
        print(f"{share(options.model, options.zip)}: drives the same")
    else:
        difference = export(options.model, options.onnx)
        print(f"{options.onnx / 'model.onnx'}: the same actions to {difference:.1g}")
    return 0
