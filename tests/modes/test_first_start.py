"""The first start: what the window shows and allows while the engine is compiled."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from racer_env.engine.car import MAX_SPEED, ROAD
from racer_viewer.app.backdrop import RecordedLap
from racer_viewer.app.menu import MenuScreen
from racer_viewer.modes.choose import OpponentsScreen, PlaySetupScreen
from racer_viewer.modes.play import PlayScreen
from racer_viewer.modes.waiting import WaitingScreen
from racer_viewer.ui.theme import Theme
from tests.modes.person import Person

COMPILING = 0.5
LIMIT = 300.0
"""Time limit of a process that compiles everything [s]."""

FIRST_START = """
import sys, time
from pathlib import Path
from racer_viewer.app.window import App
from racer_viewer.modes.choose import PlaySetupScreen
from racer_viewer.modes.play import PlayScreen
from racer_viewer.modes.waiting import WaitingScreen, open_when_loaded

app = App(Path(sys.argv[1]))
app.context.top.back()
app.context.change(circuit="random:7")
warmup, seen = app.context.warmup, []

def frames_until(reached):
    end = time.monotonic() + 240
    while not reached():
        assert time.monotonic() < end and not warmup.problem, (seen, warmup.problem)
        app.frame(1 / 60)
        time.sleep(1 / 60)

app.frame(0.0)
warmup.start(with_learner=True)
frames_until(lambda: app.context.top.backdrop is not None)
seen += ["recorded" if app.context.top.backdrop.recorded else "driven"]
app.context.top.list.item.on_press()
frames_until(lambda: isinstance(app.context.top, PlaySetupScreen))
from racer_env.engine.beams import fill_beams
from racer_env.engine.tick import step_cars
app.frame(1 / 60)
seen += ["compiled here" if fill_beams.overloads or step_cars.overloads else "not compiled here", warmup.ready]
app.context.top.list.item.on_press()
seen += [type(app.context.top).__name__]
frames_until(lambda: isinstance(app.context.top, PlayScreen))
print(*seen)
"""


def test_the_recorded_lap_stays_on_the_road_and_ends_where_it_begins() -> None:
    lap = RecordedLap(Theme())
    ticks = next(tick for tick in range(1, 2000) if lap.is_over(tick))
    cars = np.array([lap.snapshot(tick).cars[0] for tick in range(ticks + 1)])
    assert set(cars["surface"]) == {ROAD}
    assert np.hypot(np.diff(cars["x"]), np.diff(cars["y"])).max() < 2.0 * MAX_SPEED / 60.0
    assert (np.diff(cars["step_count"]) == 1).all()


@pytest.mark.slow
def test_the_menu_shows_the_recorded_lap_until_the_engine_is_ready(person: Person) -> None:
    menu, warmup = person.top(MenuScreen), person.app.context.warmup
    warmup.done = COMPILING
    person.ticks(1000)
    backdrop = menu.backdrop
    assert backdrop is not None
    assert backdrop.recorded
    warmup.done = 1.0
    person.until(lambda: not backdrop.recorded, "the end of the lap")


def test_a_race_can_be_set_up_while_the_engine_is_compiled_and_begins_as_soon_as_it_is(person: Person) -> None:
    warmup = person.app.context.warmup
    warmup.done = COMPILING
    person.choose("Play")
    person.top(PlaySetupScreen)
    person.choose("Opponents")
    person.top(WaitingScreen)
    person.press("escape")
    person.choose("Start")
    waiting = person.top(WaitingScreen)
    assert waiting.share == COMPILING
    warmup.done = 1.0
    person.frames(2)
    person.top(PlayScreen)
    person.app.context.pop_to(PlaySetupScreen)
    person.choose("Opponents")
    person.top(OpponentsScreen)


def test_the_first_screens_wait_for_the_import_of_the_engine(person: Person) -> None:
    warmup = person.app.context.warmup
    warmup.loaded, warmup.done = False, 0.0
    person.choose("Play")
    person.top(WaitingScreen)
    warmup.loaded = True
    person.frames(2)
    person.top(PlaySetupScreen)


@pytest.mark.slow
def test_the_first_start_shows_a_car_and_compiles_in_other_processes(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "SDL_VIDEODRIVER": "dummy",
        "SDL_AUDIODRIVER": "dummy",
    }
    command = [sys.executable, "-c", FIRST_START, str(tmp_path / "data")]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] == "recorded not compiled here False WaitingScreen"
