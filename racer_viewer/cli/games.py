"""`racer-viewer games`: serve games that run in real time over TCP."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from racer_viewer.cli.options import Subparsers, port, positive

if TYPE_CHECKING:
    from racer_env.bridge.net import ServerAddress
    from racer_env.games.supervisor import GamesConfig

GAMES = ("CarRacing-v3", "Racer-v0")
MAX_GAMES = 256
MAX_TICK_RATE = 1000.0
"""Maximum tick rate [ticks/s]."""
MAX_EPISODE = 2**31 - 1
"""Maximum episode length [ticks]."""
MAX_SEED = 2**31 - 1


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "games",
        help="serve games that run in real time over TCP",
        description="Serve games that run in real time over TCP: clients set actions and ask for states. A message "
        "without game_id is for game 0, and missing action values are 0.",
    )
    parser.add_argument("--game", choices=GAMES, default=GAMES[0], help="game to serve (default: %(default)s)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    parser.add_argument("--port", type=port, default=5555, help="port to listen on, 0 for any (default: %(default)s)")
    parser.add_argument(
        "--num-games", type=positive(int), default=1, metavar="N", help="number of games (default: %(default)s)"
    )
    parser.add_argument(
        "--render",
        choices=("human", "rgb_array", "none"),
        default="rgb_array",
        help="a window and frames for clients, frames only, or neither (default: %(default)s)",
    )
    parser.add_argument("--render-all", action="store_true", help="show all games in the window, not only the first")
    parser.add_argument(
        "--max-steps",
        type=positive(int),
        default=1000,
        metavar="N",
        help="maximum ticks per episode (default: %(default)s)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        metavar="S",
        help="seed of CarRacing's circuits (default: random); Racer-v0 always starts the same",
    )
    parser.add_argument(
        "--hz", type=positive(float), metavar="F", help="ticks per second (default: 50, or 60 for Racer-v0)"
    )
    parser.add_argument("--verbose", type=int, choices=(0, 1), default=0, help="1 logs clients and the tick rate")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C or until the window is closed; log to stderr, print the address to stdout."""
    import logging

    from racer_env.bridge.net import ServerAddress, is_loopback, run_server
    from racer_env.errors import RacerError
    from racer_env.games.game import RACER
    from racer_env.games.server import GamesServer
    from racer_viewer.warmup import prepare_engine

    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(message)s")
    logging.getLogger("racer_env.games").setLevel(logging.INFO if options.verbose else logging.WARNING)
    if options.render_all and options.render != "human":
        raise RacerError("--render-all needs a window: add --render human")
    config = _games_config(options)
    address = ServerAddress(options.host, options.port)
    if not is_loopback(address.host):
        warning = f"other machines can reach {address.host}, and this protocol has no password"
        print(f"racer-viewer: warning: {warning}", file=sys.stderr)
    if options.render == "human":
        from racer_viewer.games.window import check_display

        check_display()
    server = GamesServer(address, config)
    server.listen()
    if config.game == RACER:
        prepare_engine()
    if options.render == "human":
        from racer_viewer.games.window import show
        from racer_viewer.paths import data_folder

        game_ids = range(config.num_games) if options.render_all else range(1)
        show(server, game_ids, _print_address, data_folder(options.data_dir))
    else:
        run_server(server, _print_address)
    return 0


def _games_config(options: argparse.Namespace) -> GamesConfig:
    from racer_env.errors import RacerError
    from racer_env.games.game import check_kind
    from racer_env.games.supervisor import GamesConfig
    from racer_viewer.optional import require_for_environment

    require_for_environment(options.game)
    kind = check_kind(options.game)
    if options.num_games > MAX_GAMES:
        raise RacerError(f"--num-games is at most {MAX_GAMES}, not {options.num_games}")
    if options.seed is not None and not 0 <= options.seed <= MAX_SEED:
        raise RacerError(f"--seed is a whole number from 0 to {MAX_SEED}, not {options.seed}")
    if options.max_steps > MAX_EPISODE:
        raise RacerError(f"--max-steps is at most {MAX_EPISODE}, not {options.max_steps}")
    hz = options.hz or kind.hz
    if hz > MAX_TICK_RATE:
        raise RacerError(f"--hz is at most {MAX_TICK_RATE:g}, not {hz:g}")
    return GamesConfig(kind.name, options.num_games, hz, options.max_steps, options.seed, options.render != "none")


def _print_address(address: ServerAddress) -> None:
    print(f"Games at {address} (press Ctrl-C to stop)", flush=True)
