"""The policy of a run that drives on screen, and its label there."""

from dataclasses import replace

import pytest

from racer_viewer.agents import CHAMPION, Agent, load_agent
from racer_viewer.modes.train.panels import status_words
from racer_viewer.modes.train.screen import TrainScreen
from racer_viewer.modes.train.setup import open_run
from racer_viewer.training.run_monitor import RunMonitor
from tests.modes.person import Person
from tests.modes.run_folders import make_logged_run

KEPT = (8000, 16000, 24000)
"""Steps after which a policy was kept."""


@pytest.fixture
def train(person: Person, monkeypatch: pytest.MonkeyPatch) -> TrainScreen:
    """A run that has ended; all its policies drive as the champion does."""
    champion = load_agent(CHAMPION)

    def read(run: RunMonitor, number: int = -1) -> Agent:
        return replace(champion, info=replace(champion.info, timesteps=round(run.history.policies[number])))

    monkeypatch.setattr(RunMonitor, "policy", read)
    lines = [{"what": "policy", "steps": steps, "offset": 0} for steps in KEPT]
    open_run(person.app.context, make_logged_run(person.data, "told", lines))
    screen = person.until_top(TrainScreen)
    person.frames(3)
    return screen


def labels(train: TrainScreen) -> list[str]:
    return [look.name for look in train.view.after.styles]


def status(train: TrainScreen) -> str:
    return "   ".join(words for words, _ in status_words(train))


def test_a_policy_of_a_run_that_has_ended_is_called_by_its_steps(person: Person, train: TrainScreen) -> None:
    assert labels(train) == ["at 24k"]
    person.press("left", "left")
    person.frames(2)
    assert labels(train) == ["at 8k"]
    assert "the policy after 8k steps" in status(train)
    person.press("t")
    person.frames(2)
    assert person.app.context.notice == "You race the policy after 8k steps"
    assert labels(train) == ["You", "at 8k"]
    person.press("t")
    assert person.app.context.notice == "The policy after 8k steps drives again"


def test_while_it_learns_the_newest_drives_and_an_earlier_one_beside_it(
    person: Person, train: TrainScreen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunMonitor, "state", "starting")
    person.frames(2)
    assert labels(train) == ["newest"]
    person.press("left", "left")
    person.frames(2)
    assert labels(train) == ["newest", "at 8k"]
    assert "ghost: the one at 8k" in status(train)
    person.press("t")
    person.frames(2)
    assert person.app.context.notice == "You race the newest policy"
    assert labels(train) == ["You", "newest"]
    assert "8k" not in status(train), "it does not drive now"
    person.press("t")
    monkeypatch.setattr(RunMonitor, "state", "stopped")
    person.frames(2)
    assert labels(train) == ["at 24k", "at 8k"]
