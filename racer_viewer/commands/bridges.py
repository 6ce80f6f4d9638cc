"""`bridge`, `stdio` and `games` on the command line: environments for other programs."""

from __future__ import annotations

import argparse
from typing import Any

from racer_viewer.commands.values import port, positive

GAMES = ("CarRacing-v3", "Racer-v0")


def add_bridge_commands(verbs: Any) -> None:
    _add_bridge(verbs)
    _add_stdio(verbs)
    _add_games(verbs)


def _add_bridge(verbs: Any) -> None:
    bridge = verbs.add_parser(
        "bridge",
        help="serve the environment over WebSocket",
        description="Serve the racer over WebSocket: one environment, or a batch of cars, for every connection.",
    )
    bridge.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    bridge.add_argument("--port", type=port, default=9876, help="port to listen on, 0 for any (default: %(default)s)")
    bridge.add_argument(
        "--token",
        help="secret that clients must send; needed for other hosts than this machine (default: RACER_BRIDGE_TOKEN)",
    )
    bridge.add_argument(
        "--max-clients",
        type=positive(int),
        default=256,
        metavar="N",
        help="connections at once (default: %(default)s)",
    )
    bridge.add_argument(
        "--max-cars", type=positive(int), default=1024, metavar="N", help="cars of one batch (default: %(default)s)"
    )
    bridge.add_argument(
        "--idle-timeout",
        type=positive(float),
        default=3600.0,
        metavar="SECONDS",
        help="close a connection that is silent for so long (default: %(default)g)",
    )
    bridge.add_argument("--uvloop", action="store_true", help="use uvloop, a faster event loop, if it is installed")
    bridge.add_argument("--verbose", action="store_true", help="log every message")
    bridge.set_defaults(run=_run_bridge)


def _add_stdio(verbs: Any) -> None:
    stdio = verbs.add_parser(
        "stdio",
        help="host a Gymnasium environment over stdin and stdout",
        description="Host any installed Gymnasium environment for another program: one JSON object a line, in on "
        "stdin, out on stdout.",
    )
    stdio.add_argument("--env-id", required=True, metavar="ID", help="as CartPole-v1, CarRacing-v3 or Racer-v0")
    stdio.add_argument("--make-kwargs", metavar="JSON", help='for gymnasium.make, as \'{"render_mode": "rgb_array"}\'')
    stdio.set_defaults(run=_run_stdio)


def _add_games(verbs: Any) -> None:
    games = verbs.add_parser(
        "games",
        help="serve games in free run over TCP",
        description="Serve games that run by themselves over TCP: clients set actions and ask for states.",
    )
    games.add_argument("--game", choices=GAMES, default=GAMES[0], help="which one (default: %(default)s)")
    games.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    games.add_argument("--port", type=port, default=5555, help="port to listen on, 0 for any (default: %(default)s)")
    games.add_argument("--num-games", type=positive(int), default=1, metavar="N", help="(default: %(default)s)")
    games.add_argument(
        "--render",
        choices=("human", "rgb_array", "none"),
        default="rgb_array",
        help="a window and frames, frames for clients, or neither (default: %(default)s)",
    )
    games.add_argument("--render-all", action="store_true", help="all games in the window, not the first alone")
    games.add_argument(
        "--max-steps", type=positive(int), default=1000, metavar="N", help="ticks of an episode (default: %(default)s)"
    )
    games.add_argument(
        "--seed", type=int, metavar="S", help="of CarRacing's circuits (default: any); Racer-v0 always begins alike"
    )
    games.add_argument(
        "--hz", type=positive(float), metavar="F", help="ticks a second (default: 50, or 60 for the racer)"
    )
    games.add_argument("--verbose", type=int, choices=(0, 1), default=0, help="1 logs clients and the tick rate")
    games.set_defaults(run=_run_games)


def _run_bridge(options: argparse.Namespace) -> int:
    from racer_viewer.bridge import run

    return run(options)


def _run_stdio(options: argparse.Namespace) -> int:
    from racer_viewer.stdio import run

    return run(options)


def _run_games(options: argparse.Namespace) -> int:
    from racer_viewer.games import run

    return run(options)
