"""Where a server can be reached, and how it takes that place."""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass

from racer_env.errors import BridgeError

BACKLOG = 512
"""Connections that may wait to be accepted."""
RECEIVE_BUFFER = 16 * 1024
"""Bytes that a client may send ahead of what is read, more or less: the operating system has its own idea of it."""


@dataclass(frozen=True)
class Address:
    host: str = "127.0.0.1"
    port: int = 9876

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class PortTakenError(BridgeError):
    """Somebody else listens there."""


def listen_on(address: Address) -> socket.socket:
    try:
        family = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((address.host, address.port), family=family, backlog=BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortTakenError(f"port {address.port} on {address.host} is taken") from None
        raise BridgeError(f"cannot listen on {address}: {error.strerror or error}") from None
    except OverflowError:
        raise BridgeError(f"a port is a number from 0 to 65535, not {address.port}") from None
    except UnicodeError:
        raise BridgeError(f"cannot listen on {address}: no host can have such a name") from None
    for option, value in ((socket.SO_RCVBUF, RECEIVE_BUFFER), (socket.SO_KEEPALIVE, 1)):
        listener.setsockopt(socket.SOL_SOCKET, option, value)  # connections inherit them
    return listener


def free_port(address: Address) -> int:
    """A port that nobody listens on: if possible, one of the next."""
    for port in (*range(address.port + 1, min(address.port + 100, 65536)), 0):
        try:
            with listen_on(Address(address.host, port)) as listener:
                found: int = listener.getsockname()[1]
                return found
        except BridgeError:
            continue
    return 0
