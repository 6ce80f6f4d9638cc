"""A game applies the latest action in every tick, restarts episodes and keeps their ends."""

from typing import Any

from racer_env.games.game import DrawData, Game, TickResult
from racer_env.games.worker_protocol import Action


class Corridor:
    """Game backend whose reward is the gas; an episode ends after a distance of 5."""

    def __init__(self) -> None:
        self.place, self.starts, self.drawn = 0.0, 0, 0
        self.actions: list[Action] = []

    def restart(self) -> None:
        self.place = 0.0
        self.starts += 1

    def tick(self, action: Action) -> TickResult:
        self.actions.append(action)
        self.place += action[1]
        return TickResult(action[1], terminated=self.place >= 5.0, info={"place": self.place})

    def telemetry(self) -> dict[str, Any]:
        return {"place": self.place}

    def frame(self) -> bytes:
        self.drawn += 1
        return bytes([round(self.place)])

    def draw_data(self, width: int, height: int) -> DrawData:
        return DrawData("pixels", width, height, b"")


def started(max_steps: int = 100, frames: bool = True) -> tuple[Game, Corridor]:
    corridor = Corridor()
    game = Game(2, corridor, max_steps, frames)
    assert game.restart() is None
    return game, corridor


def test_the_latest_action_is_applied_in_every_tick_and_survives_restarts() -> None:
    game, corridor = started()
    game.tick()
    game.action = (0.5, 1.0, 0.0)
    for _ in range(6):
        game.tick()
    assert corridor.actions == [(0.0, 0.0, 0.0), *[(0.5, 1.0, 0.0)] * 6]
    assert corridor.starts == 2


def test_an_episode_that_ends_is_kept_and_the_next_one_begins() -> None:
    game, _ = started()
    game.action = (0.0, 1.0, 0.0)
    endings = [game.tick() for _ in range(5)]
    assert endings[:4] == [None] * 4
    end = endings[4]
    assert end is not None
    assert not end.truncated
    assert not end.by_reset
    assert end.frame == "BQ=="
    assert end.snapshot.telemetry == {"place": 5.0, "steps": 5, "total_reward": 5.0}
    assert (end.snapshot.episode, end.snapshot.reward, end.snapshot.info) == (1, 1.0, {"place": 5.0})
    now = game.snapshot()
    assert now.telemetry == {"place": 0.0, "steps": 0, "total_reward": 0.0}
    assert (now.game_id, now.episode, now.reward, now.info) == (2, 2, 0.0, {})


def test_an_episode_of_full_length_is_truncated() -> None:
    game, _ = started(max_steps=3)
    assert [game.tick(), game.tick()] == [None, None]
    end = game.tick()
    assert end is not None
    assert end.truncated


def test_a_restart_ends_an_episode_only_if_it_had_a_tick() -> None:
    game, _ = started()
    assert game.restart() is None
    game.tick()
    end = game.restart()
    assert end is not None
    assert end.truncated
    assert end.by_reset
    assert end.snapshot.episode == 2
    assert game.snapshot().episode == 3


def test_a_frame_is_drawn_once_per_tick_and_never_without_frames() -> None:
    game, corridor = started()
    assert game.frame() == game.frame() == "AA=="
    game.action = (0.0, 2.0, 0.0)
    game.tick()
    assert game.frame() == "Ag=="
    assert corridor.drawn == 2
    game, corridor = started(max_steps=1, frames=False)
    end = game.tick()
    assert end is not None
    assert end.frame is None
    assert corridor.drawn == 0
