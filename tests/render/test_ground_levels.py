"""The ground at any scale: that it shows the same world, and that no frame has much to do."""

import itertools

import numpy as np
import pygame
import pytest

from racer_env.engine import Track, load_circuit
from racer_viewer.render import ground, tiles
from racer_viewer.render.camera import View
from racer_viewer.render.road import ASPHALT, RUNOFF, SHOULDER, WALL, build_course, racing_line
from racer_viewer.render.scenery import Woods
from racer_viewer.render.tiles import GroundLevels, fitting_level, level_scale

SIZE = (640, 360)


@pytest.fixture(scope="module")
def track() -> Track:
    return load_circuit("track-01")


@pytest.fixture(scope="module")
def large() -> Track:
    return load_circuit("track-06")


def picture_of(shown: GroundLevels, view: View, patient: bool = True) -> np.ndarray:
    surface = pygame.Surface(view.size, depth=32)
    surface.fill((255, 0, 255))
    shown.draw(surface, view, patient)
    return pygame.surfarray.array3d(surface).swapaxes(0, 1).astype(int)


def start_view(track: Track, scale: float, size: tuple[int, int] = SIZE) -> View:
    return View(track.start[0], track.start[1], scale, size)


def test_trees_are_the_same_in_every_rectangle_and_come_from_back_to_front(large: Track) -> None:
    woods = Woods(build_course(large))
    x, y = large.start[:2]
    everywhere, here = woods.trees(x - 900, y - 900, x + 900, y + 900), woods.trees(x, y, x + 200, y + 200)
    assert (np.diff(everywhere.y) <= 0.0).all()
    inside = (np.abs(everywhere.x - x - 100) < 100) & (np.abs(everywhere.y - y - 100) < 100)
    assert inside.sum() > 10
    found = set(zip(here.x.tolist(), here.y.tolist(), here.kind.tolist(), strict=True))
    columns = (each[inside].tolist() for each in (everywhere.x, everywhere.y, everywhere.kind))
    assert found >= set(zip(*columns, strict=True))
    assert not len(woods.trees(x + 1e6, y, x + 1e6 + 100, y + 100).x)


@pytest.mark.parametrize("scale", [0.7, 1.9, 4.0, level_scale(-1), 5.3, 6.5, 9.7, 14.0, 31.0])
def test_every_surface_is_in_its_place_at_every_scale(track: Track, scale: float) -> None:
    view = start_view(track, scale)
    picture = picture_of(GroundLevels(track), view)
    assert not (picture == (255, 0, 255)).all(axis=2).any(), "all is covered"
    inner, outer, edge = track.inner[5], track.outer[5], track.outer_road[5]
    away = (outer - inner) / np.hypot(*(outer - inner))
    places = {"asphalt": (edge - 8.0 * away, ASPHALT[0]), "shoulder": (edge + 8.0 * away, SHOULDER[0]),
              "runoff": (outer - 3.0 * away, RUNOFF), "wall": (outer + 0.45 * away, WALL)}  # fmt: skip
    seen = 0
    for name, (place, colour) in places.items():
        x, y = (round(at) for at in view.to_screen(*place.tolist()))
        if 1 <= x < SIZE[0] - 1 and 1 <= y < SIZE[1] - 1 and (name != "wall" or scale > 4.0):
            np.testing.assert_allclose(picture[y, x], colour, atol=24, err_msg=name)
            seen += 1
    assert seen >= 1 or scale > 4.0


def test_the_picture_moves_with_the_view_by_parts_of_pixels(track: Track) -> None:
    shown = GroundLevels(track)
    x, y, _ = track.start
    moved = [picture_of(shown, View(x + shift / 5.3, y, 5.3, SIZE)) for shift in (0.0, 0.5, 1.0)]
    whole = np.abs(moved[0][:, 1:] - moved[2][:, :-1]).mean()
    nothing = np.abs(moved[0] - moved[2]).mean()
    assert whole < 0.35 * nothing, "a pixel further, the picture is the same a pixel to the left"
    half = (moved[0][:, 1:] + moved[0][:, :-1]) / 2.0
    assert np.abs(half - moved[1][:, :-1]).mean() < np.abs(moved[0][:, :-1] - moved[1][:, :-1]).mean()


