"""TensorBoard beside a window: one for each run, and none without a window."""

import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from racer_env.errors import RacerError
from racer_viewer.modes.train import tensorboard
from tests.processes import is_gone, wait_for

LIMIT = 90.0
WINDOW = """
import sys, time, webbrowser
from pathlib import Path
from racer_viewer.modes.train.tensorboard import open_tensorboard

if __name__ == "__main__":
    webbrowser.open = lambda url: True
    print(open_tensorboard(Path(sys.argv[1]), lambda text: print(text, flush=True)).pid, flush=True)
    time.sleep(600.0)
"""
"""All of a window that matters here."""


def test_without_tensorboard_the_error_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("racer_viewer.optional.find_spec", lambda name: None)
    with pytest.raises(RacerError, match="pip install"):
        tensorboard.open_tensorboard(tmp_path, lambda text: None)
    said: list[str] = []
    tensorboard.show_tensorboard(tmp_path, said.append)
    assert "pip install" in said[0]


@pytest.mark.parametrize("opened", [True, False])
def test_the_address_is_shown_and_no_browser_is_claimed_to_be_open(
    opened: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(tensorboard.webbrowser, "open", lambda url: opened)
    tensorboard.browse("http://127.0.0.1:6006/", said.append)
    assert "http://127.0.0.1:6006/" in said[0]
    assert " is open" not in said[0]


@pytest.mark.slow
def test_who_asks_twice_gets_the_same_and_a_browser_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    said: list[str] = []
    monkeypatch.setattr(tensorboard.webbrowser, "open", lambda url: not opened.append(url))
    board = tensorboard.open_tensorboard(tmp_path, said.append)
    try:
        assert tensorboard.open_tensorboard(tmp_path, said.append) is board
        wait_for(lambda: len(opened) == 1, "the browser")
        assert urllib.request.urlopen(opened[0], timeout=LIMIT).status == 200
        assert tensorboard.open_tensorboard(tmp_path, said.append) is board
        wait_for(lambda: len(opened) == 2, "the browser again")
        assert opened[0] == opened[1] == board.url
        wait_for(lambda: board.url in said[-1], "word of it")
    finally:
        board.stop()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("how", ["SIGTERM", "SIGKILL"])
@pytest.mark.parametrize("early", [True, False])
def test_it_ends_with_the_window_however_that_ends(tmp_path: Path, how: str, early: bool) -> None:
    script = tmp_path / "window.py"
    script.write_text(WINDOW)
    window = subprocess.Popen([sys.executable, str(script), str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert window.stdout is not None
        assert window.stdout.readline().strip() == tensorboard.STARTING
        pid = int(window.stdout.readline())
        if not early:
            assert "http://127.0.0.1:" in window.stdout.readline()
        window.send_signal(getattr(signal, how))
        wait_for(lambda: is_gone(pid), "TensorBoard to end")
    finally:
        window.kill()
        window.wait()
