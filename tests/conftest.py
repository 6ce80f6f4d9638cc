"""Options and setup shared by all tests."""

import os
import signal

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the slow tests too, as CI does")


def pytest_configure(config: pytest.Config) -> None:
    """Prepare the environment of the tests and of the processes that they start.

    Screens are in English, and Ctrl-C is handled, which background jobs of a shell ignore.
    """
    os.environ["LANGUAGE"] = "en"
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--slow"):
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="only with --slow"))
