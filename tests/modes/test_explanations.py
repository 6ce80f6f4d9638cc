"""Every panel and chart explains itself: below the mouse, and all of them with the ? key."""

from pathlib import Path

import numpy as np
import pygame
import pytest

from racer_viewer.app.menu import MenuScreen
from racer_viewer.modes.choose import PlaySetupScreen
from racer_viewer.modes.help import ExplanationScreen, HelpScreen
from racer_viewer.modes.play import PlayScreen
from racer_viewer.modes.settings_screen import NameScreen
from racer_viewer.modes.train.screen import TrainScreen
from racer_viewer.modes.train.setup import open_run
from racer_viewer.modes.watch import WatchScreen
from racer_viewer.render.explanations import (
    CHART_EXPLANATIONS,
    PANEL_EXPLANATIONS,
    VIEW_EXPLANATIONS,
    Explanation,
    draw_explanation,
    explanation_columns,
)
from racer_viewer.render.overlays.overlays import PANELS
from racer_viewer.render.plots.figures import CHARTS
from racer_viewer.ui.intents import OVERLAY_COMMANDS
from racer_viewer.ui.theme import Theme
from tests.modes.person import Person
from tests.modes.run_folders import make_run

ALL = [*PANEL_EXPLANATIONS.values(), *VIEW_EXPLANATIONS.values(), *CHART_EXPLANATIONS.values()]
OVERLAYS = ("timing", "inputs", "physics", "reward", "agent", "map", "rays")


def test_every_panel_and_every_overlay_is_explained() -> None:
    assert set(PANEL_EXPLANATIONS) == {*PANELS, *(command.value for command in OVERLAY_COMMANDS), "episodes"}


def test_every_chart_is_explained() -> None:
    assert set(CHART_EXPLANATIONS) == set(CHARTS)


@pytest.mark.parametrize("explanation", ALL, ids=lambda each: each.title)
def test_an_explanation_is_one_or_two_sentences(explanation: Explanation) -> None:
    assert explanation.text.endswith(".")
    assert 1 <= explanation.text.count(". ") + 1 <= 3
    assert len(explanation.text) <= 220


def watch_champion(person: Person) -> WatchScreen:
    person.choose("Watch")
    person.choose("champion")
    person.frames(2)
    return person.top(WatchScreen)


def pixels(person: Person) -> np.ndarray:
    return pygame.surfarray.array3d(person.picture())


def test_pointing_at_a_panel_explains_it(person: Person) -> None:
    person.app.context.change(overlays=OVERLAYS)
    watch = watch_champion(person)
    person.press("space")
    person.frames(90)  # until the camera stands still
    places = panels_of(person, watch)
    assert {"timing", "reward", "map", "speed"} <= set(places)
    for name, place in places.items():
        person.point(640, 700)
        before = pixels(person)
        person.point(*place.center)
        assert (pixels(person) != before).any(), name


def panels_of(person: Person, watch: WatchScreen) -> dict[str, pygame.Rect]:
    """Return the areas of all panels in the window, by name."""
    width, height = person.app.surface.get_size()
    names = {explanation: name for name, explanation in PANEL_EXPLANATIONS.items()}
    found = [watch.view.explained_at(x, y) for x in range(0, width, 40) for y in range(0, height, 20)]
    return {names[each[0]]: each[1] for each in found if each is not None}


@pytest.mark.parametrize("panel", [(10, 40, 230, 130), (1040, 40, 230, 130), (1040, 600, 230, 110)])
def test_the_box_of_an_explanation_covers_neither_its_panel_nor_the_edge(panel: tuple[int, int, int, int]) -> None:
    surface, area = pygame.Surface((1280, 720)), pygame.Rect(panel)
    for explanation in PANEL_EXPLANATIONS.values():
        box = draw_explanation(surface, Theme(), explanation, area)
        assert surface.get_rect().contains(box)
        assert not box.colliderect(area)


def test_between_the_panels_nothing_is_explained(person: Person) -> None:
    watch = watch_champion(person)
    assert watch.view.explained_at(640, 360) is None


def test_a_question_mark_explains_all_panels_that_are_shown(person: Person) -> None:
    person.app.context.change(overlays=OVERLAYS)
    watch = watch_champion(person)
    person.write("?")
    screen = person.top(ExplanationScreen)
    assert {PANEL_EXPLANATIONS[name] for name in OVERLAYS} <= set(screen.explanations_shown)
    assert PANEL_EXPLANATIONS["gates"] not in screen.explanations_shown
    person.frames(2)
    person.write("?")
    assert person.top(WatchScreen) is watch


def test_a_gamepad_reaches_the_explanations_through_help(person: Person) -> None:
    person.choose("Play")
    person.choose("Start")
    person.pad(pygame.CONTROLLER_BUTTON_BACK)
    person.top(HelpScreen)
    person.frames()
    person.pad(pygame.CONTROLLER_BUTTON_DPAD_UP)
    person.pad(pygame.CONTROLLER_BUTTON_A)
    assert PANEL_EXPLANATIONS["timing"] in person.top(ExplanationScreen).explanations_shown
    person.pad(pygame.CONTROLLER_BUTTON_B)
    person.top(PlayScreen)


def test_a_run_explains_its_charts_and_its_other_parts(person: Person) -> None:
    folder = make_run(person.data, "old")
    open_run(person.app.context, folder)
    train = person.until_top(TrainScreen)
    person.frames(3)
    assert train.pictures.charts
    person.write("?")
    shown = set(person.top(ExplanationScreen).explanations_shown)
    assert {CHART_EXPLANATIONS[chart] for chart in train.pictures.charts} | set(VIEW_EXPLANATIONS.values()) <= shown


def test_where_nothing_needs_an_explanation_the_question_mark_lists_the_keys(person: Person) -> None:
    person.write("?")
    person.top(HelpScreen)
    person.press("escape")
    person.choose("Play")
    person.top(PlaySetupScreen)
    person.write("?")
    person.top(HelpScreen)
    person.press("return", "escape")
    person.top(MenuScreen)


def test_a_question_mark_in_a_name_is_text(person: Person) -> None:
    person.choose("Settings")
    person.choose("Your name")
    person.write("?")
    person.top(NameScreen)
    person.press("return")
    assert person.app.context.settings.name == "?"


@pytest.mark.parametrize("size", [(864, 400), (1184, 560), (3500, 1900)])
@pytest.mark.parametrize("scale", [1.0, 1.8])
def test_all_explanations_fit_at_any_size(size: tuple[int, int], scale: float, tmp_path: Path) -> None:
    picture = explanation_columns(Theme(scale), ALL, size)
    assert pygame.mask.from_surface(picture).count() > 1000
