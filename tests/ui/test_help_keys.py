"""The help lists every key, and all of it can be seen at every size."""

import pygame
import pytest

from racer_viewer.modes.help import columns_of, lay_out
from racer_viewer.ui.bindings import BINDING_LABELS, DEFAULT_BINDINGS
from racer_viewer.ui.theme import MARGIN, Theme, fitting_scale

SIZES = [(960, 540), (1280, 720), (1024, 768), (2560, 1440), (3440, 1440)]


@pytest.fixture(autouse=True)
def _display(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    pygame.display.init()


def test_all_that_can_be_bound_is_listed_once() -> None:
    listed = [does for column in columns_of(DEFAULT_BINDINGS) for group in column for _, does in group.keys]
    assert [sum(does == name for does in listed) for name in BINDING_LABELS.values()] == [
        2 if name in ("Restart", "Camera") else 1 for name in BINDING_LABELS.values()
    ]


def test_a_key_that_was_bound_anew_is_shown_instead() -> None:
    shown = {
        does: key
        for column in columns_of({**DEFAULT_BINDINGS, "episodes": ("page up",)})
        for group in column
        for key, does in group.keys
    }
    assert shown["Episodes"] == "PgUp"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("wish", [1.0, 2.0])
def test_all_groups_fit_beside_and_below_each_other(size: tuple[int, int], wish: float) -> None:
    theme = Theme(fitting_scale(size, wish))
    margin = theme.px(3 * MARGIN)
    area = pygame.Rect(margin, theme.px(90), size[0] - 2 * margin, size[1] - theme.px(150))
    layout = lay_out((area.left, area.top, area.right, area.bottom), theme, DEFAULT_BINDINGS)
    places = [
        pygame.Rect(x, y, group.width(layout.theme), group.height(layout.theme)) for group, x, y, _ in layout.groups
    ]
    places.append(layout.actions)
    assert all(area.contains(place) for place in places)
    assert all(place.collidelistall(places) == [number] for number, place in enumerate(places))
    assert wish > 1.0 or layout.theme.scale >= 0.75
