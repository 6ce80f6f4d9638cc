"""Who may give orders to a learner, and when it is alone."""

import os
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import closing
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from racer_env.errors import RacerError
from racer_viewer.training import control as orders_module
from racer_viewer.training.control import ControlServer, ParentWatch
from racer_viewer.training.run_lock import HOST, Address, call, read_address, receive, running_learner, send
from tests.training.live.learners import wait_for


@pytest.fixture
def window() -> Iterator[tuple[int, int]]:
    """The leash of a learner: its end and the window's, which a test may close."""
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue


@pytest.fixture
def orders(tmp_path: Path, window: tuple[int, int]) -> Iterator[ControlServer]:
    """Of a learner that a window has started."""
    with closing(ControlServer(tmp_path, ParentWatch(window[0]))) as orders:
        yield orders


def watch(orders: ControlServer) -> Connection:
    viewer = call(orders.address)
    send(viewer, {"do": "watch"})
    assert viewer.poll(5)
    assert receive(viewer) == {"pace": orders.pace}
    return viewer


def test_orders_arrive_as_they_were_sent(orders: ControlServer) -> None:
    with closing(watch(orders)) as viewer:
        send(viewer, {"do": "pace", "times": 2.0})
        assert orders.queue.get(timeout=5) == {"do": "pace", "times": 2.0}
        orders.report_problem("the disk is full")
        assert viewer.poll(5)
        assert receive(viewer) == {"problem": "the disk is full"}


def test_without_the_key_nobody_is_heard(orders: ControlServer) -> None:
    address = orders.address
    with pytest.raises((AuthenticationError, EOFError, OSError)):
        call(Address(address.pid, address.port, "00" * 32))
    with socket.create_connection((HOST, address.port)) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" * 100)
        with closing(call(address)) as viewer:  # a stranger that says nothing sensible holds nobody up
            send(viewer, {"do": "save"})
            assert orders.queue.get(timeout=5) == {"do": "save"}
    assert orders.queue.empty()


def test_a_message_that_is_no_object_ends_the_connection(orders: ControlServer) -> None:
    with closing(call(orders.address)) as viewer:
        viewer.send_bytes(b"[1, 2]")
        with pytest.raises((EOFError, OSError)):
            receive(viewer)
    assert orders.queue.empty()


def test_the_address_is_for_the_user_alone_and_goes_with_the_learner(tmp_path: Path) -> None:
    path = tmp_path / "learner.json"
    path.write_text("of a learner that was killed")
    orders = ControlServer(tmp_path)
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


def test_a_folder_has_one_learner_at_a_time(orders: ControlServer, tmp_path: Path) -> None:
    with pytest.raises(RacerError, match=f"learning already, in process {os.getpid()}"):
        ControlServer(tmp_path)
    assert running_learner(tmp_path) == os.getpid()
    orders.close()
    ControlServer(tmp_path).close()


def test_a_learner_that_does_not_answer_lives_nevertheless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ControlServer, "_accept", lambda orders: None)
    with closing(ControlServer(tmp_path)):
        assert running_learner(tmp_path) == os.getpid()


def test_a_learner_waits_for_its_window_however_long_but_not_for_a_dead_one(
    orders: ControlServer, window: tuple[int, int]
) -> None:
    assert not orders.abandoned
    os.close(window[1])
    assert orders.abandoned


def test_a_learner_that_was_let_go_before_it_listened_goes_on(tmp_path: Path, window: tuple[int, int]) -> None:
    os.write(window[1], b"\n")
    os.close(window[1])
    with closing(ControlServer(tmp_path, ParentWatch(window[0]))) as orders:
        assert not orders.abandoned
        watch(orders).close()  # whoever sees it later has it again
        wait_for(lambda: orders.abandoned)


def test_a_window_that_loses_its_connection_but_lives_is_waited_for(
    orders: ControlServer, window: tuple[int, int]
) -> None:
    watch(orders).close()
    wait_for(lambda: not orders.watched)
    assert not orders.abandoned
    watch(orders).close()
    assert orders.queue.empty(), "it has not left"
    os.close(window[1])
    wait_for(lambda: orders.abandoned)


def test_a_look_whether_it_lives_is_no_viewer(orders: ControlServer, window: tuple[int, int], tmp_path: Path) -> None:
    assert running_learner(tmp_path) is not None
    call(orders.address).close()
    assert not orders.watched
    os.close(window[1])
    assert orders.abandoned


def test_it_is_abandoned_when_the_last_viewer_is_lost_but_not_when_it_was_left(
    orders: ControlServer, window: tuple[int, int]
) -> None:
    one, two = watch(orders), watch(orders)
    os.close(window[1])
    assert not orders.abandoned
    one.close()
    send(two, {"do": "detach"})
    two.close()
    assert orders.queue.get(timeout=5) == {"do": "left"}, "nobody waits for a picture any more"
    assert not orders.abandoned
    watch(orders).close()
    wait_for(lambda: orders.abandoned)
    assert orders.queue.empty()


def test_a_learner_at_a_terminal_needs_no_viewer(tmp_path: Path) -> None:
    with closing(ControlServer(tmp_path)) as orders:
        assert not orders.abandoned
        watch(orders).close()
        assert orders.queue.get(timeout=5) == {"do": "left"}
        assert not orders.abandoned


def test_a_viewer_that_comes_later_knows_the_pace(orders: ControlServer) -> None:
    with closing(watch(orders)) as early:
        orders.note_pace(2.0)
        assert early.poll(5)
        assert receive(early) == {"pace": 2.0}
        watch(orders).close()


def test_a_learner_that_hangs_is_cut_off_by_looks_and_not_by_the_clock(
    window: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_off, looks = ControlServer._cut_off, list[float]()
    monkeypatch.setattr(ControlServer, "_cut_off", lambda orders: None)
    monkeypatch.setattr(orders_module, "ENDING_LOOKS", 3)

    def end(code: int) -> None:
        raise SystemExit(code)

    def look(seconds: float) -> bool:
        looks.append(seconds)
        return False

    with closing(ControlServer(tmp_path, ParentWatch(window[0]))) as orders:
        os.close(window[1])
        with monkeypatch.context() as patched:
            patched.setattr(orders_module.os, "_exit", end)
            patched.setattr(orders._closed, "wait", look)
            with pytest.raises(SystemExit):
                cut_off(orders)
    assert len(looks) == 4
