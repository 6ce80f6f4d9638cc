"""Teaching in the window: laps are marked in a list, and the next run learns from them."""

from racer_viewer.modes.train.setup import TrainSetupScreen
from racer_viewer.modes.train.teach import TeachScreen
from racer_viewer.replays import save_replay
from tests.modes.person import Person
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
    person.until(
        lambda: any(item.label == "Track 1" or len(screen.list.items) > 1 for item in screen.list.items), "rows"
    )
    person.frames(10)
    person.press("down", "return")
    person.choose("Use the marked laps")
    assert person.top(TrainSetupScreen) is form
    assert form.config.teach == (str(path),)
    assert form.config.tracks == ("track-01",)
    person.choose("Teach")
    person.press("down", "return")
    person.choose("Train from scratch")
    assert form.config.teach == ()
