"""The career and the medals in the real window: events open one by one and need clean laps; wins are kept."""

from pathlib import Path

import pygame
import pytest

from racer_env.engine import circuits
from racer_viewer.agents import load_agent
from racer_viewer.app.menu import MenuScreen
from racer_viewer.modes.career import EVENTS, CareerScreen, MedalsScreen, open_events, pupil_of
from racer_viewer.modes.models import known_models
from racer_viewer.modes.play import PlayScreen
from racer_viewer.modes.results import ResultsScreen
from racer_viewer.modes.screen import MessageScreen
from racer_viewer.replays.records import Records, medal_ticks
from tests.modes.person import Person
from tests.modes.test_races import drive_to_results, model, start_race
from tests.modes.test_screens import AgentSteering


def drive(person: Person, driver: str) -> ResultsScreen:
    """Drive the race on top with an agent at the player's wheel."""
    play = person.top(PlayScreen)
    play.steering = AgentSteering(load_agent(model(driver)), play)  # type: ignore[assignment]
    return drive_to_results(person)


def test_events_open_one_after_the_other() -> None:
    assert [event.id for event in open_events(())] == [event.id for event in EVENTS[:2]]
    assert [event.id for event in open_events({EVENTS[0].id})] == [event.id for event in EVENTS[:3]]
    assert open_events({event.id for event in EVENTS}) == EVENTS
    assert 6 <= len(EVENTS) <= 10


def test_a_clean_lap_for_the_medal_wins_a_time_attack_and_is_kept(person: Person) -> None:
    person.choose("Career")
    person.choose("First medal")
    play = person.top(PlayScreen)
    assert [look.name for look in play.view.after.styles if look.ghost] == ["Bronze medal 8.43"]
    results = drive(person, "champion")
    assert results.outcome is not None
    assert results.outcome.won
    assert [item.label for item in results.list.items][-1] == "Career"
    assert "Next circuit" not in [item.label for item in results.list.items]
    person.press("escape")
    career = person.top(CareerScreen)
    assert career.list.find("First medal").cells[-1] == "won"  # type: ignore[attr-defined]
    assert Records(person.data / "records.sqlite").events_won() == {"first-medal"}


def test_a_won_event_leads_to_the_next_one(person: Person) -> None:
    person.choose("Career")
    assert person.top(CareerScreen).list.item.label == "First medal"  # type: ignore[union-attr]
    person.press("return")
    results = drive(person, "champion")
    assert results.list.item is not None
    assert (results.list.item.label, results.list.item.hint) == (
        "Next event",
        "First duel: Beat learning-3-slow over 3 clean laps",
    )
    person.press("return")
    play = person.top(PlayScreen)
    assert [each.name for each in play.live.setup.entrants] == ["You", "learning-3-slow"]
    person.press("escape")
    person.choose("Career")
    assert person.top(CareerScreen).list.item.label == "First duel"  # type: ignore[union-attr]
    person.press("escape")
    person.until(lambda: person.top(MenuScreen).list.find("Career").value == "1 / 8", "the progress of the career")


@pytest.mark.slow
def test_racing_again_races_the_same_medal_and_the_same_event(person: Person) -> None:
    person.choose("Career")
    person.choose("First medal")
    results = drive(person, "learning-3-slow")
    assert results.outcome is not None
    assert not results.outcome.won, "no lap was clean"
    person.choose("Race again")
    play = person.top(PlayScreen)
    person.ticks(play.countdown + 5)
    assert [look.name for look in play.view.after.styles if look.ghost] == ["Bronze medal 8.43"]
    results = drive(person, "champion")
    assert results.outcome is not None
    assert results.outcome.won


@pytest.mark.parametrize(("driver", "won"), [("champion", True), ("learning-4-fast", False)])
def test_a_duel_is_won_in_first_place_with_clean_laps_only(person: Person, driver: str, won: bool) -> None:
    person.choose("Career")
    person.choose("First duel")
    results = drive(person, driver)
    assert results.results[0].is_player, "both drivers are faster than the opponent"
    assert results.outcome is not None
    assert results.outcome.won is won


def test_a_locked_event_does_not_start(person: Person) -> None:
    person.choose("Career")
    person.choose("The champion")
    person.top(CareerScreen)


def test_the_event_against_an_own_agent_needs_one(person: Person) -> None:
    person.app.context.records.win_event("first-medal", "You")
    person.choose("Career")
    person.choose("Master and pupil")
    person.top(MessageScreen)
    person.press("escape")
    copy_run(person.data / "runs" / "mine")
    person.choose("Master and pupil")
    play = person.top(PlayScreen)
    assert [each.name for each in play.live.setup.entrants] == ["You", "mine_best"]


@pytest.mark.parametrize("language", ["de", "fr"])
def test_no_bundled_agent_is_the_players_own_in_any_language(person: Person, language: str) -> None:
    person.app.context.change(language=language)
    assert pupil_of(known_models(person.data)) is None
    copy_run(person.data / "runs" / "mine")
    found = pupil_of(known_models(person.data))
    assert found is not None
    assert (found[0].name, found[1]) == ("mine_best", "track-01")


def copy_run(folder: Path) -> None:
    """Make a run folder with a bundled agent as its best model."""
    folder.mkdir(parents=True)
    (folder / "mine_best.zip").write_bytes(model("learning-3-slow").read_bytes())
    (folder / "config.json").write_text('{"tracks": ["track-01"]}', encoding="utf-8")


def test_the_medals_of_all_circuits_lead_to_the_ghost_of_the_next(person: Person) -> None:
    start_race(person, "champion", laps=1)
    drive_to_results(person)
    person.choose("Main menu")
    person.choose("Career")
    person.choose("Medals")
    medals = person.top(MedalsScreen)
    assert [item.label for item in medals.list.items] == [circuit.name for circuit in circuits()]
    first = medals.list.items[0]
    assert first.cells[:2] == ("8.37", "bronze")  # type: ignore[attr-defined]
    assert first.cells[-1] == "1.12 s to silver"  # type: ignore[attr-defined]
    person.press("return")
    ghost = person.top(PlayScreen).live.setup.ghost
    assert ghost is not None
    assert ghost.lap_ticks == medal_ticks(next(iter(circuits())), "silver")
    person.press("escape")
    person.choose("Medals")
    person.top(MedalsScreen)


def test_the_career_is_reached_and_left_with_a_gamepad(person: Person) -> None:
    person.pad(pygame.CONTROLLER_BUTTON_DPAD_DOWN)
    person.pad(pygame.CONTROLLER_BUTTON_A)
    person.top(CareerScreen)
    person.pad(pygame.CONTROLLER_BUTTON_DPAD_DOWN)
    person.pad(pygame.CONTROLLER_BUTTON_A)
    person.top(PlayScreen)
    person.pad(pygame.CONTROLLER_BUTTON_START)
    person.pad(pygame.CONTROLLER_BUTTON_DPAD_UP)
    person.pad(pygame.CONTROLLER_BUTTON_A)
    person.top(CareerScreen)
    person.pad(pygame.CONTROLLER_BUTTON_B)
    person.top(MenuScreen)
