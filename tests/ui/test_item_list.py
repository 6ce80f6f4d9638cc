"""Lists are moved through, pressed and changed alike by keys and by the mouse."""

import pygame
import pytest

from racer_viewer.ui.intents import Click, Do, Drag, Point, Scroll
from racer_viewer.ui.item_list import ItemList
from racer_viewer.ui.items import Button, Choice, Slider, toggle
from racer_viewer.ui.theme import Theme

AREA = pygame.Rect(20, 30, 500, 300)


@pytest.fixture(autouse=True)
def display(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    pygame.display.init()


def drawn(listed: ItemList) -> ItemList:
    listed.draw(pygame.Surface((600, 400)), Theme(), AREA)
    return listed


def test_up_and_down_go_round() -> None:
    listed = ItemList([Button("a"), Button("b"), Button("c")])
    listed.handle(Do.UP)
    assert listed.chosen == 2
    listed.handle(Do.DOWN)
    assert listed.chosen == 0


def test_a_button_does_what_it_does_unless_it_is_not_enabled() -> None:
    done: list[str] = []
    listed = ItemList(
        [Button("a", do=lambda: done.append("a")), Button("b", enabled=False, do=lambda: done.append("b"))]
    )
    listed.handle(Do.ACCEPT)
    listed.handle(Do.DOWN)
    listed.handle(Do.ACCEPT)
    assert done == ["a"]


def test_a_choice_goes_both_ways_and_tells() -> None:
    told: list[int] = []
    choice = Choice("c", options=("x", "y", "z"), changed=told.append)
    listed = drawn(ItemList([choice]))
    listed.handle(Do.LEFT)
    listed.handle(Do.RIGHT)
    listed.handle(Do.ACCEPT)
    assert told == [2, 0, 1]
    value = listed._values[0]
    listed.handle(Click(value.x + 2, value.centery))
    assert choice.value == "x"
    listed.handle(Click(value.right - 2, value.centery))
    assert choice.value == "y"


def test_a_slider_is_moved_by_keys_and_dragged_by_the_mouse() -> None:
    told: list[float] = []
    slider = Slider("s", high=1.0, step=0.25, number=0.5, unit="%", changed=told.append)
    listed = drawn(ItemList([slider]))
    listed.handle(Do.RIGHT)
    assert slider.value == "75 %"
    track = listed._sliders[0]
    listed.handle(Click(track.x + 1, track.centery))
    assert slider.number == 0.0
    listed.handle(Drag(5, 0, track.right - 1, track.centery))
    assert slider.number == 1.0
    listed.handle(Do.RIGHT)
    assert told == [0.75, 0.0, 1.0]


def test_the_drawn_slider_is_as_long_as_its_value() -> None:
    surface = pygame.Surface((600, 400))
    slider = Slider("s", high=1.0, step=0.1, number=0.5)
    listed = ItemList([Button("above"), slider])
    theme = Theme()
    listed.draw(surface, theme, AREA)
    track = listed._sliders[1].inflate(-theme.px(12), 0)
    filled = [surface.get_at((x, track.centery))[:3] == theme.palette.text for x in range(track.x, track.right)]
    assert sum(filled) == pytest.approx(track.width / 2 + theme.px(7), abs=3)


def test_the_mouse_chooses_what_it_points_at() -> None:
    listed = drawn(ItemList([Button("a"), Button("b"), toggle("c", False, lambda on: None)]))
    assert listed.handle(Point(*listed._rows[2].center))
    assert listed.chosen == 2
    assert not listed.handle(Point(590, 390))


def test_a_long_list_scrolls_to_what_is_chosen() -> None:
    listed = drawn(ItemList([Button(str(number)) for number in range(40)]))
    shown = set(listed._rows)
    assert 39 not in shown
    listed.handle(Do.UP)
    drawn(listed)
    assert 39 in listed._rows
    assert len(listed._rows) == len(shown)
    listed.handle(Scroll(1.0, 100, 100))
    assert listed.chosen == 38
    assert all(AREA.contains(row) for row in listed._rows.values())
