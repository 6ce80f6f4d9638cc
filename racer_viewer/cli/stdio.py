"""`racer-viewer stdio`: host a Gymnasium environment on stdin and stdout."""

from __future__ import annotations

import argparse

from racer_viewer.cli.options import Subparsers


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "stdio",
        help="host a Gymnasium environment over stdin and stdout",
        description="Host any installed Gymnasium environment for another program: one JSON object per line, requests "
        "on stdin, replies on stdout. Seeds are whole numbers of any size; seeds and discrete actions may be written "
        "as 1 or 1.0.",
    )
    parser.add_argument(
        "--env-id", required=True, metavar="ID", help="an environment such as CartPole-v1, CarRacing-v3 or Racer-v0"
    )
    parser.add_argument(
        "--make-kwargs",
        metavar="JSON",
        help='arguments of gymnasium.make, such as \'{"render_mode": "rgb_array"}\'',
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until stdin is closed; stdout carries nothing but the protocol."""
    import racer_env.stdio.host
    from racer_viewer.optional import require_for_environment

    require_for_environment(options.env_id)
    return racer_env.stdio.host.run(options.env_id, options.make_kwargs)
