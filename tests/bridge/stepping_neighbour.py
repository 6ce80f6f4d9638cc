"""A well-behaved client that steps in the background while others do as they like."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.bridge.plain_client import plain_client

P99_SECONDS, LONGEST_SECONDS = 0.5, 3.0
"""No cliff; generous, since all parties of a test share two cores with others."""


@contextmanager
def stepping_neighbour(url: str) -> Iterator[None]:
    """Steps until the end of the block, and then complains of any error and of any long wait."""
    enough = threading.Event()
    problems: list[BaseException] = []
    waits: list[float] = []

    def step_on() -> None:
        try:
            with plain_client(url) as client:
                client.reset(config={"episode": {"maxSteps": 10**9}})
                while not enough.is_set():
                    begin = time.perf_counter()
                    reply = client.step()
                    waits.append(time.perf_counter() - begin)
                    assert reply["info"]["stepCount"] == len(waits)
        except BaseException as problem:
            problems.append(problem)

    thread = threading.Thread(target=step_on)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()
    if problems:
        raise problems[0]
    assert len(waits) > 20, "it must have had the time to see something"
    waits.sort()
    assert waits[len(waits) * 99 // 100] < P99_SECONDS
    assert waits[-1] < LONGEST_SECONDS
