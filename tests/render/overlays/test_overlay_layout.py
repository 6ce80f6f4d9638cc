"""Panel layout: nothing overlaps or leaves the window, and the least important panels go first."""

import itertools
from collections.abc import Callable, Iterable

import numpy as np
import pygame
import pytest
from hypothesis import given
from hypothesis import strategies as st

from racer_viewer.render.overlays import OVERLAYS, Overlays
from racer_viewer.render.overlays.overlays import (
    COLUMN_SHARE,
    LEFT,
    PANELS,
    RIGHT,
    PanelArea,
    PanelRequest,
    arrange,
)
from racer_viewer.snapshot import PolicyInsight, Snapshot
from racer_viewer.ui.theme import MARGIN, Theme, fitting_scale

SIZES = ((960, 540), (1280, 720), (1024, 768), (960, 1080), (2560, 1080), (3840, 2160))
WANTED_SCALES = (0.8, 1.0, 1.5, 2.0)
IMPORTANCE = sorted(PANELS, key=lambda name: -PANELS[name].importance)
SUBSETS = [set(names) for count in range(7) for names in itertools.combinations(OVERLAYS, count)]
ROOM = PanelArea((1280, 720), 232, 16, 8)


def check_apart(rects: Iterable[pygame.Rect], window: tuple[int, int], margin: int) -> None:
    inside = pygame.Rect(0, 0, *window).inflate(-2 * margin, -2 * margin)
    for rect in rects:
        assert inside.contains(rect)
        assert rect.right <= COLUMN_SHARE * window[0] or rect.left >= (1.0 - COLUMN_SHARE) * window[0]
    assert not any(a.colliderect(b) for a, b in itertools.combinations(rects, 2))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("wanted", WANTED_SCALES)
def test_panels_never_overlap_nor_leave_the_window(
    size: tuple[int, int], wanted: float, snapshot_of: Callable[..., Snapshot], thought: PolicyInsight
) -> None:
    theme = Theme(fitting_scale(size, wanted))
    overlays, surface = Overlays(theme), pygame.Surface(size, depth=32)
    race = snapshot_of(8, insight=thought, gaps=tuple(range(8)))
    for shown in SUBSETS if size == (1280, 720) else SUBSETS[:: 9 if size[0] > 960 else 3]:
        for snapshot in (race, snapshot_of()):
            rects = overlays.draw(surface, snapshot, shown)
            assert bool(rects) == bool(shown)
            check_apart(rects, size, theme.px(MARGIN))


@pytest.mark.parametrize("scale", [0.8, 1.0, 2.0, 4.0])
def test_a_scale_that_is_too_large_for_the_window_is_made_smaller(
    scale: float, snapshot_of: Callable[..., Snapshot]
) -> None:
    theme, size = Theme(scale), (960, 540)
    rects = Overlays(theme).draw(pygame.Surface(size, depth=32), snapshot_of(), OVERLAYS)
    assert len(rects) >= 4
    check_apart(rects, size, theme.px(MARGIN))


def test_a_window_with_no_room_for_letters_has_no_panels(snapshot_of: Callable[..., Snapshot]) -> None:
    assert Overlays(Theme(1.0)).draw(pygame.Surface((320, 200), depth=32), snapshot_of(), OVERLAYS) == []


@pytest.mark.parametrize("size", [(1280, 720), (1920, 1080), (3840, 2160)])
def test_at_the_natural_scale_there_is_room_for_everything(
    size: tuple[int, int], snapshot_of: Callable[..., Snapshot], thought: PolicyInsight
) -> None:
    surface = pygame.Surface(size, depth=32)
    race = snapshot_of(8, insight=thought, gaps=tuple(range(8)))
    overlays = Overlays(Theme(fitting_scale(size)))
    assert len(overlays.draw(surface, race, OVERLAYS)) == len(OVERLAYS) + 2, "with the speed and the gaps"
    assert len(overlays.draw(surface, snapshot_of(), (*OVERLAYS, "rays"))) == len(OVERLAYS) + 1


