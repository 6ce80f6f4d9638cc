"""Threads that share the items of a job with the thread that calls them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from weakref import finalize

Work = Callable[[int, int], object]
"""Function that does an item of a job. It gets the number of the thread, from 0, and the number of the item."""


class ThreadTeam:
    """A few threads, the caller's one included, each of which takes the next item as soon as it is free.

    The caller begins without waiting for the others. If the operating system runs one of them late, the others do its
    items, so a busy machine delays a job by one item at most. The work must release Python's lock to gain anything.

    threads: number of threads, the caller's one included; a smaller number leaves the others idle.
    """

    def __init__(self, threads: int, name: str) -> None:
        self.threads = max(1, threads)
        self._helpers: list[SimpleQueue[_Job | None]] = [SimpleQueue() for _ in range(1, self.threads)]
        for number, jobs in enumerate(self._helpers, 1):
            Thread(target=_help, args=(jobs, number), name=f"{name}-{number}", daemon=True).start()
        self._end = finalize(self, _end_threads, self._helpers)

    def run(self, work: Work, items: int) -> None:
        """Do all items of a job. Raises the error of an item after the others are done."""
        if not self._helpers or self.threads == 1:
            for item in range(items):
                work(0, item)
            return
        job = _Job(work, items)
        for jobs in self._helpers[: min(items, self.threads) - 1]:
            jobs.put(job)
        job.share(0)
        job.join(items)

    def close(self) -> None:
        """End the other threads; the caller does all later work itself."""
        self._end()
        self._helpers = []


class _Job:
    def __init__(self, work: Work, items: int) -> None:
        self._work = work
        self._items = deque(range(items))
        self._results: SimpleQueue[Exception | None] = SimpleQueue()

    def share(self, thread: int) -> None:
        """Do items until there are none left."""
        while True:
            try:
                item = self._items.popleft()
            except IndexError:
                return
            try:
                self._work(thread, item)
            except Exception as error:
                self._results.put(error)
            else:
                self._results.put(None)

    def join(self, items: int) -> None:
        """Wait for all items."""
        errors = [error for _ in range(items) if (error := self._results.get())]
        if errors:
            raise errors[0]


def _end_threads(helpers: list[SimpleQueue[_Job | None]]) -> None:
    for jobs in helpers:
        jobs.put(None)


def _help(jobs: SimpleQueue[_Job | None], number: int) -> None:
    while job := jobs.get():
        job.share(number)
