"""A process that answers over plain TCP with messages of given sizes: no bridge on this machine can be faster.

`python -m racer_viewer.bench.echo REQUEST_BYTES REPLY_BYTES` says its port and serves one client until that is gone.
"""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 30.0
"""Seconds in which the client must come, or an answer."""


@contextmanager
def echo_process(request_bytes: int, reply_bytes: int) -> Iterator[socket.socket]:
    """A connection to a process that answers each so many bytes with so many."""
    command = [sys.executable, "-P", "-m", __name__, str(request_bytes), str(reply_bytes)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connection.settimeout(None)
                yield connection
        finally:
            process.kill()


def receive(connection: socket.socket, count: int) -> bool:
    """Receive so many bytes; False if the other side is gone."""
    while count:
        part = len(connection.recv(count))
        if not part:
            return False
        count -= part
    return True


def main() -> None:
    request_bytes, reply = int(sys.argv[1]), bytes(int(sys.argv[2]))
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE)
        print(server.getsockname()[1], flush=True)
        connection, _ = server.accept()
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(None)
        while receive(connection, request_bytes):
            connection.sendall(reply)


if __name__ == "__main__":
    main()
