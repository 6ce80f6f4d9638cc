"""Background tasks and the waiting screen."""

from threading import Event

import pytest

from racer_env.errors import RacerError
from racer_viewer.app.menu import MenuScreen
from racer_viewer.modes.screen import MessageScreen
from racer_viewer.modes.waiting import BackgroundTask, WaitingScreen, open_in_background
from tests.modes.person import Person
from tests.processes import wait_for

LIMIT = 20.0


def wait_until_done(task: BackgroundTask[int]) -> None:
    wait_for(lambda: task.done, "the task", LIMIT)


def test_a_task_returns_its_result_or_raises_its_error() -> None:
    go = Event()
    task = BackgroundTask(lambda: int(go.wait(LIMIT)), "test")
    assert not task.done
    go.set()
    wait_until_done(task)
    assert task.result() == 1
    wrong = BackgroundTask(lambda: 1 // 0, "test")
    wait_until_done(wrong)
    with pytest.raises(ZeroDivisionError):
        wrong.result()


@pytest.mark.parametrize("late", [True, False])
def test_the_result_of_a_cancelled_task_is_undone(late: bool) -> None:
    go, undone = Event(), Event()
    task = BackgroundTask(lambda: int(go.wait(LIMIT)), "test")
    if not late:
        go.set()
        wait_until_done(task)
    task.cancel(lambda result: undone.set())
    go.set()
    assert undone.wait(LIMIT)


def test_a_screen_opens_when_its_content_is_loaded_and_esc_cancels(person: Person) -> None:
    context, go, undone = person.app.context, Event(), Event()

    def begin() -> None:
        open_in_background(
            context,
            "Opening",
            lambda: go.wait(LIMIT),
            lambda result: MessageScreen(context, "Here", str(result)),
            lambda result: undone.set(),
        )

    begin()
    person.frames(60)
    person.top(WaitingScreen)
    person.press("escape")
    person.top(MenuScreen)
    go.set()
    assert undone.wait(LIMIT)
    begin()
    assert person.until_top(MessageScreen).title == "Here"


def test_a_loading_error_is_shown_as_a_message(person: Person) -> None:
    def fail() -> int:
        raise RacerError("there is nothing to open")

    context = person.app.context
    open_in_background(context, "Opening", fail, lambda result: MenuScreen(context), lambda result: None)
    assert "nothing to open" in person.until_top(MessageScreen).text
