"""What `racer-viewer games` does with its options."""

import argparse
import logging
import sys

from racer_env.bridge.net import Address, is_loopback, run_server
from racer_env.errors import RacerError
from racer_env.games.kinds import RACER, check_kind
from racer_env.games.server import GamesServer
from racer_env.games.supervisor import Plan
from racer_viewer.warmup import prepare_engine

MOST_GAMES = 256
HIGHEST_RATE = 1000.0
"""[ticks/s]"""
LONGEST_EPISODE = 2**31 - 1
"""[ticks]"""
LARGEST_SEED = 2**31 - 1


def run(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C, or until the window is closed. Log lines go to stderr, the address to stdout."""
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(message)s")
    logging.getLogger("racer_env.games").setLevel(logging.INFO if options.verbose else logging.WARNING)
    if options.render_all and options.render != "human":
        raise RacerError("--render-all is for the games of a window: add --render human")
    plan = _plan_of(options)
    address = Address(options.host, options.port)
    if not is_loopback(address.host):
        warning = f"{address.host} can be reached by others, and this protocol has no password"
        print(f"racer-viewer: warning: {warning}", file=sys.stderr)
    if options.render == "human":
        from racer_viewer.games.window import check_display

        check_display()
    server = GamesServer(address, plan)
    server.listen()
    if plan.game == RACER:
        prepare_engine()
    if options.render == "human":
        from racer_viewer.games.window import show

        show(server, range(plan.num_games) if options.render_all else range(1), _say_where)
    else:
        run_server(server, _say_where)
    return 0


def _plan_of(options: argparse.Namespace) -> Plan:
    kind = check_kind(options.game)
    if options.num_games > MOST_GAMES:
        raise RacerError(f"--num-games is at most {MOST_GAMES}, not {options.num_games}")
    if options.seed is not None and not 0 <= options.seed <= LARGEST_SEED:
        raise RacerError(f"--seed is a whole number from 0 to {LARGEST_SEED}, not {options.seed}")
    if options.max_steps > LONGEST_EPISODE:
        raise RacerError(f"--max-steps is at most {LONGEST_EPISODE}, not {options.max_steps}")
    hz = options.hz or kind.hz
    if hz > HIGHEST_RATE:
        raise RacerError(f"--hz is at most {HIGHEST_RATE:g}, not {hz:g}")
    return Plan(kind.name, options.num_games, hz, options.max_steps, options.seed, options.render != "none")


def _say_where(address: Address) -> None:
    print(f"Games at {address} (Ctrl-C ends them)", flush=True)
