"""`racer-viewer bridge`: serve the racer over WebSocket."""

import argparse
import logging
import os
import sys

from racer_env.bridge.net import Address, run_server, uvloop_factory
from racer_env.bridge.server import BridgeServer
from racer_env.bridge.session import Limits
from racer_env.bridge.ws_client import TOKEN_VARIABLE
from racer_viewer.warmup import prepare_engine


def run(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C. Log lines go to stderr, the address to stdout."""
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("racer_env.bridge").setLevel(logging.DEBUG if options.verbose else logging.INFO)
    logging.getLogger("picows").setLevel(logging.CRITICAL)  # what clients send wrong is in the line at their end
    address = Address(options.host, options.port)
    limits = Limits(connections=options.max_clients, cars=options.max_cars, idle_seconds=options.idle_timeout)
    server = BridgeServer(address, options.token or os.environ.get(TOKEN_VARIABLE), limits)
    make_loop = uvloop_factory() if options.uvloop else None
    server.listen()
    prepare_engine()
    run_server(server, _say_where, make_loop)
    return 0


def _say_where(address: Address) -> None:
    print(f"Bridge at ws://{address} (Ctrl-C ends it)", flush=True)
