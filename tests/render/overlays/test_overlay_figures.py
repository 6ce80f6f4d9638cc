"""Numbers as they are read: times, signs, axes, and digits that stay where they are."""

import numpy as np
import pygame
import pytest

from racer_viewer.render.overlays import lap_time
from racer_viewer.render.overlays.panel import SHRINK_FRAMES, StableAxis, TextPainter, round_up
from racer_viewer.timing import signed, signed_time
from racer_viewer.ui.theme import TEXT_LARGE, Theme

WHITE = (255, 255, 255)


def drawn(painter: TextPainter, text: str) -> np.ndarray:
    board = pygame.Surface((200, 40), depth=32)
    painter.number(board, text, 190, 5, WHITE, TEXT_LARGE)
    return pygame.surfarray.array3d(board)[:, :, 0]


def test_a_lap_time_has_minutes_only_when_it_needs_them() -> None:
    times = [lap_time(ticks) for ticks in (0, 1069, 3599, 3600, 3747, 36_000)]
    assert times == ["0.00", "17.82", "59.98", "1:00.00", "1:02.45", "10:00.00"]


def test_a_difference_has_its_sign() -> None:
    assert [signed_time(ticks) for ticks in (14, -14, 0)] == ["+0.23", "−0.23", "+0.00"]
    assert [signed(value, 1) for value in (-0.04, 0.04, -0.06)] == ["+0.0", "+0.0", "−0.1"]


@pytest.mark.parametrize("scale", [0.8, 1.0, 1.37, 2.0])
def test_a_digit_that_changes_moves_no_other(scale: float) -> None:
    painter = TextPainter(Theme(scale))
    fixed = 190 - painter.number_width(".11", TEXT_LARGE)
    pictures = [drawn(painter, text) for text in ("11.11", "17.11", "8.11", "+48.11", "−11.11")]
    for picture in pictures:
        assert picture[:fixed].any()
        np.testing.assert_array_equal(picture[fixed:], pictures[0][fixed:])
    assert len({painter.number_width(text) for text in ("11.11", "48.00", "77.77")}) == 1


def test_a_figure_ends_where_it_is_put(painter: TextPainter) -> None:
    inked = np.flatnonzero(drawn(painter, "888").any(axis=1))
    assert 185 <= inked.max() < 190
    assert 190 - painter.number_width("888", TEXT_LARGE) <= inked.min() < 190 - painter.number_width("88", TEXT_LARGE)


def test_a_name_that_is_too_long_is_cut_and_marked(painter: TextPainter, theme: Theme) -> None:
    assert painter.fitted("Rookie", 200) == "Rookie"
    cut = painter.fitted("A name that nobody can remember", 80)
    assert cut.endswith("…")
    assert theme.width(cut, 18) <= 80
    assert painter.fitted("Rookie", 1) == "…"


def test_a_word_that_is_too_long_for_its_column_gets_smaller_letters(painter: TextPainter) -> None:
    ends = []
    for width in (200, 60):
        board = pygame.Surface((200, 40), depth=32)
        painter.label(board, "Geschwindigkeit", 0, 5, width, WHITE)
        ends.append(int(np.flatnonzero(pygame.surfarray.array3d(board)[:, :, 0].any(axis=1)).max()))
    assert ends[1] < 60 < ends[0], "all of the word is there"


@pytest.mark.parametrize("space", ["\N{NO-BREAK SPACE}", "\N{NARROW NO-BREAK SPACE}"])
def test_spaces_that_the_typeface_does_not_have_are_drawn_as_plain_ones(theme: Theme, space: str) -> None:
    pictures = [pygame.image.tobytes(theme.text(f"16{each}384"), "RGBA") for each in (space, " ")]
    assert pictures[0] == pictures[1]
    assert theme.width(f"5{space}%") == theme.width("5 %")


@pytest.mark.parametrize(
    ("value", "up"), [(0.0, 0.0), (0.0012, 0.002), (0.002, 0.002), (3.0, 5.0), (5.1, 10.0), (70.0, 100.0)]
)
def test_an_axis_ends_at_a_round_figure(value: float, up: float) -> None:
    assert round_up(value) == pytest.approx(up)


def test_an_axis_grows_at_once_and_shrinks_when_it_was_not_needed_for_a_while() -> None:
    axis = StableAxis(0.001)
    assert axis.cover(0.0) == 0.001
    assert axis.cover(0.03) == pytest.approx(0.05)
    for _ in range(SHRINK_FRAMES - 1):
        assert axis.cover(0.004) == pytest.approx(0.05)
    assert axis.cover(0.004) == pytest.approx(0.005)


def test_a_value_that_comes_again_keeps_an_axis_as_it_is() -> None:
    axis = StableAxis(0.001)
    for look in range(5 * SHRINK_FRAMES):
        assert axis.cover(0.03 if look % 100 == 0 else 0.001) == pytest.approx(0.05)


def test_an_axis_goes_no_farther_than_it_may() -> None:
    assert StableAxis(0.2, 1.0).cover(1.7) == 1.0
