"""The line of keys: all of them where they fit, else the first ones and the way to the list of all."""

from pathlib import Path

import pytest

from racer_viewer.agents import CHAMPION
from racer_viewer.modes.drive import open_drive
from racer_viewer.modes.play import PlayScreen, open_play
from racer_viewer.modes.race import Entrant, RaceSetup
from racer_viewer.modes.screen import MENU_KEYS
from racer_viewer.modes.watch import WatchScreen
from racer_viewer.ui.display import MIN_SIZE
from racer_viewer.ui.intents import OVERLAY_COMMANDS
from racer_viewer.ui.theme import ORDINARY, Theme, fitting_scale
from racer_viewer.ui.views import ALL_KEYS, fitting_keys
from tests.modes.person import Person

MANY = [("Esc", "menu"), *((str(number), "something") for number in range(20))]


def test_keys_that_fit_are_all_there_and_nothing_else() -> None:
    assert fitting_keys(Theme(1.0), 1280, MENU_KEYS) == MENU_KEYS


@pytest.mark.parametrize("width", [400, 960, 1280, 1900])
def test_where_some_do_not_fit_the_last_one_leads_to_all(width: int) -> None:
    shown = fitting_keys(Theme(1.0), width, MANY)
    assert shown[-1] == ALL_KEYS
    assert list(shown[:-1]) == MANY[: len(shown) - 1]
    assert len(shown) > 2


def test_wider_lines_have_more_keys() -> None:
    counts = [len(fitting_keys(Theme(1.0), width, MANY)) for width in (400, 800, 1600)]
    assert counts == sorted(set(counts))


def test_panels_stay_in_their_places_when_the_line_of_keys_appears_and_fades(person: Person) -> None:
    app = person.app.context
    app.change(play_overlays=tuple(command.value for command in OVERLAY_COMMANDS))
    open_play(app, "track-01", [("champion", Path(CHAMPION))] * 5, 3)
    view = person.until_top(PlayScreen).view
    places = []
    for change in (view.show_keys, view.hide_keys, view.show_keys):
        change()
        person.frames(2)
        names = ("timing", "gaps", "inputs", "physics", "reward", "agent", "map", "speed")
        places.append({name: view.panel_area(name) for name in names})
    assert places[0] == places[1] == places[2]
    assert places[0]["physics"] is not None


def test_watching_in_the_smallest_window_says_where_all_keys_are(person: Person) -> None:
    setup = RaceSetup("track-01", (Entrant("a", ORDINARY.player),))
    keys = WatchScreen(person.app.context, setup, open_drive(setup)).keys()
    shown = fitting_keys(Theme(fitting_scale(MIN_SIZE)), MIN_SIZE[0], keys)
    assert shown[-1] == ALL_KEYS
    assert [key for key, _ in shown[:3]] == [key for key, _ in keys[:3]]
