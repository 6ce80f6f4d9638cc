"""Optional packages installed from the window, by a run.py in a process of its own."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from racer_viewer.modes.install import with_part
from racer_viewer.modes.screen import MessageScreen
from racer_viewer.modes.waiting import WaitingScreen
from racer_viewer.optional import OptionalPart
from tests.modes.person import Person

PART = OptionalPart("extra", "Extra", ("racer_test_extra",), "Extra things", 3, note="It may be larger.")
RUN_PY = """\
import sys, time
from pathlib import Path
here = Path(__file__).parent
(here / "arguments").write_text(" ".join(sys.argv[1:]))
print("Setting up (first run, or after an update) ...", file=sys.stderr, flush=True)
print("  extra 1/2: small 1.0, 3 MB", file=sys.stderr, flush=True)
while not (here / "go").exists():
    time.sleep(0.01)
if (here / "go").read_text() == "fail":
    sys.exit("run.py: pip could not install Extra: check the network and try again; only Extra things need it")
(here / "modules" / "racer_test_extra.py").touch()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a run.py that installs the part when the file `go` appears."""
    (tmp_path / "run.py").write_text(RUN_PY)
    (tmp_path / "modules").mkdir()
    monkeypatch.syspath_prepend(tmp_path / "modules")
    monkeypatch.setattr("racer_viewer.optional.RUN_PY", tmp_path / "run.py")
    monkeypatch.setenv("RACER_COMMAND", "python run.py")
    yield tmp_path
    sys.modules.pop("racer_test_extra", None)


def ask(person: Person, done: list[str]) -> MessageScreen:
    with_part(person.app.context, PART, lambda: done.append("done"))
    question = person.top(MessageScreen)
    assert question.title == "Extra is not installed"
    assert "about 3 MB" in question.text
    assert question.text.endswith("\nIt may be larger.")
    return question


def test_packages_are_installed_with_progress_and_the_action_goes_on(person: Person, place: Path) -> None:
    done: list[str] = []
    ask(person, done)
    person.press("return")
    waiting = person.until_top(WaitingScreen)
    person.until(lambda: waiting.detail == "small 1.0, 3 MB", "the progress")
    assert waiting.share == pytest.approx(0.5)
    assert not done
    (place / "go").write_text("work")
    person.until(lambda: bool(done), "the action")
    assert (place / "arguments").read_text() == "install extra"
    with_part(person.app.context, PART, lambda: done.append("again"))
    assert done == ["done", "again"]


def test_a_failed_installation_says_why_and_can_be_tried_again(person: Person, place: Path) -> None:
    done: list[str] = []
    (place / "go").write_text("fail")
    ask(person, done)
    person.press("return")
    failure = person.until_top(MessageScreen)
    assert failure.title == "Extra could not be installed"
    assert failure.text == "pip could not install Extra: check the network and try again; only Extra things need it"
    (place / "go").write_text("work")
    person.press("return")
    person.until(lambda: bool(done), "the action")


def test_an_installation_can_be_cancelled(person: Person, place: Path) -> None:
    done: list[str] = []
    ask(person, done)
    person.press("return")
    waiting = person.until_top(WaitingScreen)
    person.until(lambda: waiting.share > 0.0, "the progress")
    person.press("escape")
    assert person.app.context.top is not waiting
    (place / "go").write_text("work")
    person.frames(30)
    assert not done
    assert not PART.is_installed


def test_without_run_py_the_hint_is_shown(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RACER_COMMAND", raising=False)
    with_part(person.app.context, PART, lambda: pytest.fail("it is not installed"))
    assert 'pip install "racer-viewer[extra]"' in person.top(MessageScreen).text
