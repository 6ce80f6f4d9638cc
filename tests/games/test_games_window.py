"""The window of a games server: its layout, and driving a game in it."""

from collections.abc import Callable
from pathlib import Path

import pygame
import pytest

from racer_env.bridge.net import ServerAddress
from racer_env.games import RacingGameClient
from racer_env.games.server import GamesServer
from racer_env.games.supervisor import GamesConfig
from racer_viewer.games.window import GamesWindow, ServerThread, tiles
from racer_viewer.settings import Settings
from tests.games.conftest import running_games
from tests.processes import wait_for

AREA = pygame.Rect(0, 26, 1280, 654)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 6, 7, 12])
def test_tiles_fill_the_area_without_overlap(count: int) -> None:
    found = tiles(AREA, count, 1.25, 6)
    assert len(found) == count
    assert len({tile.size for tile in found}) == 1
    for number, tile in enumerate(found):
        assert AREA.contains(tile)
        assert tile.collidelist(found[:number]) == -1
    assert sum(tile.width * tile.height for tile in found) > 0.5 * AREA.width * AREA.height


def test_tiles_make_the_pictures_as_large_as_they_can_be() -> None:
    six = tiles(AREA, 6, 1.25, 6)
    assert len({tile.x for tile in six}) == 3
    tall = tiles(pygame.Rect(0, 0, 600, 1200), 2, 1.25, 6)
    assert len({tile.x for tile in tall}) == 1


def press(key: int, down: bool = True) -> None:
    pygame.event.post(pygame.event.Event(pygame.KEYDOWN if down else pygame.KEYUP, key=key))


@pytest.mark.slow
@pytest.mark.parametrize("game", ["CarRacing-v3", "Racer-v0"])
def test_a_person_starts_and_stops_driving(game: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("Box2D")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    pygame.display.init()
    server = GamesServer(ServerAddress(port=0), GamesConfig(game, 2, 50.0, 1000, 1, True))
    server.listen()
    window = GamesWindow(server, range(2), Settings(window=(960, 540)))
    thread = ServerThread(server, lambda address: None)
    window.run_frame(playing=False)
    thread.start()

    def until(condition: Callable[[], bool], what: str) -> None:
        def frame() -> bool:
            window.run_frame(thread.is_playing)
            return condition()

        wait_for(frame, what, 60)

    try:
        until(lambda: thread.is_playing, "the games are set up")
        until(lambda: len(colours(window)) > 8, "the games are drawn")
        with RacingGameClient(port=server.address.port, frames=False) as client:
            client.set_action((0.0, 0.0, 1.0), 1)
            press(pygame.K_TAB)
            press(pygame.K_t)
            press(pygame.K_UP)
            until(lambda: client.get_state(1).telemetry["speed"] > 5.0, "the person overrides the client")
            assert window.is_driving
            assert server.supervisor.games[1].human_action is not None
            assert server.supervisor.games[0].human_action is None
            press(pygame.K_UP, down=False)
            press(pygame.K_t)
            until(lambda: server.supervisor.games[1].human_action is None, "the person has stopped driving")
            until(lambda: client.get_state(1).telemetry["speed"] < 1.0, "the client brakes again")
        press(pygame.K_ESCAPE)
        until(lambda: not window.is_open, "the window is closed")
    finally:
        server.stop()
        thread.join()
        window.close()
        pygame.display.quit()
    assert thread.problem is None


def colours(window: GamesWindow) -> set[tuple[int, ...]]:
    surface = window.surface
    width, height = surface.get_size()
    return {tuple(surface.get_at((x, y)))[:3] for x in range(0, width, 7) for y in range(40, height - 80, 7)}


@pytest.mark.slow
def test_the_window_uses_the_settings_of_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    data = tmp_path / "data"
    data.mkdir()
    (data / "settings.json").write_text("damaged")
    with running_games(tmp_path, "--game", "Racer-v0", "--render", "human", "--data-dir", str(data)) as games:
        wait_for((data / "settings.damaged.json").is_file, "the settings are read")
        assert games.end() == 0
