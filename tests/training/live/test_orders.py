"""Who may give orders to a learner, and when it is alone."""

import os
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import closing
from multiprocessing import AuthenticationError
from pathlib import Path

import pytest

from racer_viewer.training.live import running_learner
from racer_viewer.training.live.greeting import HOST, Address, call, read_address, receive, send
from racer_viewer.training.live.orders import Orders
from tests.training.live.learners import wait_for


@pytest.fixture
def orders(tmp_path: Path) -> Iterator[Orders]:
    with closing(Orders(tmp_path)) as orders:
        yield orders


def test_orders_arrive_as_they_were_sent(orders: Orders) -> None:
    with closing(call(orders.address)) as viewer:
        send(viewer, {"do": "watch"})
        send(viewer, {"do": "pace", "times": 2.0})
        assert orders.queue.get(timeout=5) == {"do": "pace", "times": 2.0}
        orders.tell("the disk is full")
        assert viewer.poll(5)
        assert receive(viewer) == {"problem": "the disk is full"}


def test_without_the_key_nobody_is_heard(orders: Orders) -> None:
    address = orders.address
    with pytest.raises((AuthenticationError, EOFError, OSError)):
        call(Address(address.pid, address.port, "00" * 32))
    with socket.create_connection((HOST, address.port)) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" * 100)
        with closing(call(address)) as viewer:  # a stranger that says nothing sensible holds nobody up
            send(viewer, {"do": "save"})
            assert orders.queue.get(timeout=5) == {"do": "save"}
    assert orders.queue.empty()


def test_a_message_that_is_no_object_ends_the_connection(orders: Orders) -> None:
    with closing(call(orders.address)) as viewer:
        viewer.send_bytes(b"[1, 2]")
        with pytest.raises((EOFError, OSError)):
            receive(viewer)
    assert orders.queue.empty()


def test_the_address_is_for_the_user_alone_and_goes_with_the_learner(tmp_path: Path) -> None:
    orders = Orders(tmp_path)
    path = tmp_path / "learner.json"
    if sys.platform != "win32":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_address(tmp_path) == orders.address
    assert running_learner(tmp_path) == os.getpid()
    kept = path.read_text()
    orders.close()
    assert not path.exists()
    assert running_learner(tmp_path) is None
    path.write_text(kept)  # of one that was killed; the process lives, but it is another by now
    assert running_learner(tmp_path) is None
    path.write_text("nonsense")
    assert running_learner(tmp_path) is None


def test_a_learner_that_nobody_looks_at_is_abandoned(tmp_path: Path) -> None:
    with closing(Orders(tmp_path, patience=0.05)) as orders:
        assert not orders.abandoned
        wait_for(lambda: orders.abandoned)


def test_a_look_whether_it_lives_is_no_viewer(tmp_path: Path) -> None:
    with closing(Orders(tmp_path, patience=0.2)) as orders:
        assert running_learner(tmp_path) is not None
        wait_for(lambda: orders.abandoned)


def test_it_is_abandoned_when_the_last_viewer_is_lost_but_not_when_it_was_left(orders: Orders) -> None:
    one, two = call(orders.address), call(orders.address)
    for viewer in (one, two):
        send(viewer, {"do": "watch"})
        send(viewer, {"do": "save"})
        orders.queue.get(timeout=5)
    one.close()
    send(two, {"do": "detach"})
    two.close()
    wait_for(lambda: orders._lonely_at is not None)
    assert not orders.abandoned
    three = call(orders.address)
    send(three, {"do": "watch"})
    wait_for(lambda: orders._lonely_at is None)
    three.close()
    wait_for(lambda: orders.abandoned)
