"""`racer-viewer bridge`: serve the environment over WebSocket."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from racer_viewer.cli.options import Subparsers, add_token_options, chosen_token, port, positive
from racer_viewer.paths import data_folder

if TYPE_CHECKING:
    from racer_env.bridge.net import ServerAddress
    from racer_env.engine import Circuit

MAX_OWN = 900
"""Maximum number of own circuits that clients may use."""


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "bridge",
        help="serve the environment over WebSocket",
        description="Serve the environment over WebSocket: one environment, or a batch of cars, per connection.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    parser.add_argument("--port", type=port, default=9876, help="port to listen on, 0 for any (default: %(default)s)")
    add_token_options(parser, "token that clients must send; hosts other than this machine require one")
    parser.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="URL",
        help="origin of a web page that may connect, such as http://localhost:3000; can be repeated (default: none)",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="refuse a config with unknown keys (default: ignore them, with a warning in the log)",
    )
    parser.add_argument(
        "--own-circuits",
        action="store_true",
        help="let clients list and use the circuits of your own, as own:ID, as they are now (default: bundled and "
        "random ones only)",
    )
    parser.add_argument(
        "--max-clients",
        type=positive(int),
        default=256,
        metavar="N",
        help="maximum number of connections (default: %(default)s)",
    )
    parser.add_argument(
        "--max-cars",
        type=positive(int),
        default=1024,
        metavar="N",
        help="maximum number of cars per batch (default: %(default)s)",
    )
    parser.add_argument(
        "--idle-timeout",
        type=positive(float),
        default=3600.0,
        metavar="SECONDS",
        help="close connections that are silent for this long (default: %(default)g)",
    )
    parser.add_argument("--uvloop", action="store_true", help="use uvloop, a faster event loop, if it is installed")
    parser.add_argument("--verbose", action="store_true", help="log every message")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C; log to stderr, print the address to stdout."""
    import logging

    from racer_env.bridge.net import ServerAddress, run_server, uvloop_factory
    from racer_env.bridge.server import BridgeServer
    from racer_env.bridge.session import ServerLimits
    from racer_env.engine.warm_up import warm_up_terms
    from racer_viewer.warmup import prepare_engine

    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("racer_env.bridge").setLevel(logging.DEBUG if options.verbose else logging.INFO)
    logging.getLogger("picows").setLevel(logging.CRITICAL)  # the server itself logs protocol errors of clients
    address = ServerAddress(options.host, options.port)
    limits = ServerLimits(connections=options.max_clients, cars=options.max_cars, idle_seconds=options.idle_timeout)
    own = _own_circuits(options) if options.own_circuits else None
    server = BridgeServer(address, chosen_token(options), limits, options.allow_origin, options.strict, own)
    make_loop = uvloop_factory() if options.uvloop else None
    server.listen()
    prepare_engine(warm_up_terms)  # a client with terms must not make the others wait for the compiler
    run_server(server, _print_address, make_loop)
    return 0


def _own_circuits(options: argparse.Namespace) -> dict[str, Circuit]:
    """Return the drivable circuits of the library by their ids, with names as short as the protocol allows."""
    from msgspec.structs import replace

    from racer_viewer.circuits.library import MAX_NAME_LENGTH, CircuitLibrary

    found = [entry for entry in CircuitLibrary(data_folder(options.data_dir)).entries() if entry.drivable]
    return {
        entry.key: replace(entry.circuit, id=entry.key, name=entry.name[:MAX_NAME_LENGTH])
        for entry in found[:MAX_OWN]
        if entry.circuit is not None and len(entry.id) <= MAX_NAME_LENGTH
    }


def _print_address(address: ServerAddress) -> None:
    print(f"Bridge listening on ws://{address} (press Ctrl-C to stop)", flush=True)
