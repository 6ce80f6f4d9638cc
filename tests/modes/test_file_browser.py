"""The file browser opens models and replays from any folder."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from racer_viewer.agents import models_folder
from racer_viewer.modes.file_browser import MAX_ENTRIES, FileBrowser
from racer_viewer.modes.replay_lists import ReplaysScreen
from racer_viewer.modes.replay_screen import ReplayScreen
from racer_viewer.modes.screen import MessageScreen
from racer_viewer.modes.watch import WatchScreen
from racer_viewer.replays import save_replay
from tests.modes.person import Person
from tests.replays.replay_drives import ring_run


@pytest.fixture
def home(person: Person, tmp_path: Path) -> Path:
    """Make the folder that the browser shows first."""
    folder = tmp_path / "somewhere"
    (folder / "Below").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    person.app.context.browsed = folder
    return folder


def labels(person: Person) -> list[str]:
    return [item.label for item in person.top(FileBrowser).list.items]


def test_a_replay_is_found_in_a_folder_below_and_played(person: Person, home: Path) -> None:
    save_replay(ring_run(), home / "Below" / "lap.racer")
    (home / "notes.txt").write_text("no replay")
    person.choose("Replays")
    person.choose("Open file...")
    assert labels(person) == [f"< {home.parent}", f"Below{os.sep}", "No file of this kind here: .racer"]
    person.choose(f"Below{os.sep}")
    assert labels(person) == [f"< {home}", "lap.racer"]
    person.choose("lap.racer")
    person.until_top(ReplayScreen)
    person.press("escape")
    person.top(ReplaysScreen)
    person.choose("Open file...")
    assert person.top(FileBrowser).folder == home / "Below", "where it was left"
    person.choose(f"< {home}")
    assert person.top(FileBrowser).folder == home
    person.press("escape")
    person.top(ReplaysScreen)


def test_a_model_from_any_folder_is_watched(person: Person, home: Path) -> None:
    shutil.copy(models_folder() / "champion.zip", home / "Given.ZIP")
    person.choose("Watch")
    person.choose("Open file...")
    person.choose("Given.ZIP")
    screen = person.until_top(WatchScreen)
    assert [entrant.name for entrant in screen.setup.entrants] == ["Given"]


def test_a_file_that_is_no_model_gives_its_reason(person: Person, home: Path) -> None:
    (home / "bad.zip").write_bytes(b"no zip file")
    person.choose("Watch")
    person.choose("Open file...")
    person.choose("bad.zip")
    person.until_top(MessageScreen)


@pytest.mark.skipif(sys.platform == "win32", reason="folders are closed in another way")
def test_a_folder_that_is_gone_or_closed_is_named_and_the_browser_stays(person: Person, home: Path) -> None:
    person.choose("Replays")
    person.choose("Open file...")
    (home / "Below").rmdir()
    person.choose(f"Below{os.sep}")
    assert person.top(FileBrowser).folder == home
    assert str(home / "Below") in person.app.context.notice


def test_a_folder_that_was_deleted_meanwhile_is_replaced_by_the_home_folder(
    person: Person, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "home", lambda: home)
    person.app.context.browsed = home / "gone"
    person.choose("Replays")
    person.choose("Open file...")
    assert person.top(FileBrowser).folder == home


def test_newest_files_come_first_and_a_huge_folder_is_read_in_part(person: Person, home: Path) -> None:
    for number, name in enumerate(("old.racer", "new.racer")):
        (home / "Below" / name).touch()
        os.utime(home / "Below" / name, (number + 1.0, number + 1.0))
    person.choose("Replays")
    person.choose("Open file...")
    person.choose(f"Below{os.sep}")
    assert labels(person)[1:] == ["new.racer", "old.racer"]
    for number in range(MAX_ENTRIES):
        (home / f"{number}.racer").touch()
    browser = person.top(FileBrowser)
    browser.go_to(home)
    assert len(browser.list.items) <= MAX_ENTRIES + 3
    assert labels(person)[-1] == "This folder has more files than can be listed"
