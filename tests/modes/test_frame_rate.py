"""Lap times do not depend on the frame rate."""

from fractions import Fraction
from pathlib import Path

import pytest

from racer_viewer.app.window import MAX_LAG, TICK
from racer_viewer.clock import FixedStepClock
from racer_viewer.modes.play import PlayScreen
from racer_viewer.replays import trace_replay
from tests.modes.person import Person

COUNTDOWN = 20
DRIVEN_TICKS = 220
SCRIPT = {
    0: "+up", 100: "+right", 112: "-right", 132: "+right", 148: "-right", 160: "+right", 180: "-right",
}  # fmt: skip
"""Keys pressed (+) and released (−), by tick."""


@pytest.fixture
def drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("SDL_AUDIODRIVER", "dummy")

    def drive_at(fps: int) -> tuple[bytes, list[int], float]:
        """Drive the script at a frame rate; returns its actions, gate ticks and length."""
        folder = tmp_path / str(fps)
        folder.mkdir()
        (folder / "settings.json").write_text('{"window": [960, 540]}')
        person = Person(folder)
        try:
            person.choose("Play")
            person.choose("Start")
            play = person.top(PlayScreen)
            play.restart()
            play.countdown = COUNTDOWN
            person.app.clock = FixedStepClock(TICK, MAX_LAG)
            for tick, frames in _frames(fps):
                if tick - COUNTDOWN in SCRIPT:
                    what = SCRIPT[tick - COUNTDOWN]
                    (person.hold if what[0] == "+" else person.release)(what[1:])
                for seconds in frames:
                    person.app.frame(seconds)
            replay = play.live.tick.followed.replay()
            assert replay is not None
            gates = trace_replay(replay).gate_rows.tolist()
            return replay.actions[:DRIVEN_TICKS].tobytes(), gates, replay.ticks
        finally:
            person.app.close()

    return drive_at


def _frames(fps: int):  # type: ignore[no-untyped-def]
    """Yield the ticks at which keys may change, each with the durations of the frames up to the next."""
    step = 4
    per_step = Fraction(step * fps, 60)
    assert per_step.denominator == 1
    for tick in range(0, COUNTDOWN + DRIVEN_TICKS + step, step):
        yield tick, [1.0000001 / fps] * int(per_step)


@pytest.mark.slow
@pytest.mark.timing
def test_the_same_keys_give_the_same_drive_at_15_60_and_240_frames(drive) -> None:  # type: ignore[no-untyped-def]
    slow, usual, fast = drive(15), drive(60), drive(240)
    assert usual[1], "the script drives through some gates"
    assert slow == usual == fast
