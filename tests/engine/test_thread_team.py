"""Threads that share the items of a job."""

import threading

import pytest

from racer_env.engine.thread_team import ThreadTeam
from tests.processes import TIMEOUT


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("items", [0, 1, 3, 100])
def test_every_item_is_done_once_before_the_call_returns(threads: int, items: int) -> None:
    team, done = ThreadTeam(threads, "test"), []
    for _ in range(20):
        done.clear()
        team.run(lambda thread, item: done.append(item), items)
        assert sorted(done) == list(range(items))
    team.close()


def test_all_threads_take_part_and_each_has_its_own_number() -> None:
    team, meeting = ThreadTeam(3, "test"), threading.Barrier(3)
    numbers: dict[int, str] = {}

    def work(thread: int, item: int) -> None:
        meeting.wait(TIMEOUT)
        numbers[thread] = threading.current_thread().name

    team.run(work, 3)
    assert sorted(numbers) == [0, 1, 2]
    assert len(set(numbers.values())) == 3
    team.close()


def test_the_caller_does_not_wait_for_a_thread_that_is_late() -> None:
    team, late = ThreadTeam(2, "test"), threading.Event()
    team.run(lambda thread, item: late.wait(TIMEOUT) if thread else late.set(), 2)
    assert late.is_set()
    team.close()


def test_a_team_can_leave_some_of_its_threads_idle() -> None:
    team, threads = ThreadTeam(3, "test"), set[int]()
    for number in (1, 2):
        team.threads = number
        for _ in range(20):
            team.run(lambda thread, item: threads.add(thread), 6)
        assert threads <= set(range(number))
    team.close()


def test_an_error_is_raised_after_the_other_items_are_done() -> None:
    team, done = ThreadTeam(2, "test"), []

    def work(thread: int, item: int) -> None:
        if item == 1:
            raise ValueError("item 1")
        done.append(item)

    with pytest.raises(ValueError, match="item 1"):
        team.run(work, 6)
    assert sorted(done) == [0, 2, 3, 4, 5]
    team.run(lambda thread, item: done.append(item), 2)
    assert len(done) == 7
    team.close()


def test_a_closed_team_leaves_no_thread_and_the_caller_does_the_work() -> None:
    team, done = ThreadTeam(3, "closing"), []
    helpers = [each for each in threading.enumerate() if each.name.startswith("closing")]
    assert len(helpers) == 2
    team.close()
    for each in helpers:
        each.join(TIMEOUT)
        assert not each.is_alive()
    team.run(lambda thread, item: done.append((thread, item)), 2)
    assert done == [(0, 0), (0, 1)]
