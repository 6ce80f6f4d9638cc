"""A well-behaved client that steps in the background while other clients misbehave."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.bridge.plain_client import plain_client

USUAL_SECONDS, MAX_SECONDS = 0.5, 5.0
"""Maximum 90th percentile and maximum of a step's duration [s]; generous, because tests share two cores."""


@contextmanager
def stepping_neighbour(url: str) -> Iterator[None]:
    """Step until the end of the context, then raise on any error or long wait."""
    stopped = threading.Event()
    problems: list[BaseException] = []
    waits: list[float] = []

    def step_on() -> None:
        try:
            with plain_client(url) as client:
                client.reset(config={"episode": {"maxSteps": 10**9}})
                while not stopped.is_set():
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
        stopped.set()
        thread.join()
    if problems:
        raise problems[0]
    assert len(waits) > 20, "too few steps to measure anything"
    waits.sort()
    assert waits[len(waits) * 9 // 10] < USUAL_SECONDS
    assert waits[-1] < MAX_SECONDS
