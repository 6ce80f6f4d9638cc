"""Heat is where cars were, cools, and is drawn where it is."""

import numpy as np
import pygame
import pytest

from racer_env.engine import Track, load_circuit
from racer_viewer.render.camera import View
from racer_viewer.render.swarm_backdrop import HALF_LIFE, REFRESHED, Heat, SwarmBackdrop
from racer_viewer.render.swarm_legend import heat_colours
from racer_viewer.ui.theme import COLOUR_BLIND, ORDINARY

COLOURS = heat_colours(ORDINARY)
VIEW = View(0.0, 0.0, 1.0, (640, 360))


@pytest.fixture(scope="module")
def track() -> Track:
    return load_circuit("track-01")


@pytest.fixture
def heat(track: Track) -> Heat:
    return Heat(track)


def add(heat: Heat, *places: tuple[float, float], way: float = 1.0) -> None:
    heat.add(np.array(places), np.full(len(places), way))


def pixels_of(heat: Heat, view: View = VIEW) -> tuple[np.ndarray, tuple[int, int]]:
    """Opacity by column and row, and where it begins."""
    layer, place = heat.layer(view, COLOURS)
    return pygame.surfarray.array_alpha(layer), place


def test_heat_is_where_cars_were_and_only_there(track: Track, heat: Heat) -> None:
    line = track.centreline.points(np.linspace(0.0, track.length / 3.0, 200))
    heat.add(line, np.full(len(line), 2.0))
    assert all(heat.way_at(x, y) > 0.0 for x, y in line.tolist())
    beyond = track.centreline.points(np.linspace(track.length * 0.4, track.length * 0.95, 200))
    assert all(heat.way_at(x, y) == 0.0 for x, y in beyond.tolist())
    assert heat.grid.sum() == pytest.approx(400.0)


def test_a_place_is_the_warmer_the_more_was_driven_there(heat: Heat) -> None:
    add(heat, (10.0, 20.0), (10.0, 20.0), (-40.0, 20.0))
    add(heat, (10.0, 20.0), way=2.5)
    assert heat.way_at(10.0, 20.0) == pytest.approx(4.5)
    assert heat.way_at(-40.0, 20.0) == pytest.approx(1.0)


def test_what_is_beyond_the_circuit_or_nowhere_is_left_out(heat: Heat) -> None:
    add(heat, (1e5, 0.0), (0.0, -1e5), (np.nan, 3.0))
    assert not heat.grid.any()
    assert heat.way_at(1e5, 0.0) == 0.0


def test_a_place_that_nobody_comes_by_is_half_as_warm_after_its_half_life(heat: Heat) -> None:
    add(heat, (10.0, 20.0), way=8.0)
    heat.cool(int(HALF_LIFE))
    assert heat.way_at(10.0, 20.0) == pytest.approx(4.0)
    for _ in range(10):
        heat.cool(int(HALF_LIFE) // 10)
    assert heat.way_at(10.0, 20.0) == pytest.approx(2.0, rel=1e-3)


def test_without_a_half_life_nothing_cools(track: Track) -> None:
    heat = Heat(track, half_life=None)
    add(heat, (10.0, 20.0), way=8.0)
    heat.cool(10**6)
    assert heat.way_at(10.0, 20.0) == 8.0


def test_reset_makes_all_cold(heat: Heat) -> None:
    add(heat, (10.0, 20.0), way=8.0)
    heat.reset()
    assert not heat.grid.any()
    assert not pixels_of(heat)[0].any()


@pytest.mark.parametrize("view", [VIEW, View(40.0, -10.0, 2.6, (1280, 720)), View(0.0, 0.0, 0.6, (480, 270))])
@pytest.mark.parametrize("place", [(60.0, 35.0), (-220.0, -100.0), (250.0, 120.0)])
def test_heat_is_drawn_where_it_is(heat: Heat, view: View, place: tuple[float, float]) -> None:
    add(heat, place, way=1000.0)
    opacity, (left, top) = pixels_of(heat, view)
    drawn = np.argwhere(opacity > opacity.max() * 0.8).mean(axis=0)
    assert np.abs(np.add(drawn, (left, top)) - view.to_screen(*place)).max() < heat.cell * view.scale + 1.5
    assert 0 < (opacity > 0).sum() < (6.0 * heat.cell * view.scale + 4.0) ** 2, "and nowhere else"


def test_one_hot_spot_does_not_darken_the_rest(track: Track, heat: Heat) -> None:
    line = track.centreline.points(np.linspace(0.0, track.length, 2000))
    heat.add(line, np.full(len(line), 20.0))
    opacity, _ = pixels_of(heat)
    add(heat, (float(line[0, 0]), float(line[0, 1])), way=1e6)
    with_spot, _ = pixels_of(heat)
    assert with_spot.mean() > 0.8 * opacity.mean()


@pytest.mark.parametrize("palette", [ORDINARY, COLOUR_BLIND])
def test_hot_is_brighter_and_more_opaque_than_cold(palette: object) -> None:
    colours = heat_colours(palette).astype(int)  # type: ignore[arg-type]
    assert not colours[0].any()
    assert (np.diff(colours[:, 3]) >= 0).all()
    assert (np.diff(colours[:, :3].sum(axis=1)) >= -2).all()
    assert (colours[:, :3] <= colours[:, 3:]).all(), "multiplied with their opacity"


def test_heat_is_drawn_anew_only_a_few_times_a_second(
    track: Track, heat: Heat, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    layer = heat.layer
    monkeypatch.setattr(heat, "layer", lambda *given: made.append(1) or layer(*given))
    backdrop, surface = SwarmBackdrop(track, patient=True), pygame.Surface(VIEW.size, depth=32)
    for tick in range(60):
        add(heat, (10.0, 20.0))
        backdrop.draw(surface, VIEW, heat, COLOURS, tick)
    assert 3 <= len(made) <= 60 // REFRESHED + 1


def test_heat_that_does_not_change_is_not_drawn_anew(track: Track, heat: Heat, monkeypatch: pytest.MonkeyPatch) -> None:
    add(heat, (10.0, 20.0), way=100.0)
    backdrop, surface = SwarmBackdrop(track, patient=True), pygame.Surface(VIEW.size, depth=32)
    backdrop.draw(surface, VIEW, heat, COLOURS, 0)
    first = pygame.surfarray.array3d(surface)
    monkeypatch.setattr(heat, "layer", lambda *given: pytest.fail("drawn again"))
    for tick in range(1, 4 * REFRESHED):
        backdrop.draw(surface, VIEW, heat, COLOURS, tick)
    np.testing.assert_array_equal(pygame.surfarray.array3d(surface), first)