def test_a_level_is_never_enlarged_much_and_never_shrunk_to_half() -> None:
    for scale in np.geomspace(0.2, 26.0, 200).tolist():
        ratio = scale / level_scale(fitting_level(scale))
        assert 0.6 < ratio < 1.21


def test_no_frame_draws_more_than_one_new_tile(large: Track, monkeypatch: pytest.MonkeyPatch) -> None:
    shown, drawn = GroundLevels(large), []
    original = ground.Ground.render_tile
    monkeypatch.setattr(ground.Ground, "render_tile", lambda self, *at: drawn.append(at) or original(self, *at))
    x, y, _ = large.start
    views = [start_view(large, 5.0)] * 5 + [View(x + 3.0 * k, y, 5.0 - 0.02 * k, SIZE) for k in range(60)]
    for view in [*views, View(-x, -y, 6.5, SIZE), View(0.0, 0.0, 0.5, SIZE)]:
        drawn.clear()
        picture = picture_of(shown, view, patient=False)
        assert len(drawn) <= 1
        assert not (picture == (255, 0, 255)).all(axis=2).any()


def test_what_is_shown_at_once_is_coarse_and_becomes_the_picture(track: Track) -> None:
    shown, view = GroundLevels(track), start_view(track, 6.5)
    goal = picture_of(GroundLevels(track), view)
    errors = [np.abs(picture_of(shown, view, patient=False) - goal).mean() for _ in range(30)]
    assert errors[0] < 40.0
    assert errors[-1] == 0.0
    assert sum(later > earlier + 0.5 for earlier, later in itertools.pairwise(errors)) == 0


def test_a_view_that_drives_on_finds_its_tiles_prepared(track: Track, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = GroundLevels(track)
    x, y, _ = track.start
    for _ in range(80):
        picture_of(shown, start_view(track, 6.5), patient=False)
        shown.draw_ahead(start_view(track, 6.5))
    drawn = []
    original = ground.Ground.render_tile
    for k in range(60):
        view = View(x + 2.0 * k, y, 6.5, SIZE)
        with monkeypatch.context() as patch:
            patch.setattr(ground.Ground, "render_tile", lambda self, *at: drawn.append(at) or original(self, *at))
            picture_of(shown, view, patient=False)
        shown.draw_ahead(view)
    assert len(drawn) <= 2


def test_a_coarser_tile_made_from_finer_ones_shows_the_same(track: Track) -> None:
    shrunk, direct = GroundLevels(track), GroundLevels(track)
    near, far = start_view(track, 6.5, (900, 600)), start_view(track, level_scale(-1))
    for _ in range(120):
        picture_of(shrunk, near, patient=False)
    for _ in range(40):
        picture_of(shrunk, far, patient=False)
        shrunk.draw_ahead(far)
    assert shrunk.shown_level == -1
    assert np.abs(picture_of(shrunk, far, patient=False) - picture_of(direct, far)).mean() < 4.0


def test_tiles_of_a_level_do_not_pile_up(large: Track, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "MAX_TILES", 40)
    shown = GroundLevels(large)
    for x in range(-700, 700, 60):
        picture_of(shown, View(float(x), -370.0, 2.0, SIZE))
    assert all(len(level.tiles) <= 60 for level in shown.levels.values())


def test_the_worn_line_is_on_the_road_and_shorter_than_its_middle(large: Track) -> None:
    arcs = np.arange(0.0, large.length, 4.0)
    line = racing_line(large, arcs)
    offset = np.hypot(*(line - large.centreline.points(arcs)).T)
    assert (offset < large.centreline.half_widths_at(arcs) - 4.0).all()
    assert offset.max() > 10.0
    assert np.hypot(*np.diff(line, axis=0).T).sum() < large.length * 0.99
