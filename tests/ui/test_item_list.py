"""Lists respond alike to keys and to the mouse."""

from functools import partial
from itertools import pairwise

import pygame
import pytest

from racer_viewer.ui.intents import Click, Command, Drag, MouseMove, Scroll
from racer_viewer.ui.item_list import Button, Choice, Column, ItemList, ItemRects, Row, Slider, toggle
from racer_viewer.ui.theme import TEXT_SMALL, Theme

AREA = pygame.Rect(20, 30, 500, 300)
COLUMNS = (Column("Name", 2.0), Column("Trained on", 1.0), Column("Lap", 1.0, right=True))


@pytest.fixture(autouse=True)
def display(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    pygame.display.init()


def drawn(listed: ItemList) -> ItemList:
    listed.draw(pygame.Surface((600, 400)), Theme(), AREA)
    return listed


def rects(listed: ItemList, number: int) -> ItemRects:
    """Return where a visible item was drawn."""
    found = listed.rects_of(listed.items[number])
    assert found is not None
    return found


def visible(listed: ItemList) -> set[int]:
    return {number for number, item in enumerate(listed.items) if listed.rects_of(item) is not None}


def test_up_and_down_go_round() -> None:
    listed = ItemList([Button("a"), Button("b"), Button("c")])
    listed.handle(Command.UP)
    assert listed.chosen == 2
    listed.handle(Command.DOWN)
    assert listed.chosen == 0


def test_a_button_does_what_it_does_unless_it_is_not_enabled() -> None:
    done: list[str] = []
    listed = ItemList(
        [Button("a", on_press=lambda: done.append("a")), Button("b", enabled=False, on_press=lambda: done.append("b"))]
    )
    listed.handle(Command.ACCEPT)
    listed.handle(Command.DOWN)
    listed.handle(Command.ACCEPT)
    assert done == ["a"]


def test_a_choice_goes_both_ways_and_reports_changes() -> None:
    reported: list[int] = []
    choice = Choice("c", options=("x", "y", "z"), on_change=reported.append)
    listed = drawn(ItemList([choice]))
    listed.handle(Command.LEFT)
    listed.handle(Command.RIGHT)
    listed.handle(Command.ACCEPT)
    assert reported == [2, 0, 1]
    value = rects(listed, 0).value
    assert value is not None
    listed.handle(Click(value.x + 2, value.centery))
    assert choice.value == "x"
    listed.handle(Click(value.right - 2, value.centery))
    assert choice.value == "y"


def test_a_slider_is_moved_by_keys_and_dragged_by_the_mouse() -> None:
    reported: list[float] = []
    slider = Slider("s", high=1.0, step=0.25, number=0.5, unit="%", on_change=reported.append)
    listed = drawn(ItemList([slider]))
    listed.handle(Command.RIGHT)
    assert slider.value == "75 %"
    track = rects(listed, 0).slider
    assert track is not None
    listed.handle(Click(track.x + 1, track.centery))
    assert slider.number == 0.0
    listed.handle(Drag(5, 0, track.right - 1, track.centery))
    assert slider.number == 1.0
    listed.handle(Command.RIGHT)
    assert reported == [0.75, 0.0, 1.0]


def test_the_drawn_slider_is_as_long_as_its_value() -> None:
    surface = pygame.Surface((600, 400))
    slider = Slider("s", high=1.0, step=0.1, number=0.5)
    listed = ItemList([Button("above"), slider])
    theme = Theme()
    listed.draw(surface, theme, AREA)
    slot = rects(listed, 1).slider
    assert slot is not None
    track = slot.inflate(-theme.px(12), 0)
    filled = [surface.get_at((x, track.centery))[:3] == theme.palette.text for x in range(track.x, track.right)]
    assert sum(filled) == pytest.approx(track.width / 2 + theme.px(7), abs=3)


def test_the_mouse_chooses_what_it_points_at() -> None:
    listed = drawn(ItemList([Button("a"), Button("b"), toggle("c", False, lambda on: None)]))
    assert listed.handle(MouseMove(*rects(listed, 2).row.center))
    assert listed.chosen == 2
    assert not listed.handle(MouseMove(590, 390))


def test_a_long_list_scrolls_to_what_is_chosen() -> None:
    listed = drawn(ItemList([Button(str(number)) for number in range(40)]))
    shown = visible(listed)
    assert 39 not in shown
    listed.handle(Command.UP)
    drawn(listed)
    assert 39 in visible(listed)
    assert len(visible(listed)) == len(shown)
    listed.handle(Scroll(1.0, 100, 100))
    assert listed.chosen == 38
    assert all(AREA.contains(rects(listed, number).row) for number in visible(listed))


def table(*rows: Row) -> ItemList:
    return drawn(ItemList(rows, COLUMNS))


def test_enter_opens_a_row_and_left_and_right_mark_it() -> None:
    opened: list[str] = []
    marks: list[bool] = []
    row = Row("a", cells=("x", "y"), on_press=lambda: opened.append("a"), marked=False, on_mark=marks.append)
    listed = table(row)
    listed.handle(Command.RIGHT)
    assert row.marked
    listed.handle(Command.LEFT)
    assert not row.marked
    listed.handle(Command.ACCEPT)
    assert (opened, marks) == (["a"], [True, False])


def test_a_mark_can_be_taken_back_by_its_callback() -> None:
    row = Row("a", marked=False)
    row.on_mark = lambda on: setattr(row, "marked", False)
    table(row).handle(Command.RIGHT)
    assert row.marked is False


def test_a_click_on_the_box_marks_and_a_click_elsewhere_opens() -> None:
    opened: list[str] = []
    first, second = (Row(name, on_press=partial(opened.append, name), marked=False) for name in "ab")
    listed = table(first, second)
    box = rects(listed, 1).mark
    assert box is not None
    listed.handle(Click(*box.center))
    assert (first.marked, second.marked, opened) == (False, True, [])
    listed.handle(Click(*rects(listed, 0).row.center))
    assert (first.marked, opened) == (False, ["a"])


def test_a_row_that_cannot_be_marked_has_no_box() -> None:
    opened: list[str] = []
    listed = table(Row("a", marked=True), Row("b", on_press=lambda: opened.append("b")))
    assert [rects(listed, number).mark is None for number in range(2)] == [False, True]
    box = rects(listed, 0).mark
    assert box is not None
    listed.handle(Click(box.centerx, rects(listed, 1).row.centery))
    assert opened == ["b"]
    listed.handle(Command.RIGHT)
    assert listed.items[1].marked is None  # type: ignore[attr-defined]


def test_the_header_is_above_the_first_row_and_below_what_is_no_row() -> None:
    listed = drawn(ItemList([Choice("circuit", options=("x", "y")), Row("a"), Row("b")], COLUMNS))
    gaps = [rects(listed, n + 1).row.top - rects(listed, n).row.bottom for n in range(2)]
    assert gaps[0] > gaps[1] + Theme().line_height(TEXT_SMALL)
    without = drawn(ItemList([Choice("circuit", options=("x", "y")), Row("a"), Row("b")]))
    assert rects(without, 1).row.top == rects(without, 0).row.bottom + gaps[1]


def test_cells_stay_within_their_columns_and_long_ones_end_with_an_ellipsis() -> None:
    rows = [Row("chosen"), Row("n" * 99, cells=("c" * 99, "l" * 99), marked=False)]
    listed, theme, surface = ItemList(rows, COLUMNS), Theme(), pygame.Surface((600, 400))
    listed.draw(surface, theme, AREA)
    row = rects(listed, 1).row
    spans = listed.column_spans(theme, row)
    for (left, width), (following, _) in pairwise(spans):
        assert left + width < following
    assert spans[-1][0] + spans[-1][1] <= row.right
    for left, width in spans:
        cell, beside = pygame.Rect(left, row.y, width, row.height), pygame.Rect(left + width + 1, row.y, 5, row.height)
        assert is_lit(surface, cell)
        assert not is_lit(surface, beside)


def is_lit(surface: pygame.Surface, area: pygame.Rect) -> bool:
    """Return whether letters of a row that is not selected were drawn in an area."""
    return any(surface.get_at((x, y))[0] > 200 for x in range(area.x, area.right) for y in range(area.y, area.bottom))


def test_a_column_at_the_right_ends_where_the_column_ends() -> None:
    rows = [Row("chosen"), Row("", cells=("", "9")), Row("", cells=("", "123.45"))]
    listed = ItemList(rows, COLUMNS)
    listed.draw(surface := pygame.Surface((600, 400)), Theme(), AREA)
    x, width = listed.column_spans(Theme(), rects(listed, 1).row)[2]
    ends = []
    for number in (1, 2):
        row = rects(listed, number).row
        lit = [
            at
            for at in range(row.x, row.right)
            if any(surface.get_at((at, y))[0] > 200 for y in range(row.y, row.bottom))
        ]
        ends.append(max(lit))
    assert ends == pytest.approx([x + width] * 2, abs=4)


def test_a_long_table_keeps_its_header_and_stays_within_its_area() -> None:
    listed = drawn(
        ItemList([Choice("circuit", options=("x",)), *(Row(str(n), marked=False) for n in range(40))], COLUMNS)
    )
    listed.handle(Command.UP)
    drawn(listed)
    assert 40 in visible(listed)
    assert min(rects(listed, number).row.top for number in visible(listed)) > AREA.top + Theme().line_height(TEXT_SMALL)
    assert all(AREA.contains(rects(listed, number).row) for number in visible(listed))
