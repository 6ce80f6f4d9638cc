"""Teaching in the window: the next run learns from laps marked in a list, or from the drive that has just ended."""

import pytest

from racer_viewer.modes.train.screen import TrainScreen
from racer_viewer.modes.train.setup import TrainSetupScreen
from racer_viewer.modes.train.teach import TeachScreen
from racer_viewer.replays import save_replay
from tests.modes.person import Person
from tests.modes.test_races import drive_to_results, start_race
from tests.training.noisy_drives import noisy_drive


def test_marked_laps_are_what_the_next_run_learns_from(person: Person) -> None:
    path = person.app.context.data / "replays" / "mine.racer"
    path.parent.mkdir(parents=True, exist_ok=True)
    save_replay(noisy_drive(0), path)
    person.choose("Train")
    form = person.top(TrainSetupScreen)
    assert form.config.teach == ()
    person.choose("Teach")
    screen = person.top(TeachScreen)
    person.until(lambda: screen.list.items[-1].enabled, "the replay in the list")
    person.press("down", "return")
    person.choose("Use the marked laps")
    assert person.until_top(TrainSetupScreen) is form
    assert form.config.teach == (str(path),)
    assert form.config.tracks == ("track-01",)
    person.choose("Teach")
    screen = person.top(TeachScreen)
    person.until(lambda: screen.list.items[-1].enabled, "the replay in the list")
    person.press("down", "return")
    person.choose("Train from scratch")
    person.until_top(TrainSetupScreen)
    assert form.config.teach == ()


@pytest.mark.slow
def test_an_agent_is_taught_what_was_just_driven(person: Person) -> None:
    start_race(person, "specialist-track-01", laps=1, opponents=(), circuit="track-01")
    drive_to_results(person)
    person.choose("Teach an agent this")
    person.until(lambda: isinstance(person.app.context.top, TrainSetupScreen), "the form of Train")
    form = person.top(TrainSetupScreen)
    (replay,) = (person.data / "replays").glob("*.racer")
    assert form.config.teach == (str(replay),)
    assert form.config.tracks == ("track-01",)
    person.choose("Start")
    training = person.until_top(TrainScreen)
    person.until(lambda: any("loned" in event.text for event in training.run.history.events), "a clone")
