"""Control socket of a learner: who may send commands, and when a learner is abandoned."""

import os
import socket
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from racer_env.errors import RacerError
from racer_viewer.training import control
from racer_viewer.training.control import HOST, ControlServer, ParentWatch, connect, receive, send
from racer_viewer.training.run_lock import LearnerAddress, RunLock, read_address, running_learner
from tests.processes import wait_for


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Pipe between a learner and the window that started it: the learner's end and the window's."""
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue


@pytest.fixture
def server(tmp_path: Path, pipe: tuple[int, int]) -> Iterator[ControlServer]:
    """Server of a learner that a window has started."""
    with closing(ControlServer(tmp_path, ParentWatch(pipe[0]))) as server:
        yield server


def watch(server: ControlServer) -> Connection:
    """Connect as a viewer."""
    viewer = connect(server.address)
    send(viewer, {"do": "watch"})
    assert viewer.poll(5)
    assert receive(viewer) == {"pace": server.pace}
    return viewer


def test_commands_arrive_as_they_were_sent(server: ControlServer) -> None:
    with closing(watch(server)) as viewer:
        send(viewer, {"do": "pace", "times": 2.0})
        assert server.queue.get(timeout=5) == {"do": "pace", "times": 2.0}
        server.report_problem("the disk is full")
        assert viewer.poll(5)
        assert receive(viewer) == {"problem": "the disk is full"}


def test_commands_without_the_key_are_refused(server: ControlServer) -> None:
    address = server.address
    with pytest.raises((AuthenticationError, EOFError, OSError)):
        connect(LearnerAddress(address.pid, address.port, "00" * 32))
    with socket.create_connection((HOST, address.port)) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" * 100)
        with closing(connect(address)) as viewer:  # is not delayed by the other connection
            send(viewer, {"do": "save"})
            assert server.queue.get(timeout=5) == {"do": "save"}
    assert server.queue.empty()


def ends(stream: socket.socket, part: bytes = b"") -> bool:
    """Return True if the other side closes the connection, to which `part` is sent again and again, within seconds."""
    stream.settimeout(0.02)
    end = time.monotonic() + 5.0
    while time.monotonic() < end:
        try:
            stream.sendall(part)
            if stream.recv(4096) == b"":
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


@pytest.mark.parametrize("part", [b"", b"\0"], ids=["silent", "one byte after the other"])
def test_a_handshake_without_an_end_ends_in_time(tmp_path: Path, part: bytes) -> None:
    with (
        closing(ControlServer(tmp_path, handshake_timeout=0.3)) as server,
        socket.create_connection((HOST, server.address.port)) as stranger,
    ):
        assert ends(stranger, part)


@pytest.mark.slow
def test_many_silent_connections_take_few_threads_and_delay_no_viewer(server: ControlServer) -> None:
    before = threading.active_count()
    with ExitStack() as strangers:
        streams = [
            strangers.enter_context(socket.create_connection((HOST, server.address.port), 5)) for _ in range(200)
        ]
        assert ends(streams[0])
        with closing(watch(server)) as viewer:
            send(viewer, {"do": "save"})
            assert server.queue.get(timeout=5) == {"do": "save"}
            wait_for(lambda: threading.active_count() - before <= 2 * control.MAX_HANDSHAKES + 1, "few threads")


def test_viewers_stay_connected_beyond_the_time_of_a_handshake(tmp_path: Path) -> None:
    with closing(ControlServer(tmp_path, handshake_timeout=0.2)) as server, closing(watch(server)) as viewer:
        assert not viewer.poll(0.5)
        send(viewer, {"do": "save"})
        assert server.queue.get(timeout=5) == {"do": "save"}


@pytest.mark.parametrize("part", [b"", b"\0"], ids=["silent", "one byte after the other"])
def test_a_window_gives_up_on_a_stranger_that_listens_on_the_port_of_a_learner(part: bytes) -> None:
    with socket.create_server((HOST, 0)) as listener:

        def attack() -> None:
            with listener.accept()[0] as peer:
                ends(peer, part)

        thread = threading.Thread(target=attack)
        thread.start()
        begin = time.monotonic()
        with pytest.raises(control.CONNECTION_ERRORS):
            connect(LearnerAddress(1, listener.getsockname()[1], "00" * 32), timeout=0.3)
        assert time.monotonic() - begin < 5.0
        thread.join()


@pytest.mark.parametrize("message", [b"[1, 2]", b"[" * 60_000, b"\xff", b"{}" * 40_000])
def test_a_message_that_is_not_an_object_ends_the_connection(message: bytes, server: ControlServer) -> None:
    with closing(watch(server)) as viewer:
        viewer.send_bytes(message)
        with pytest.raises((EOFError, OSError)):
            receive(viewer)
        wait_for(lambda: not server.watched)
    assert server.queue.empty()


def test_only_the_user_can_read_the_address_which_is_removed_with_the_learner(tmp_path: Path) -> None:
    path = tmp_path / "learner.json"
    path.write_text("of a learner that was killed")
    server = ControlServer(tmp_path)
    if sys.platform != "win32":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_address(tmp_path) == server.address
    assert running_learner(tmp_path) == os.getpid()
    content = path.read_text()
    server.close()
    assert not path.exists()
    assert running_learner(tmp_path) is None
    path.write_text(content)  # of a killed learner, whose process id another process has now
    assert running_learner(tmp_path) is None
    path.write_text("nonsense")
    assert running_learner(tmp_path) is None


def test_a_folder_has_one_learner_at_a_time(server: ControlServer, tmp_path: Path) -> None:
    with pytest.raises(RacerError, match=f"training already, in process {os.getpid()}"):
        ControlServer(tmp_path)
    assert running_learner(tmp_path) == os.getpid()
    server.close()
    ControlServer(tmp_path).close()


def test_a_learner_that_does_not_answer_still_counts_as_running(tmp_path: Path) -> None:
    lock = RunLock(tmp_path)
    lock.publish(LearnerAddress(os.getpid(), 9, "00" * 32))
    assert running_learner(tmp_path) == os.getpid()
    lock.release()


def test_a_learner_is_abandoned_when_its_window_dies(server: ControlServer, pipe: tuple[int, int]) -> None:
    assert not server.abandoned
    os.close(pipe[1])
    assert server.abandoned


def test_a_learner_that_was_released_before_it_listened_continues(tmp_path: Path, pipe: tuple[int, int]) -> None:
    os.write(pipe[1], b"\n")
    os.close(pipe[1])
    with closing(ControlServer(tmp_path, ParentWatch(pipe[0]))) as server:
        assert not server.abandoned
        watch(server).close()  # a later viewer owns it again
        wait_for(lambda: server.abandoned)


def test_a_window_that_loses_its_connection_but_lives_is_waited_for(
    server: ControlServer, pipe: tuple[int, int]
) -> None:
    watch(server).close()
    wait_for(lambda: not server.watched)
    assert not server.abandoned
    watch(server).close()
    assert server.queue.empty(), "it has not left"
    os.close(pipe[1])
    wait_for(lambda: server.abandoned)


def test_a_connection_that_does_not_watch_is_no_viewer(
    server: ControlServer, pipe: tuple[int, int], tmp_path: Path
) -> None:
    assert running_learner(tmp_path) is not None
    connect(server.address).close()
    assert not server.watched
    os.close(pipe[1])
    assert server.abandoned


def test_a_learner_is_abandoned_when_the_last_viewer_is_lost_but_not_when_it_detached(
    server: ControlServer, pipe: tuple[int, int]
) -> None:
    one, two = watch(server), watch(server)
    os.close(pipe[1])
    assert not server.abandoned
    one.close()
    send(two, {"do": "detach"})
    two.close()
    assert server.queue.get(timeout=5) == {"do": "left"}
    assert not server.abandoned
    watch(server).close()
    wait_for(lambda: server.abandoned)
    assert server.queue.empty()


def test_a_learner_at_a_terminal_needs_no_viewer(tmp_path: Path) -> None:
    with closing(ControlServer(tmp_path)) as server:
        assert not server.abandoned
        watch(server).close()
        assert server.queue.get(timeout=5) == {"do": "left"}
        assert not server.abandoned


def test_a_viewer_that_connects_later_receives_the_pace(server: ControlServer) -> None:
    with closing(watch(server)) as early:
        server.note_pace(2.0)
        assert early.poll(5)
        assert receive(early) == {"pace": 2.0}
        watch(server).close()


def test_an_abandoned_learner_that_hangs_is_killed(
    tmp_path: Path, pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    exits: list[int] = []
    monkeypatch.setattr(control, "ABANDONED_POLL_INTERVAL", 0.001)
    monkeypatch.setattr(control, "MAX_ABANDONED_POLLS", 3)
    monkeypatch.setattr(control.os, "_exit", exits.append)
    with closing(ControlServer(tmp_path, ParentWatch(pipe[0]))) as server:
        assert not server.abandoned
        assert not exits
        os.close(pipe[1])
        wait_for(lambda: exits)
    assert set(exits) == {3}