def test_only_what_is_under_the_panels_changes(snapshot_of: Callable[..., Snapshot]) -> None:
    surface = pygame.Surface((1280, 720), depth=32)
    surface.fill((90, 120, 60))
    for rect in Overlays(Theme(1.0)).draw(surface, snapshot_of(), OVERLAYS):
        part = pygame.surfarray.array3d(surface.subsurface(rect))
        assert (part != (90, 120, 60)).any(axis=2).mean() > 0.95
        surface.fill((90, 120, 60), rect)
    assert (pygame.surfarray.array3d(surface) == (90, 120, 60)).all()


HEIGHTS = st.tuples(st.integers(20, 400), st.integers(0, 15)).map(lambda pair: (pair[0], pair[0] - pair[1]))


@given(
    heights=st.lists(HEIGHTS, min_size=len(IMPORTANCE), max_size=len(IMPORTANCE)),
    shown=st.sets(st.sampled_from(IMPORTANCE)),
    window=st.tuples(st.integers(900, 4000), st.integers(300, 2200)),
)
def test_whatever_the_heights_panels_are_apart(
    heights: list[tuple[int, int]], shown: set[str], window: tuple[int, int]
) -> None:
    room = PanelArea(window, 232, 16, 8)
    wishes = [PanelRequest(name, *pair) for name, pair in zip(IMPORTANCE, heights, strict=True) if name in shown]
    places = arrange(wishes, room)
    check_apart([place.rect for place in places], window, room.margin)
    ranked = [name for name in IMPORTANCE if name in shown]
    assert {place.name for place in places} == set(ranked[: len(places)]), "the least important are left out"
    small = {place.name for place in places if place.compact}
    kept = ranked[: len(places)]
    assert small == set(kept[len(kept) - len(small) :]), "the least important are compact"
    compact = [PanelRequest(wish.name, wish.compact, wish.compact) for wish in wishes]
    assert len(arrange(compact, room)) <= len(places), "none is left out that fits when all are compact"


def test_speed_and_map_lie_at_the_bottom_and_all_others_from_the_top() -> None:
    places = {place.name: place.rect for place in arrange([PanelRequest(name, 60, 50) for name in IMPORTANCE], ROOM)}
    assert len(places) == len(IMPORTANCE)
    assert all(places[name].bottom == 720 - 16 for name, kind in PANELS.items() if kind.at_bottom)
    assert places["timing"].topleft == (16, 16)
    assert places["reward"].topright == (1280 - 16, 16)
    for column in ([name for name, kind in PANELS.items() if kind.column == side] for side in (LEFT, RIGHT)):
        tops = [places[name].top for name in column]
        assert tops == sorted(tops)
        assert len({places[name].left for name in column}) == 1


def test_a_panel_that_does_not_fit_at_home_goes_to_the_other_column() -> None:
    places = {
        place.name: place
        for place in arrange([PanelRequest("timing", 400, 400), PanelRequest("inputs", 400, 300)], ROOM)
    }
    assert places["timing"].rect.left < 640 < places["inputs"].rect.left
    assert not places["inputs"].compact


def test_panels_are_made_compact_before_any_is_left_out() -> None:
    wishes = [PanelRequest(name, 300, 150) for name in ("timing", "inputs", "physics", "reward", "agent")]
    places = arrange(wishes, ROOM)
    assert len(places) == 5
    assert {place.name for place in places if place.compact} == {"agent", "physics"}


def test_rectangles_are_the_same_as_long_as_the_same_is_shown(snapshot_of: Callable[..., Snapshot]) -> None:
    surface, overlays = pygame.Surface((1280, 720), depth=32), Overlays(Theme(1.0))
    first = overlays.draw(surface, snapshot_of(), OVERLAYS)
    second = overlays.draw(surface, snapshot_of(speed=99.0, step_count=5), list(reversed(OVERLAYS)))
    assert first == second
    resized = overlays.draw(pygame.Surface((1400, 720), depth=32), snapshot_of(), OVERLAYS)
    np.testing.assert_array_equal([rect.size for rect in resized], [rect.size for rect in first])
    assert resized != first
